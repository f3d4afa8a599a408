package broker

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/index"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// able is a capability of so many cores.
func able(cores int64) grid.Capability {
	return grid.Capability{
		Total: grid.Resources{MilliCPUs: 1000 * cores, MemoryBytes: 1 << 30, DiskBytes: 1 << 30},
		OS:    "linux", Arch: "amd64", Kinds: []grid.WorkKind{grid.KindWasm, grid.KindCommand},
	}
}

// search is a question of another domain for one task of so many cores.
func (b *bench) search(cores int64) (grid.JobID, []step.Effect) {
	b.Helper()
	job := testJob(1)
	job.Spec.Need.MilliCPUs = 1000 * cores
	effects := b.do(step.Probe{Command: 9, Job: job, Ordered: step.Ordered{Domain: "x", Ref: "q"}})
	_, asked := sent[protocol.Announce](effects)
	return asked[0].Job, effects
}

// found tells what the border hears of a search; nil: it goes on.
func found(effects []step.Effect) *step.OrderNews {
	for _, e := range effects {
		if tell, is := e.(step.TellBorder); is && tell.News.Probed {
			return &tell.News
		}
	}
	return nil
}

// households is a broker that knows so many members with so many cores each, all of which have
// answered before.
func households(t *testing.T, n int, cores int64) (*bench, []grid.SiteID) {
	t.Helper()
	sites := manySites(n)
	b := met(t, nil, sites...)
	for _, s := range sites {
		b.do(step.PeerSeen{Site: s, Name: string(s), Capability: able(cores)})
	}
	return b, sites
}

// Of 32 members those are asked that may ever take it, and the nearest of them is found.
func TestASearchOfThirtyTwoMembersAsksThoseThatMayTakeIt(t *testing.T) {
	b, sites := households(t, 32, 2)
	able3 := sites[5:10]
	for _, s := range able3 {
		b.do(step.PeerSeen{Site: s, Name: string(s), Capability: able(3)})
	}
	id, effects := b.search(3)
	to, asked := sent[protocol.Announce](effects)
	if !slices.Equal(to, everybodyOf(able3...)) || !asked[0].Probe {
		t.Fatalf("asked %q, a probe: %t, want %q", to, asked[0].Probe, everybodyOf(able3...))
	}
	b.refusal(id, self, true)
	for i, s := range able3 {
		if found(b.last) != nil {
			t.Fatalf("it is over before %s has answered", s)
		}
		b.hear(s, protocol.Bid{Job: id, Seq: 1, Offer: offer(1, float64(1+(i+2)%5), 1)})
	}
	news := found(b.last)
	if news == nil || news.Offer == nil || news.Offer.Site != able3[3] {
		t.Errorf("found %+v, want the offer of %s", news, able3[3])
	}
	if to, _ := sent[protocol.Clear](b.last); len(to) > 0 {
		t.Errorf("%q hear that a probe is over, of which they keep nothing", to)
	}
}

// What no member can ever take asks none, is refused with the reason, and is no sign that this
// site is cut off. Once a member can, it is asked.
func TestASearchThatNobodyCanEverTake(t *testing.T) {
	b, sites := households(t, 32, 2)
	for range 3 {
		id, effects := b.search(3)
		if to, _ := sent[protocol.Announce](effects); !slices.Equal(to, []grid.SiteID{self}) {
			t.Fatalf("asked %q, want this site alone", to)
		}
		never := grid.Refusal{Reason: grid.ReasonCPUs, Never: true}
		news := found(b.hear(self, protocol.Refuse{Job: id, Seq: 1, Refusal: never}))
		if news == nil || news.Refusal == nil || *news.Refusal != never {
			t.Fatalf("found %+v, want %+v", news, never)
		}
		state, _ := b.m.Job(id)
		if n := len(state.Answers); n != 33 || b.m.peers.cutOff {
			t.Errorf("%d answers, cut off: %t; want 33, and not", n, b.m.peers.cutOff)
		}
		b.pass(probeKept + time.Second)
	}
	b.do(step.PeerSeen{Site: sites[7], Name: "grown", Capability: able(3)})
	_, effects := b.search(3)
	if to, _ := sent[protocol.Announce](effects); !slices.Equal(to, everybodyOf(sites[7])) {
		t.Errorf("asked %q, want %s, which has grown", to, sites[7])
	}
}

