package batch

import (
	"errors"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/workload"
)

type seconds = workload.Seconds

func rerun(t testing.TB, jobs []workload.Job, config Config) []seconds {
	t.Helper()
	r, err := New(jobs, config)
	if err != nil {
		t.Fatal(err)
	}
	for r.Step() {
	}
	if r.Started() != len(jobs) {
		t.Fatalf("%d of %d jobs started", r.Started(), len(jobs))
	}
	return r.Starts()
}

// micro is small enough to be followed by hand: ten processors, and job 2 blocks the
// queue.
func micro() []workload.Job {
	return []workload.Job{
		{ID: 1, Submit: 0, Run: 100, Estimate: 100, Procs: 6},
		{ID: 2, Submit: 1, Run: 100, Estimate: 100, Procs: 6},
		{ID: 3, Submit: 2, Run: 50, Estimate: 50, Procs: 4},
		{ID: 4, Submit: 3, Run: 40, Estimate: 200, Procs: 4},
		{ID: 5, Submit: 4, Run: 10, Estimate: 10, Procs: 2},
		{ID: 6, Submit: 5, Run: 30, Estimate: 60, Procs: 10},
		{ID: 7, Submit: 6, Run: 5, Estimate: 500, Procs: 1},
	}
}

func TestMicro(t *testing.T) {
	for policy, want := range map[Policy][]seconds{
		FCFS:         {0, 100, 100, 150, 190, 200, 230},
		EASY:         {0, 100, 2, 52, 92, 200, 92},
		Conservative: {0, 100, 2, 52, 92, 200, 230},
	} {
		for _, semantics := range []Semantics{Batch, Event} {
			if got := rerun(t, micro(), Config{10, policy, semantics}); !slices.Equal(got, want) {
				t.Errorf("%v, %d: starts = %v, want %v", policy, semantics, got, want)
			}
		}
	}
}

func TestMeasure(t *testing.T) {
	jobs := []workload.Job{{Submit: 5, Run: 5, Procs: 2}, {Submit: 5, Run: 20, Procs: 1}}
	got := Measure(jobs, []seconds{5, 10}, 2)
	want := Figures{Jobs: 2, AvgWait: 2.5, AvgBoundedSlowdown: 1.125, Makespan: 25, Utilization: 0.6}
	if got != want {
		t.Errorf("figures = %+v, want %+v", got, want)
	}
	if got := Measure(nil, nil, 2); got != (Figures{}) {
		t.Errorf("figures of nothing = %+v", got)
	}
}

