//go:build e2e

package e2e_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/mrsmesh/mrsmesh/internal/view"
)

// pageRounds has a job asked for three times, and looks at the rounds that were seen.
func pageRounds(t *testing.T, b *browser) {
	f := newFakeAgent(t, newPageFacts(9), false)
	p := newTab(t, b, f.URL, look{width: 360, height: 740})
	noon := time.Date(2026, time.March, 9, 12, 0, 0, 0, time.UTC)
	p.setClock(noon.Add(time.Hour))
	f.facts.offers.Asked = view.At(noon)
	near := f.facts.offers.Rows // two sites that give the same answer are drawn beside each other
	near[1].X, near[1].Y, near[1].Z, near[1].Distance = near[0].X, near[0].Y, near[0].Z, near[0].Distance
	p.openArray()
	p.await("the map is there", `document.querySelectorAll(".map path.site:not(.legend *)").length == 6`)
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
}

// roundSlider is what chooses a round.
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
	if t.Round == 1 {
		t.Answered -= 2
		t.Rows = slices.Delete(t.Rows[1:], 4, 5)
	}
	t.Asked, t.Round = view.At(at), round
	job := t.Job
	f.facts.mu.Unlock()
	f.events.Append(view.Event{Time: view.At(at), Kind: "task", Job: job})
}
