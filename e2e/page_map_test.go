//go:build e2e

package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// pageRounds has the sites asked again and again, and looks at the rounds that were seen.
func pageRounds(t *testing.T, b *browser) {
	f := newFakeAgent(t, newPageFacts(9), false)
	p := newTab(t, b, f.URL, look{width: 360, height: 740})
	noon := time.Date(2026, time.March, 9, 12, 0, 0, 0, time.UTC)
	p.setClock(noon.Add(time.Hour))
	f.facts.offers.Asked = view.At(noon)
	near, twin := f.facts.offers.Rows[0], &f.facts.offers.Rows[1]
	// Two sites that give the same answer are drawn beside each other.
	twin.X, twin.Y, twin.Z, twin.Distance = near.X, near.Y, near.Z, near.Distance
	p.openArray()
	p.await("the map is there",
		`document.querySelectorAll(".map path.site:not(.legend *)").length == 6`)
	p.check(!ask[bool](p, roundSlider+` != null`), "one round has a slider")
	first := ask[[]string](p, shownAnswers)

	f.asksAgain(noon.Add(3*time.Minute), 2)
	p.awaitRound("round 2 of 2, asked 12:03")
	second := ask[[]string](p, shownAnswers)
	p.check(len(second) == 4 && len(first) == 6, "%d of %d sites are shown, want 4 of 6",
		len(second), len(first))
	// The others have answered the same, and stand where they stood.
	for i, at := range second {
		p.check(at == first[i+1], "a site has moved from %s to %s", first[i+1], at)
	}

	p.do(chromedp.Focus(chromedp.CSS("#round")), chromedp.KeyEvent(kb.ArrowLeft))
	p.awaitRound("round 1 of 2, asked 12:00")
	p.awaitText("9 of 9 sites answered")
	for i, at := range ask[[]string](p, shownAnswers) {
		p.check(at == first[i], "in the first round a site stands at %s, stood at %s", at, first[i])
	}
	pageManyRounds(p, f, noon)
}

// pageManyRounds goes on from the first of two rounds, until more are seen than are kept.
func pageManyRounds(p *tab, f *fakeAgent, noon time.Time) {
	p.t.Helper()
	f.asksAgain(noon.Add(6*time.Minute), 3)
	p.awaitRound("round 1 of 3, asked 12:00") // a person has gone back, and it stays
	p.check(ask[bool](p, `document.activeElement.id == "round"`), "the slider has lost the focus")
	p.accessible("rounds")
	p.clean("rounds")
	p.do(chromedp.KeyEvent(kb.End))
	p.awaitRound("round 3 of 3, asked 12:06")
	for round := uint32(4); round <= 20; round++ {
		f.asksAgain(noon.Add(time.Duration(round)*time.Minute), round)
		p.awaitText(fmt.Sprintf("for the %d. time", round)) // it follows the newest
	}
	p.do(chromedp.KeyEvent(kb.Home))
	p.awaitRound("round 5 of 20, asked 12:05") // 16 are kept
	pageOpenedLater(p, f)
}

// pageOpenedLater opens the job in another tab, after all of these rounds: it has them as well, and
// goes on from there.
func pageOpenedLater(p *tab, f *fakeAgent) {
	p.t.Helper()
	later := newTab(p.t, p.in, f.URL, look{width: 1280})
	later.setClock(f.facts.offers.Asked.Add(time.Hour))
	later.openArray()
	later.awaitRound("round 20 of 20, asked 12:20")
	later.wantAsked(f, "GET", "/api/v1/jobs/job0000000000000/rounds?limit=16", "")
	later.do(chromedp.Focus(chromedp.CSS("#round")), chromedp.KeyEvent(kb.Home))
	later.awaitRound("round 5 of 20, asked 12:05")
	later.check(len(ask[[]string](later, shownAnswers)) == 4, "the answers of round 5 are missing")
	f.asksAgain(f.facts.offers.Asked.Add(time.Minute), 21)
	later.awaitRound("round 6 of 21, asked 12:06") // the fifth has left the list
	later.do(chromedp.KeyEvent(kb.End))
	later.awaitRound("round 21 of 21, asked 12:21")
	later.accessible("rounds of before")
	later.shoot("rounds")
	later.clean("rounds of before")
}

