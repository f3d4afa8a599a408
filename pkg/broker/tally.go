package broker

import (
	"slices"
	"time"
)

// tally counts the answers to sampled announcements, and of how many sites chance was to draw them.
// An announcement counts when all had the time to answer it: of a hundred jobs that come together
// each would else see the others' announcements without their answers, and draw more sites for it.
type tally struct {
	rounds, drawn, answers float64
	open                   []*poll // oldest first
}

// poll is a sampled announcement.
type poll struct {
	drawn, answers float64   // sites that chance was to draw; answers so far
	until          time.Time // by then all had the time to answer
	counted        bool
}

// tallyRounds is after how many rounds those before count half.
const tallyRounds = 64

// add notes an announcement by which chance draws so many sites.
func (t *tally) add(drawn float64, until time.Time) *poll {
	p := &poll{drawn: drawn, until: until}
	t.open = append(t.open, p)
	return p
}

// hear notes an answer to a sampled announcement; nil: it was to another one.
func (t *tally) hear(p *poll) {
	switch {
	case p == nil:
	case p.counted:
		t.answers++
	default:
		p.answers++
	}
}

// settle counts the announcements that all had the time to answer.
func (t *tally) settle(now time.Time) {
	done := 0
	for done < len(t.open) && (t.open[done].counted || !t.open[done].until.After(now)) {
		t.count(t.open[done])
		done++
	}
	t.open = slices.Delete(t.open, 0, done)
}

// count counts an announcement, once.
func (t *tally) count(p *poll) {
	if p == nil || p.counted {
		return
	}
	p.counted = true
	if t.rounds >= tallyRounds {
		t.rounds, t.drawn, t.answers = t.rounds/2, t.drawn/2, t.answers/2
	}
	t.rounds++
	t.drawn += p.drawn
	t.answers += p.answers
}

// beside is the number of sites that answer beside those that are drawn: near ones, and the
// submitter's own, which always does. Where not all that are drawn can offer it is so many less.
// What is expected counts for as many rounds as are missing to a quarter of those that count in
// full.
func (t *tally) beside(expected float64) float64 {
	missing := max(tallyRounds/4-t.rounds, 0)
	return (t.answers - t.drawn + missing*expected) / (t.rounds + missing)
}

// isBelow reports whether fewer have answered than are asked for, also if so many more do.
func (t *tally) isBelow(replies, more int) bool {
	return t.answers+float64(more) < t.rounds*float64(replies)
}
