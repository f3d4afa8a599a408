package eval

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/scenario"
)

const ownLog = "grid n=2 nodes=12 largest=10 mem=1GiB latency=1ms\n" +
	"jobs log=micro.swf data=1MiB dataspread=1 mem=.2\n" +
	"strategy name=QUEUE on=queue\nstrategy name=MRS on=mesh split=greedy\nseeds n=2\n"

// inDir puts an experiment and its log into a directory of their own.
func inDir(t *testing.T, text, log string) Source {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"mine.txt": text, "micro.swf": log} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := OpenExperiment(filepath.Join(dir, "mine.txt"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// loadExperiment opens an experiment and reads its text.
func loadExperiment(name string) (scenario.Experiment, error) {
	s, err := OpenExperiment(name)
	if err != nil {
		return scenario.Experiment{}, err
	}
	return s.parse()
}

func mustRead(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// with sets keys as on the command line.
func with(t *testing.T, s Source, settings ...string) Source {
	t.Helper()
	for _, text := range settings {
		key, err := scenario.ParseSetting(text)
		if err != nil {
			t.Fatal(err)
		}
		if s, err = s.With(key, key.Values[0]); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// jobsOf are the log's jobs as the strategies get them.
func jobsOf(t *testing.T, s Source, seed uint64) []string {
	t.Helper()
	c, err := s.Compare()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.prepare(); err != nil {
		t.Fatal(err)
	}
	var jobs []string
	for _, j := range drawLogged(c.logged, c.Experiment.Jobs, c.Experiment.Grid, 12, seed) {
		text, err := json.Marshal([]any{
			j.Submit.Seconds(), j.Need.MilliCPUs / 1000, j.Run.Seconds(), j.Estimate.Seconds(),
		})
		if err != nil {
			t.Fatal(err)
		}
		jobs = append(jobs, string(text))
	}
	return jobs
}

// Jobs are as the log says, changed where the experiment says so and nowhere else.
func TestJobsComeFromALog(t *testing.T) {
	s := inDir(t, ownLog, mustRead(t, micro))
	for want, settings := range map[string][]string{
		"[0,6,100,100] [1,6,100,100] [2,4,50,50] [3,4,40,200] [4,2,10,10] [5,10,30,60] " +
			"[6,1,5,500]": {},
		"[0,6,100,100] [1,6,100,100]":             {"jobs.first=2"},
		"[0,4,40,200] [1,2,10,10] [2,10,30,60]":   {"jobs.from=3s", "jobs.for=3s"},
		"[0,4,20,100] [1,2,5,5]":                  {"jobs.from=3s", "jobs.first=2", "jobs.time=.5"},
		"[0,5,100,100] [1,5,100,100] [2,4,50,50]": {"jobs.procs=5", "jobs.first=3"},
		// 1,200 node seconds on 12 nodes at a load of .5 want 200 s.
		"[0,6,100,100] [200,6,100,100]": {"jobs.first=2", "jobs.load=.5"},
		"[0,6,100,200] [1,6,100,200]":   {"jobs.first=2", "jobs.estimate=2..2"},
	} {
		if got := strings.Join(jobsOf(t, with(t, s, settings...), 3), " "); got != want {
			t.Errorf("%v:\n got %s\nwant %s", settings, got, want)
		}
	}
	// Longer runs are cut, and what users say of them with them.
	for _, job := range jobsOf(t, with(t, s, "jobs.longest=60s", "jobs.first=2"), 3) {
		var n [4]float64
		if err := json.Unmarshal([]byte(job), &n); err != nil || n[2] < 36 || n[2] > 60 || n[3] != n[2] {
			t.Errorf("%s: %v", job, err)
		}
	}
}

// Packed or not, named by a path or in the experiment: a log gives the same numbers, and all of
// its jobs end.
func TestExperimentsRunLogs(t *testing.T) {
	text := mustRead(t, micro)
	s := inDir(t, ownLog, text)
	packed := filepath.Join(t.TempDir(), "packed")
	file, err := os.Create(packed)
	if err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(file)
	if _, err := z.Write([]byte(text)); err != nil || z.Close() != nil || file.Close() != nil {
		t.Fatal(err)
	}
	var results []string
	for _, s := range []Source{s, with(t, s, "jobs.log="+packed), with(t, s, "jobs.log="+micro)} {
		c, err := s.Compare()
		if err != nil {
			t.Fatal(err)
		}
		c.Name = ""
		r, err := c.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if r.Strategies["MRS"]["rejected"].Mean != 0 || r.Strategies["MRS"]["wait"].Mean <= 0 {
			t.Errorf("%+v", r.Strategies["MRS"])
		}
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		results = append(results, string(text))
	}
	if results[0] != results[1] || results[0] != results[2] {
		t.Errorf("plain %s\npacked %s\nby path %s", results[0], results[1], results[2])
	}
}

// One machine as large as that of the log does what the log's oracle says: EASY backfilling.
func TestALogOnOneSite(t *testing.T) {
	c, err := inDir(t, "grid n=1 nodes=10 mem=1GiB disk=1000Gbps\n"+
		"jobs log=micro.swf mem=.1\nstrategy name=QUEUE on=queue\n", mustRead(t, micro)).Compare()
	if err != nil {
		t.Fatal(err)
	}
	c.Seeds = 1
	starts := map[int64]time.Duration{}
	c.Keep = func(r RunRecord) error {
		for i, e := range r.ends {
			starts[r.numbers[i]] = e.start
		}
		return nil
	}
	if _, err := c.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := map[int64]float64{1: 0, 2: 100, 3: 2, 4: 52, 5: 92, 6: 200, 7: 92} // seconds
	for id, at := range want {
		if starts[id].Seconds() != at {
			t.Errorf("job %d starts at %v, want %v s", id, starts[id], at)
		}
	}
}

func TestMistakesWithLogs(t *testing.T) {
	const line = "1 0 -1 100 6 -1 -1 6 100 -1 1 1 -1 -1 -1 -1 -1 -1\n"
	for want, c := range map[string]struct{ log, setting string }{
		"looked for beside its experiment":  {line, "jobs.log=/nowhere/x.swf"},
		"line 2: not the Standard Workload": {line + "2 0 -1\n", "grid.n=2"},
		"no jobs in 1 lines":                {"; Version: 2\n", "grid.n=2"},
		"from=1h0m0s: no job is submitted":  {line, "jobs.from=1h"},
		"load=0.5: all 1 jobs are":          {line, "jobs.load=.5"},
		"job 1 lasts 100000000 s: want at":  {line, "jobs.longest=10s jobs.time=1000"},
		"submitted 400000000 s after":       {line + "2 400000000" + line[3:], "grid.n=2"},
	} {
		log := c.log
		if strings.Contains(want, "lasts") {
			log = strings.Replace(line, "100 6", "100000 6", 1)
		}
		s := with(t, inDir(t, ownLog, log), strings.Fields(c.setting)...)
		compare, err := s.Compare()
		if err == nil {
			_, err = compare.Run(t.Context())
		}
		if !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "jobs log=") {
			t.Errorf("%v, want %q", err, want)
		}
	}
	key, err := scenario.ParseSetting("jobs.lod=.5")
	if err != nil {
		t.Fatal(err)
	}
	_, err = inDir(t, ownLog, line).With(key, ".5")
	if !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), "--set jobs.lod=.5: line 2: "+
		"jobs lod: want one of procs time longest load") {
		t.Error(err)
	}
}
