package eval

import (
	"encoding/csv"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/sim/baseline"
)

// recordsOfRuns are all runs of an experiment.
func recordsOfRuns(t *testing.T, c Compare) (CompareResult, map[string]RunRecord) {
	t.Helper()
	records := make(map[string]RunRecord)
	c.Workers = 1
	c.Keep = func(r RunRecord) error {
		records[r.Strategy+" "+strconv.FormatUint(r.Seed, 10)] = r
		return nil
	}
	result, err := c.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return result, records
}

// No two holds have the same node at the same time, each has as many as it should, and none is
// above its site's last one, in schedules of both kinds.
func TestPlacesDoNotOverlap(t *testing.T) {
	_, records := recordsOfRuns(t, Compare{Experiment: mustParse(t, smallOne), First: 2, Seeds: 1})
	if len(records) != 4 {
		t.Fatalf("%d records", len(records))
	}
	for name, r := range records {
		checkPlaces(t, name, r)
	}
}

// Holds of any sizes and times, of which no more is held than there is, find their places.
func TestPlacesOfAnyHolds(t *testing.T) {
	for seed := range uint64(200) {
		chance := rand.New(rand.NewPCG(seed, 1))
		r := RunRecord{Grid: baseline.Grid{Sites: []grid.Resources{{MilliCPUs: 7300}}}}
		var free [50]float64
		for at := range free {
			free[at] = 7.3
		}
		for job := range 60 {
			from := chance.IntN(49)
			to := from + 1 + chance.IntN(min(12, 50-from-1)+1)
			nodes := min(slices.Min(free[from:min(to, 50)]), float64(chance.IntN(3000))/1000+.001)
			if nodes < .001 {
				continue
			}
			for at := from; at < min(to, 50); at++ {
				free[at] -= nodes
			}
			r.Holds = append(r.Holds, Hold{
				Job: job, Nodes: nodes, From: time.Duration(from), To: time.Duration(min(to, 50)),
			})
		}
		checkPlaces(t, strconv.FormatUint(seed, 10), r)
	}
}

func checkPlaces(t *testing.T, name string, r RunRecord) {
	t.Helper()
	places := r.Places()
	sums := make([]float64, len(r.Holds))
	for i, p := range places {
		h := r.Holds[p.Hold]
		sums[p.Hold] += p.High - p.Low
		if top := float64(r.Grid.Sites[h.Site].MilliCPUs) / 1000; p.Low < 0 || p.High > top+1e-9 {
			t.Fatalf("%s: %+v of %v nodes", name, p, top)
		}
		for _, q := range places[:i] {
			o := r.Holds[q.Hold]
			if h.Site == o.Site && h.From < o.To && o.From < h.To && p.Low < q.High-1e-9 &&
				q.Low < p.High-1e-9 {
				t.Fatalf("%s: %+v %+v and %+v %+v", name, h, p, o, q)
			}
		}
	}
	for i, h := range r.Holds {
		if math.Abs(sums[i]-h.Nodes) > 1e-5 {
			t.Fatalf("%s: hold %+v has %v nodes", name, h, sums[i])
		}
	}
}

// The files say the same as the measures, for all strategies.
func TestResultsAgreeWithMeasures(t *testing.T) {
	dir := t.TempDir()
	result, records := recordsOfRuns(t, Compare{
		Name: "small", Experiment: mustParse(t, smallOne), First: 2, Seeds: 1,
	})
	for name, r := range records {
		if err := r.WriteResults(dir); err != nil {
			t.Fatal(err)
		}
		var s map[string]any
		run := filepath.Join(dir, r.Strategy, "seed-2")
		text := mustRead(t, filepath.Join(run, "schedule.json"))
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			t.Fatal(err)
		}
		of := result.Strategies[r.Strategy]
		for field, want := range map[string]float64{
			"mean_waiting_time":    of["wait"].Mean,
			"mean_turnaround_time": of["completion"].Mean,
			"nb_jobs":              float64(len(r.Jobs)),
			"time_computing":       of["utilization"].Mean * of["makespan"].Mean * 16,
		} {
			got, _ := s[field].(float64)
			if math.Abs(got-want) > 1e-3*want {
				t.Errorf("%s: %s is %v, want %v", name, field, s[field], want)
			}
		}
		text = mustRead(t, filepath.Join(run, "jobs.csv"))
		rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
		if err != nil || len(rows) != len(r.Jobs)+1 || len(rows[0]) != 17 || rows[1][0] != "1" {
			t.Errorf("%s: %d rows, %v", name, len(rows), err)
		}
	}
}

