//go:build e2e

package e2e_test

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/mrsmesh/mrsmesh/internal/view"
)

// TestPage opens the agent's page in a real browser, presses each button, and looks whether the
// right request comes from it. The answers are made, but for the last part, which has real agents.
func TestPage(t *testing.T) {
	b := newBrowser(t)
	parts := []struct {
		name string
		test func(*testing.T, *browser)
	}{
		{"sign in", pageSignsIn},
		{"buttons", pageButtons},
		{"limits", pageLimits},
		{"large and narrow", pageLargeAndNarrow},
		{"rounds", pageRounds},
		{"arrows", pageArrows},
		{"dark", pageDark},
		{"guest", pageGuest},
		{"words", pageWords},
		{"away", pageAway},
		{"agent", pageOfAgent},
	}
	done := 0
	for _, part := range parts {
		t.Run(part.name, func(t *testing.T) { part.test(t, b); done++ })
	}
	if done == len(parts) { // and no part was left out
		b.wantAllPressed(t)
	}
	t.Logf("page: %d checks in a real browser, %d failed", b.checks, b.failed)
}

// open goes to the page by a link, as siteagent open makes one.
func (p *tab) open() {
	p.t.Helper()
	p.do(chromedp.Navigate(p.url + "/#open=" + fakeCode))
}

// wantAsked counts that the page has asked that since the last look.
func (p *tab) wantAsked(f *fakeAgent, method, path, body string) {
	p.t.Helper()
	var all []asked
	deadline := time.Now().Add(10 * time.Second)
	for time.Now().Before(deadline) {
		all = append(all, f.take()...)
		if slices.Contains(all, asked{method, path, body}) {
			p.check(true, "")
			return
		}
		ask[bool](p, "new Promise(done => requestAnimationFrame(() => done(true)))")
	}
	p.check(false, "no request %s %s %s among %v", method, path, body, all)
}

func pageSignsIn(t *testing.T, b *browser) {
	f := newFakeAgent(t, newPageFacts(5), false)
	p := newTab(t, b, f.URL, look{width: 1280})
	p.do(chromedp.Navigate(f.URL + "/"))
	p.awaitText("siteagent open")
	p.awaitText("You are not signed in.")
	p.shoot("sign-in")
	p.accessible("sign-in note")
	p.do(chromedp.Navigate(f.URL + "/?again#open=stale"))
	p.awaitText("You are not signed in.")
	p.do(chromedp.Navigate(f.URL + "/?now#open=" + fakeCode))
	p.awaitText("Sharing: yes")
	hash := ask[string](p, "location.href + document.cookie")
	p.check(!strings.Contains(hash, fakeCode) && !strings.Contains(hash, "mrs-session"),
		"the address or the script's cookies still have the code or the session: %s", hash)
	p.do(chromedp.Reload())
	p.awaitText("Sharing: yes")
	p.wantAsked(f, "POST", "/api/v1/session", `{"code":"once"}`)
	p.press("Sign out")
	p.awaitText("You are not signed in.")
	p.wantAsked(f, "DELETE", "/api/v1/session", "")
	p.clean("sign-in")
}

func pageButtons(t *testing.T, b *browser) {
	f := newFakeAgent(t, newPageFacts(5), false)
	p := newTab(t, b, f.URL, look{width: 1280})
	p.open()
	p.awaitText("Sites: 5")
	p.awaitText("public: 3 sites directly, 1 by a relay")
	p.accessible("light")
	p.shoot("light")
	const first, second = "/api/v1/jobs/job0000000000000", "/api/v1/jobs/job0000000000001"
	const member = "/api/v1/members/12D3KooWGuest"
	for _, step := range []struct{ label, method, path, body string }{
		{"Pause", "POST", "/api/v1/pause", "{}"},
		{"Resume", "POST", "/api/v1/resume", ""},
		{"Pause for 1 h", "POST", "/api/v1/pause", `{"for_seconds":3600}`},
		{"Hold", "POST", second + "/hold", ""},
		{"Release", "POST", second + "/release", ""},
		{"Accept", "POST", member + strings.Repeat("0", 39) + "/admit", "{}"},
		{"Older", "GET", "/api/v1/jobs?limit=10&before=job0000000000009", ""},
		{"Newer", "GET", "/api/v1/jobs?limit=10", ""},
	} {
		f.take()
		p.press(step.label)
		p.wantAsked(f, step.method, step.path, step.body)
		p.check(ask[bool](p, `document.activeElement.closest("button, main") != null`),
			"the focus is lost when %q was pressed", step.label)
	}
	p.awaitText("page 1")
	f.take()
	p.press("Refuse")
	p.press("Keep")
	p.press("Refuse")
	p.press("Keep it out")
	p.wantAsked(f, "POST", member+strings.Repeat("0", 38)+"1/ban", "{}")
	pageFleet(p, f)
	pageJob(p, f, first)
	p.press("Cancel")
	p.press("Cancel it")
	p.wantAsked(f, "POST", first+"/cancel", "")
	p.awaitText("cancelled")
	p.clean("buttons")
}

