package broker

import (
	"math"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// room is a site that runs n of testJob's tasks at the same time.
func room(n int64) grid.Capability {
	return grid.Capability{
		Total: grid.Resources{
			MilliCPUs: n * 1000, MemoryBytes: 1 << 30, DiskBytes: 1 << 30, MFLOPS: 1000,
		},
		Kinds: []grid.WorkKind{grid.KindWasm},
	}
}

func TestPlacesCountsWhatIsHard(t *testing.T) {
	for name, c := range map[string]struct {
		need grid.Resources
		want int64
	}{
		"cores":            {grid.Resources{MilliCPUs: 1000}, 4},
		"memory":           {grid.Resources{MilliCPUs: 1000, MemoryBytes: 1 << 29}, 2},
		"bandwidth":        {grid.Resources{MilliCPUs: 1000, NetBps: 6e6}, 3},
		"bandwidth, never": {grid.Resources{MilliCPUs: 1000, NetBps: 21e6}, 0},
		"computation":      {grid.Resources{MilliCPUs: 1000, MFLOPS: 1000}, 4}, // it is shared
		"nothing whatever": {grid.Resources{}, maxPlaces},
	} {
		site := room(4)
		site.Total.NetBps = 20e6
		if got := places(grid.Requirement{Kind: grid.KindWasm, Need: c.need}, site); got != c.want {
			t.Errorf("%s: %d places, want %d", name, got, c.want)
		}
	}
}

// flap lets a member go and come back, again and again.
func (b *bench) flap(site grid.SiteID, times int, up, down time.Duration) {
	b.Helper()
	for range times {
		b.pass(up)
		b.do(step.PeerGone{Site: site})
		b.pass(down)
		b.do(step.PeerSeen{Site: site, Name: string(site), Capability: room(4)})
	}
}

// "Site Availability based Allocation [...] rejects a job if it requests for more
// than the expected number of nodes" (thesis 3.3.1): nodes that are down count.
func TestSAARefusesMoreThanIsUpInTheLongRun(t *testing.T) {
	for _, c := range []struct {
		policy grid.AvailPolicy
		tasks  uint32
		taken  bool
	}{
		{grid.AvailNone, 12, true},
		{grid.AvailNAA, 12, true},
		{grid.AvailSAA, 5, true},
		{grid.AvailSAA, 8, false},
		{grid.AvailNSA, 5, true},
		{grid.AvailNSA, 8, false},
	} {
		b := newBench(t, nil)
		b.m.cfg.Policy = c.policy
		b.do(step.PeerSeen{Site: "a", Name: "a", Capability: room(4)})
		b.do(step.PeerSeen{Site: "b", Name: "b", Capability: room(4)})
		b.flap("a", 20, 24*time.Hour, 12*time.Hour) // up two thirds of the time: 4 + 4 * .67 at most
		b.do(step.PeerGone{Site: "b"})              // down, and counted
		id := b.submit(testJob(c.tasks))
		b.offers(id, c.tasks, "a", self)
		b.pass(time.Second)
		state, _ := b.m.Job(id)
		if taken := state.Tasks[0].Phase == grid.PhaseAwarded; taken != c.taken {
			t.Errorf("policy %d, %d tasks: phase %s, taken %v, want %v",
				c.policy, c.tasks, state.Tasks[0].Phase, taken, c.taken)
		}
		if c.taken {
			continue
		}
		said := false
		for _, a := range state.Answers {
			said = said ||
				a.Refusal.Reason == grid.ReasonAvailability && a.Refusal.Want == int64(c.tasks) &&
					a.Refusal.Have >= 5
		}
		if !said || state.Tasks[0].Phase != grid.PhaseRefused {
			t.Errorf("policy %d, %d tasks: phase %s, answers %+v",
				c.policy, c.tasks, state.Tasks[0].Phase, state.Answers)
		}
	}
}

// NAA takes the site likeliest to stay, not the nearest, and does not believe one that
// was seen to go again and again.
func TestNAATakesTheLikeliestToStay(t *testing.T) {
	bid := func(b *bench, id grid.JobID, site grid.SiteID, distance, z float64) {
		b.hear(site, protocol.Bid{Job: id, Seq: b.m.asked(id).seq, Offer: grid.Offer{
			ID: 1, Validity: 30 * time.Second, TasksNow: 1,
			Parts: grid.Parts{X: distance, Z: z, Distance: math.Hypot(distance, z), Run: time.Hour},
		}})
	}
	for _, c := range []struct {
		name   string
		policy grid.AvailPolicy
		flaps  int // of c, seen by this site
		want   grid.SiteID
	}{
		{"nearest", grid.AvailNone, 0, "a"},
		{"naa", grid.AvailNAA, 0, "c"},
		{"nsa", grid.AvailNSA, 0, "c"},
		{"a site that boasts", grid.AvailNAA, 5, "b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, func(cfg *Config) { cfg.Policy = c.policy })
			for _, s := range []grid.SiteID{"a", "b", "c"} {
				b.do(step.PeerSeen{Site: s, Name: string(s), Capability: room(4)})
			}
			b.flap("c", c.flaps, time.Minute, time.Minute)
			id := b.submit(testJob(1))
			bid(b, id, "a", 0.1, 0.3)
			bid(b, id, "b", 0.4, 0.2)
			bid(b, id, "c", 0.9, 0.1)
			if to, _ := one[protocol.Award](t, b.pass(time.Second)); to != c.want {
				t.Errorf("awarded to %s, want %s", to, c.want)
			}
		})
	}
}

