package sim

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/domain"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/site"
)

const largest = grid.SiteID("s7")

// remapped is a domain of eight sites, 2 to 9 cores, that has reserved 40 times: mostly for the
// next hour, which fills it, and some for the third. Two more sites have no space for any of it,
// and are the ones that may be the controller.
type remapped struct {
	*World
	t     *testing.T
	jobs  map[grid.JobID]grid.SiteID // and who submitted them
	order []grid.JobID
}

func newRemapped(t *testing.T, change func(*Config)) *remapped {
	t.Helper()
	cfg := Config{
		Seed: 1, Sites: fleet(8), Network: lan(), CheckFacts: true, CheckEvery: 41,
		Controllers: []grid.SiteID{"c0", "c1"},
	}
	for _, id := range cfg.Controllers {
		tiny := cfg.Sites[0]
		tiny.ID, tiny.Capability.Total.MilliCPUs = id, 100
		cfg.Sites = append(cfg.Sites, tiny)
	}
	if change != nil {
		change(&cfg)
	}
	r := &remapped{World: New(cfg), t: t, jobs: make(map[grid.JobID]grid.SiteID)}
	_ = r.Run(time.Second)
	for i := range 40 {
		in := 8*time.Minute + time.Duration(i*7%27)*2*time.Minute
		if i%10 >= 7 {
			in = 3*time.Hour + time.Duration(i)*2*time.Minute
		}
		r.reserve(i, r.now().Add(in))
	}
	_ = r.Run(r.elapsed + 5*time.Second)
	return r
}

// reserve makes the reservation of a number: 1 to 4 cores for a quarter of an hour.
func (r *remapped) reserve(i int, at time.Time) {
	job := reservation(at, 15*time.Minute, 1)
	job.Spec.Need.MilliCPUs, job.Spec.Need.MemoryBytes = 1000*(1+int64(i)%4), 1<<28
	job.Spec.Need.MFLOPS = 4 * job.Spec.Need.MilliCPUs
	by := grid.SiteID([]string{"s0", "s2", "s4"}[i%3])
	id := mustSubmit(r.t, r.World, by, job)
	r.jobs[id] = by
	r.order = append(r.order, id)
	_ = r.Run(r.elapsed + 200*time.Millisecond)
}

// state is a reservation as its submitter knows it.
func (r *remapped) state(id grid.JobID) broker.TaskState {
	s, _ := r.Job(r.jobs[id], id)
	return s.Tasks[0]
}

// at lists the reservations that are at a site, by what their submitters know.
func (r *remapped) at(holder grid.SiteID) (ids []grid.JobID) {
	for _, id := range r.order {
		if s := r.state(id); s.Site == holder && s.Phase == grid.PhaseStaging {
			ids = append(ids, id)
		}
	}
	return ids
}

// begins lets the time go by to a moment after the start of a reservation, and tells where it is
// open then.
func (r *remapped) begins(id grid.JobID) (grid.SiteID, bool) {
	s, _ := r.Job(r.jobs[id], id)
	_ = r.Run(s.Job.Spec.Window.At.Add(2 * time.Second).Sub(Epoch()))
	st := r.state(id)
	on := !st.StartedAt.IsZero() && st.StartedAt.Sub(s.Job.Spec.Window.At).Abs() < time.Second
	return st.Site, on && st.Phase == grid.PhaseRunning
}

// byStart orders reservations by their start.
func (r *remapped) byStart(ids []grid.JobID) []grid.JobID {
	start := func(id grid.JobID) time.Time {
		s, _ := r.Job(r.jobs[id], id)
		return s.Job.Spec.Window.At
	}
	return slices.SortedStableFunc(slices.Values(ids), func(a, b grid.JobID) int {
		return start(a).Compare(start(b))
	})
}