// One member that has no capacity now is enough for the answer not to be never.
func TestASearchSaysNeverOnlyIfAllDo(t *testing.T) {
	b, sites := households(t, 3, 2)
	b.do(step.PeerSeen{Site: sites[1], Name: "large", Capability: able(3)})
	id, _ := b.search(3)
	b.refusal(id, self, true)
	news := found(b.refusal(id, sites[1], false))
	if news == nil || news.Refusal == nil || news.Refusal.Never {
		t.Errorf("found %+v, want a refusal for now", news)
	}
}

// Members that have said that less is free are not asked until they say that it is more, or its
// time has passed: not for the same, nor for what takes less time or more of it.
func TestASearchPassesOverMembersThatAreFull(t *testing.T) {
	const other = 2
	for name, c := range map[string]struct {
		meanwhile func(b *bench, site grid.SiteID, probe grid.JobID)
		change    func(*grid.Job)
		asks      bool
	}{
		"nothing":       {},
		"a shorter job": {change: func(j *grid.Job) { j.Spec.Runtime = time.Second }},
		"a larger job":  {change: func(j *grid.Job) { j.Spec.Need.MilliCPUs = 2000 }},
		"a smaller job": {
			change: func(j *grid.Job) { j.Spec.Need.MilliCPUs = 400 }, asks: true,
		},
		"a job that may wait there": {
			change: func(j *grid.Job) { j.Spec.Map = grid.MapSeconds }, asks: true,
		},
		"with a deadline": {
			change: func(j *grid.Job) { j.Spec.Window.Deadline = time.Unix(1<<31, 0) }, asks: true,
		},
		"almost too long": {meanwhile: func(b *bench, _ grid.SiteID, _ grid.JobID) {
			b.pass(protocol.FreeHolds - time.Millisecond)
		}},
		"too long": {meanwhile: func(b *bench, _ grid.SiteID, _ grid.JobID) {
			b.pass(protocol.FreeHolds)
		}, asks: true},
		"it has space": {meanwhile: func(b *bench, site grid.SiteID, probe grid.JobID) {
			if told := b.hear(site, protocol.Vacancy{Jobs: []grid.JobID{probe}}); len(told) > 0 {
				b.Errorf("answered %+v", told)
			}
		}, asks: true},
		"a task has ended there": {meanwhile: func(b *bench, site grid.SiteID, _ grid.JobID) {
			b.hear(site, protocol.Exited{
				Attempt: grid.AttemptID{Task: grid.TaskID{Job: "aaaaaaaaaaaaaaaa"}, Token: 1},
				Exit:    grid.Exit{Cause: grid.CauseExited},
			})
		}, asks: true},
		"it gives more": {meanwhile: func(b *bench, site grid.SiteID, _ grid.JobID) {
			b.do(step.PeerSeen{Site: site, Name: "grown", Capability: able(3)})
		}, asks: true},
		"it is seen again": {meanwhile: func(b *bench, site grid.SiteID, _ grid.JobID) {
			b.do(step.PeerSeen{Site: site, Name: string(site), Capability: able(2)})
		}},
		"it went and came": {meanwhile: func(b *bench, site grid.SiteID, _ grid.JobID) {
			b.do(step.PeerGone{Site: site})
			b.do(step.PeerSeen{Site: site, Name: string(site), Capability: able(2)})
		}, asks: true},
	} {
		t.Run(name, func(t *testing.T) {
			b, sites := households(t, 3, 2)
			id, _ := b.search(1)
			for i, s := range everybodyOf(sites...) {
				free := grid.Resources{MilliCPUs: 500, MemoryBytes: 1 << 30, DiskBytes: 1 << 30}
				if i == other {
					free.MilliCPUs = 2000 // its owner is using it, say
				}
				b.hear(s, protocol.Refuse{
					Job: id, Seq: 1, Refusal: grid.Refusal{Reason: grid.ReasonCPUs}, Free: &free,
				})
			}
			if c.meanwhile != nil {
				c.meanwhile(b, sites[0], id)
			}
			job := testJob(1)
			job.Spec.Need.MilliCPUs = 1000
			if c.change != nil {
				c.change(&job)
			}
			b.do(step.Probe{Command: 9, Job: job, Ordered: step.Ordered{Domain: "x", Ref: "r"}})
			to, _ := sent[protocol.Announce](b.last)
			asks, free := slices.Contains(to, sites[0]), slices.Contains(to, sites[other])
			if asks != c.asks || !free {
				t.Errorf("asked %q; want %s: %t, and %s", to, sites[0], c.asks, sites[other])
			}
		})
	}
}