// pageFleet asks the members what they say of themselves, and pauses one.
func pageFleet(p *tab, f *fakeAgent) {
	p.t.Helper()
	p.press("Ask the members")
	p.wantAsked(f, "GET", "/api/v1/fleet", "")
	p.awaitText("2 of 3 members say how they are.")
	p.awaitText("its owner does not allow it")
	p.press("Pause oak")
	p.wantAsked(f, "POST", "/api/v1/members/12D3KooWoak/pause", "{}")
	p.awaitText("no: paused from afar by attic")
	p.press("Resume oak")
	p.wantAsked(f, "POST", "/api/v1/members/12D3KooWoak/resume", "")
	p.awaitText("oak is resumed.")
	p.accessible("fleet")
}

// pageJob opens the array, and presses what its part of the page has.
func pageJob(p *tab, f *fakeAgent, job string) {
	p.t.Helper()
	p.do(chromedp.Click(`//a[normalize-space()="array"]`))
	p.awaitText("Tasks 0 to 49 of 10,000")
	p.wantAsked(f, "GET", job+"/tasks?from=0&limit=50", "")
	p.press("Later tasks")
	p.wantAsked(f, "GET", job+"/tasks?from=50&limit=50", "")
	p.awaitText("Tasks 50 to 99 of 10,000")
	p.press("Earlier tasks")
	p.awaitText("Tasks 0 to 49 of 10,000")
	p.await("the results are there", `document.querySelector("a.result") != null`)
	p.check(ask[string](p, `document.querySelector("a.result").getAttribute("href")`) ==
		"/api/v1/data/bafkreiresult", "the link of a result leads elsewhere")
	p.press("Log")
	p.awaitText("printed to stdout")
	p.press("Show stderr")
	p.awaitText("printed to stderr")
	p.press("Show stdout")
	p.wantAsked(f, "GET", "/api/v1/tasks/job0000000000000.0/logs?stream=stdout&follow=true", "")
	p.press("Close log")
	p.press("Ask the sites now")
	p.wantAsked(f, "POST", "/api/v1/plan",
		`{"kind":"wasm","need":{"milli_cpus":0,"memory_bytes":0,"disk_bytes":0},`+
			`"runtime_seconds":0,"count":1,"ttl_seconds":0}`)
	p.awaitText("as the sites would answer now")
	p.press("Show the last answers")
	p.awaitText("distance")
	p.do(chromedp.Focus(chromedp.CSS(".map svg[role]")), chromedp.KeyEvent(kb.End))
	p.await("the keys reach the last refusal",
		`/refuses: .*too little memory/.test(document.querySelector("#under").innerText)`)
	p.accessible("job")
	p.shoot("job")
}

// pageLimits moves sliders, and sees a wrong value refused in the agent's words.
func pageLimits(t *testing.T, b *browser) {
	f := newFakeAgent(t, newPageFacts(5), false)
	p := newTab(t, b, f.URL, look{width: 1280})
	p.open()
	p.await("the settings are there", `!document.querySelector(".switch input").disabled`)
	for _, step := range []struct{ setting, key, value string }{
		{"ceilings.cpus", kb.ArrowLeft, "5.5"},
		{"ceilings.memory", kb.ArrowRight, "8448MiB"},
		{"ceilings.disk", kb.ArrowLeft, "99GiB"},
		{"rates.down", kb.ArrowRight, "200Mbit/s"},
		{"rates.up", kb.ArrowLeft, "10Mbit/s"},
		{"in-use.cpus", kb.ArrowLeft, "95"},
		{"in-use.memory", kb.ArrowRight, "55"},
	} {
		f.take()
		slider := `input[name="` + step.setting + `"]`
		p.do(chromedp.Focus(chromedp.CSS(slider)), chromedp.KeyEvent(step.key))
		p.wantAsked(f, "PATCH", "/api/v1/configuration",
			fmt.Sprintf(`{"settings":{%q:%q}}`, step.setting, step.value))
		p.awaitText(step.setting + ": " + step.value + ", in force now")
		p.check(ask[bool](p, `document.activeElement.matches('`+slider+`')`),
			"the slider of %s has lost the focus", step.setting)
	}
	for label, setting := range map[string]string{
		"battery": "owner.battery", "costs money": "owner.metered",
	} {
		p.do(chromedp.Click(`//label[contains(., "` + label + `")]`))
		p.wantAsked(f, "PATCH", "/api/v1/configuration",
			fmt.Sprintf(`{"settings":{%q:"true"}}`, setting))
		p.awaitText(setting + ": true, in force now") // until then the page takes no other
	}
	p.await("the hours are selected", `document.querySelector("#hours").select() ?? true`)
	p.do(chromedp.KeyEvent("never"))
	p.press("Set")
	p.awaitText("want days and times such as mon-fri 18:00-08:00 (correct it)")
	p.clean("limits")
}

