package broker

import (
	"slices"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// seeks is a question of another domain, and whom it asks besides this site.
func (b *bench) seeks(change func(*grid.Job)) (grid.JobID, []grid.SiteID) {
	b.Helper()
	job := testJob(1)
	job.Spec.Need.MilliCPUs = 1000
	if change != nil {
		change(&job)
	}
	effects := b.do(step.Probe{Command: 9, Job: job, Ordered: step.Ordered{Domain: "x", Ref: "q"}})
	to, asked := sent[protocol.Announce](effects)
	return asked[0].Job, slices.DeleteFunc(to, func(s grid.SiteID) bool { return s == self })
}

// Of many members few are asked, and the nearest of them is found; these are others each time,
// until all have had their turn.
func TestASearchAsksFewMembersFirst(t *testing.T) {
	b, sites := households(t, 36, 2)
	turns := make(map[grid.SiteID]int)
	for range 9 {
		id, asked := b.seeks(nil)
		if len(asked) != soonerMembers {
			t.Fatalf("asked %q, want %d", asked, soonerMembers)
		}
		b.refusal(id, self, false)
		for i, s := range asked {
			if turns[s]++; found(b.last) != nil {
				t.Fatalf("it is over before %s has answered", s)
			}
			b.hear(s, protocol.Bid{Job: id, Seq: 1, Offer: offer(1, float64(1+(i+2)%4), 1)})
		}
		news := found(b.last)
		if news == nil || news.Offer == nil || news.Offer.Site != asked[2] {
			t.Fatalf("found %+v, want the offer of %s", news, asked[2])
		}
	}
	for _, s := range sites {
		if turns[s] != 1 {
			t.Errorf("%s had %d turns", s, turns[s])
		}
	}
}

// When those that are asked first have too little, or are silent, all others are asked.
func TestASearchAsksTheOthersWhenItFindsTooLittle(t *testing.T) {
	for name, c := range map[string]struct {
		tasks   uint32
		offers  int // of the first ones; the others refuse
		silent  bool
		isEnded bool
	}{
		"none has a place":       {tasks: 1},
		"one has a place":        {tasks: 1, offers: 1, isEnded: true},
		"too few have":           {tasks: 3, offers: 2},
		"as many as are wanted":  {tasks: 3, offers: 3, isEnded: true},
		"nobody answers":         {tasks: 1, silent: true},
		"one offers, then quiet": {tasks: 1, offers: 1, silent: true, isEnded: true},
	} {
		t.Run(name, func(t *testing.T) {
			b, sites := households(t, 20, 2)
			id, first := b.seeks(func(j *grid.Job) { j.Count = c.tasks })
			b.refusal(id, self, false)
			for i, s := range first {
				switch {
				case i < c.offers:
					b.hear(s, protocol.Bid{Job: id, Seq: 1, Offer: offer(1, 1, 1)})
				case !c.silent:
					b.refusal(id, s, false)
				}
			}
			effects := b.last
			if c.silent {
				effects = b.pass(testJob(1).TTL / soonerPart)
			}
			if ended := found(effects) != nil; ended != c.isEnded {
				t.Fatalf("it is over: %t, want %t", ended, c.isEnded)
			}
			later, told := sent[protocol.Announce](effects)
			if c.isEnded {
				if len(later) > 0 {
					t.Errorf("asked %q besides", later)
				}
				return
			}
			all := slices.Concat(first, later)
			slices.Sort(all)
			if !slices.Equal(all, sites) || told[0].Seq != 2 {
				t.Fatalf("asked %q, then %q in round %d, want all", first, later, told[0].Seq)
			}
			for _, s := range later[1:] {
				b.refusal(id, s, false)
			}
			b.hear(later[0], protocol.Bid{Job: id, Seq: 2, Offer: offer(2, 9, 9)})
			if news := found(b.last); news == nil || news.Offer == nil || b.m.peers.cutOff {
				t.Errorf("found %+v, cut off: %t", news, b.m.peers.cutOff)
			}
		})
	}
}

// All members are asked where only they know who is near, and where they are few.
func TestSearchesThatAskAll(t *testing.T) {
	for name, c := range map[string]struct {
		members int
		change  func(*grid.Job)
	}{
		"few members": {members: 2 * soonerMembers},
		"much data": {members: 20, change: func(j *grid.Job) {
			j.Spec.Inputs = append(j.Spec.Inputs, grid.Input{
				Path: "/in", CID: "bafybigdata", Bytes: soonerData + 1,
			})
		}},
		"tasks that wait": {members: 20, change: func(j *grid.Job) {
			j.Spec.Map = grid.MapSeconds
		}},
	} {
		b, sites := households(t, c.members, 2)
		if _, asked := b.seeks(c.change); !slices.Equal(asked, sites) {
			t.Errorf("%s: asked %q, want all", name, asked)
		}
	}
}

// Those that had no capacity a while ago, or were silent, are asked last.
func TestLikelyMembersAreAskedFirst(t *testing.T) {
	b, sites := households(t, 20, 2)
	for _, s := range sites[3:] {
		b.m.peers.all[s].space = space{at: b.now.Add(-time.Hour)}
	}
	b.m.peers.fellSilent(sites[0])
	_, asked := b.seeks(nil)
	if slices.Contains(asked, sites[0]) || !slices.Contains(asked, sites[1]) ||
		!slices.Contains(asked, sites[2]) {
		t.Errorf("asked %q, want %q among them and not %s", asked, sites[1:3], sites[0])
	}
}

// When the first ones have answered and the others have not, this site is not cut off.
func TestASearchThatHalfAnswerIsNoSignOfBeingCutOff(t *testing.T) {
	b, _ := households(t, 20, 2)
	id, first := b.seeks(nil)
	for _, s := range append(first, self) {
		b.refusal(id, s, false)
	}
	if news := found(b.pass(testJob(1).TTL)); news == nil || b.m.peers.cutOff {
		t.Errorf("found %+v, cut off: %t", news, b.m.peers.cutOff)
	}
}
