package failing

import (
	"errors"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/argument"
	"github.com/mrsmesh/mrsmesh/pkg/ckpt"
	"github.com/mrsmesh/mrsmesh/pkg/workload"
)

const (
	minute = 60.0
	hour   = 60 * minute
)

// some are resources that fail every four hours and jobs of five.
func some() (Resources, Jobs) {
	return Resources{Count: 64, MTBF: 4 * hour, Shape: 1, Repair: hour / 2}, Jobs{
		Count: 2000, Shortest: 5 * hour, Longest: 5 * hour, Load: .3, Cost: 2 * minute, Restart: minute,
		Deadline: 2,
	}
}

func mustPlay(t *testing.T, r Resources, j Jobs, p Policy, seed uint64) []Ending {
	t.Helper()
	endings, err := Play(r, j, p, seed)
	if err != nil {
		t.Fatal(err)
	}
	return endings
}

// near wants the mean of independent numbers to be the expected one, within four standard errors.
func near(t *testing.T, what string, values []float64, want float64) {
	t.Helper()
	sum, squares := 0.0, 0.0
	for _, v := range values {
		sum += v
		squares += v * v
	}
	n := float64(len(values))
	mean := sum / n
	if margin := 4 * math.Sqrt(max(squares/n-mean*mean, 1e-18)/n); math.Abs(mean-want) > margin {
		t.Errorf("%s: %v, want %v, within %v", what, mean, want, margin)
	}
}

// "e^(R/M) M ((n-1) (e^((tau+C)/M) - 1) + (e^(last/M) - 1))" (Daly 2006): where times up are
// exponential a job holds its resources for so long on average, restarts and lost work included,
// and it meets a failure for each M of it.
func TestPaperExpectedTimeUnderFailures(t *testing.T) {
	r, j := some()
	for _, mtbf := range []float64{hour, 4 * hour, 24 * hour} {
		r.MTBF = mtbf
		e := ckpt.Execution{
			WorkSeconds: j.Longest, CostSeconds: j.Cost, MTBFSeconds: mtbf, RestartSeconds: j.Restart,
		}
		segments, err := e.Segments()
		if err != nil {
			t.Fatal(err)
		}
		daly, _ := ckpt.Daly(j.Cost, mtbf)
		for _, c := range []struct {
			policy   Policy
			interval float64
		}{
			{Policy{Save: SaveKnown}, j.Longest / float64(segments) * (1 + 1e-12)},
			{Policy{Save: SaveDaly}, daly},
			{Policy{Save: SaveEvery, Interval: 7 * minute}, 7 * minute},
			{Policy{Save: SaveEvery, Interval: hour}, hour * (1 + 1e-12)},
			{Policy{Save: SaveEvery, Interval: 100 * minute}, 100 * minute * (1 + 1e-12)},
		} {
			var held, failures []float64
			for _, e := range mustPlay(t, r, j, c.policy, 5) {
				held, failures = append(held, e.Held), append(failures, float64(e.Failures))
			}
			want, err := e.ExpectedCompletion(c.interval)
			if err != nil {
				t.Fatal(err)
			}
			near(t, "time held", held, want)
			near(t, "failures", failures, want/mtbf)
		}
	}
}

