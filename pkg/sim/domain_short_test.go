package sim

import (
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// lower has the owner of the largest site give so many of its nine cores.
func (r *remapped) lower(cores int64) {
	c := r.hosts[largest].spec.Capability
	c.Total.MilliCPUs = cores * 1000
	r.Input(largest, step.CapacityChanged{Capability: c})
}

// held is the most that some reservations hold of a site together.
func (r *remapped) held(at grid.SiteID, some []grid.JobID) (most int64) {
	for _, one := range some {
		var sum int64
		a, _ := r.Job(r.jobs[one], one)
		for _, id := range some {
			s, _ := r.Job(r.jobs[id], id)
			from, begins := s.Job.Spec.Window.At, a.Job.Spec.Window.At
			meets := !from.After(begins) && from.Add(s.Job.Spec.Runtime).After(begins)
			if meets && s.Tasks[0].Site == at {
				sum += s.Job.Spec.Need.MilliCPUs
			}
		}
		most = max(most, sum)
	}
	return most
}

// The owner of the largest site lowers its ceilings below what it has promised. What does not fit
// any more and starts inside the interval moves within seconds, with the help of its site: nobody
// waits for a lease, nothing is at two sites, and all begin on time: also what fits nowhere else,
// where it was.
func TestReservationsLeaveASiteThatGivesLess(t *testing.T) {
	moves, stuck := 0, 0
	for seed := range uint64(4) {
		r := newRemapped(t, func(c *Config) { c.Seed = seed })
		there := r.at(largest)
		before := r.held(largest, there)
		r.lower(4)
		_ = r.Run(r.elapsed + 10*time.Second)
		moved := 0
		for _, id := range there {
			switch st := r.state(id); {
			case st.Site != largest && st.Phase == grid.PhaseStaging:
				moved++
			case st.Site != largest || st.Token.Number() != 1:
				t.Errorf("seed %d: %s is nowhere: %+v", seed, id, st)
			case st.PromiseNote != "":
				stuck++
			}
		}
		if after := r.held(largest, there); moved > 0 && after >= before {
			t.Errorf("seed %d: %d have moved, and it holds %d of %d", seed, moved, after, before)
		}
		moves += moved
		if kept := r.finish(there); len(kept) != len(there) {
			t.Errorf("seed %d: %d of %d began", seed, len(kept), len(there))
		}
		if n := r.Trace().Brokers["attempt_lost"]; n != 0 {
			t.Errorf("seed %d: %d were lost", seed, n)
		}
	}
	if moves < 4 || stuck < 2 {
		t.Errorf("%d have moved, %d had no other place: too few", moves, stuck)
	}
}

// Without a controller, and with a submitter or a site of an earlier version, a site keeps what it
// has promised, whatever its owner gives now.
func TestASiteThatGivesLessKeepsItsPromisesAlone(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"no controller": func(c *Config) { c.Controllers = nil },
		"earlier site":  func(c *Config) { c.Deaf = []grid.SiteID{largest} },
		"earlier users": func(c *Config) { c.Deaf = []grid.SiteID{"s0", "s2", "s4"} },
	} {
		var there []grid.JobID
		_, kept := outcome(t, 1, change, func(r *remapped) {
			there = r.at(largest)
			r.lower(4)
		})
		for _, id := range there {
			if kept[id] != largest {
				t.Errorf("%s: %s began at %q", name, id, kept[id])
			}
		}
	}
}

// The owner gives all back while reservations leave, or the site dies: nothing is lost that others
// have space for, and nothing is at two sites.
func TestASiteThatGivesLessAndThenMoreOrNothing(t *testing.T) {
	for name, then := range map[string]func(*remapped){
		"more":    func(r *remapped) { r.lower(9) },
		"nothing": func(r *remapped) { r.PowerCut(largest) },
	} {
		for _, after := range []time.Duration{
			250 * time.Millisecond, 500 * time.Millisecond, time.Second, 3 * time.Second,
		} {
			r, kept := outcome(t, 2, nil, func(r *remapped) {
				r.lower(4)
				r.At(r.elapsed+after, func() { then(r) })
			})
			for _, id := range r.order {
				lost := r.state(id).Phase == grid.PhaseFailed && kept[id] == ""
				if lost && (name == "more" || r.hadSpace(id) != "") {
					t.Errorf("%s after %s: %s is lost", name, after, id)
				}
			}
		}
	}
}
