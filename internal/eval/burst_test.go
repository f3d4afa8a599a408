package eval

import (
	"math"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

const bursts = "grid n=6 cores=2..8 speed=.4 memspread=.2 rate=8Mbps latency=20ms\n" +
	"jobs n=90 burst=15 procs=2 time=.02 longest=2m load=2 data=1MiB dataspread=1 out=.1 " +
	"local=1 estimate=1..2\n" + `strategy name=thesis on=mesh by=each grain=2
strategy name=held on=mesh by=each grain=2 hold=all
strategy name=unguarded on=mesh by=each grain=2 map=seconds requote=no
strategy name=seconds on=mesh by=each grain=2 map=seconds
strategy name=weighed on=mesh by=each grain=2 map=seconds wait=16 data=10 choice=softmin
strategy name=rivals on=mesh by=each grain=2 map=seconds rivals=yes
strategy name=few on=mesh by=each grain=2 map=seconds replies=2
strategy name=sequential on=mesh by=each grain=2 map=seconds delay=none
seeds    n=1
`

// Sites have whole numbers of cores from the range, speeds around 1, and jobs come so many at a
// time, from one site, within the time that the load and their work leave.
func TestDrawBursts(t *testing.T) {
	e := mustParse(t, bursts)
	logs, sites := 0.0, 0
	for seed := range uint64(40) {
		g, speeds := drawGrid(e.Grid, seed), drawSpeeds(e.Grid, seed)
		power := capacity(e.Grid, g, speeds)
		want := 0.0
		for i, s := range g.Sites {
			cores := s.MilliCPUs / 1000
			if s.MilliCPUs%1000 != 0 || cores < 2 || cores > 8 || speeds[i] <= 0 {
				t.Errorf("seed %d: %+v, speed %v", seed, s, speeds[i])
			}
			want += float64(cores) * speeds[i]
			logs, sites = logs+math.Log(speeds[i])*math.Log(speeds[i]), sites+1
		}
		if math.Abs(power-want) > 1e-9 {
			t.Errorf("seed %d: the grid has %v, want %v", seed, power, want)
		}
		jobs := drawJobs(e.Jobs, e.Grid, power, seed)
		work := 0.0
		for i, j := range jobs {
			first := jobs[i-i%15]
			if j.Source != first.Source || j.Home != first.Home || j.Submit != first.Submit ||
				i >= 15 && j.Submit <= jobs[i-15].Submit {
				t.Fatalf("seed %d, job %d: %+v beside %+v", seed, i, j, first)
			}
			work += float64(j.Need.MilliCPUs) / 1000 * j.Run.Seconds()
		}
		span := jobs[len(jobs)-1].Submit.Seconds()
		if load := work / span / power; len(jobs) != 90 || math.Abs(load-2) > 1e-6 {
			t.Errorf("seed %d: %d jobs, load %v", seed, len(jobs), load)
		}
	}
	if spread := math.Sqrt(logs / float64(sites)); math.Abs(spread-.4) > .05 {
		t.Errorf("speeds have a spread of %.3f, want .4", spread)
	}
}

// All strategies of the mesh place all jobs, differ in what their words say, and a core of twice
// the speed takes half the time.
func TestPlacingInBursts(t *testing.T) {
	e := mustParse(t, bursts)
	const seed = 3
	g, speeds := drawGrid(e.Grid, seed), drawSpeeds(e.Grid, seed)
	jobs := drawJobs(e.Jobs, e.Grid, capacity(e.Grid, g, speeds), seed)
	d := drawn{grid: g, speeds: speeds, jobs: jobs}
	measures := make(map[string]map[string]float64)
	for _, s := range e.Strategies {
		ends, _, err := playMesh(t.Context(), e, s, d, seed)
		if err != nil {
			t.Fatal(s.Name, err)
		}
		for i, end := range ends {
			if took := (end.finish - end.start).Seconds(); !end.started ||
				!someSpeed(took, d.jobs[i].Run, speeds) {
				t.Errorf("%s: job %d of %v took %v s with speeds %v", s.Name, i, d.jobs[i].Run, took, speeds)
			}
		}
		if measures[s.Name], err = measure(g, d.jobs, ends); err != nil {
			t.Fatal(err)
		}
		if u := measures[s.Name]["utilization"]; u <= 0 || u > 1 {
			t.Errorf("%s uses %v of the grid", s.Name, u)
		}
	}
	if few, all := measures["few"]["messages"], measures["seconds"]["messages"]; few >= all {
		t.Errorf("%v messages a job with few replies, %v with all", few, all)
	}
	same := make(map[float64]string)
	for name, m := range measures {
		if other, is := same[m["completion"]]; is {
			t.Errorf("%s and %s are the same", name, other)
		}
		same[m["completion"]] = name
	}
}

// someSpeed reports whether a job takes so long at one of the speeds, which the mesh knows to a
// thousandth, what its output needs to come home included.
func someSpeed(seconds float64, run time.Duration, speeds []float64) bool {
	for _, s := range speeds {
		if took := run.Seconds() / s; seconds > .998*took && seconds < took+60 {
			return true
		}
	}
	return false
}

func TestSharing(t *testing.T) {
	for ways, want := range map[string]int{"turns": 2, "fair": 1, "apart": 0} {
		if got := int(sharing(ways)); got != want {
			t.Errorf("%s is %d, want %d", ways, got, want)
		}
	}
}

// An attempt that begins when its job has been called off is no start of the job.
func TestStartsOfJobsThatWereCalledOff(t *testing.T) {
	r := &meshRun{}
	open, over := ending{}, ending{ended: time.Minute}
	r.started(grid.AttemptID{}, &open, time.Minute+time.Millisecond)
	r.started(grid.AttemptID{}, &over, time.Minute+time.Millisecond)
	if !open.started || open.start != time.Minute+time.Millisecond || over.started {
		t.Errorf("open %+v, over %+v", open, over)
	}
}
