package remapping

import (
	"errors"
	"strconv"
	"testing"

	"github.com/mrsmesh/mrsmesh/pkg/argument"
	"github.com/mrsmesh/mrsmesh/pkg/papers/remap"
)

// Each slot of each failure, the interval is that of the paper's arithmetic.
func TestIntervalIsThePapers(t *testing.T) {
	for _, p := range []Policy{
		{Weight: 2, Share: .775}, {Weight: 1, Share: 1},
		{Weight: 2, Share: .775, Surviving: true},
	} {
		m := Paper(300)
		m.Slots = 3200
		jobs, hit := m.draw(1)
		r := newRun(m, p, jobs)
		for next, slots := 0, 0; r.now < m.Slots; r.now++ {
			r.fail(hit)
			if r.failed != none {
				if slots++; slots%9 == 1 {
					if got, want := r.busyUntil()-r.now, r.papers(t, jobs); got != want {
						t.Fatalf("%+v, slot %d: %d slots, want %d", p, r.now, got, want)
					}
				}
				r.remap()
			}
			for ; next < len(jobs) && jobs[next].comes == r.now; next++ {
				r.request(&jobs[next])
			}
		}
	}
}

func (r *run) papers(t *testing.T, jobs []job) int64 {
	t.Helper()
	load := remap.Load{TotalNodes: r.total}
	if r.policy.Surviving {
		load.NormNodes = r.total - r.machines[r.failed].nodes
	}
	for _, j := range jobs {
		if j.machine != none {
			load.Reservations = append(load.Reservations, remap.Reservation{
				Seq: j.seq, Start: j.start, Stop: j.stop, Nodes: j.nodes, Machine: strconv.Itoa(j.machine),
			})
		}
	}
	f := remap.Failure{Machine: strconv.Itoa(r.failed), Slot: r.now}
	_, slots, err := f.Interval(load, remap.Threshold{Weight: r.policy.Weight, Share: r.policy.Share},
		max(r.last-r.now, 1))
	if err != nil {
		t.Fatal(err)
	}
	return slots
}

// "underestimations of the failure duration result in a considerable increase of the termination
// ratio" (5.2); "the termination ratio can be significantly reduced" by migration (5.4).
func TestPaperClaims(t *testing.T) {
	mean := func(p Policy) (ratio float64) {
		const seeds = 12
		for seed := range uint64(seeds) {
			o, err := Play(Paper(300), p, seed)
			if err != nil || o.Completed+o.Blocked+o.Terminated() > o.Requests {
				t.Fatalf("%+v, %v", o, err)
			}
			ratio += o.Termination() / seeds
		}
		return ratio
	}
	load := mean(Policy{Weight: 2, Share: .775})
	if x := mean(Policy{Rule: Optimal}); x <= load {
		t.Errorf("exact knowledge %.3f, by load %.3f", x, load)
	}
	if x := mean(Policy{Rule: Estimate, Factor: .5}); x < load+.1 {
		t.Errorf("underestimated %.3f, by load %.3f", x, load)
	}
	if x := mean(Policy{Weight: 2, Share: .775, Migrate: true}); x > load-.15 {
		t.Errorf("with migration %.3f, without %.3f", x, load)
	}
}

func TestInvalidArguments(t *testing.T) {
	for _, c := range []struct {
		m Model
		p Policy
	}{
		{Model{}, Policy{}},
		{Paper(0), Policy{}},
		{Paper(300), Policy{Rule: Estimate}},
		{Paper(300), Policy{Rule: 9}},
		{Paper(300), Policy{Weight: -1}},
	} {
		if _, err := Play(c.m, c.p, 1); !errors.Is(err, argument.ErrInvalid) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func BenchmarkPlay(b *testing.B) {
	for _, lead := range []float64{300, 1000} {
		b.Run(strconv.Itoa(int(lead)), func(b *testing.B) {
			for seed := uint64(0); b.Loop(); seed++ {
				if _, err := Play(Paper(lead), Policy{Weight: 2, Share: 1}, seed); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