// count tells how many of some reservations of the largest site have moved, stay there, and have
// no other place. The owners of all but the first are told.
func (r *remapped) count(there []grid.JobID) (moved, stayed, stuck int) {
	r.t.Helper()
	for _, id := range there {
		switch st := r.state(id); {
		case st.PromiseNote == "" && st.Site == largest:
			r.t.Errorf("%s stays, and its owner is not told: %+v", id, st)
		case st.Site != largest:
			moved++
		case st.Phase == grid.PhaseWaiting:
			stuck++
		default:
			stayed++
		}
	}
	return moved, stayed, stuck
}

// finish lets all reservations come to their ends, and tells which of some began on time, and
// where.
func (r *remapped) finish(some []grid.JobID) map[grid.JobID]grid.SiteID {
	r.t.Helper()
	kept := make(map[grid.JobID]grid.SiteID)
	for _, id := range r.byStart(some) {
		if at, open := r.begins(id); open {
			kept[id] = at
		}
	}
	for _, id := range r.order {
		if !r.runUntil(r.elapsed+5*time.Hour, func() bool { return r.ended(r.jobs[id], id) }) {
			r.t.Errorf("%s has not ended", id)
		}
	}
	if err := r.err(); err != nil {
		r.t.Fatal(err)
	}
	if n := r.Trace().overlaps(); n != 0 {
		r.t.Errorf("%d pairs of attempts overlap", n)
	}
	return kept
}

// hadSpace tells a site but the largest that had space for a reservation all the time, by what has
// become of the others; empty: none had.
func (r *remapped) hadSpace(id grid.JobID) grid.SiteID {
	lost, _ := r.Job(r.jobs[id], id)
	at, length := lost.Job.Spec.Window.At, lost.Job.Spec.Runtime
	need := lost.Job.Spec.Need.MilliCPUs
	for _, spec := range r.cfg.Sites {
		var taken int64 // at the same time no more is in use than of all that meet it
		for _, other := range r.order {
			s, _ := r.Job(r.jobs[other], other)
			start := s.Job.Spec.Window.At
			meets := start.Before(at.Add(length)) && at.Before(start.Add(length))
			if st := s.Tasks[0]; st.Site == spec.ID && st.Phase == grid.PhaseDone && meets {
				taken += s.Job.Spec.Need.MilliCPUs
			}
		}
		if spec.ID != largest && taken+need <= spec.Capability.Total.MilliCPUs {
			return spec.ID
		}
	}
	return ""
}

// The largest site dies with its reservations. Those that start inside the interval leave it as
// soon as their leases are over, and those that start later stay until their time comes; all that
// the others have space for begin on time there, and the owners of the rest are told.
func TestReservationsLeaveTheLargestSite(t *testing.T) {
	moves, stays, without := 0, 0, 0
	for seed := range uint64(4) {
		r := newRemapped(t, func(c *Config) { c.Seed = seed })
		there := r.at(largest)
		r.PowerCut(largest)
		_ = r.Run(r.elapsed + 90*time.Second)
		moved, stayed, stuck := r.count(there)
		moves, stays, without = moves+moved, stays+stayed, without+stuck
		kept := r.finish(there)
		for _, id := range there {
			if at := kept[id]; at == largest {
				t.Errorf("seed %d: %s begins at the site that is down", seed, id)
			} else if space := r.hadSpace(id); at == "" && space != "" {
				t.Errorf("seed %d: %s is lost, and %s had space for it", seed, id, space)
			}
		}
		if len(kept) < moved {
			t.Errorf("seed %d: %d had moved, %d began", seed, moved, len(kept))
		}
	}
	if moves < 10 || stays < 5 || without < 2 {
		t.Errorf("%d have moved, %d stayed, %d had no other place: too few", moves, stays, without)
	}
}