// roundSlider chooses a round.
const roundSlider = `document.querySelector("#round")`

// shownAnswers are the sites that offer, nearest first, by their places on the map.
const shownAnswers = `[...document.querySelectorAll(".map path.site:not(.legend *)")].map(
	s => s.getAttribute("transform"))`

// openArray opens the page, and on it the array.
func (p *tab) openArray() {
	p.t.Helper()
	p.open()
	p.do(chromedp.Click(`//a[normalize-space()="array"]`))
}

// awaitRound counts a check that the slider says which round is shown.
func (p *tab) awaitRound(text string) {
	p.t.Helper()
	p.await(text, roundSlider+`?.getAttribute("aria-valuetext") == `+quoted(text))
}

// asksAgain has the sites asked again: the nearest and the farthest one do not answer any more, and
// the others as before.
func (f *fakeAgent) asksAgain(at time.Time, round uint32) {
	f.facts.mu.Lock()
	t := &f.facts.offers
	before := *t
	before.Rows = slices.Clone(t.Rows)
	f.facts.rounds = append(f.facts.rounds, before)
	if t.Round == 1 {
		t.Answered -= 2
		t.Rows = slices.Delete(t.Rows[1:], 4, 5)
	}
	t.Asked, t.Round = view.At(at), round
	job := t.Job
	f.facts.mu.Unlock()
	f.events.Append(view.Event{Time: view.At(at), Kind: "task", Job: job})
}

// pageArrows shows tasks that were at several sites, as arrows and as a table.
func pageArrows(t *testing.T, b *browser) {
	for _, l := range []look{{width: 1280}, {width: 360, height: 740, dark: true}} {
		f := newFakeAgent(t, newPageFacts(9), false)
		f.facts.tries = map[int][]view.AttemptView{
			7: {
				try(1, "site-0", "the site fell silent"),
				try(2, "site-3", "moved: its owner is back"), try(3, "oak", "exited"),
			},
			8: {try(1, "site-0", "the site fell silent"), try(2, "site-3", "exited")},
			// It was never at a site that has declined it, and began again at the same one.
			9: {
				try(1, "site-4", "declined: no capacity"), try(2, "site-1", "site restarted: died"),
				try(3, "site-1", "exited"),
			},
		}
		p := newTab(t, b, f.URL, l)
		p.openArray()
		p.await("there are two arrows",
			`document.querySelectorAll(".map .arrow title").length == 2`)
		p.wantArrows()
		p.wantSentence("oak: not asked in this round")
		p.do(chromedp.Click(chromedp.CSS("details.changes summary")))
		rows := ask[[]string](p, `[...document.querySelectorAll("details.changes tbody tr")].map(
			r => [...r.cells].map(c => c.innerText).join(" | "))`)
		p.check(slices.Equal(rows, []string{
			"7 | site-0 | site-3 | the site fell silent",
			"7 | site-3 | oak | moved: its owner is back",
			"8 | site-0 | site-3 | the site fell silent",
		}), "the table has %q", rows)
		p.accessible("arrows")
		p.shoot(fmt.Sprintf("arrows-%d", l.width))
		p.clean("arrows")
		pageManyArrows(p, f)
	}
}

// try is an attempt at a site that has ended so.
func try(token grid.Token, site, cause string) view.AttemptView {
	id := grid.SiteID("12D3KooW" + site)
	var n int
	if _, err := fmt.Sscanf(site, "site-%d", &n); err == nil {
		id = grid.SiteID(fmt.Sprintf("12D3KooWSite%040d", n))
	}
	return view.AttemptView{Token: token, Site: id, SiteName: site, Cause: cause}
}

