package broker

import (
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/fault"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// keptOf lists the kinds of facts that are kept of a site.
func (b *bench) keptOf(site grid.SiteID) (kinds []string) {
	for _, f := range b.facts.All() {
		if f.Key == string(site) {
			kinds = append(kinds, f.Kind)
		}
	}
	return kinds
}

// failA lets site a miss an award.
func (b *bench) failA() {
	b.Helper()
	b.offers(b.submit(testJob(1)), 1, "a", "b", self)
	b.pass(b.m.cfg.AwardWindow)
	if b.faultIndex("a") == 0 {
		b.Fatal("it is not blamed")
	}
}

// Of a banned site nothing is kept, and what it fails from then on is not counted.
func TestNothingIsKeptOfABannedSite(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	b.failA()
	id := b.started(1) // at a, whose lease ends under the ban
	b.do(step.BansChanged{Banned: []grid.SiteID{"a"}})
	if kinds := b.keptOf("a"); len(kinds) > 0 {
		t.Errorf("of the banned site %v are kept", kinds)
	}
	b.pass(b.m.cfg.Lease + b.m.cfg.LeaseMargin + time.Second)
	if b.phase(id, 0) == grid.PhaseRunning {
		t.Error("its lease has not ended")
	}
	if kinds := b.keptOf("a"); len(kinds) > 0 || b.faultIndex("a") > 0 {
		t.Errorf("when its lease has ended %v are kept", kinds)
	}
	b.restart("b")
	if kinds := b.keptOf("a"); len(kinds) > 0 {
		t.Errorf("after a restart %v are kept", kinds)
	}
}

// A member that is forgotten takes its fault index along, and one that no member has goes, too.
func TestAForgottenMembersFaultsAreForgotten(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	b.failA()
	b.m.peers.faults.Put("stranger", fault.Record{Index: 3, At: b.now, Tried: 3})
	b.m.peers.saveFault("stranger")
	b.m.peers.faults.Put(self, fault.Record{Index: 2, At: b.now, Tried: 2})
	b.m.peers.saveFault(self)
	for _, e := range b.m.out.Take() {
		if p, is := e.(step.Persist); is {
			b.facts.Apply(p.Fact)
		}
	}
	b.restart()
	if b.faultIndex("a") == 0 {
		t.Error("a member that was just there is acquitted")
	}
	b.do(step.PeerGone{Site: "a"})
	b.now = b.now.Add(memberKept + time.Hour)
	b.restart()
	for _, site := range []grid.SiteID{"a", "stranger"} {
		if kinds := b.keptOf(site); len(kinds) > 0 || b.faultIndex(site) > 0 {
			t.Errorf("of %s %v are kept, fault index %d", site, kinds, b.faultIndex(site))
		}
	}
	if b.faultIndex(self) == 0 {
		t.Error("the site's own fault index is gone")
	}
}
