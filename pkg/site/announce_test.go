package site

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

func TestAnnouncementsThatAreNotAnswered(t *testing.T) {
	invalid := announcement(job1, alice)
	invalid.Count = 0
	for _, tt := range []struct {
		name  string
		from  grid.SiteID
		msg   protocol.Message
		event string
	}{
		{"of somebody else's job", bob, announcement(job1, bob), eventNotSubmitter},
		{"in somebody else's name", bob, announcement(job2, alice), eventForged},
		{"twice", alice, announcement(job1, alice), eventDuplicate},
		{
			"twice, as requirements", alice,
			protocol.Requirements{Announce: announcement(job1, alice)},
			eventDuplicate,
		},
		{"out of range", alice, invalid, eventInvalid},
		{"of a job that ended", alice, announcement(job3, alice), eventJobEnded},
		{
			"clear by somebody else", bob,
			protocol.Clear{Job: job1, Submitter: bob, Kind: protocol.ClearEnded},
			eventNotSubmitter,
		},
		{
			"clear in another's name", bob,
			protocol.Clear{Job: job1, Submitter: alice, Kind: protocol.ClearEnded},
			eventForged,
		},
		{
			"clear of an unknown job", bob,
			protocol.Clear{Job: job2, Submitter: bob, Kind: protocol.ClearEnded},
			eventUnknownJob,
		},
		{
			"a submitter's message", alice,
			protocol.Bid{Job: job1, Seq: 1, Offer: grid.Offer{ID: 1, TasksNow: 1, Validity: 1}},
			eventNotForSite,
		},
		{"no message", alice, nil, eventInvalid},
		{"from nobody", "", announcement(job2, alice), eventInvalid},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			r.receive(alice, announcement(job1, alice))
			r.receive(alice, announcement(job3, alice))
			r.receive(alice, protocol.Clear{Job: job3, Submitter: alice, Kind: protocol.ClearEnded})
			r.receive(tt.from, tt.msg)
			r.reported(tt.event)
			if sends := only[step.Send](r.out); len(sends) > 0 {
				t.Errorf("sends %+v", sends)
			}
			if got := r.m.Status(); got.Offers != 1 || got.Cached != 1 {
				t.Errorf("%d offers and %d requirements, want 1 and 1", got.Offers, got.Cached)
			}
		})
	}
}

func TestWindowOfAnnouncements(t *testing.T) {
	var w window
	for i, tt := range []struct {
		n    uint32
		want bool
	}{
		{5, true},
		{5, false},
		{3, true},
		{3, false},
		{6, true},
		{5, false},
		{4, true},
		{100, true},
		{37, true},
		{37, false},
		{1 << 31, true},
		{1<<32 - 1, true},
		{1<<32 - 1, false},
		{1, true},
		{1, false},
		{2, true},
	} {
		if got := w.add(tt.n); got != tt.want {
			t.Errorf("%d: add(%d) = %v, want %v", i, tt.n, got, tt.want)
		}
	}
}

// Late in the gossip comes an older announcement: it is answered once, too.
func TestOlderAnnouncementIsAnsweredOnce(t *testing.T) {
	r := newRig(t)
	for _, seq := range []uint32{3, 2} {
		a := announcement(job1, alice)
		a.Seq = seq
		r.receive(alice, a)
		one[protocol.Bid](r, alice)
		r.receive(alice, a)
		none[protocol.Bid](r)
	}
}

func TestReannouncementWithAStaleRequirement(t *testing.T) {
	r := newRig(t)
	r.receive(alice, announcement(job1, alice))
	other := announcement(job1, alice, func(s *grid.Spec) { s.Runtime = time.Hour })
	r.receive(alice, protocol.Reannounce{
		Job: job1, Seq: 2, Submitter: alice, Digest: protocol.DigestOf(other.Req), Count: 1,
		TTL: time.Second,
	})
	one[protocol.NeedRequirements](r, alice)
	r.reported(eventCacheMiss)
}

