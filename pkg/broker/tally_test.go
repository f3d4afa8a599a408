package broker

import (
	"testing"
	"time"
)

// An announcement counts with its answers, when all had the time to answer: not before, once, and
// with those that come later. One whose search has ended counts without delay.
func TestAnAnnouncementCountsWithItsAnswers(t *testing.T) {
	var n tally
	now := time.Unix(0, 0)
	want := func(when string, rounds, drawn, answers float64, open int) {
		t.Helper()
		if n.settle(now); n.rounds != rounds || n.drawn != drawn || n.answers != answers ||
			len(n.open) != open {
			t.Errorf("%s: %v rounds, %v drawn, %v answers, %d open; want %v, %v, %v, %d", when,
				n.rounds, n.drawn, n.answers, len(n.open), rounds, drawn, answers, open)
		}
	}
	first, second := n.add(10, now.Add(time.Second)), n.add(20, now.Add(2*time.Second))
	n.hear(first)
	n.hear(nil)
	want("under way", 0, 0, 0, 2)
	now = now.Add(time.Second)
	want("the first had its time", 1, 10, 1, 1)
	n.hear(first)
	want("a late answer", 1, 10, 2, 1)
	n.hear(second)
	n.count(second)
	n.count(second)
	n.count(nil)
	want("the second has searched", 2, 30, 3, 0)
	now = now.Add(time.Hour)
	want("later", 2, 30, 3, 0)
}

// After so many rounds those before count half.
func TestEarlierRoundsCountLess(t *testing.T) {
	var n tally
	now := time.Unix(0, 0)
	for range tallyRounds + 1 {
		p := n.add(2, now)
		n.hear(p)
		n.settle(now)
	}
	if n.rounds != tallyRounds/2+1 || n.drawn != tallyRounds+2 || n.answers != tallyRounds/2+1 {
		t.Errorf("%v rounds, %v drawn, %v answers", n.rounds, n.drawn, n.answers)
	}
}

// What is expected fills up the rounds that are missing to sixteen.
func TestWhatAnswersBesideThoseDrawn(t *testing.T) {
	for _, c := range []struct {
		tally tally
		want  float64
	}{
		{tally{}, 9},
		{tally{rounds: 8, drawn: 80, answers: 80 + 8*17}, 13},
		{tally{rounds: 16, drawn: 160, answers: 160 + 16*4}, 4},
		{tally{rounds: 50, drawn: 500, answers: 500 - 50}, -1},
	} {
		if got := c.tally.beside(9); got != c.want {
			t.Errorf("%+v: %v, want %v", c.tally, got, c.want)
		}
	}
}