// What becomes of a reservation is known within seconds, long before its lease is over: another
// site holds a place for it, or its owner is told that none has one. None is awarded by then, and
// those that have a place get it.
func TestOwnersKnowWithinSeconds(t *testing.T) {
	holds, lacks := 0, 0
	for seed := range uint64(4) {
		r := newRemapped(t, func(c *Config) { c.Seed = seed })
		there := r.at(largest)
		r.PowerCut(largest)
		_ = r.Run(r.elapsed + 16*time.Second) // it takes 10 s to see that nothing comes any more
		held := make(map[grid.JobID]bool)
		for _, id := range there {
			st := r.state(id)
			if st.Site != largest {
				t.Errorf("seed %d: %s was awarded while its lease lasts", seed, id)
			}
			switch held[id] = strings.Contains(st.PromiseNote, "another one holds a place"); {
			case held[id]:
				holds++
			case st.PromiseNote != "":
				lacks++
			}
		}
		_ = r.Run(r.elapsed + 50*time.Second)
		for _, id := range there {
			if has := r.state(id).Site != largest; has != held[id] {
				t.Errorf("seed %d: a place for %s is held: %t, and it has left: %t",
					seed, id, held[id], has)
			}
		}
	}
	if holds < 10 || lacks < 2 {
		t.Errorf("%d had another place, %d had none: too few", holds, lacks)
	}
}

// A site that is back has what was not moved, and lets go of what was.
func TestWhatWasNotMovedBeginsWhereItWas(t *testing.T) {
	r := newRemapped(t, func(c *Config) { c.Seed = 2 })
	there := r.at(largest)
	r.PowerCut(largest)
	_ = r.Run(r.elapsed + 3*time.Minute)
	moved, stayed, stuck := r.count(there)
	r.Restart(largest)
	_ = r.Run(r.elapsed + 2*time.Minute)
	if n := len(r.Site(largest).Status().Attempts); n != stayed+stuck || n == 0 || moved == 0 {
		t.Errorf("%d have moved, and it holds %d of %d", moved, n, len(there))
	}
	kept := r.finish(there)
	here := 0
	for _, id := range there {
		if kept[id] == largest {
			here++
		}
	}
	if len(kept) != len(there) || here != stayed+stuck {
		t.Errorf("%d of %d began, %d of them where they were, want %d",
			len(kept), len(there), here, stayed+stuck)
	}
}

// outcome tells which reservations of the largest site begin when something happens.
func outcome(t *testing.T, seed uint64, change func(*Config), happen func(*remapped)) (
	r *remapped, kept map[grid.JobID]grid.SiteID,
) {
	t.Helper()
	r = newRemapped(t, func(c *Config) {
		c.Seed = seed
		if change != nil {
			change(c)
		}
	})
	there := r.at(largest)
	happen(r)
	return r, r.finish(there)
}

// The controller dies with the site, or while its reservations leave: the next one knows from the
// facts what the site has promised, and the same begin.
func TestASuccessorGoesOn(t *testing.T) {
	for seed := range uint64(2) {
		kill := func(r *remapped) { r.PowerCut(largest) }
		_, want := outcome(t, seed, nil, kill)
		for _, after := range []time.Duration{0, 12 * time.Second, 62 * time.Second} {
			r, got := outcome(t, seed, nil, func(r *remapped) {
				kill(r)
				r.At(r.elapsed+after, func() { r.PowerCut("c0") })
				r.At(r.elapsed+after+20*time.Second, func() {
					knows := func(s domain.SiteStatus) bool {
						return s.Site == largest && s.Bookings > 0
					}
					m := r.controllerAt("c1")
					if m == nil || !slices.ContainsFunc(m.Status().Sites, knows) {
						t.Errorf("seed %d, %s: the successor knows nothing of it", seed, after)
					}
				})
			})
			if m := r.controllerAt("c1"); m == nil || m.Status().Term != 2 {
				t.Errorf("seed %d: no successor", seed)
			}
			if len(got) != len(want) {
				t.Errorf("seed %d, %s: %d began, want %d", seed, after, len(got), len(want))
			}
		}
	}
}