// arrowsDrawn are the arrows of the map. beside: the smallest distance of an end from the middle of
// a mark; below: whether all marks are drawn after it.
const arrowsDrawn = `(() => {
	const marks = [...document.querySelectorAll(".map path.site, .map path.refused, .map .absent")]
		.filter(m => !m.closest(".legend"));
	const places = marks.map(m => m.getAttribute("transform")?.match(/[-.0-9]+/g).map(Number) ??
		[m.cx.baseVal.value, m.cy.baseVal.value]);
	return [...document.querySelectorAll(".map .arrow:has(title)")].map(a => {
		const line = a.querySelector("path"), style = getComputedStyle(line);
		const scale = line.getScreenCTM().a;
		const ends = [0, line.getTotalLength()].map(l => line.getPointAtLength(l));
		return {
			Title: a.querySelector("title").textContent,
			Number: a.querySelector("text")?.textContent ?? "",
			Width: parseFloat(style.strokeWidth) * scale,
			Dashed: style.strokeDasharray != "none",
			Head: document.querySelector(style.markerEnd.match(/#[a-z]+/)[0])?.tagName == "marker",
			Beside: Math.min(...ends.flatMap(e => places.map(
				([x, y]) => Math.hypot(e.x - x, e.y - y)))),
			Below: marks.every(
				m => a.compareDocumentPosition(m) & Node.DOCUMENT_POSITION_FOLLOWING),
		};
	});
})()`

// arrowDrawn is one of them.
type arrowDrawn struct {
	Title, Number       string
	Width, Beside       float64
	Dashed, Head, Below bool
}

// wantArrows counts that both arrows say what they are for, and hide no site.
func (p *tab) wantArrows() {
	p.t.Helper()
	arrows := ask[[]arrowDrawn](p, arrowsDrawn)
	want := []arrowDrawn{
		{
			Title: "task 7: from site-0 to site-3: the site fell silent\n" +
				"task 8: from site-0 to site-3: the site fell silent",
			Number: "2", Dashed: true,
		},
		{Title: "task 7: from site-3 to oak: moved: its owner is back"},
	}
	for i, a := range arrows {
		p.check(a.Title == want[i].Title && a.Number == want[i].Number &&
			a.Dashed == want[i].Dashed, "arrow %d is %+v, want %+v", i, a, want[i])
		p.check(a.Head && a.Below && a.Beside > 6 && a.Width <= 4, "arrow %d is drawn as %+v", i, a)
	}
	p.check(arrows[0].Width > arrows[1].Width, "two tasks are %.2f px wide, one is %.2f px",
		arrows[0].Width, arrows[1].Width)
}

// wantSentence counts that the last site to which the keys go is said to be that.
func (p *tab) wantSentence(text string) {
	p.t.Helper()
	p.do(chromedp.Focus(chromedp.CSS(".map svg[role]")), chromedp.KeyEvent(kb.End))
	p.await(text, `document.querySelector("#under").innerText == `+quoted(text))
}

// pageManyArrows has more pairs of sites than the map has arrows, and one with more tasks than the
// width of a line can say.
func pageManyArrows(p *tab, f *fakeAgent) {
	p.t.Helper()
	f.tell(func(facts *pageFacts) {
		for i := range 50 {
			facts.tries[i] = []view.AttemptView{
				try(1, "site-0", "the site fell silent"), try(2, "site-1", "the site fell silent"),
				try(3, fmt.Sprintf("far-%d", i), "the site fell silent"),
				try(4, fmt.Sprintf("farther-%d", i), "exited"),
			}
		}
	})
	f.events.Append(view.Event{Time: view.At(time.Now()), Kind: "task", Job: f.facts.offers.Job})
	p.await("there are 50 arrows",
		`document.querySelectorAll(".map .arrow title").length == 50`)
	thickest := ask[[]arrowDrawn](p, arrowsDrawn)[0]
	p.check(thickest.Number == "50" && thickest.Width <= 4, "50 tasks have the arrow %+v", thickest)
	p.check(strings.HasSuffix(thickest.Title, "\nand 40 more"), "its title is %q", thickest.Title)
	p.awaitText("Tasks that changed their site: 150 times")
	p.accessible("many arrows")
	p.shoot(fmt.Sprintf("many-arrows-%s", ask[string](p, "String(innerWidth)")))
	p.clean("many arrows")
}
