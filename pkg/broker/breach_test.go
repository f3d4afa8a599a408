package broker

import (
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

func declaring(count uint32) grid.Job {
	job := testJob(count)
	job.Spec.Outputs = []grid.Output{{Path: "/out"}}
	return job
}

// among submits a job of two tasks, for which a bids 0 and b more, unless it never can. It
// says to whom how many go, and what a got.
func (b *bench) among(bToo bool) (at map[grid.SiteID]int, atA []grid.AttemptID) {
	b.Helper()
	id := b.submit(declaring(2))
	b.hear("a", protocol.Bid{Job: id, Seq: b.m.asked(id).seq, Offer: offer(1, 0, 2)})
	if bToo {
		b.hear("b", protocol.Bid{Job: id, Seq: b.m.asked(id).seq, Offer: offer(1, 1, 2)})
	} else {
		b.refusal(id, "b", true)
	}
	at = make(map[grid.SiteID]int)
	to, given := sent[protocol.Award](b.refusal(id, self, true))
	for i, award := range given {
		for _, t := range award.Tasks {
			attempt := attemptOf(id, t.Index, t.Token)
			if at[to[i]]++; to[i] == "a" {
				atA = append(atA, attempt)
			}
			b.hear(to[i], protocol.Accepted{Attempts: []grid.AttemptID{attempt}, Renewal: 1})
		}
	}
	return at, atA
}

// A site that leaves out an output is passed over for ten minutes, also by the next run, and
// then gets one task until it has brought a result.
func TestASiteIsPassedOverAfterABreach(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	want := func(when string, bToo bool, atA, atB int) []grid.AttemptID {
		t.Helper()
		at, got := b.among(bToo)
		if at["a"] != atA || at["b"] != atB {
			t.Errorf("%s: %d tasks for a and %d for b, want %d and %d", when, at["a"], at["b"], atA, atB)
		}
		return got
	}
	first := want("at first", true, 2, 0)
	b.hear("a", ended(first[0]))
	want("after a breach", true, 0, 2)
	b.hear("a", ended(first[1], "/out"))
	b.do(step.Collected{Attempt: first[1]})
	want("after a result of before", true, 0, 2)
	want("where only it can", false, 2, 0)
	b.restart("a", "b")
	want("after a restart", true, 0, 2)
	b.pass(firstPass)
	trial := want("ten minutes later", true, 1, 1)
	want("on trial", true, 0, 2)
	b.hear("a", ended(trial[0]))
	b.pass(firstPass)
	want("after a second breach", true, 0, 2)
	b.pass(firstPass)
	trial = want("twenty minutes later", true, 1, 1)
	b.hear("a", ended(trial[0], "/out"))
	b.do(step.Collected{Attempt: trial[0]})
	trial = want("after a result", true, 1, 1)
	b.hear("a", ended(trial[0], "/out"))
	b.do(step.Collected{Attempt: trial[0]})
	want("after as many results", true, 2, 0)
}

// A breach is known to the next run, whatever comes between.
func TestABreachOutlivesTheRun(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	_, atA := b.among(true)
	b.hear("a", ended(atA[0]))
	b.restart("a", "b")
	if at, _ := b.among(true); at["a"] != 0 {
		t.Errorf("a was given %d tasks", at["a"])
	}
}

// Outputs that a site names and does not have are a breach; that it cannot be reached is none.
func TestForgedOutputsAreABreach(t *testing.T) {
	for _, away := range []bool{false, true} {
		b := newBench(t, nil, "a", "b")
		_, at := b.among(true)
		b.hear("a", ended(at[0], "/out"))
		if away {
			b.do(step.PeerGone{Site: "a"})
		}
		b.pass(b.m.cfg.CollectGiveUp + time.Second)
		b.do(step.Collected{Attempt: at[0], Problem: "gone"})
		if b.faultIndex("a") == 0 || (b.m.peers.breaches["a"].row == 0) != away {
			t.Errorf("away %t: fault index %d, %+v",
				away, b.faultIndex("a"), b.m.peers.breaches["a"])
		}
	}
}
