//go:build e2e

package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/yield"
)

// pageWords shows statuses and hours, and compares what the page says with what siteagent status
// says and pkg/yield decides: the page has both again, in another language.
func pageWords(t *testing.T, b *browser) {
	var cases []struct {
		Name, Words string
		Now         time.Time
		Status      view.AgentStatus
	}
	text, err := os.ReadFile("../internal/api/web/testdata/sharing.json")
	if err == nil {
		err = json.Unmarshal(text, &cases)
	}
	if err != nil || len(cases) == 0 {
		t.Fatalf("%d cases: %v", len(cases), err)
	}
	f := newFakeAgent(t, newPageFacts(1), false)
	p := newTab(t, b, f.URL, look{width: 1280})
	p.setClock(cases[0].Now)
	p.open()
	p.awaitText("Sharing: ")
	for _, c := range cases {
		f.tell(func(facts *pageFacts) {
			facts.status = c.Status
			facts.status.Version = c.Name // stands at the end of the page, when it is shown
		})
		p.awaitText("version " + c.Name)
		want := strings.Replace(c.Words, "siteagent resume", "Resume", 1) // the button is there
		got := ask[string](p, `document.querySelector("#state-title").innerText`)
		_, got, _ = strings.Cut(got, "Sharing: ")
		p.check(got == want, "%s: the page says %q, siteagent status %q", c.Name, got, want)
	}
	for i, hours := range []string{
		"mon-fri 18:00-08:00", "sat-sun 00:00-24:00, wed 12:00-13:00", "22:00-06:00",
		"fri-mon 20:00-04:00", "sun 23:00-01:00", "mon-fri 18:00-08:00, mon-fri 08:00-18:00 25%",
	} {
		p.wantHours(f, hours, fmt.Sprintf("hours-%d", i))
	}
}

// setClock has the page's clock begin at a time, in UTC, and run so fast that the page loads what
// an event concerns immediately and not after a second.
func (p *tab) setClock(at time.Time) {
	p.t.Helper()
	zone := emulation.SetTimezoneOverrideParams{TimezoneID: "UTC"}
	clock := page.AddScriptToEvaluateOnNewDocumentParams{
		Source: fmt.Sprintf("Date.now = () => %d + 60 * performance.now()", at.UnixMilli()),
	}
	err := told(chromedp.Call(p.ctx, emulation.SetTimezoneOverride, zone))
	if err == nil {
		err = told(chromedp.Call(p.ctx, page.AddScriptToEvaluateOnNewDocument, clock))
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// wantHours counts that the strips of the week show when the site is shared.
func (p *tab) wantHours(f *fakeAgent, text, mark string) {
	p.t.Helper()
	hours, err := yield.ParseHours(text)
	if err != nil {
		p.t.Fatal(err)
	}
	f.tell(func(facts *pageFacts) {
		facts.status.Owner = &view.OwnerView{Hours: text}
		facts.status.Version = mark
	})
	p.awaitText("version " + mark)
	shown := ask[[]bool](p, `[...document.querySelectorAll("rect.shared, rect.closed")].map(
		r => r.classList.contains("shared"))`)
	const week = 7 * 24
	p.check(len(shown) == week, "%s: %d hours are shown, want %d", text, len(shown), week)
	monday := time.Date(2026, time.March, 9, 0, 0, 0, 0, time.UTC)
	for i, is := range shown {
		at := monday.Add(time.Duration(i) * time.Hour)
		if is != hours.Open(at) {
			p.check(false, "%s: %s is shown as shared: %t", text, at.Format("Mon 15:04"), is)
		}
	}
}

// tell changes what the agent answers, and has an event say so.
func (f *fakeAgent) tell(change func(*pageFacts)) {
	f.facts.mu.Lock()
	change(f.facts)
	f.facts.mu.Unlock()
	f.events.Append(view.Event{Time: view.At(time.Now()), Kind: "owner"})
}
