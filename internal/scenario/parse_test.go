package scenario

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

const small = "sites n=2 cores=2..4\nrun for=1m\n"

func TestParse(t *testing.T) {
	s, err := Parse(`
# a story
run    for=30m seed=42
submit job=j1 at=1s by=s2 jobs=2 count=10 gflops=4.5 cpus=2 mem=256MiB run=20s data=8MiB ` +
		`net=2Mbps ttl=2s unattended=finish wait=no
sites  n=3 cores=2..8 gflops=8..32 mem=1GiB..3GiB uplink=10Mbps domain=a  # growing
net    latency=2ms jitter=1ms loss=.1 duplicate=.2 reorder=.3
clock  site=s1 skew=-5m
crash  site=s1 at=95s for=10s amid=step
expect lost=0 cache_hits>0 site.frozen<=3
expect job=j1 within=2m site!=s0
`)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Sites) != 3 || s.Sites[1].Skew != -5*time.Minute || s.Sites[1].Name != "s1" {
		t.Errorf("sites %+v", s.Sites)
	}
	want := grid.Resources{
		MilliCPUs: 5000, MemoryBytes: 2 << 30, DiskBytes: 64 << 30, MFLOPS: 20000, NetBps: 10e6,
	}
	if got := s.Sites[1].Capability; got.Total != want || got.UpBps != 10e6 || got.CoreMFLOPS != 4000 {
		t.Errorf("the middle site is %+v", got)
	}
	if want := (Net{2 * time.Millisecond, time.Millisecond, .1, .2, .3}); s.Net != want {
		t.Errorf("net %+v, want %+v", s.Net, want)
	}
	wantEvents := []Event{
		{Kind: Submit, At: time.Second, Submit: Submission{
			Name: "j1", By: "s2", Jobs: 2, Count: 10, Run: 20 * time.Second,
			Data: 8 << 20, TTL: 2 * time.Second, NoWait: true,
			Need: grid.Resources{
				MilliCPUs: 2000, MemoryBytes: 256 << 20, DiskBytes: 1 << 20, MFLOPS: 4500, NetBps: 2e6,
			},
			Unattended: grid.UnattendedFinish,
		}},
		{Kind: Crash, At: 95 * time.Second, For: 10 * time.Second, Site: "s1", Amid: true},
	}
	if diff := cmp.Diff(wantEvents, s.Events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	wantExpect := Expectations{
		{Line: 9, Measure: "lost", Op: "="},
		{Line: 9, Measure: "cache_hits", Op: ">"},
		{Line: 9, Measure: "site.frozen", Op: "<=", Value: 3},
		{Line: 10, Job: "j1", Measure: "within", Op: "<=", Value: 120},
		{Line: 10, Job: "j1", Measure: "site", Op: "!=", Site: "s0"},
	}
	if diff := cmp.Diff(wantExpect, s.Expect); diff != "" {
		t.Errorf("expectations (-want +got):\n%s", diff)
	}
}

// submitKeys are the keys of a submission in the order in which they are read.
const submitKeys = "at job jobs count cpus mem disk gflops net run data ttl by unattended wait " +
	"takes limit output start notbefore deadline reserve reservation after split placing map"