// A machine of one processor takes one job after the other, under each policy; and none has more
// than 32 bits can count.
func TestTheSmallestAndTheLargestMachine(t *testing.T) {
	narrow := func() []workload.Job {
		return []workload.Job{{Run: 5, Estimate: 9, Procs: 1}, {Run: 1, Estimate: 1, Procs: 1}}
	}
	for policy := range Policies() {
		jobs := narrow()
		config := Config{Procs: 1, Policy: Policy(policy)}
		if got := rerun(t, jobs, config); !slices.Equal(got, []seconds{0, 5}) {
			t.Errorf("%v: starts = %v", config.Policy, got)
		}
		config.Procs = math.MaxInt32
		if got := rerun(t, jobs, config); !slices.Equal(got, []seconds{0, 0}) {
			t.Errorf("%v, the largest: starts = %v", config.Policy, got)
		}
		config.Procs++
		if _, err := New(jobs, config); !errors.Is(err, errInvalid) {
			t.Errorf("%v, a processor more: %v", config.Policy, err)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	fine := workload.Job{Run: 1, Estimate: 1, Procs: 1}
	late := workload.Job{Submit: 1, Run: 1, Estimate: 1, Procs: 1}
	for name, c := range map[string]struct {
		jobs   []workload.Job
		config Config
	}{
		"no machine":     {nil, Config{Procs: 0}},
		"no policy":      {nil, Config{Procs: 1, Policy: 7}},
		"too wide":       {[]workload.Job{{Run: 1, Estimate: 1, Procs: 2}}, Config{Procs: 1}},
		"no width":       {[]workload.Job{{Run: 1, Estimate: 1}}, Config{Procs: 1}},
		"no time":        {[]workload.Job{{Estimate: 1, Procs: 1}}, Config{Procs: 1}},
		"underestimated": {[]workload.Job{{Run: 2, Estimate: 1, Procs: 1}}, Config{Procs: 1}},
		"out of order":   {[]workload.Job{late, fine}, Config{Procs: 1}},
	} {
		if _, err := New(c.jobs, c.config); !errors.Is(err, errInvalid) {
			t.Errorf("%s: error = %v, want ErrInvalid", name, err)
		}
	}
}

func TestNames(t *testing.T) {
	for i, n := range Policies() {
		if p, err := ParsePolicy(n); err != nil || p != Policy(i) || p.String() != n {
			t.Errorf("ParsePolicy(%q) = %v, %v", n, p, err)
		}
	}
	for i, n := range AllSemantics() {
		if s, err := ParseSemantics(n); err != nil || s != Semantics(i) {
			t.Errorf("ParseSemantics(%q) = %v, %v", n, s, err)
		}
	}
	if _, err := ParsePolicy("sjf"); !errors.Is(err, errInvalid) {
		t.Errorf("ParsePolicy(sjf): error = %v, want ErrInvalid", err)
	}
}

func logs() *rapid.Generator[[]workload.Job] {
	return rapid.Custom(func(t *rapid.T) []workload.Job {
		jobs := make([]workload.Job, rapid.IntRange(0, 25).Draw(t, "jobs"))
		submit := seconds(0)
		for i := range jobs {
			submit += seconds(rapid.IntRange(0, 4).Draw(t, "gap"))
			run := seconds(rapid.IntRange(1, 12).Draw(t, "run"))
			jobs[i] = workload.Job{
				ID: int64(i), Submit: submit, Run: run,
				Estimate: run + seconds(rapid.IntRange(0, 12).Draw(t, "margin")),
				Procs:    rapid.IntRange(1, 8).Draw(t, "procs"),
			}
		}
		return jobs
	})
}

func TestRerunAgainstTwin(t *testing.T) {
	for policy := range Policies() {
		for semantics := range AllSemantics() {
			config := Config{8, Policy(policy), Semantics(semantics)}
			t.Run(config.Policy.String()+" "+AllSemantics()[config.Semantics], func(t *testing.T) {
				rapid.Check(t, func(rt *rapid.T) {
					jobs := logs().Draw(rt, "log")
					got := rerun(t, jobs, config)
					checkCapacity(rt, jobs, got, config.Procs)
					if want := newTwin(jobs, config).rerun(); !slices.Equal(got, want) {
						rt.Fatalf("starts = %v, want %v", got, want)
					}
				})
			})
		}
	}
}

// checkCapacity holds for each policy: no job starts before it was submitted, and never
// is more taken than there is.
func checkCapacity(t *rapid.T, jobs []workload.Job, starts []seconds, procs int) {
	for i := range jobs {
		if starts[i] < jobs[i].Submit {
			t.Fatalf("job %d starts before its submission", i)
		}
		used := 0
		for k, j := range jobs {
			if starts[k] <= starts[i] && starts[i] < starts[k]+j.Run {
				used += j.Procs
			}
		}
		if used > procs {
			t.Fatalf("%d of %d processors taken at %d", used, procs, starts[i])
		}
	}
}

// twin is the dumb twin: it looks at every second and keeps nothing that it can work
// out again.
type twin struct {
	jobs    []workload.Job
	config  Config
	now     seconds
	places  map[int]seconds // of those that run, and with conservative backfilling of those that wait
	order   []int           // those that run, in the order of their starts
	waiting []int
	starts  []seconds
}

func newTwin(jobs []workload.Job, config Config) *twin {
	return &twin{
		jobs: jobs, config: config, places: map[int]seconds{}, starts: make([]seconds, len(jobs)),
	}
}

func (w *twin) rerun() []seconds {
	next := 0
	for done := 0; done < len(w.jobs); w.now++ {
		var ended []int
		for _, i := range w.order {
			if w.starts[i]+w.jobs[i].Run == w.now {
				ended = append(ended, i)
			}
		}
		done += len(ended)
		end := func(which ...int) {
			for _, i := range which {
				delete(w.places, i)
				w.order = slices.DeleteFunc(w.order, func(k int) bool { return k == i })
			}
			if len(which) > 0 {
				w.compress()
			}
		}
		if w.config.Semantics == Batch {
			end(ended...)
			ended = nil
		}
		for ; next < len(w.jobs) && w.jobs[next].Submit == w.now; next++ {
			w.waiting = append(w.waiting, next)
			if w.config.Policy == Conservative {
				w.places[next] = w.earliest(next)
			}
			if w.config.Semantics == Event {
				w.look()
			}
		}
		for _, i := range ended {
			end(i)
			w.look()
		}
		w.look()
	}
	return w.starts
}

// free counts the processors that places leave free at an instant.
func (w *twin) free(at seconds) int {
	free := w.config.Procs
	for i, place := range w.places {
		if place <= at && at < place+w.jobs[i].Estimate {
			free -= w.jobs[i].Procs
		}
	}
	return free
}

func (w *twin) fits(i int, place seconds) bool {
	for at := place; at < place+w.jobs[i].Estimate; at++ {
		if w.free(at) < w.jobs[i].Procs {
			return false
		}
	}
	return true
}

func (w *twin) earliest(i int) seconds {
	place := w.now
	for !w.fits(i, place) {
		place++
	}
	return place
}

func (w *twin) compress() {
	if w.config.Policy != Conservative {
		return
	}
	for _, i := range w.waiting {
		delete(w.places, i)
		w.places[i] = w.earliest(i)
	}
}

func (w *twin) look() {
	shadow, extra, blocked := never, 0, false
	w.waiting = slices.DeleteFunc(w.waiting, func(i int) bool {
		j := w.jobs[i]
		if w.config.Policy == Conservative {
			if w.places[i] == w.now {
				w.start(i)
			}
			return w.places[i] == w.now
		}
		fits := j.Procs <= w.free(w.now)
		switch {
		case !blocked && fits:
		case w.config.Policy == FCFS && (blocked || !fits):
			blocked = true
			return false
		case !blocked:
			blocked = true
			for shadow = w.now; w.free(shadow) < j.Procs; shadow++ {
			}
			extra = w.free(shadow) - j.Procs
			return false
		case !fits || w.now+j.Estimate > shadow && j.Procs > extra:
			return false
		case w.now+j.Estimate > shadow:
			extra -= j.Procs
		}
		w.start(i)
		return true
	})
}

func (w *twin) start(i int) {
	w.places[i], w.starts[i] = w.now, w.now
	w.order = append(w.order, i)
}

// BenchmarkRerun is a year of a machine that is 80 % busy.
func BenchmarkRerun(b *testing.B) {
	jobs := make([]workload.Job, 20_000)
	state := uint64(1)
	draw := func(n uint64) seconds {
		state = state*6364136223846793005 + 1442695040888963407
		return seconds(state >> 33 % n)
	}
	submit := seconds(0)
	for i := range jobs {
		submit += draw(520)
		run := 1 + draw(60)*draw(60)*2
		jobs[i] = workload.Job{
			ID: int64(i), Submit: submit, Run: run, Estimate: run + draw(7200),
			Procs: 1 + int(draw(8)*draw(8)),
		}
	}
	for policy, name := range Policies() {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				rerun(b, jobs, Config{100, Policy(policy), Batch})
			}
			b.ReportMetric(float64(b.N)*float64(len(jobs))/b.Elapsed().Seconds(), "jobs/s")
			b.ReportMetric(Measure(jobs, rerun(b, jobs, Config{
				100, Policy(policy), Batch,
			}), 100).Utilization, "utilization")
		})
	}
}