// pageLargeAndNarrow has 300 sites and an array of 10,000 on a telephone, and measures.
func pageLargeAndNarrow(t *testing.T, b *browser) {
	f := newFakeAgent(t, newPageFacts(300), false)
	p := newTab(t, b, f.URL, look{width: 360, height: 740})
	began := time.Now()
	p.open()
	p.awaitText("Sites: 300")
	shown := time.Since(began)
	paint := ask[float64](p, `performance.getEntriesByName("first-contentful-paint")[0].startTime`)
	t.Logf("300 sites and 10,000 tasks: first paint after %.0f ms, all shown after %d ms", paint,
		shown.Milliseconds())
	p.do(chromedp.Click(`//a[normalize-space()="array"]`))
	p.await("the map has 200 sites and 100 refusals",
		`document.querySelectorAll(".map path.site:not(.legend *)").length == 200 &&
		document.querySelectorAll(".map path.refused:not(.legend *)").length == 100`)
	pageMap(p)
	p.do(chromedp.Click(chromedp.CSS("details summary")))
	p.press("Farther sites")
	p.press("Nearer sites")
	p.press("Show more sites")
	p.awaitText("125 of 300 shown")
	p.accessible("narrow")
	p.shoot("narrow")
	p.clean("narrow")
	for _, a := range f.take() {
		p.check(!strings.Contains(a.path, "limit=") || strings.Contains(a.path, "limit=50") ||
			strings.Contains(a.path, "limit=1"),
			"a long list is asked for: %s", a.path)
	}
	pageLatency(p, f)
}

// mapPlaces are the places of the sites on the map.
const mapPlaces = `[...document.querySelectorAll(".map path.site:not(.legend *)")].map(
	s => s.getAttribute("transform").match(/[-.0-9]+/g).map(Number))`

// pageMap counts that no site on the map hides another one, that each is nearer to the job than
// the rim, and that the farther ones by their distance are farther on the map.
func pageMap(p *tab) {
	p.t.Helper()
	const radius = 200 // of the rim, in the drawing's units
	before, hidden := 0., 0
	places := ask[[][2]float64](p, mapPlaces)
	for i, at := range places {
		r := math.Hypot(at[0], at[1])
		p.check(r <= radius && r > before-1, "rank %d is at %.1f, after %.1f", i+1, r, before)
		before = r
		for _, other := range places[:i] {
			if math.Hypot(at[0]-other[0], at[1]-other[1]) < 4 { // half of a mark
				hidden++
			}
		}
	}
	p.check(hidden == 0, "%d of %d sites hide another one", hidden, len(places))
}

// pageLatency measures from an event to its job's new state on the page, and counts that many
// events cause few requests.
func pageLatency(p *tab, f *fakeAgent) {
	p.t.Helper()
	f.facts.mu.Lock()
	f.facts.jobs[1].Hint = "asked again just now"
	f.facts.mu.Unlock()
	f.take()
	began := time.Now()
	for range 1000 {
		f.events.Append(view.Event{Time: view.At(began), Kind: "task", Job: f.facts.jobs[1].ID})
	}
	p.awaitText("asked again just now")
	took := time.Since(began)
	p.t.Logf("from an event to the page: %d ms", took.Milliseconds())
	requests := len(f.take())
	p.check(requests < 30, "a thousand events in %s caused %d requests", took, requests)
}

