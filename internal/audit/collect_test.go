package audit

import (
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/internal/store"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

func jobRow(id grid.JobID, count uint32, endedMS int64) step.Fact {
	return step.NewFact(kindJob, string(id), map[string]any{
		"job": grid.Job{Count: count}, "submitted_ms": 1, "ended_ms": endedMS,
	})
}

func taskRow(id grid.TaskID, phase grid.Phase) step.Fact {
	return step.NewFact(kindTask, id.String(), map[string]any{"phase": phase, "token": 1, "site": "s"})
}

// agent opens a state directory as an agent does.
func agent(t *testing.T, dir string) *store.Store {
	t.Helper()
	s, err := store.Open(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := s.Begin(store.Header{Machine: "broker"}); err != nil {
		t.Fatal(err)
	}
	return s
}

func apply(t *testing.T, s *store.Store, facts ...step.Fact) {
	t.Helper()
	for _, f := range facts {
		if err := s.Apply("broker", []step.Fact{f}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestStatesAreReadOverAllStartsAndWhileTheAgentRuns(t *testing.T) {
	dir := t.TempDir()
	s := agent(t, dir)
	apply(t, s,
		jobRow(jobA, 2, 0), taskRow(taskOf(jobA, 0), grid.PhaseRunning),
		jobRow(jobB, 1, 0), taskRow(taskOf(jobB, 0), grid.PhaseDone), jobRow(jobB, 1, 5),
		step.Fact{Kind: kindTask, Key: taskOf(jobB, 0).String()},
		step.Fact{Kind: kindJob, Key: string(jobB)},
		step.NewFact("counter/1", "jobs", 2))
	want := []JobReport{
		{Job: jobA, Tasks: 2, Open: 2},
		{Job: jobB, Tasks: 1, Done: 1},
	}
	check := func(when string) {
		t.Helper()
		records, err := Collect([]Source{{Site: "x", StateDir: dir}})
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		report := Audit(records)
		if diff := cmp.Diff(want, report.Jobs); diff != "" || !report.Clean() {
			t.Errorf("%s: jobs differ (-want +got):\n%s", when, diff)
		}
	}
	apply(t, s, step.NewFact("counter/1", "jobs", 3)) // brings the journal of the others to disk
	check("while the agent runs")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	check("after its end")
	s = agent(t, dir)
	apply(t, s, taskRow(taskOf(jobA, 1), grid.PhaseDone))
	want[0] = JobReport{Job: jobA, Tasks: 2, Done: 1, Open: 1}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	check("after its second start")
}

func TestAJobThatVanishedIsLost(t *testing.T) {
	dir := t.TempDir()
	s := agent(t, dir)
	apply(t, s, jobRow(jobA, 3, 0), taskRow(taskOf(jobA, 0), grid.PhaseDone),
		step.Fact{Kind: kindJob, Key: string(jobA)})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	records, err := Collect([]Source{{Site: "x", StateDir: dir}})
	if err != nil {
		t.Fatal(err)
	}
	if got := Audit(records).Summary(); got != "2 lost, 0 doubled" {
		t.Errorf("summary = %q", got)
	}
}

func TestFactsThatAreNotUnderstoodAreAnError(t *testing.T) {
	for _, f := range []step.Fact{
		step.NewFact("job/2", "x", 1),
		step.NewFact(kindJob, "x", "text"),
		step.NewFact(kindJob, "x", map[string]int{"jobs": 1}),
		step.NewFact(kindTask, "x", map[string]int{"phase": 1}),
		step.NewFact(kindTask, taskOf(jobA, 0).String(), map[string]int{}),
		step.NewFact(kindTask, taskOf(jobA, 0).String(), 7),
	} {
		if err := newHistory().note(f); err == nil || !strings.Contains(err.Error(), f.Kind) {
			t.Errorf("note(%s %s) = %v, want an error that names it", f.Kind, f.Value, err)
		}
	}
	noState := []Source{{Site: "x", StateDir: t.TempDir()}}
	if _, err := Collect(noState); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Collect of no state directory = %v", err)
	}
}

func TestADamagedJournalIsNoted(t *testing.T) {
	dir := t.TempDir()
	s, err := store.OpenWith(dir, store.Options{SegmentBytes: 1}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	j, err := s.Begin(store.Header{Machine: "broker"})
	if err != nil {
		t.Fatal(err)
	}
	apply(t, s, jobRow(jobA, 1, 0))
	if err = j.Record(time.Unix(1, 0), step.Resume{}, nil); err != nil {
		t.Fatal(err)
	}
	awaitSegments(t, dir, 2)
	if err = s.Close(); err != nil {
		t.Fatal(err)
	}
	first := filepath.Join(dir, "journal", "0000000001-broker")
	raw, err := os.ReadFile(first)
	if err != nil {
		t.Fatal(err)
	}
	raw[len(raw)-2] ^= 1
	if err = os.WriteFile(first, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	records, err := Collect([]Source{{Site: "x", StateDir: dir}})
	if err != nil || len(records.Submissions) != 1 || len(records.Notes) != 1 ||
		!strings.Contains(records.Notes[0], first) {
		t.Errorf("%+v, %v, want the job and a note about %s", records, err, first)
	}
}

// awaitSegments waits until a run has continued in so many segments, which it does beside the
// machine.
func awaitSegments(t *testing.T, dir string, n int) {
	t.Helper()
	limit, look := time.After(20*time.Second), time.NewTicker(time.Millisecond)
	defer look.Stop()
	for {
		runs, err := store.Runs(dir)
		if err != nil {
			t.Fatal(err)
		}
		if len(runs) > 0 && len(runs[0].Files) == n {
			return
		}
		select {
		case <-look.C:
		case <-limit:
			t.Fatalf("%d runs, want one of %d segments", len(runs), n)
		}
	}
}

// line writes a record as a supervisor does.
func line(id grid.AttemptID, event string, sec float64, boot string) string {
	r := map[string]any{
		"attempt": id, "event": event, "wall_ms": int64(sec * 1000), "boot_ns": int64((sec + 100) * 1e9),
	}
	if event == eventStarted {
		r["supervisor"] = map[string]any{"pid": 7, "start": 8, "boot": boot}
	}
	text, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	return string(text) + "\n"
}

func TestRunRecordsBecomeSpans(t *testing.T) {
	id, other := attemptOf(0, 1), attemptOf(1, 1)
	at := func(sec float64) time.Time { return time.UnixMilli(int64(sec * 1000)) }
	text := strings.Join([]string{
		line(id, eventStarted, 10, "b"), line(id, eventFrozen, 12, ""), line(id, eventResumed, 15, ""),
		"\n", `{"attempt":` + "\n", `{"attempt":{},"event":"started"}` + "\n",
		line(attemptOf(9, 9), eventEnded, 15, ""),
		line(other, eventStarted, 16, "b"), line(other, "napping", 17, ""),
		line(id, eventEnded, 20, ""), line(other, eventFrozen, 18, ""), line(other, eventResumed, 19, ""),
	}, "")
	records, err := parseRunRecord(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	seconds := func(from, to float64) Span {
		return Span{time.Duration(from * float64(time.Second)), time.Duration(to * float64(time.Second))}
	}
	ran := func(id grid.AttemptID, from, to float64, unended bool, spans ...Span) Run {
		return Run{
			Attempt: id, Site: "x", Spans: spans, Unended: unended, Began: at(from), Ended: at(to),
		}
	}
	tests := []struct {
		name string
		boot bool
		ends []time.Time // of its agent
		told map[grid.AttemptID]time.Time
		want []Run
	}{
		{"by the wall clock", false, nil, nil, []Run{
			ran(id, 10, 20, false, seconds(10, 12), seconds(15, 20)),
			ran(other, 16, 19, true, seconds(16, 18), seconds(19, 19)),
		}},
		{"by the boot clock", true, []time.Time{at(1), at(25), at(40)}, nil, []Run{
			ran(id, 10, 20, false, seconds(110, 112), seconds(115, 120)),
			ran(other, 16, 19, true, seconds(116, 118), seconds(119, 124.999)),
		}},
		{
			// A supervisor that cannot write an end tells its agent.
			"the agent heard of an end that was not written", true,
			[]time.Time{at(1), at(25), at(40)},
			map[grid.AttemptID]time.Time{other: at(21), id: at(13)},
			[]Run{
				ran(id, 10, 20, false, seconds(110, 112), seconds(115, 120)),
				ran(other, 16, 19, true, seconds(116, 118), seconds(119, 120.999)),
			},
		},
		{
			"and heard of it in a later life", true,
			[]time.Time{at(1), at(25), at(40)},
			map[grid.AttemptID]time.Time{other: at(30)},
			[]Run{
				ran(id, 10, 20, false, seconds(110, 112), seconds(115, 120)),
				ran(other, 16, 19, true, seconds(116, 118), seconds(119, 124.999)),
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			reader := runReader{
				site: "x", boot: tt.boot, lives: livesUntil(tt.ends), ends: tt.told,
				runs: map[grid.AttemptID]*openRun{},
			}
			if diff := cmp.Diff(tt.want, reader.read(records)); diff != "" {
				t.Errorf("runs differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheBootClockIsUsedOnOneMachineOnly(t *testing.T) {
	parse := func(text string) []runRecord {
		records, err := parseRunRecord(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return records
	}
	a, b := parse(line(attemptOf(0, 1), eventStarted, 1, "a")),
		parse(line(attemptOf(0, 1), eventStarted, 1, "b"))
	none := parse(line(attemptOf(0, 1), eventStarted, 1, ""))
	for _, tt := range []struct {
		files [][]runRecord
		want  bool
	}{
		{nil, false},
		{[][]runRecord{a, nil, a}, true},
		{[][]runRecord{a, b}, false},
		{[][]runRecord{a, none}, false},
	} {
		if got := oneBoot(tt.files); got != tt.want {
			t.Errorf("oneBoot(%v) = %t, want %t", tt.files, got, tt.want)
		}
	}
}

// lived leaves the journal of an agent that was told something at those times.
func lived(t *testing.T, dir string, seconds ...int64) {
	t.Helper()
	livedAs(t, dir, map[string][]int64{"site": seconds})
}

// Two sites ran one task: the first was killed and its task moved. Whether that
// was clean depends on when the first one died.
func TestATaskThatMovedIsDoubledOnlyIfTheFirstSiteLivedOn(t *testing.T) {
	submitter, x, y := t.TempDir(), t.TempDir(), t.TempDir()
	apply(t, agent(t, submitter), jobRow(jobA, 1, 0),
		taskRow(taskOf(jobA, 0), grid.PhaseDone), jobRow(jobA, 1, 9),
		step.NewFact("counter/1", "jobs", 1))
	lived(t, x, 5, 11)
	lived(t, x, 30, 99) // its second life cannot be meant
	agent(t, y)
	write := func(dir, text string) string {
		path := filepath.Join(dir, "runs.jsonl")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	runX := write(x, line(attemptOf(0, 1), eventStarted, 10, "b"))
	runY := write(y, line(attemptOf(0, 2), eventStarted, 15, "b")+line(attemptOf(0, 2),
		eventEnded, 20, ""))
	for _, tt := range []struct {
		ends []time.Time
		want string
	}{
		{nil, "0 lost, 0 doubled"}, // by its journal it died at 11 s
		{[]time.Time{time.UnixMilli(12_000)}, "0 lost, 0 doubled"},
		{[]time.Time{time.UnixMilli(16_000)}, "0 lost, 1 doubled"},
	} {
		records, err := Collect([]Source{
			{Site: "submitter", StateDir: submitter, RunRecord: filepath.Join(submitter, "none")},
			{Site: "x", StateDir: x, RunRecord: runX, Ends: tt.ends},
			{Site: "y", StateDir: y, RunRecord: runY},
		})
		if err != nil {
			t.Fatal(err)
		}
		report := Audit(records)
		if report.Summary() != tt.want || report.Total.Moved != 1 || report.Total.Attempts != 2 ||
			report.Unended != 1 {
			t.Errorf("died at %v: %s, %+v, want %s", tt.ends, report.Summary(), report.Total, tt.want)
		}
	}
}
