package failing

import (
	"math"
	"testing"

	"github.com/mrsmesh/mrsmesh/pkg/avail"
	"github.com/mrsmesh/mrsmesh/pkg/fault"
	"github.com/mrsmesh/mrsmesh/pkg/workload"
)

// M = (b0+T)/(a0+k) with a0 = 1 and b0 = 1/(mean rate of all): the mean time between failures
// that is learned of a resource.
func TestLearnedRate(t *testing.T) {
	w := &world{now: 500, up: ups{failures: 9, exposure: 3600 * 26, now: 1, since: 400}}
	all := w.all()
	if want := 10.0 / (86400 + 3600*26 + 100); math.Abs(all.Rate()-want) > 1e-15 {
		t.Errorf("of all: %v, want %v", all.Rate(), want)
	}
	r := &resource{failures: 3, exposure: 1000, spell: workload.Spell{From: 400, To: 1e9, Up: true}}
	if got, want := 1/w.belief(r, all).Rate(), (1/all.Rate()+1100)/4; math.Abs(got-want) > 1e-9*want {
		t.Errorf("M = %v, want %v", got, want)
	}
	if got := r.interval(500); got != 1100./3 {
		t.Errorf("mean time between failures %v", got)
	}
	r.failures = 0
	if got := r.interval(500); !math.IsInf(got, 1) {
		t.Errorf("before the first failure: %v", got)
	}
	r.spell.Up = false
	if got := r.age(500); got != 0 {
		t.Errorf("one that is down is %v s old", got)
	}
}

// The sums over all resources are those of each of them.
func TestSumsAgainstEach(t *testing.T) {
	r, j := some()
	j.Count = 200
	w := newWorld(r, j, Policy{}, 7)
	for w.open > 0 {
		w.next()
		failures, exposure := uint64(0), 0.0
		for _, one := range w.resources {
			failures, exposure = failures+one.failures, exposure+one.exposure+one.age(w.now)
		}
		want, err := avail.DefaultPrior().Observe(failures, exposure)
		if got := w.all(); err != nil || got.Failures != want.Failures ||
			math.Abs(got.Exposure-want.Exposure) > 1e-6*want.Exposure {
			t.Fatalf("at %v: %+v, want %+v, %v", w.now, got, want, err)
		}
	}
}

// "rescheduled to some other available resource with least fault index value" (FIBR paper, 3.4,
// step 4); the other rules take the resource with the lowest rate, or the one that stays up.
func TestPaperLeastFaultIndex(t *testing.T) {
	r, j := some()
	r.Count = 4
	w := newWorld(r, j, Policy{Place: PlaceFIBR}, 1)
	w.now = 1e6
	for i, one := range w.resources {
		one.spell = workload.Spell{From: 9e5, To: 2e6, Up: true}
		one.failures, one.exposure = uint64(10*(i+1)), 9e5
		for range one.failures {
			one.lives = append(one.lives, avail.Span{
				Week: -1, Seconds: one.exposure / float64(one.failures), End: avail.EndCrash,
			})
		}
		w.submitters[0].ledger.Put(one.id, fault.Record{Index: float64(4 - i)})
	}
	w.up = ups{failures: 100, exposure: 36e5}
	t1 := w.tasks[0]
	for place, want := range map[Place]int{
		PlaceFIBR: 3, PlaceRate: 0, PlaceAge: 0, PlaceShape: 0, PlaceRisk: 0,
	} {
		w.policy.Place = place
		if got := w.place(t1); got != w.resources[want] {
			t.Errorf("rule %d takes %s, want %s", place, got.id, w.resources[want].id)
		}
	}
	w.submitters[0].ledger.Put(w.resources[0].id, fault.Record{Index: 100}) // it fails and stays up
	if w.policy.Place = PlaceRisk; w.place(t1) != w.resources[1] {
		t.Errorf("a resource that fails without leaving is taken: %s", w.place(t1).id)
	}
	w.policy.Place = PlaceFIBR
	w.resources[3].spell.Up = false
	w.resources[2].task = t1
	if got := w.place(t1); got != w.resources[1] {
		t.Errorf("of those that are up and free: %s", got.id)
	}
	taken := map[*resource]bool{}
	w.policy.Place = PlaceRandom
	for range 100 {
		taken[w.place(t1)] = true
	}
	if len(taken) != 2 || !taken[w.resources[0]] || !taken[w.resources[1]] {
		t.Errorf("at random %d resources of two are taken", len(taken))
	}
	w.resources[0].task, w.resources[1].task = t1, t1
	if got := w.place(t1); got != nil {
		t.Errorf("nothing is free, and %s is taken", got.id)
	}
}

// The shape of times up is learned, also where resources differ much in their means; and with it
// that what has been up for long stays up.
func TestShapeIsLearned(t *testing.T) {
	for _, shape := range []float64{.6, 1, 2} {
		r, j := some()
		r.Shape, r.Spread, j.Count = shape, 1, 3000
		w := newWorld(r, j, Policy{}, 2)
		if err := w.run(1 << 20); err != nil {
			t.Fatal(err)
		}
		w.age(w.all())
		if math.Abs(w.ageing.shape-shape) > .08*shape {
			t.Errorf("shape %v, learned %v", shape, w.ageing.shape)
		}
		one := w.resources[0]
		stays := func(age float64) float64 {
			one.spell = workload.Spell{From: w.now - age, To: w.now + 1, Up: true}
			return w.shaped(one, w.all(), hour)
		}
		young, old := stays(minute), stays(one.mean)
		if shape < 1 && old <= young || shape > 1 && old >= young {
			t.Errorf("shape %v: stays up with %v when young, %v when old", shape, young, old)
		}
	}
}