// Every error names the line, the key, what was expected and what to do.
func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		"": "sites: want a line that says which sites there are; add sites n=5 cores=4 gflops=16",
		"sites n=2": "run: want a line that says how long; add " +
			"run for=10m seed=1",
		small + "sumbit job=a": "line 3: sumbit: want one of sites link net clock " +
			"submit crash isolate silent pause busy cancel migrate run expect backup batch broken cut deaf drift " +
			"full kill liar lose part power restore set slow stick suspend tune twin at its beginning; " +
			"did you mean submit?",
		small + "cut site=s0 to=s9": "line 3: cut to=s9: want the name of a site, s0 to s1; sites are " +
			"named in the order of their lines",
		small + "part site=s0 with=s1,x": "line 3: part with=s1,x: want names of sites with commas " +
			"between them",
		small + "drift site=s0 fast=2000000": "line 3: drift fast=2000000: want a whole number from " +
			"-100000 to 100000",
		small + "set site=s0 by=1h for=2s": "line 3: set for: want one of at site by",
		small + "submit job=a by=s0 cout=3": "line 3: submit cout: want one of " + submitKeys +
			"; did you mean count?",
		small + "submit by=s0": "line 3: submit job: want a name; add job=...",
		small + "submit job=a by=s7": "line 3: submit by=s7: want the name of a " +
			"site, s0 to s1; sites are named in the order of their lines",
		small + "submit job=A by=s0": "line 3: submit job=A: want letters a-z and digits",
		small + "submit job=a by=s0 ttl=9": "line 3: submit ttl=9: want a time of at " +
			"most 366 days such as 1s, 2m or 1h30m; write a number with its unit",
		small + "submit job=a by=s0 ttl=9h": "line 3: submit: want a job that some site " +
			"could run; invalid: ttl: want 10ms to 5m0s, have 9h0m0s",
		small + "submit job=a by=s0 mem=2GB": "line 3: submit mem=2GB: want a number with " +
			"its unit: TiB, GiB, MiB, KiB, B",
		small + "submit job=a by=s0\nsubmit job=a by=s1": "line 4: submit job=a: want a name of its " +
			"own; another submission has this name",
		small + "net loss=1.5":  "line 3: net loss=1.5: want a probability from 0 to below 1 such as .1",
		small + "net loss = .1": "line 3: net loss: want key=value; write no spaces around =",
		small + "net loss=.1 loss=.2": "line 3: net loss=.2: want each key once; remove one of " +
			"the two",
		small + "net loss=.1\nnet jitter=1s": "line 4: net: want one such line; put it together with " +
			"line 3",
		small + "run for=1s": "line 3: run: want one such line; remove this one or line 2",
		small + "crash site=s1 amid=sleep": "line 3: crash amid=sleep: want step; leave it out for a " +
			"crash between two steps",
		small + "cancel job=a":        "cancel job=a: want the name of a submission",
		small + "migrate job=a at=1s": "migrate job=a: want the name of a submission",
		small + "expect job=a lost=0": "line 3: expect job=a: want the name of a submission",
		small + "expect losst=0": "line 3: expect losst: want one of " + strings.Join(Measures(), " ") +
			" site.EVENT broker.EVENT; did you mean lost?",
		small + "expect site=s9": "line 3: expect site=s9: want = or != and the name of a site",
		small + "expect heard=5/0": "line 3: expect heard=5/0: want a whole number from 0 up; only " +
			"heard may be written n/of",
		small + "expect":        "line 3: expect: want something to be true, such as lost=0",
		"sites n=0\nrun for=1s": "line 1: sites n=0: want a whole number from 1 to 1000",
		"sites cores=1e12\nrun for=1s": "line 1: sites: want a machine that can exist; invalid: cpus " +
			"(thousandths): want 0 to 8796093022208, have 1000000000000000",
		"sites domain=A\nrun for=0s": "line 2: run for: want a time above 0; add for=10m",
	} {
		_, err := Parse(text)
		if err == nil || !errors.Is(err, ErrSyntax) || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%q) =\n%v\nwant\n%s", text, err, want)
		}
	}
	_, err := Parse("sites n=x\nrun for=y\nnet foo=1")
	for _, want := range []string{"line 1: ", "line 2: ", "line 3: "} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not tell of %s", err, want)
		}
	}
}

func TestTimelineEndsWhatItBegins(t *testing.T) {
	s, err := Parse(small + "silent site=s0 at=5s for=5s\ncrash site=s1 at=10s\n" +
		"isolate site=s0 at=10s for=1s\npause site=s1 at=0s")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, a := range s.Timeline() {
		got = append(got, a.At.String()+" "+a.Kind.String())
	}
	want := []string{"0s pause", "5s silent", "10s speak", "10s crash", "10s isolate", "11s rejoin"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("timeline (-want +got):\n%s", diff)
	}
}