func TestReannouncementMakesAPlacedJobWaitAgain(t *testing.T) {
	r := newRig(t)
	a := announcement(job1, alice)
	r.receive(alice, a)
	r.receive(alice, protocol.Clear{Job: job1, Submitter: alice, Kind: protocol.ClearPlaced})
	if got := r.m.cache.Waiting(r.now); len(got) != 0 {
		t.Fatalf("placed, and waits: %v", got)
	}
	r.receive(alice, protocol.Reannounce{
		Job: job1, Seq: 2, Submitter: alice, Digest: protocol.DigestOf(a.Req), Count: 1, TTL: time.Second,
	})
	one[protocol.Bid](r, alice)
	if got := r.m.cache.Waiting(r.now); !slices.Equal(got, []grid.JobID{job1}) {
		t.Errorf("waits: %v, want %s", got, job1)
	}
}

// writesIntoMemory is a site that runs commands, and holds in memory what they write.
func writesIntoMemory(c *Config) {
	c.InMemory = true
	c.Capability.Kinds = []grid.WorkKind{grid.KindWasm, grid.KindCommand}
}

// command is a task of a command with so much memory and disk, in bytes.
func command(memory, disk int64) func(*grid.Spec) {
	return func(s *grid.Spec) {
		s.Kind, s.Module, s.Args = grid.KindCommand, grid.Input{}, []string{"true"}
		s.Need.MemoryBytes, s.Need.DiskBytes = memory, disk
	}
}

// A module's files are on the disk, also where those of commands are memory.
func TestFilesOfModulesAreNoMemory(t *testing.T) {
	r := newRig(t, writesIntoMemory)
	r.bid(announcement(job1, alice, func(s *grid.Spec) {
		s.Need.MemoryBytes, s.Need.DiskBytes = 4<<30, 1<<30
	}))
}