// A schedule that can be checked by hand, with a job that runs twice, one that is split, and one
// that does not run.
func TestResultsOfASmallRun(t *testing.T) {
	const s = time.Second
	job := func(nodes int64, run, estimate time.Duration) baseline.Job {
		return baseline.Job{
			Need: grid.Resources{MilliCPUs: nodes * 1000}, Run: run, Estimate: estimate,
		}
	}
	r := RunRecord{
		Experiment: "tiny", Strategy: "A/..", Seed: 9, numbers: []int64{11, 12, 13},
		Grid: baseline.Grid{Sites: []grid.Resources{{MilliCPUs: 2500}, {MilliCPUs: 2000}}},
		Jobs: []baseline.Job{job(1, 10*s, 20*s), job(3, 5*s, 5*s), job(9, s, s)},
		Holds: []Hold{
			{Job: 0, Site: 0, Nodes: 1, To: 12 * s},
			{Job: 0, Copy: 1, Site: 1, Nodes: 1, To: 11 * s},
			{Job: 1, Site: 0, Nodes: 2, From: 12 * s, To: 17 * s},
			{Job: 1, Site: 1, Nodes: 1, From: 12 * s, To: 17 * s},
		},
		ends: []ending{
			{started: true, start: s, finish: 11 * s, held: 23},
			{submitted: 2 * s, started: true, start: 12 * s, finish: 17 * s, held: 15},
			{submitted: 3 * s},
		},
	}
	r.Jobs[1].Submit, r.Jobs[2].Submit = 2*s, 3*s
	dir := t.TempDir()
	if err := r.WriteResults(dir); err != nil {
		t.Fatal(err)
	}
	run := filepath.Join(dir, "A_..", "seed-9")
	want := strings.Join([]string{
		"job_id,workload_name,profile,submission_time,requested_number_of_resources,requested_time," +
			"success,final_state,starting_time,execution_time,finish_time,waiting_time," +
			"turnaround_time,stretch,allocated_resources,consumed_energy,metadata",
		"11,tiny,10,0.000000,1,20.000000,1,COMPLETED_SUCCESSFULLY,1.000000,10.000000,11.000000," +
			"1.000000,11.000000,1.100000,3,-1,",
		"12,tiny,5,2.000000,3,5.000000,1,COMPLETED_SUCCESSFULLY,12.000000,5.000000,17.000000," +
			"10.000000,15.000000,3.000000,0-1 3,-1,",
		"13,tiny,1,3.000000,9,1.000000,0,REJECTED,,,,,,,,,",
	}, "\n") + "\n"
	if diff := cmp.Diff(want, mustRead(t, filepath.Join(run, "jobs.csv"))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	var got batsimSchedule
	text := mustRead(t, filepath.Join(run, "schedule.json"))
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(batsimSchedule{
		Version: "none: written by gridsim", Joules: -1, Makespan: 17, MaxSlowdown: 3,
		MaxTurnaround: 15, MaxWaiting: 10, MeanSlowdown: 2.05, MeanTurnaround: 13, MeanWaiting: 5.5,
		Machines: 5, Jobs: 3, Finished: 2, Rejected: 1, Success: 2, SuccessRate: 2. / 3,
		Computing: 38, Idle: 4.5*17 - 38,
	}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.WriteResults(filepath.Join(dir, "file")); err == nil ||
		!strings.Contains(err.Error(), "directory for results") {
		t.Error(err)
	}
}

func TestIntervals(t *testing.T) {
	for want, numbers := range map[string][]int{
		"": nil, "3": {3}, "0-2 5 7-8": {8, 1, 0, 2, 5, 7, 1},
	} {
		if got := intervals(numbers); got != want {
			t.Errorf("%v: %q, want %q", numbers, got, want)
		}
	}
}

func TestFileNames(t *testing.T) {
	for name, want := range map[string]string{
		"MRS-whole": "MRS-whole", "a/b": "a_b", "..": "_..", "": "_", "grid.n": "grid.n", "ä b": "__b",
	} {
		if got := FileName(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