func outcomeOf() Outcome {
	return Outcome{
		Jobs: []JobOutcome{
			{Name: "a", Took: time.Minute, Count: 2, Answers: 3, Tasks: []TaskOutcome{
				{Phase: grid.PhaseDone, Site: "s1", First: "s0", Moves: 2, Began: 9 * time.Second},
				{Phase: grid.PhaseFailed, Site: "s1", First: "s1", Began: 8900 * time.Millisecond},
			}},
			{Name: "b#1", Took: -1, Count: 1, Tasks: []TaskOutcome{
				{Phase: grid.PhaseRunning, Site: "s0", First: "s0"},
			}},
			{Name: "b#2", Took: 0, Count: 3},
		},
		Doubled: 1, Announced: 9,
		Heard: map[string]int{"s0": 9, "s1": 8}, Peers: map[string]int{"s0": 1, "s1": 1},
		Sites: map[string]int{"frozen": 4, "cache_hit": 2}, Brokers: map[string]int{"fenced": 1},
		Messages: 77,
	}
}

func TestExpectations(t *testing.T) {
	jobs := "sites n=2\nrun for=1m\nsubmit job=a by=s0\nsubmit job=b by=s0\nexpect "
	for text, want := range map[string]string{
		"lost=4": "", "lost=0": "line 5: expected lost=0: have 4", "job=a lost=0": "", "job=b lost=4": "",
		"done=1 failed=1 refused=0 cancelled=0 moves=2 answers=3": "",
		"job=a within=1m":  "",
		"job=a within=59s": "line 5: expected job=a within=59s: it took 1m0s",
		"job=b within=10m": "line 5: expected job=b within=10m0s: it has not ended",
		"job=a site=s1":    "",
		"job=a first=s1":   `line 5: expected job=a first=s1: task 0 of a was at "s0"`,
		"site!=s0":         `task 0 of b#1 was at "s0"`,
		"doubled=1 peers=1 frozen>3 cache_hits<3":         "",
		"broker.fenced=1 site.nothing=0 messages!=78":     "",
		"job=a earliest>=8900ms latest<=9s spread<=100ms": "",

		"job=a spread<=50ms": "line 5: expected job=a spread<=50ms: have 100ms",
		"job=b latest<=1h":   "line 5: expected job=b latest<=1h0m0s: it was not measured",

		"heard=8/9 heard>=8": "",
		"heard=9/9":          "line 5: expected heard=9/9: have 8",
		"heard=8/8":          "line 5: expected heard=8/8: 9 were announced",
	} {
		s, err := Parse(jobs + text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		err = s.Expect.Check(outcomeOf())
		if want == "" && err != nil || want != "" && (err == nil ||
			!strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestSummaryTellsAll(t *testing.T) {
	text := outcomeOf().Summary()
	for _, want := range []string{
		"a: done:1 failed:1, took 1m0s, on s1:2, 2 moves, 3 answers\n",
		"b#1: running:1, has not ended, on s0:1",
		"done 1, failed 1, refused 0, cancelled 0, moved 2, lost 4, doubled 1\n",
		"heard by each site 8 or more", "messages 77\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, dir := range []string{"../../testdata/scenarios", "../../testdata/graveyard"} {
		paths, _ := os.ReadDir(dir)
		for _, p := range paths {
			text, err := os.ReadFile(dir + "/" + p.Name())
			if err == nil && strings.HasSuffix(p.Name(), ".txt") {
				f.Add(string(text))
			}
		}
	}
	f.Add("sites n=3 cores=1.0005..7 gflops=.1\nclock site=s1 skew=-1ns\nrun for=1ns\n" +
		"expect heard=1/2 site.x>=3")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text)
		if err != nil {
			if !errors.Is(err, ErrSyntax) {
				t.Fatalf("an error that is none of this package: %v", err)
			}
			return
		}
		again, err := Parse(s.String())
		if err != nil {
			t.Fatalf("what was written cannot be read: %v\n%s", err, s)
		}
		if diff := cmp.Diff(s, again, cmpopts.IgnoreFields(Expectation{}, "Line")); diff != "" {
			t.Fatalf("it reads differently:\n%s\n%s", diff, s)
		}
	})
}
