package broker

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// met is a broker whose sites, and the one of its own, have answered a job that
// has ended: two with offers, the last one with a refusal.
func met(t *testing.T, tune func(*Config), sites ...grid.SiteID) *bench {
	t.Helper()
	b := newBench(t, tune, sites...)
	first := b.submit(testJob(2))
	if to, _ := sent[protocol.Announce](b.last); !slices.Equal(to, []grid.SiteID{"*"}) {
		t.Fatalf("the first announcement went to %q, want all sites", to)
	}
	for _, s := range sites[:len(sites)-1] {
		b.offers(first, 1, s)
	}
	b.refusal(first, sites[len(sites)-1], true)
	b.refusal(first, self, true)
	if len(awards(b.last)) == 0 {
		t.Fatal("the first job was not placed")
	}
	b.do(step.CancelJob{Command: 2, Job: first})
	return b
}

func everybodyOf(sites ...grid.SiteID) []grid.SiteID { return append(slices.Clone(sites), self) }

func TestSitesThatAreKnownToAnswerAreAskedWithoutGossip(t *testing.T) {
	members := []grid.SiteID{"s1", "s2", "s3"}
	b := met(t, nil, members...)
	job := b.submit(testJob(1))
	if to, _ := sent[protocol.Announce](b.last); !slices.Equal(to, everybodyOf(members...)) {
		t.Errorf("the announcement went to %q, want each of %q", to, everybodyOf(members...))
	}
	placed := b.offers(job, 1, everybodyOf(members...)...)
	if to, clears := sent[protocol.Clear](placed); !slices.Equal(to, everybodyOf(members...)) ||
		clears[0].Kind != protocol.ClearPlaced {
		t.Errorf("that it is placed went to %q, want each of %q", to, everybodyOf(members...))
	}
	host, _ := one[protocol.Award](t, placed)
	b.do(step.CancelJob{Command: 3, Job: job})
	if to, _ := sent[protocol.Clear](b.last); !slices.Equal(to, []grid.SiteID{host}) {
		t.Errorf("the end of a job that all know to be placed went to %q, want %q alone", to, host)
	}
}

// Whatever happens after the first job, gossip must go out with the next one.
func TestGossipGoesOutWhereSomebodyMayBeUnknown(t *testing.T) {
	members := []grid.SiteID{"s1", "s2", "s3"}
	for name, c := range map[string]struct {
		tune   func(*Config)
		happen func(*bench)
		direct bool // in spite of it
	}{
		"a member has come":        {happen: func(b *bench) { b.do(step.PeerSeen{Site: "s4"}) }},
		"a member is out of sight": {happen: func(b *bench) { b.do(step.PeerGone{Site: "s1"}) }},
		"a member is gone for long": {
			happen: func(b *bench) { b.do(step.PeerGone{Site: "s1"}); b.pass(2 * time.Minute) },
			direct: true,
		},
		"a member has died": {
			happen: func(b *bench) { b.do(step.PeerGone{Site: "s1", Refusing: true}) }, direct: true,
		},
		"a member came back": {
			happen: func(b *bench) { b.do(step.PeerGone{Site: "s1"}); b.do(step.PeerSeen{Site: "s1"}) },
			direct: true,
		},
		"all have died":               {happen: func(b *bench) { b.gone(true, members...) }},
		"there are more than so many": {tune: func(c *Config) { c.UnicastUpTo = 2 }},
		"unicast is switched off":     {tune: func(c *Config) { c.UnicastUpTo = 0 }},
		"only some are to answer":     {tune: func(c *Config) { c.ReplyTarget = 2 }},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, c.tune, members...)
			for _, s := range members {
				b.m.peers.all[s].answers = true
			}
			if c.happen != nil {
				c.happen(b)
			}
			job := b.submit(testJob(1))
			to, _ := sent[protocol.Announce](b.last)
			if got := !slices.Contains(to, "*"); got != c.direct {
				t.Errorf("the announcement went to %q; without gossip: %t, want %t", to, got, c.direct)
			}
			if !slices.Contains(to, "*") && !slices.Contains(to, self) {
				t.Errorf("the announcement went to %q, not to the own site", to)
			}
			b.do(step.CancelJob{Command: 2, Job: job})
			if cleared, _ := sent[protocol.Clear](b.last); slices.Contains(cleared, "*") == c.direct {
				t.Errorf("its end went to %q", cleared)
			}
		})
	}
}

func (b *bench) gone(dead bool, sites ...grid.SiteID) {
	for _, s := range sites {
		b.do(step.PeerGone{Site: s, Refusing: dead})
	}
}

func TestAJobThatWaitsIsGossipedOnce(t *testing.T) {
	members := []grid.SiteID{"s1", "s2"}
	b := met(t, nil, members...)
	b.submit(testJob(1))
	if to, _ := sent[protocol.Announce](b.last); slices.Contains(to, "*") {
		t.Fatalf("the announcement went to %q, want no gossip", to)
	}
	for round := range 4 {
		effects := b.pass(90 * time.Second)
		asked, _ := sent[protocol.Reannounce](effects)
		gossiped, full := sent[protocol.Announce](effects)
		want := []grid.SiteID(nil)
		if round == 0 {
			want = []grid.SiteID{"*"}
		}
		if !slices.Equal(gossiped, want) || !slices.Contains(asked, "s1") {
			t.Errorf("rounds %d: the announcement went to %q, want %q; asked again: %q",
				round, gossiped, want, asked)
		}
		if len(full) > 0 && full[0].Seq != 2 {
			t.Errorf("rounds %d: gossip has number %d, want that of the unicast", round, full[0].Seq)
		}
	}
}

// Sites have heard of a restored job from an earlier run; which ones is not known.
func TestTheEndOfARestoredJobIsGossiped(t *testing.T) {
	b := met(t, nil, "s1", "s2")
	job := b.submit(testJob(1))
	after := newBench(t, nil)
	restored := New(Default(self))
	if err := restored.Restore(b.m.Snapshot()); err != nil {
		t.Fatal(err)
	}
	after.m, after.facts = restored, b.facts
	after.do(step.Boot{Incarnation: 2})
	for i := range 2 {
		s := grid.SiteID(fmt.Sprint("s", i+1))
		after.do(step.PeerSeen{Site: s})
		restored.peers.all[s].answers = true
	}
	after.do(step.CancelJob{Command: 3, Job: job})
	if to, _ := sent[protocol.Clear](after.last); !slices.Equal(to, []grid.SiteID{"*"}) {
		t.Errorf("its end went to %q, want all sites", to)
	}
}