// Where nothing fails a job takes as many checkpoints as its rule says without a grid: MFCA as
// ckpt.MFCA.Run, LFCA one of four, once more than a job's time has passed since the start.
func TestRulesWithoutFailures(t *testing.T) {
	r, j := some()
	r.MTBF = 1e15
	mfca := Policy{
		Save: SaveMFCA, Interval: 20 * minute, Least: 4 * minute, Limit: .25, Step: .5,
	}
	adapted, err := mfca.mfca(j.Cost, j.Longest).Run(mfca.Interval, math.Inf(1))
	if err != nil {
		t.Fatal(err)
	}
	for want, p := range map[int]Policy{
		14: {Save: SaveEvery, Interval: 20 * minute}, 4: {Save: SaveEvery, Interval: 70 * minute},
		0: {Save: SaveKnown}, 3: {Save: SaveLFCA, Interval: 20 * minute, Omit: 3},
		len(adapted): mfca,
	} {
		for _, e := range mustPlay(t, r, j, p, 1) {
			if p.Save == SaveLFCA && e.Submit < j.Longest {
				continue // the start counts as a failure
			}
			if e.Checkpoints != want || e.Failures != 0 ||
				math.Abs(e.Held-e.Work-float64(want)*j.Cost) > 1e-3 {
				t.Fatalf("%+v: %+v, want %d checkpoints", p, e, want)
			}
		}
	}
}

// "The job is rescheduled to some other available resource ... and executed from the last saved
// checkpoint" (FIBR paper, 3.4, step 4): of a hundred seconds of work 80 are saved when the
// resource fails at 100.
func TestPaperFromTheLastCheckpoint(t *testing.T) {
	r := Resources{Count: 2, MTBF: 1e15, Shape: 1, Repair: 1e15}
	j := Jobs{
		Count: 1, Shortest: 100, Longest: 100, Load: 1, Cost: 5, Restart: 3, Deadline: 1.3,
	}
	w := newWorld(r, j, Policy{Save: SaveEvery, Interval: 40}, 1)
	w.tasks[0].Submit = 0
	w.events, w.up = nil, ups{}
	for i, until := range []float64{100, 1e6} {
		spell := workload.Spell{To: until, Up: true}
		w.resources[i].spell = spell
		w.up.enter(spell)
		w.push(event{at: until, kind: changed, which: i})
	}
	w.resources[1].task = new(task) // it becomes free later
	for w.now < 99 && w.open > 0 && w.events[0].at < 99 || w.arrived == 0 {
		w.next()
	}
	w.resources[1].task = nil
	if err := w.run(100); err != nil {
		t.Fatal(err)
	}
	want := Ending{Submit: 0, End: 123, Work: 100, Held: 123, Failures: 1, Checkpoints: 2}
	if got := w.tasks[0].Ending; got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	s := Summarise([]Ending{want, {End: 90, Work: 80, Held: 80}}, 1.2)
	sums := Summary{Waste: 11.5, Met: .5, Completion: 106.5, Checkpoints: 1, Failures: .5}
	if s != sums {
		t.Errorf("%+v, want %+v", s, sums)
	}
	if s := Summarise(nil, 1); s != (Summary{}) {
		t.Errorf("no jobs: %+v", s)
	}
}

// The same jobs come and the same resources fail, whatever the rules; equal arguments give equal
// endings, and other seeds other ones.
func TestOneWorldForAllRules(t *testing.T) {
	r, j := some()
	r.Spread, j.Count = 1, 300
	first := mustPlay(t, r, j, Policy{Save: SaveLearned}, 3)
	if !slices.Equal(first, mustPlay(t, r, j, Policy{Save: SaveLearned}, 3)) {
		t.Error("the same arguments gave other endings")
	}
	for place := PlaceRandom; place <= PlaceRisk; place++ {
		other := mustPlay(t, r, j, Policy{Save: SaveEvery, Interval: hour, Place: place}, 3)
		for i := range first {
			if first[i].Submit != other[i].Submit || first[i].Work != other[i].Work {
				t.Fatalf("job %d: %+v and %+v", i, first[i], other[i])
			}
		}
	}
	if other := mustPlay(t, r, j, Policy{Save: SaveLearned}, 4); other[0].Submit == first[0].Submit {
		t.Error("another seed gave the same jobs")
	}
}