// Every refusal has its reason, and says "never" exactly where only the owner
// could change it.
func TestRefusals(t *testing.T) {
	for _, tt := range []struct {
		name   string
		site   func(*rig)
		spec   func(*grid.Spec)
		config func(*Config)
		want   grid.Refusal
	}{
		{
			name: "kind", config: func(c *Config) { c.Capability.Kinds = []grid.WorkKind{grid.KindCommand} },
			want: grid.Refusal{Reason: grid.ReasonKind, Never: true},
		},
		{
			name: "wasm only", config: func(c *Config) { c.WasmOnly = true },
			spec: func(s *grid.Spec) { s.Kind = grid.KindCommand },
			want: grid.Refusal{Reason: grid.ReasonKind, Never: true},
		},
		{
			name: "platform", spec: func(s *grid.Spec) { s.Arch = "riscv64" },
			want: grid.Refusal{Reason: grid.ReasonPlatform, Never: true},
		},
		{
			name: "memory never", spec: func(s *grid.Spec) { s.Need.MemoryBytes = 8 << 30 },
			want: grid.Refusal{Reason: grid.ReasonMemory, Never: true, Want: 8 << 30, Have: 4 << 30},
		},
		{
			name: "files in memory, never", config: writesIntoMemory, spec: command(4<<30, 2<<30),
			want: grid.Refusal{
				Reason: grid.ReasonMemory, Never: true, Want: 6 << 30, Have: 4 << 30,
			},
		},
		{
			name: "files in memory of a reservation, never", config: writesIntoMemory,
			spec: func(s *grid.Spec) { reserving(time.Minute)(s); s.Need.MemoryBytes = 4 << 30 },
			want: grid.Refusal{
				Reason: grid.ReasonMemory, Never: true, Want: 4<<30 + 1<<20, Have: 4 << 30,
			},
		},
		{
			name: "files in memory, not now", config: writesIntoMemory,
			site: func(r *rig) { r.accepted(job2, bob, 1, command(1<<30, 1<<30)) },
			spec: command(2<<30, 1<<30),
			want: grid.Refusal{Reason: grid.ReasonMemory, Want: 3 << 30, Have: 2 << 30},
		},
		{
			name: "bandwidth never", spec: bandwidth(30e6),
			want: grid.Refusal{Reason: grid.ReasonBandwidth, Never: true, Want: 30e6, Have: 20e6},
		},
		{
			name: "bandwidth not now", site: func(r *rig) { r.accepted(job2, bob, 2, bandwidth(8e6)) },
			spec: bandwidth(5e6), want: grid.Refusal{Reason: grid.ReasonBandwidth, Want: 5e6, Have: 4e6},
		},
		{
			name: "bandwidth of an unknown link", config: func(c *Config) { c.Capability.Total.NetBps = 0 },
			spec: bandwidth(1), want: grid.Refusal{Reason: grid.ReasonBandwidth, Want: 1},
		},
		{
			name: "cores not now", site: func(r *rig) { r.accepted(job2, bob, 3) },
			spec: func(s *grid.Spec) { s.Need.MilliCPUs = 2_000 },
			want: grid.Refusal{Reason: grid.ReasonCPUs, Want: 2_000, Have: 1_000},
		},
		{
			name: "runtime", config: func(c *Config) { c.MaxRuntime = 30 * time.Second },
			want: grid.Refusal{Reason: grid.ReasonRuntime, Never: true, Want: 60, Have: 30},
		},
		{
			name: "runtime, the shortest limit", config: func(c *Config) { c.MaxRuntime = 1 },
			want: grid.Refusal{Reason: grid.ReasonRuntime, Never: true, Want: 60, Have: 1},
		},
		{
			name: "more data than a submitter's share", config: func(c *Config) { c.DataBytes = 7 << 20 },
			want: grid.Refusal{Reason: grid.ReasonQuota, Never: true, Want: 1_000_000, Have: 7 << 17},
		},
		{
			name: "deadline passed", spec: func(s *grid.Spec) { s.Window.Deadline = epoch() },
			want: grid.Refusal{Reason: grid.ReasonWindow, Never: true},
		},
		{
			name: "deadline too near",
			spec: func(s *grid.Spec) { s.Window.Deadline = epoch().Add(time.Minute) },
			// The data takes .8 s, and it has a second to begin in.
			want: grid.Refusal{Reason: grid.ReasonWindow, Want: 60, Have: 62},
		},
		{
			name: "too early", spec: func(s *grid.Spec) { s.Window.NotBefore = epoch().Add(time.Hour) },
			want: grid.Refusal{Reason: grid.ReasonWindow},
		},
		{
			name: "paused", site: func(r *rig) { r.step(step.Pause{}) },
			want: grid.Refusal{Reason: grid.ReasonPaused},
		},
		{
			name: "the owner is busy", site: func(r *rig) { r.step(step.OwnerBusy{}) },
			want: grid.Refusal{Reason: grid.ReasonOwnerBusy},
		},
		{
			name: "outside of the owner's hours",
			site: func(r *rig) { r.step(step.OwnerBusy{Reason: grid.ReasonOwnerHours}) },
			want: grid.Refusal{Reason: grid.ReasonOwnerHours},
		},
		{
			name: "draining", site: func(r *rig) { r.step(step.Drain{}) },
			want: grid.Refusal{Reason: grid.ReasonDraining},
		},
		{
			name: "never is told although paused", site: func(r *rig) { r.step(step.Pause{}) },
			spec: func(s *grid.Spec) { s.Need.MilliCPUs = 64_000 },
			want: grid.Refusal{Reason: grid.ReasonCPUs, Never: true, Want: 64_000, Have: 4_000},
		},
		{
			name: "too many attempts", config: func(c *Config) { c.MaxAttempts = 8 },
			site: func(r *rig) { r.accepted(job2, alice, 1) }, want: grid.Refusal{Reason: grid.ReasonQuota},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			config, change := tt.config, tt.spec
			if config == nil {
				config = func(*Config) {}
			}
			if change == nil {
				change = func(*grid.Spec) {}
			}
			r := newRig(t, config)
			if tt.site != nil {
				tt.site(r)
			}
			a := announcement(job1, alice, change)
			r.receive(alice, a)
			if sends := only[step.Send](r.out); len(sends) > 0 {
				t.Errorf("unasked it says %+v", sends)
			}
			r.reported(eventOfferRefused)
			a.Seq, a.Explain = 2, true
			r.receive(alice, a)
			if got := one[protocol.Refuse](r, alice).Refusal; got != tt.want {
				t.Errorf("refusal %+v, want %+v", got, tt.want)
			}
			if _, got, ok := r.m.Quote(a.Req); tt.want.Reason != grid.ReasonQuota && (ok || got != tt.want) {
				t.Errorf("Quote refuses with %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestUnreachableData(t *testing.T) {
	r := newRig(t)
	a := announcement(job1, alice)
	a.Explain = true
	a.Req.Sources[0].Holders = []grid.SiteID{"carol"}
	r.receive(alice, a)
	if got := one[protocol.Refuse](r, alice).Refusal; got.Reason != grid.ReasonData || got.Never {
		t.Errorf("refusal %+v, want data, not now", got)
	}
	r.step(step.PeerSeen{Site: "carol", Capability: grid.Capability{UpBps: 1_000_000}})
	a.Seq = 2
	r.receive(alice, a)
	one[protocol.Bid](r, alice)
}

// What is here costs nothing, what was measured is better than what is declared,
// and the fastest holder counts.
func TestDataIndexFollowsWhatIsKnown(t *testing.T) {
	r := newRig(t)
	seq := uint32(0)
	y := func() float64 {
		t.Helper()
		seq++
		a := announcement(job1, alice)
		a.Seq = seq
		a.Req.Sources[0].Holders = []grid.SiteID{alice, "carol"}
		r.receive(alice, a)
		return one[protocol.Bid](r, alice).Offer.Parts.Y
	}
	near := func(what string, got, want float64) {
		t.Helper()
		if diff := got - want; diff > 1e-12 || diff < -1e-12 {
			t.Errorf("%s: y = %v, want %v", what, got, want)
		}
	}
	near("the submitter's 10 Mbit/s", y(), 0.8/60)
	r.step(step.PeerSeen{Site: "carol", Capability: grid.Capability{UpBps: 40_000_000}})
	near("a holder with 40 Mbit/s", y(), 0.2/60)
	r.step(step.BandwidthMeasured{Peer: "carol", DownBps: 80_000_000})
	near("measured 80 Mbit/s", y(), 0.1/60)
	r.step(step.PeerGone{Site: "carol"})
	near("without that holder", y(), 0.8/60)
	r.step(step.HeldChanged{Added: []grid.CID{"bmodule"}})
	near("held", y(), 0)
	r.step(step.HeldChanged{Removed: []grid.CID{"bmodule"}})
	near("held no more", y(), 0.8/60)
}

func TestPotential(t *testing.T) {
	r := newRig(t)
	for _, tt := range []struct {
		in   step.Input
		want int64
	}{
		{step.PeerSeen{Site: alice, Capability: grid.Capability{DownBps: 5_000_000}}, 5_000_000},
		{step.PeerSeen{Site: bob, Capability: grid.Capability{DownBps: 50_000_000}}, 25_000_000},
		{step.BandwidthMeasured{Peer: bob, UpBps: 1_000_000}, 6_000_000},
		{step.PeerSeen{Site: "carol"}, 26_000_000},
		{step.PeerGone{Site: bob, Refusing: true}, 25_000_000},
		{step.PeerGone{Site: bob}, 25_000_000},
		{step.PeerSeen{Site: self, Capability: grid.Capability{DownBps: 5_000_000}}, 25_000_000},
		{step.PeerSeen{Site: "dave", Capability: grid.Capability{DownBps: -1}}, 25_000_000},
		{step.BandwidthMeasured{Peer: "dave", UpBps: 1}, 25_000_000},
	} {
		r.step(tt.in)
		if got := r.m.Status().Potential; got != tt.want {
			t.Errorf("after %+v: P = %d, want %d", tt.in, got, tt.want)
		}
	}
}

// A site that is not drawn keeps nothing of a job but whose it is.
func TestOnlySitesThatAreDrawnRemember(t *testing.T) {
	for _, sample := range []float64{1, 1e-9} {
		r := newRig(t)
		a := announcement(job1, alice)
		a.Sample = sample
		r.receive(alice, a)
		_, remembered := r.m.cache.Peek(r.now, job1)
		if want := sample == 1; remembered != want {
			t.Errorf("sample %v: remembered %t, want %t", sample, remembered, want)
		}
		r.receive(bob, announcement(job1, bob))
		if owner, _ := r.m.recallOwner(job1); owner != alice {
			t.Errorf("sample %v: the job is now of %s", sample, owner)
		}
	}
}

// With a sample of 0.3, three sites in ten answer; near ones, the submitter's
// own and those that have the data always do.
func TestSampling(t *testing.T) {
	answers := func(change func(*protocol.Announce), prepare func(*rig), from grid.SiteID) int {
		r := newRig(t, func(c *Config) { c.CacheEntries = 8_192 })
		prepare(r)
		n := 0
		for i := range 1_000 {
			a := announcement(grid.JobID(fmt.Sprintf("aaaaaaaaaaaa%c%c%c%c",
				'a'+i%7, 'a'+i/7%7, 'a'+i/49%7, 'a'+i/343)), from)
			a.Sample = 0.3
			change(&a)
			r.receive(from, a)
			n += len(sent[protocol.Bid](r.out, from))
		}
		return n
	}
	nothing, none := func(*protocol.Announce) {}, func(*rig) {}
	if got := answers(nothing, none, alice); got < 250 || got > 350 {
		t.Errorf("%d of 1000 answered, want about 300", got)
	}
	if got := answers(func(a *protocol.Announce) { a.Theta = 1 }, none, alice); got != 1_000 {
		t.Errorf("%d near sites answered, want all", got)
	}
	search := func(part, nearer float64) func(*protocol.Announce) {
		return func(a *protocol.Announce) {
			a.Sample, a.Part, a.Nearer = math.SmallestNonzeroFloat64, part, nearer
		}
	}
	for _, c := range []struct {
		part, nearer float64
		least, most  int
	}{{.5, 1, 450, 550}, {1, 1, 1_000, 1_000}, {1, 1e-9, 0, 0}, {0, 1, 0, 0}} {
		if got := answers(search(c.part, c.nearer), none, alice); got < c.least || got > c.most {
			t.Errorf("with part %v up to %v %d answered, want %d to %d",
				c.part, c.nearer, got, c.least, c.most)
		}
	}
	if got := answers(nothing, none, self); got != 1_000 {
		t.Errorf("to itself it answered %d, want all", got)
	}
	hold := func(r *rig) { r.step(step.HeldChanged{Added: []grid.CID{"bmodule"}}) }
	if got := answers(nothing, hold, alice); got != 1_000 {
		t.Errorf("%d holders of the data answered, want all", got)
	}
	empty := func(a *protocol.Announce) {
		a.Req.Sources = slices.Clone(a.Req.Sources)
		for i := range a.Req.Sources {
			a.Req.Sources[i].Bytes = 0
		}
	}
	if got := answers(empty, hold, alice); got < 250 || got > 350 {
		t.Errorf("of data without a byte %d answered, want about 300", got)
	}
}

// A submitter gets an eighth of the open offers; others still get theirs, and
// the site's own jobs always do.
func TestOfferQuota(t *testing.T) {
	r := newRig(t, func(c *Config) { c.CacheEntries = 16 })
	offers := func(from grid.SiteID, job grid.JobID) int {
		a := announcement(job, from)
		a.Explain = true
		r.receive(from, a)
		if refusals := sent[protocol.Refuse](r.out, from); len(refusals) == 1 &&
			refusals[0].Refusal.Reason != grid.ReasonQuota {
			t.Errorf("refused with %+v, want quota", refusals[0])
		}
		return len(sent[protocol.Bid](r.out, from))
	}
	alices := offers(alice, "aaaaaaaaaaaaaaaa") + offers(alice, "aaaaaaaaaaaaaaab") +
		offers(alice, "aaaaaaaaaaaaaaac")
	own := offers(self, "caaaaaaaaaaaaaaa") + offers(self, "caaaaaaaaaaaaaab") +
		offers(self, "caaaaaaaaaaaaaac")
	bobs := offers(bob, "baaaaaaaaaaaaaaa")
	if alices != 2 || own != 3 || bobs != 1 {
		t.Errorf("offers: alice %d, self %d, bob %d, want 2, 3, 1", alices, own, bobs)
	}
	r.advance(31 * time.Second)
	if got := offers(alice, "aaaaaaaaaaaaaaad"); got != 1 {
		t.Errorf("after the first expired: %d, want 1", got)
	}
}

// The seconds map lets a job wait in the plan.
func TestSecondsMapQueuesInThePlan(t *testing.T) {
	r := newRig(t)
	r.accepted(job2, bob, 4)
	queue := func(s *grid.Spec) { s.Map = grid.MapSeconds }
	r.receive(alice, announcement(job1, alice, queue))
	p := one[protocol.Bid](r, alice).Offer.Parts
	if p.Wait < time.Minute || p.Wait > 62*time.Second {
		t.Errorf("waits %s, want what the others take", p.Wait)
	}
}

// A submitter that was restarted counts its announcements from 1 again. Once the
// answers of its earlier life have expired, it is heard.
func TestRestartedSubmitterIsHeard(t *testing.T) {
	r := newRig(t)
	for seq := range uint32(20) {
		a := announcement(job1, alice)
		a.Seq = seq + 1
		r.receive(alice, a)
		r.advance(time.Second)
	}
	r.receive(alice, announcement(job1, alice))
	none[protocol.Bid](r)
	r.advance(31 * time.Second)
	r.receive(alice, announcement(job1, alice))
	one[protocol.Bid](r, alice)
	r.receive(alice, announcement(job1, alice))
	none[protocol.Bid](r)
}

// Of a probe a site keeps nothing: neither an offer nor the requirement. It speaks of it no more.
func TestAProbeLeavesNothing(t *testing.T) {
	r := newRig(t)
	a := announcement(job1, alice)
	a.Probe = true
	r.receive(alice, a)
	one[protocol.Bid](r, alice)
	if open := r.m.plan.Offers(); len(open) != 0 || r.m.cache.Len() != 0 {
		t.Errorf("keeps %v and %d requirements", open, r.m.cache.Len())
	}
	r.receive(alice, a)
	none[protocol.Bid](r) // it came twice
	r.receive(alice, protocol.Reannounce{
		Job: job1, Seq: 2, Submitter: alice, Digest: protocol.DigestOf(a.Req), Count: 1,
		TTL: time.Second,
	})
	one[protocol.NeedRequirements](r, alice)
}

// Who was refused a probe hears what is free, and once when it is more.
func TestAProbeIsToldWhatIsFree(t *testing.T) {
	four := func(s *grid.Spec) { s.Need.MilliCPUs = 4_000 }
	for name, c := range map[string]struct {
		wait time.Duration
		told int
	}{
		"soon": {0, 1}, "almost too late": {protocol.FreeHolds - time.Second, 1},
		"later": {protocol.FreeHolds, 0},
	} {
		r := newRig(t)
		id := r.running(job3, bob, 1)[0]
		big := announcement(job2, alice, four)
		big.Explain = true
		r.receive(alice, big)
		if why := one[protocol.Refuse](r, alice); why.Free != nil {
			t.Fatalf("what is no probe is told what is free: %+v", why)
		}
		r.receive(alice, protocol.Clear{Job: job2, Submitter: alice, Kind: protocol.ClearWithdrawn})
		big.Job, big.Probe = job1, true
		r.receive(alice, big)
		why := one[protocol.Refuse](r, alice)
		if why.Refusal.Never || why.Free == nil || *why.Free != r.m.plan.FreeNow(r.now) ||
			why.Free.MilliCPUs != 3_000 {
			t.Fatalf("refused %+v, free %+v", why.Refusal, why.Free)
		}
		r.advance(c.wait)
		r.exited(id)
		told := sent[protocol.Vacancy](r.advance(time.Minute), alice)
		if len(told) != c.told || c.told > 0 && !slices.Equal(told[0].Jobs, []grid.JobID{job1}) {
			t.Errorf("%s: told %v, want %d times of the probe", name, told, c.told)
		}
	}
}

// Those that are told when more is free are bounded; the others are not told what is.
func TestWatchersAreBounded(t *testing.T) {
	r := newRig(t)
	big := announcement(job1, alice, func(s *grid.Spec) { s.Need.MilliCPUs = 4_000 })
	r.running(job3, bob, 1)
	big.Probe, big.Explain = true, true
	ask := func(i int) *grid.Resources {
		from := grid.SiteID(fmt.Sprint("gateway", i))
		big.Job, big.Submitter, big.Seq = numbered(i), from, big.Seq+1
		r.receive(from, big)
		return one[protocol.Refuse](r, from).Free
	}
	for i := range maxWatchers + 2 {
		if told := ask(i) != nil; told != (i < maxWatchers) {
			t.Errorf("number %d is told: %t", i, told)
		}
	}
	if ask(0) == nil {
		t.Error("one that is told already is not told again")
	}
	r.advance(protocol.FreeHolds)
	if ask(maxWatchers) == nil {
		t.Error("one is not told though nobody waits any more")
	}
}

// What needs more than what a site says is free gets no offer, however short it is.
func TestWhatIsNotFreeGetsNoOffer(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := newRig(t)
		amount := func(most int64, name string) int64 {
			return rapid.Int64Range(0, most).Draw(rt, name)
		}
		need := func(name string) func(*grid.Spec) {
			n := grid.Resources{
				MilliCPUs: amount(5_000, name), MemoryBytes: amount(10, name) << 30,
				DiskBytes: amount(120, name) << 30, NetBps: amount(20e6, name),
			}
			runtime := time.Duration(1 + amount(int64(time.Hour), name))
			return func(s *grid.Spec) { s.Need, s.Runtime = n, runtime }
		}
		for i := range rapid.IntRange(0, 4).Draw(rt, "attempts") {
			change := need("taken")
			r.receive(bob, announcement(numbered(200+i), bob, change))
			if len(sent[protocol.Bid](r.out, bob)) > 0 {
				r.accepted(numbered(100+i), bob, 1, change)
			}
			r.advance(time.Duration(amount(int64(time.Minute), "pause")))
		}
		ask := func(job int, change func(*grid.Spec)) (*grid.Resources, bool) {
			a := announcement(numbered(job), alice, change)
			a.Probe, a.Explain = true, true
			r.receive(alice, a)
			if bids := sent[protocol.Bid](r.out, alice); len(bids) > 0 {
				return nil, true
			}
			return one[protocol.Refuse](r, alice).Free, false
		}
		free, _ := ask(1, func(s *grid.Spec) { s.Need.MilliCPUs = 1 << 40 })
		wanted := need("wanted")
		var spec grid.Spec
		wanted(&spec)
		spec.Need.MFLOPS = 0
		if _, offered := ask(2, wanted); offered && !free.Fits(spec.Need) {
			rt.Fatalf("offers a place for %+v with %+v free", spec.Need, *free)
		}
	})
}