// A controller that says that reservations leave, and is never heard again, costs nothing: they
// leave before their start. Without that guard they would be lost.
func TestAMuteControllerCostsNothing(t *testing.T) {
	mute := func(r *remapped) {
		r.PowerCut(largest)
		r.At(r.elapsed+30*time.Second, func() { r.Silence("c0") })
	}
	guard := func(of time.Duration) func(*Config) {
		return func(c *Config) {
			c.Controllers = c.Controllers[:1]
			for i := range c.Sites {
				c.Sites[i].Tune = func(_ *site.Config, b *broker.Config) { b.RemapGuard = of }
			}
		}
	}
	r, kept := outcome(t, 2, guard(30*time.Second), mute)
	for _, id := range r.order {
		if s := r.state(id); s.Phase == grid.PhaseFailed && kept[id] == "" && r.hadSpace(id) != "" {
			t.Errorf("%s is lost", id)
		}
	}
	if _, without := outcome(t, 2, guard(-time.Hour), mute); len(without) >= len(kept) {
		t.Errorf("without the guard %d began, with it %d", len(without), len(kept))
	}
}

// A domain is parted, and each part has a controller: neither can have a task moved whose site
// still answers its submitter, nor have one started twice. When the parts meet, all goes on.
func TestTwoControllersDoNoHarm(t *testing.T) {
	for seed := range uint64(2) {
		r, _ := outcome(t, seed, nil, func(r *remapped) {
			r.Part([]grid.SiteID{"c1", "s2", "s5", "s6", largest})
			r.At(r.elapsed+12*time.Second, func() { r.appoint("c1") })
			r.At(r.elapsed+20*time.Minute, func() { r.heal() })
		})
		both := r.Trace().Controllers
		if both["site_failed"] < 2 || both["remap_sent"] == 0 {
			t.Errorf("seed %d: nothing was to be judged: %v", seed, both)
		}
		for _, id := range r.order {
			if s := r.state(id); !s.Phase.Ended() {
				t.Errorf("seed %d: %s is %s", seed, id, s.Phase)
			}
		}
	}
}

// A site that claims to have others' tasks, and far more capacity than it has, keeps nobody from
// what the others have space for.
func TestALyingSiteCostsNothing(t *testing.T) {
	for seed := range uint64(2) {
		r, kept := outcome(t, seed, nil, func(r *remapped) {
			lie := protocol.Bookings{
				Term: 1, Number: 1 << 60, Whole: true,
				Capacity: grid.Resources{MilliCPUs: 4000, MemoryBytes: 1 << 40, MFLOPS: 1 << 40},
			}
			lie.Works = lie.Capacity
			for _, id := range r.at(largest) {
				lie.Held = append(lie.Held, protocol.Booking{
					Attempt:   grid.AttemptID{Task: r.state(id).ID, Token: 1 << 50},
					Submitter: r.jobs[id], StartsIn: time.Minute, Lasts: time.Hour,
				})
			}
			slices.SortFunc(lie.Held, func(a, b protocol.Booking) int {
				return a.Attempt.Compare(b.Attempt)
			})
			r.hosts["s3"].send("c0", lie)
			r.PowerCut(largest)
		})
		for _, id := range r.order {
			lost := r.state(id).Phase == grid.PhaseFailed && kept[id] == ""
			if lost && r.hadSpace(id) != "" {
				t.Errorf("seed %d: %s is lost", seed, id)
			}
		}
	}
}

// Sites and submitters of an earlier version know no controller: all is as without one.
func TestEarlierVersionsKnowNoController(t *testing.T) {
	_, all := outcome(t, 1, nil, func(r *remapped) { r.PowerCut(largest) })
	r, kept := outcome(t, 1, func(c *Config) { c.Deaf = []grid.SiteID{"s0", "s4", largest} },
		func(r *remapped) {
			r.PowerCut(largest)
			_ = r.Run(r.elapsed + 90*time.Second)
			for _, id := range r.order {
				if s := r.state(id); s.Site == largest && s.Phase == grid.PhaseStaging {
					t.Errorf("%s waits for a controller that has never heard of it", id)
				}
			}
		})
	if len(kept) < len(all)-2 {
		t.Errorf("%d began, with a controller %d", len(kept), len(all))
	}
	if n := r.Trace().Controllers["remap_sent"]; n != 0 {
		t.Errorf("%d orders about a site that has told nothing", n)
	}
}