// The work that comes is the load that was asked for.
func TestLoad(t *testing.T) {
	r, j := some()
	j.Shortest, j.Count = hour, 20_000
	jobs := j.draw(r.Count, 1)
	work := 0.0
	for i, one := range jobs {
		work += one.work
		if one.work < j.Shortest || one.work > j.Longest || i > 0 && one.submit < jobs[i-1].submit {
			t.Fatalf("job %d: %+v", i, one)
		}
	}
	if load := work / jobs[len(jobs)-1].submit / float64(r.Count); math.Abs(load-j.Load) > .01 {
		t.Errorf("load %v, want %v", load, j.Load)
	}
	r.Spread, r.Count = 1, 4096
	var logs []float64
	for _, mean := range r.means(1) {
		logs = append(logs, math.Log(mean/r.MTBF))
	}
	near(t, "logarithms of mean times up", logs, 0)
}

func TestPlayRefuses(t *testing.T) {
	r, j := some()
	nan := math.NaN()
	for name, change := range map[string]func(*Resources, *Jobs, *Policy){
		"no resources":  func(r *Resources, _ *Jobs, _ *Policy) { r.Count = 0 },
		"mtbf":          func(r *Resources, _ *Jobs, _ *Policy) { r.MTBF = 0 },
		"spread":        func(r *Resources, _ *Jobs, _ *Policy) { r.Spread = nan },
		"repair":        func(r *Resources, _ *Jobs, _ *Policy) { r.Repair = -1 },
		"jobs":          func(_ *Resources, j *Jobs, _ *Policy) { j.Count = 1 << 30 },
		"longest":       func(_ *Resources, j *Jobs, _ *Policy) { j.Longest = 1 },
		"endless":       func(_ *Resources, j *Jobs, _ *Policy) { j.Longest = math.Inf(1) },
		"load":          func(_ *Resources, j *Jobs, _ *Policy) { j.Load = 0 },
		"cost":          func(_ *Resources, j *Jobs, _ *Policy) { j.Cost = 0 },
		"no interval":   func(_ *Resources, _ *Jobs, p *Policy) { p.Save = SaveEvery },
		"no such rule":  func(_ *Resources, _ *Jobs, p *Policy) { p.Save = SaveMFCA + 1 },
		"no such place": func(_ *Resources, _ *Jobs, p *Policy) { p.Place = PlaceRisk + 1 },
		"omissions":     func(_ *Resources, _ *Jobs, p *Policy) { p.Omit = -1 },
		"least": func(_ *Resources, j *Jobs, p *Policy) {
			*p = Policy{Save: SaveMFCA, Interval: hour, Least: j.Cost, Limit: .5, Step: 1}
		},
	} {
		resources, jobs, policy := r, j, Policy{}
		change(&resources, &jobs, &policy)
		got, err := Play(resources, jobs, policy, 1)
		if got != nil || !errors.Is(err, argument.ErrInvalid) {
			t.Errorf("%s: %d endings, %v", name, len(got), err)
		}
	}
	shaped := r
	shaped.Shape = .01
	if got, err := Play(shaped, j, Policy{}, 1); got != nil || err == nil {
		t.Errorf("a shape that no law has: %d endings, %v", len(got), err)
	}
	// A job that no resource stays up for.
	r.MTBF = 10
	w := newWorld(r, j, Policy{Save: SaveEvery, Interval: hour}, 1)
	if err := w.run(10_000); !errors.Is(err, argument.ErrUndefined) {
		t.Errorf("no end: %v", err)
	}
}

// What is popped comes in the order of its time, and of its being pushed.
func TestEventsAgainstSorting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var w world
		var want []event
		for _, at := range rapid.SliceOfN(rapid.IntRange(0, 5), 1, 40).Draw(t, "times") {
			number := w.push(event{at: float64(at)})
			want = append(want, event{at: float64(at), number: number})
		}
		slices.SortFunc(want, func(a, b event) int {
			if a.before(b) {
				return -1
			}
			return 1
		})
		for i := range want {
			if got := w.events.pop(); got != want[i] {
				t.Fatalf("place %d: %+v, want %+v", i, got, want[i])
			}
		}
	})
}