// A user of this domain asks all, whatever they have said to a neighbour.
func TestWhatIsFreeCountsForNeighboursAlone(t *testing.T) {
	b, sites := households(t, 2, 2)
	id, _ := b.search(1)
	for _, s := range everybodyOf(sites...) {
		b.hear(s, protocol.Refuse{
			Job: id, Seq: 1, Refusal: grid.Refusal{Reason: grid.ReasonCPUs}, Free: &grid.Resources{},
		})
	}
	b.do(step.Probe{Command: 9, Job: testJob(1)})
	if to, _ := sent[protocol.Announce](b.last); !slices.Equal(to, everybodyOf(sites...)) {
		t.Errorf("asked %q, want all", to)
	}
}

// This domain's own users hear from each site itself why it refuses.
func TestAProbeOfTheOwnDomainAsksAll(t *testing.T) {
	b, sites := households(t, 3, 2)
	job := testJob(1)
	job.Spec.Need.MilliCPUs = 3000
	b.do(step.Probe{Command: 9, Job: job})
	if to, _ := sent[protocol.Announce](b.last); !slices.Equal(to, everybodyOf(sites...)) {
		t.Errorf("asked %q, want all", to)
	}
}

// An agent of an older version keeps what a probe asked for, and is told when it says so.
func TestAMemberThatHasKeptAProbeIsTold(t *testing.T) {
	b, sites := households(t, 2, 2)
	id, _ := b.search(1)
	for _, s := range everybodyOf(sites...) {
		b.refusal(id, s, false)
	}
	to, told := one[protocol.Clear](t, b.hear(sites[0], protocol.Vacancy{Jobs: []grid.JobID{id}}))
	if to != sites[0] || told.Job != id || told.Kind != protocol.ClearWithdrawn {
		t.Errorf("told %s: %+v", to, told)
	}
}

// A site that is not asked would have refused by its own judgement, however much of its capacity is
// free.
func TestOnlyThoseAreSparedThatCanNeverTakeIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amount := func(name string) int64 { return rapid.Int64Range(0, 4).Draw(t, name) }
		resources := func(name string) grid.Resources {
			return grid.Resources{
				MilliCPUs: amount(name), MemoryBytes: amount(name), DiskBytes: amount(name),
				MFLOPS: amount(name), NetBps: amount(name),
			}
		}
		c := able(0)
		c.Total, c.CoreMFLOPS, c.UpBps = resources("total"), amount("core"), amount("up")
		j := &job{}
		j.req = grid.Requirement{
			Kind: grid.WorkKind(1 + amount("kind")%3), Need: resources("need"),
			Runtime: time.Second,
			OS:      rapid.SampledFrom([]string{"", "linux", "plan9"}).Draw(t, "os"),
		}
		p := peers{all: map[grid.SiteID]*member{"s": {capability: c}}}
		why, never := p.unfit(j, "s")
		site := index.Site{Capability: c, Free: c.Total.Min(resources("free")), Up: 1}
		if _, _, fits := index.Measure(j.req, site); never && (fits || !why.Never) {
			t.Fatalf("%+v is not asked of %+v, which could take it: %+v", j.req, site, why)
		}
	})
}