func TestMembersAreWatchedOverRestarts(t *testing.T) {
	b := newBench(t, nil)
	for _, s := range []grid.SiteID{"a", "b"} {
		b.do(step.PeerSeen{Site: s, Name: string(s), Capability: room(4)})
	}
	b.flap("a", 3, 2*time.Hour, time.Hour)
	before := b.m.peers.all["a"].watched
	if before.ends != 3 || before.returns != 3 || before.up != 3*7200 || before.down != 3*3600 {
		t.Errorf("watched %+v", before)
	}
	m := New(b.m.cfg)
	if err := m.Restore(b.m.Snapshot()); err != nil {
		t.Fatal(err)
	}
	m.Step(b.now.Add(24*time.Hour), step.Boot{Incarnation: 2})
	after := m.peers.all["a"].watched
	if after.since = before.since; after != before {
		t.Errorf("after a restart %+v, want %+v", after, before)
	}
	members := m.Members()
	if len(members) != 2 || members[0].Connected || members[0].Ends != 3 || members[0].Name != "a" ||
		members[0].UpHour != 0 {
		t.Errorf("members %+v", members)
	}
	m.Step(b.now.Add(25*time.Hour), step.PeerSeen{Site: "a", Name: "a", Capability: room(4)})
	if now := m.peers.all["a"].watched; now.returns != 3 || now.down != before.down {
		t.Errorf("the time that this site was down counts: %+v", now)
	}
	late := New(b.m.cfg)
	if err := late.Restore(b.m.Snapshot()); err != nil {
		t.Fatal(err)
	}
	late.Step(b.now.Add(8*24*time.Hour), step.Boot{Incarnation: 2})
	if got := late.Members(); len(got) != 0 {
		t.Errorf("after more than a week %+v", got)
	}
}

func TestForecastCountsThoseThatAreDown(t *testing.T) {
	b := newBench(t, nil)
	for _, s := range []grid.SiteID{"a", "b", "c"} {
		b.do(step.PeerSeen{Site: s, Name: string(s), Capability: room(4)})
	}
	b.do(step.PeerGone{Site: "c"})
	b.pass(10 * time.Minute)
	f, sites, err := b.m.Forecast(b.now, time.Hour, 0)
	if err != nil || sites != 4 {
		t.Fatalf("%+v of %d, %v", f, sites, err)
	}
	// Itself, two that leave once a day, one that comes back within eight hours or so.
	if f.Mean < 2.9 || f.Mean > 3.2 || f.Low < 1 || f.Paper < 2 || f.Paper > 4 {
		t.Errorf("forecast %+v", f)
	}
	if wrong, _, err := b.m.Forecast(b.now, time.Hour, -1); err != nil ||
		math.Abs(wrong.Mean-f.Mean+1) > 1e-9 {
		t.Errorf("with an error term of -1: %+v, %v", wrong, err)
	}
	if _, _, err := b.m.Forecast(b.now, time.Hour, math.NaN()); err == nil {
		t.Error("an error term that is no number is taken")
	}
}