// What comes free again leaves nothing behind: the profile is as long as what it tells.
func TestAProfileKeepsNoStepThatChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := profile{steps: []step{{0, 8}}}
		type place struct{ from, to seconds }
		var taken []place
		for range rapid.IntRange(1, 12).Draw(t, "n") {
			from := seconds(rapid.IntRange(0, 9).Draw(t, "from"))
			to := from + seconds(rapid.IntRange(1, 9).Draw(t, "length"))
			p.add(from, to, -1)
			taken = append(taken, place{from, to})
			for i := 1; i < len(p.steps); i++ {
				if p.steps[i].free == p.steps[i-1].free || p.steps[i].at <= p.steps[i-1].at {
					t.Fatalf("steps %v", p.steps)
				}
			}
		}
		for _, x := range taken {
			p.add(x.from, x.to, 1)
		}
		if !slices.Equal(p.steps, []step{{0, 8}}) {
			t.Fatalf("all is free, and there are steps %v", p.steps)
		}
	})
}

// What was before now is forgotten, also what ends right now.
func TestAProfileForgetsThePast(t *testing.T) {
	for now, want := range map[seconds][]step{
		0: {{0, 8}, {5, 6}, {9, 8}}, 4: {{4, 8}, {5, 6}, {9, 8}}, 5: {{5, 6}, {9, 8}},
		6: {{6, 6}, {9, 8}}, 9: {{9, 8}}, 10: {{10, 8}},
	} {
		p := profile{steps: []step{{0, 8}}}
		p.add(5, 9, -2)
		if p.advance(now); !slices.Equal(p.steps, want) {
			t.Errorf("at %d: %v, want %v", now, p.steps, want)
		}
	}
}