func pageDark(t *testing.T, b *browser) {
	f := newFakeAgent(t, newPageFacts(50), false)
	p := newTab(t, b, f.URL, look{width: 1100, dark: true})
	p.open()
	p.awaitText("Sites: 50")
	p.do(chromedp.Click(`//a[normalize-space()="array"]`))
	p.await("the map is there", `document.querySelector(".map path.site") != null`)
	p.await("the tasks are there", `document.querySelectorAll("#job tbody tr").length >= 50`)
	p.accessible("dark")
	p.shoot("dark")
	p.clean("dark")
}

// pageGuest sees everything but jobs' content, and can do nothing.
func pageGuest(t *testing.T, b *browser) {
	f := newFakeAgent(t, newPageFacts(5), true)
	p := newTab(t, b, f.URL, look{width: 1280})
	p.open()
	p.awaitText("Sites: 5")
	p.awaitText("guest: you can look, and change nothing")
	buttons := slices.DeleteFunc(p.buttons(), func(label string) bool {
		return label == "Sign out" || label == "Older" || label == "Newer"
	})
	p.check(len(buttons) == 0, "a guest sees the buttons %q", buttons)
	p.check(ask[int](p, `document.querySelectorAll("input").length`) == 0,
		"a guest sees sliders")
	p.shoot("guest")
	p.accessible("guest")
	pageGuestsJob(p)
	for _, a := range f.take() {
		p.check(!closedToGuests.MatchString(a.path), "a guest's page asks for %s", a.path)
	}
	p.clean("guest")
}

// closedToGuests are what the agent refuses to guests.
var closedToGuests = regexp.MustCompile(
	`/(configuration|logs|data|plan|fleet|neighbours)|/jobs/\w+$`)

// pageGuestsJob opens a job as a guest: its tasks and the map are there, and nothing to be pressed
// but what turns pages.
func pageGuestsJob(p *tab) {
	p.t.Helper()
	p.do(chromedp.Click(`//a[normalize-space()="array"]`))
	p.awaitText("Tasks 0 to 49 of 10,000")
	p.await("the map is there", `document.querySelector(".map path.site") != null`)
	p.awaitText("running, 34 %")
	turns := []string{
		"Sign out", "Older", "Newer", "Earlier tasks", "Later tasks", "Nearer sites",
		"Farther sites",
	}
	buttons := slices.DeleteFunc(p.buttons(), func(label string) bool {
		return slices.Contains(turns, label)
	})
	p.check(len(buttons) == 0, "a guest sees the buttons %q in a job", buttons)
	p.check(ask[int](p, `document.querySelectorAll("a.result, .log").length`) == 0,
		"a guest sees results or logs")
	p.accessible("guest's job")
	p.shoot("guest-job")
}

// pageAway loses its agent, says so, and finds it again.
func pageAway(t *testing.T, b *browser) {
	f := newFakeAgent(t, newPageFacts(5), false)
	p := newTab(t, b, f.URL, look{width: 1280})
	p.open()
	p.awaitText("Sharing: yes")
	f.setAway(true)
	p.awaitText("not connected; trying again")
	p.awaitText("Sharing: yes") // what was known stays
	p.shoot("away")
	f.facts.mu.Lock()
	f.facts.status.Paused = true
	f.facts.mu.Unlock()
	f.setAway(false)
	p.awaitText("Sharing: no: paused")
	p.await("it is said that the agent is back",
		`!document.body.innerText.includes("not connected")`)
	pageHidden(p, f)
	f.setAway(true) // so that the page asks again, with a session that is no longer good
	p.awaitText("not connected; trying again")
	f.mu.Lock()
	f.expired, f.away = true, false
	f.mu.Unlock()
	p.awaitText("You are not signed in any more.")
	p.awaitText("siteagent open")
}

// pageHidden hides the tab, where nothing is asked whatever happens, and shows it again.
func pageHidden(p *tab, f *fakeAgent) {
	p.t.Helper()
	const turn = `Object.defineProperty(document, "hidden", {value: %t, configurable: true}) &&
		document.dispatchEvent(new Event("visibilitychange"))`
	ask[bool](p, fmt.Sprintf(turn, true))
	f.take()
	for range 50 {
		f.tell(func(facts *pageFacts) { facts.status.Paused = false })
		ask[bool](p, "new Promise(done => requestAnimationFrame(() => done(true)))")
	}
	asked := f.take()
	p.check(len(asked) == 0, "a hidden tab asks %v", asked)
	ask[bool](p, fmt.Sprintf(turn, false))
	p.awaitText("Sharing: yes")
}
