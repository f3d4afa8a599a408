package broker

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// A broker may run at another site than its owner's: jobs are the owner's, the machine, the
// data's first source and the answer of the own site are those of here.
func TestOwnerAndHere(t *testing.T) {
	const here = grid.SiteID("host")
	b := newBench(t, func(c *Config) { c.Here = here }, "a", self)
	job := testJob(1)
	job.Spec.Inputs = []grid.Input{{Path: "/in", CID: "bdata", Bytes: 5}}
	id := b.submit(job)
	_, announce := one[protocol.Announce](t, b.last)
	if announce.Submitter != self {
		t.Errorf("announced for %s, want the owner %s", announce.Submitter, self)
	}
	for _, source := range announce.Req.Sources {
		if len(source.Holders) != 1 || source.Holders[0] != here {
			t.Errorf("%s is held by %v, want %s", source.Digest, source.Holders, here)
		}
	}
	if !b.m.asked(id).round().expected[here] {
		t.Errorf("no answer of %s is awaited", here)
	}
	b.refusal(id, "a", false)
	b.refusal(id, self, false) // the owner's site is one like others
	b.offers(id, 1, here)
	if to, _ := one[protocol.Award](t, b.last); to != here {
		t.Errorf("awarded to %s, want %s", to, here)
	}
	b.hear(here, protocol.Accepted{Attempts: []grid.AttemptID{attemptOf(id, 0, 1)}, Renewal: 1})
	b.wantPhase(id, 0, grid.PhaseStaging)
}

// Journals hold the configuration; those of earlier versions know one name for both.
func TestJournalsOfOneNameAreRead(t *testing.T) {
	text, err := json.Marshal(Default(self))
	if err != nil || !strings.Contains(string(text), `"Self":"submitter"`) {
		t.Fatalf("%s, %v; want the owner under its old name", text, err)
	}
	var old Config
	if err := json.Unmarshal([]byte(`{"Self":"submitter","Lease":3000000000}`), &old); err != nil {
		t.Fatal(err)
	}
	m := New(old)
	if m.cfg.Owner != self || m.cfg.Here != self || m.cfg.Lease != 3*time.Second {
		t.Errorf("read %+v, want owner and place %s", m.cfg, self)
	}
	now := &run{cfg: Default(self), incarnation: 1}
	if one, two := newJobID(&run{cfg: old, incarnation: 1}, 1), newJobID(now, 1); one != two {
		t.Errorf("jobs are named %s and %s", one, two)
	}
}

// What follows from one job comes before the next, however deep.
func TestLooksAreTakenDepthFirst(t *testing.T) {
	follows := map[grid.JobID][]grid.JobID{"a": {"a1", "a2"}, "a1": {"a11"}}
	var l looks
	l.add("a", lookPredecessorEnded)
	l.add("b", lookReservationHeld)
	var taken []string
	for {
		next, some := l.next()
		if !some {
			break
		}
		taken = append(taken, string(next.job))
		for _, id := range follows[next.job] {
			l.add(id, lookPredecessorEnded)
		}
	}
	if got := strings.Join(taken, " "); got != "a a1 a11 a2 b" {
		t.Errorf("taken in the order %s", got)
	}
	if l.under || l.has("b", lookReservationHeld) {
		t.Error("a look is left over")
	}
}
