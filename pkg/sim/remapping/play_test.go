package remapping

import (
	"errors"
	"slices"
	"strconv"
	"testing"

	"github.com/mrsmesh/mrsmesh/pkg/argument"
	paper "github.com/mrsmesh/mrsmesh/pkg/papers/remap"
	"github.com/mrsmesh/mrsmesh/pkg/remap"
)

// In every ninth slot of the failures the interval is that of the paper's arithmetic, whatever
// counts as load.
func TestIntervalIsThePapers(t *testing.T) {
	for _, p := range []remap.Policy{
		{Weight: 2, Share: .775},
		{Weight: 1, Share: 1},
		{Weight: 2, Share: .775, Surviving: true},
		{Weight: 3, Share: .7, Ended: true},
		{Weight: 2, Share: .775, Booking: true},
		{Weight: 2, Share: .01, Booking: true},
	} {
		m := Paper(300)
		m.Slots = 3200
		jobs, hit := m.draw(1)
		w := watched{run: newRun(m, p, jobs), jobs: jobs}
		for next, slots := 0, 0; w.now < m.Slots; w.now++ {
			w.noteEnded(func() { w.fail(hit) })
			if w.failed != remap.None {
				if slots++; slots%9 == 1 {
					if got, want := w.before()-w.now, w.papers(t); got != want {
						t.Fatalf("%+v, slot %d: %d slots, want %d", p, w.now, got, want)
					}
				}
				w.remap()
			}
			for ; next < len(jobs) && jobs[next].comes == w.now; next++ {
				w.request(&jobs[next])
				if jobs[next].Machine != remap.None {
					w.reserved = append(w.reserved, jobs[next])
				}
			}
		}
	}
}

// watched is a run of which the test keeps its own books.
type watched struct {
	*run
	jobs     []job
	killed   []job // by the present failure, with their machine
	reserved []job // so far
}

func (w *watched) noteEnded(fail func()) {
	before := slices.Clone(w.jobs)
	fail()
	if w.failed == remap.None {
		w.killed = nil
	}
	for i, j := range before {
		if j.Machine != remap.None && w.jobs[i].Machine == remap.None {
			w.killed = append(w.killed, j)
		}
	}
}

// last is the slot beyond which no reservation so far has reached.
func (w *watched) last() (last int64) {
	for _, j := range w.reserved {
		last = max(last, j.Stop)
	}
	return last
}

func (w *watched) papers(t *testing.T) int64 {
	t.Helper()
	p := w.policy
	load := paper.Load{TotalNodes: w.model.total(), WithoutTerminated: !p.Ended}
	if p.Surviving {
		load.NormNodes = w.model.total() - w.model.Nodes[w.failed]
	}
	for _, j := range slices.Concat(w.jobs, w.killed) {
		if j.Machine != remap.None {
			load.Reservations = append(load.Reservations, paper.Reservation{
				Seq: j.Seq, Start: j.Start, Stop: j.Stop, Nodes: j.Need[0],
				Machine: strconv.Itoa(j.Machine),
			})
		}
	}
	horizon := max(w.last()-w.now, 1)
	if p.Booking {
		load.Booking = make([]float64, horizon+1)
		for _, j := range w.reserved {
			for at := j.Start - j.comes; at < min(j.Stop-j.comes, horizon+1); at++ {
				load.Booking[at] += float64(j.Need[0]) / float64(w.now*w.model.total())
			}
		}
	}
	f := paper.Failure{Machine: strconv.Itoa(w.failed), Slot: w.now}
	_, slots, err := f.Interval(load, paper.Threshold{Weight: p.Weight, Share: p.Share}, horizon)
	if err != nil {
		t.Fatal(err)
	}
	return slots
}

// The lengths that are shown are those that a run of all slots has in its first failure.
func TestLengthsAreThoseOfTheRun(t *testing.T) {
	m, p := Paper(300), remap.Policy{Weight: 2, Share: .8}
	got, err := Lengths(m, p, 3)
	if err != nil || int64(len(got)) != m.Down {
		t.Fatalf("%d slots, %v", len(got), err)
	}
	jobs, hit := m.draw(3)
	r := newRun(m, p, jobs)
	var want []int64
	r.play(jobs, hit, func() { want = append(want, r.limit-r.now) })
	if !slices.Equal(got, want[:m.Down]) || slices.Max(got) < 10 {
		t.Errorf("%v, want %v", got, want[:m.Down])
	}
}

// "underestimations of the failure duration result in a considerable increase of the termination
// ratio" (5.2); "the termination ratio can be significantly reduced" by migration (5.4).
func TestPaperClaims(t *testing.T) {
	mean := func(p remap.Policy) (ratio float64) {
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
	load := mean(remap.Policy{Weight: 2, Share: .775})
	if x := mean(remap.Policy{Rule: remap.Optimal}); x <= load {
		t.Errorf("exact knowledge %.3f, by load %.3f", x, load)
	}
	if x := mean(remap.Policy{Rule: remap.Estimate, Factor: .5}); x < load+.1 {
		t.Errorf("underestimated %.3f, by load %.3f", x, load)
	}
	if x := mean(remap.Policy{Weight: 2, Share: .775, Migrate: true}); x > load-.15 {
		t.Errorf("with migration %.3f, without %.3f", x, load)
	}
}

func TestInvalidArguments(t *testing.T) {
	with := func(change func(*Model)) Model {
		m := Paper(300)
		change(&m)
		return m
	}
	for _, c := range []struct {
		m Model
		p remap.Policy
	}{
		{Model{}, remap.Policy{}},
		{with(func(m *Model) { m.Nodes = []int64{4, 0} }), remap.Policy{}},
		{with(func(m *Model) { m.Down = m.Every }), remap.Policy{}},
		{with(func(m *Model) { m.Load = 1e6 }), remap.Policy{}},
		{with(func(m *Model) { m.Lead = 1 << 19 }), remap.Policy{}},
		{Paper(0), remap.Policy{}},
		{Paper(300), remap.Policy{Rule: remap.Estimate}},
		{Paper(300), remap.Policy{Rule: 9}},
		{Paper(300), remap.Policy{Weight: -1}},
	} {
		if _, err := Play(c.m, c.p, 1); !errors.Is(err, argument.ErrInvalid) {
			t.Errorf("%+v: %v", c, err)
		}
		if _, err := Lengths(c.m, c.p, 1); !errors.Is(err, argument.ErrInvalid) {
			t.Errorf("lengths, %+v: %v", c, err)
		}
	}
}
