package audit

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
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

const (
	jobC = grid.JobID("cccccccccccccccc")
	jobD = grid.JobID("dddddddddddddddd")
)

// mixed holds something of each kind that a report names. Job D is nobody's.
func mixed() Records {
	late := func(token grid.Token, site string, to float64, spans ...Span) Run {
		r := ranFrom(token, 0, to)
		r.Site, r.Spans = site, spans
		return r
	}
	stray := func(token grid.Token, site string, from int) Run {
		return Run{
			Attempt: grid.AttemptID{Task: taskOf(jobD, 0), Token: token}, Site: site,
			Spans: []Span{span(from, 20)}, Unended: true,
		}
	}
	task := func(job grid.JobID, index uint32, phase grid.Phase) Task {
		return Task{ID: taskOf(job, index), Phase: phase}
	}
	torn := stray(1, "x", 0)
	torn.Spans = []Span{span(12, 20), span(0, 11)}
	gone := task(jobA, 2, grid.PhaseDone)
	gone.Missing = []grid.CID{"c"}
	return Records{
		Submissions: []Submission{
			{
				Job: jobA, Count: 5, Held: true, Submitted: clock(0), Seen: clock(500),
				Window: grid.Window{Deadline: clock(100)},
			},
			{Job: jobB, Count: 3},
			{Job: jobC, Count: 1, Held: true, Passive: true},
		},
		Tasks: []Task{
			task(jobA, 0, grid.PhaseDone), task(jobA, 1, grid.PhaseWaiting), gone,
			task(jobA, 3, grid.PhaseFailed), task(jobB, 0, grid.PhaseCancelled),
			task(jobB, 1, grid.PhaseRefused), task(jobC, 0, grid.PhaseDone), task(jobA, 4, grid.PhaseDone),
		},
		Runs: []Run{
			late(1, "x", 20, span(0, 10)), late(2, "y", 126, span(12, 14), span(8, 9)),
			late(2, "y", 120, span(13, 20)), late(1, "x", 10, span(0, 1)),
			torn, stray(1, "y", 1), stray(2, "x", 3), stray(2, "y", 6),
		},
		Notes: []string{"z: unreadable"},
	}
}

// strayPair is a pair of attempts of job D.
func strayPair(a grid.Token, siteA string, b grid.Token, siteB string, seconds int) Double {
	id := taskOf(jobD, 0)
	return Double{
		A: grid.AttemptID{Task: id, Token: a}, B: grid.AttemptID{Task: id, Token: b},
		SiteA: siteA, SiteB: siteB, Overlap: time.Duration(seconds) * time.Second,
	}
}

// An audit gives the same report in whatever order it gets the records, and leaves them as
// they are.
func TestAWholeReport(t *testing.T) {
	want := Report{
		Jobs: []JobReport{
			{
				Job: jobA, Tasks: 5, Done: 3, Failed: 1, Open: 1, Doubled: 1, Stuck: 1, Missing: 1, Late: 1,
				Attempts: 2, Moved: 1,
			},
			{Job: jobB, Tasks: 3, Cancelled: 1, Refused: 1, Lost: 1},
			{Job: jobC, Tasks: 1, Done: 1},
		},
		Total: JobReport{
			Tasks: 9, Done: 4, Failed: 1, Cancelled: 1, Refused: 1, Open: 1, Lost: 1, Doubled: 2,
			Stuck: 1, Missing: 1, Late: 1, Attempts: 6, Moved: 2,
		},
		Lost: []grid.TaskID{taskOf(jobB, 2)}, Stuck: []grid.TaskID{taskOf(jobA, 1)},
		Missing: []grid.TaskID{taskOf(jobA, 2)},
		Late:    []Late{{Task: taskOf(jobA, 0), End: 26 * time.Second}},
		Doubled: []Double{
			{attemptOf(0, 1), attemptOf(0, 2), "x", "y", time.Second},
			strayPair(1, "x", 1, "y", 18), strayPair(1, "x", 2, "x", 16), strayPair(1, "x", 2, "y", 13),
			strayPair(1, "y", 2, "x", 17), strayPair(1, "y", 2, "y", 14), strayPair(2, "x", 2, "y", 14),
		},
		Unended: 4, Strays: 4, Unseen: 2, Notes: []string{"z: unreadable"},
	}
	records := mixed()
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 0))
		before := Records{
			Submissions: shuffled(r, records.Submissions), Tasks: shuffled(r, records.Tasks),
			Runs: shuffled(r, records.Runs), Notes: records.Notes,
		}
		again := Records{
			Submissions: append([]Submission(nil), before.Submissions...),
			Tasks:       append([]Task(nil), before.Tasks...), Runs: append([]Run(nil), before.Runs...),
			Notes: records.Notes,
		}
		if diff := cmp.Diff(want, Audit(before)); diff != "" {
			t.Fatalf("order %d (-want +got):\n%s", seed, diff)
		}
		if diff := cmp.Diff(again, before); diff != "" {
			t.Fatalf("the records were changed (-before +after):\n%s", diff)
		}
	}
}

func shuffled[V any](r *rand.Rand, list []V) []V {
	list = append([]V(nil), list...)
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

// The report of all of it.
func TestAWholeReportAsText(t *testing.T) {
	records := mixed()
	records.Submissions[0].Window.At = clock(-5)
	for i := range records.Runs[:4] {
		records.Runs[i].Began = clock(3.1416)
	}
	report := Audit(records)
	report.Late[0].Start += 400 * time.Microsecond
	report.Late[0].End -= 400 * time.Microsecond
	var text strings.Builder
	if err := report.Write(&text); err != nil {
		t.Fatal(err)
	}
	rows := []string{
		`JOB|TASKS|DONE|FAILED|CANCELLED|REFUSED|OPEN|LOST|DOUBLED|ATTEMPTS|MOVED|STUCK|MISSING|LATE`,
		`aaaaaaaaaaaaaaaa|5|3|1|0|0|1|0|1|2|1|1|1|1`,
		`bbbbbbbbbbbbbbbb|3|0|0|1|1|0|1|0|0|0|0|0|0`,
		`cccccccccccccccc|1|1|0|0|0|0|0|0|0|0|0|0|0`,
		`total|9|4|1|1|1|1|1|2|6|2|1|1|1`,
		`lost: task bbbbbbbbbbbbbbbb.2 has not ended, and its submitter does not work on it`,
		`doubled: aaaaaaaaaaaaaaaa.0#1 on x and aaaaaaaaaaaaaaaa.0#2 on y ran together for 1s`,
		`doubled: dddddddddddddddd.0#1 on x and dddddddddddddddd.0#1 on y ran together for 18s`,
		`doubled: dddddddddddddddd.0#1 on x and dddddddddddddddd.0#2 on x ran together for 16s`,
		`doubled: dddddddddddddddd.0#1 on x and dddddddddddddddd.0#2 on y ran together for 13s`,
		`doubled: dddddddddddddddd.0#1 on y and dddddddddddddddd.0#2 on x ran together for 17s`,
		`doubled: dddddddddddddddd.0#1 on y and dddddddddddddddd.0#2 on y ran together for 14s`,
		`doubled: dddddddddddddddd.0#2 on x and dddddddddddddddd.0#2 on y ran together for 14s`,
		`stuck: nothing happened with task aaaaaaaaaaaaaaaa.1 for 2m0s`,
		`missing: task aaaaaaaaaaaaaaaa.2 is done, and its result is not here`,
		`late: task aaaaaaaaaaaaaaaa.0 began 8.141s late and ended 26s late; ` +
			`its submitter says nothing of it`,
		`2 tasks are done, but no site wrote down that it ran them`,
		`4 attempts have no written end`,
		`4 attempts belong to jobs of submitters that are not part of this audit`,
		`note: z: unreadable`,
		`1 stuck, 1 without a result, 1 silently late, 1 lost, 2 doubled`,
	}
	lines := strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
	for i := range min(5, len(lines)) {
		lines[i] = strings.Join(strings.Fields(lines[i]), "|")
	}
	if diff := cmp.Diff(rows, lines); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// livedAs leaves the journals of an agent whose machines were told something at those times.
func livedAs(t *testing.T, dir string, seconds map[string][]int64) {
	t.Helper()
	s, err := store.Open(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for machine, times := range seconds {
		var j *store.Journal
		if j, err = s.Begin(store.Header{Machine: machine}); err != nil {
			t.Fatal(err)
		}
		for _, sec := range times {
			if err = j.Record(time.Unix(sec, 0), step.Resume{}, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err = s.Close(); err != nil {
		t.Fatal(err)
	}
}

// An attempt without an end ran until the end of the life in which it began: from the first
// to the last thing that any machine of the agent was told. A line is a millisecond exact.
func TestHowLongWhatHasNoEndRan(t *testing.T) {
	dir := t.TempDir()
	livedAs(t, dir, map[string][]int64{"0": nil, "a": {5, 11}, "b": {3, 9}, "c": {6, 12}})
	livedAs(t, dir, map[string][]int64{"a": {30, 99}})
	path := filepath.Join(t.TempDir(), "runs.jsonl")
	put := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// What was put aside comes first.
	put(path+".1",
		line(attemptOf(4, 1), eventStarted, 7, "b")+line(attemptOf(0, 1), eventStarted, 4, "b"))
	put(path, line(attemptOf(4, 1), eventEnded, 8, "")+line(attemptOf(1, 1), eventStarted, 3, "b")+
		line(attemptOf(2, 1), eventStarted, 20, "b")+line(attemptOf(3, 1), eventStarted, 40, "")+
		line(attemptOf(5, 1), eventStarted, 2, ""))
	got, err := Collect([]Source{{Site: "x", StateDir: dir, RunRecord: path}})
	if err != nil {
		t.Fatal(err)
	}
	var want Records
	for i, c := range [][3]float64{
		{4, 11.999, 4}, {3, 11.999, 3}, {20, 20, 20}, {40, 98.999, 40}, {7, 8, 8}, {2, 2, 2},
	} {
		want.Runs = append(want.Runs, Run{
			Attempt: attemptOf(uint32(i), 1), Site: "x", Unended: i != 4,
			Spans: []Span{{time.Duration(c[0] * 1e9), time.Duration(c[1] * 1e9)}},
			Began: time.UnixMilli(int64(c[0] * 1e3)), Ended: time.UnixMilli(int64(c[2] * 1e3)),
		})
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A submitter was seen last at the end of the last life of its agent.
func TestWhenASubmitterWasSeen(t *testing.T) {
	dir := t.TempDir()
	s, err := store.Open(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	j, err := s.Begin(store.Header{Machine: "broker"})
	if err != nil {
		t.Fatal(err)
	}
	apply(t, s, jobRow(jobA, 1, 0))
	for _, sec := range []int64{7, 8} {
		if err = j.Record(time.Unix(sec, 0), step.Resume{}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err = s.Close(); err != nil {
		t.Fatal(err)
	}
	livedAs(t, dir, map[string][]int64{"site": {20, 21}})
	got, err := Collect([]Source{{Site: "x", StateDir: dir}})
	want := Records{Submissions: []Submission{{
		Job: jobA, Count: 1, Held: true, Submitted: time.UnixMilli(1), Seen: time.Unix(21, 0),
	}}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v; (-want +got):\n%s", err, diff)
	}
}

// What cannot be read is said with its place.
func TestWhatCannotBeCollected(t *testing.T) {
	state := func(facts ...step.Fact) string {
		dir := t.TempDir()
		s := agent(t, dir)
		apply(t, s, facts...)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	file := func(path, text string) string {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	odd := step.NewFact("job/2", "k", 1)
	const oddText = "fact job/2 k: this program reads job/1 and task/1"
	fine, other := state(), t.TempDir()
	noJournal := state(odd)
	if err := os.RemoveAll(filepath.Join(noJournal, "journal")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(noJournal, "journal"), 0o700); err != nil {
		t.Fatal(err)
	}
	noFacts := state()
	if err := os.Remove(filepath.Join(noFacts, "facts.db")); err != nil {
		t.Fatal(err)
	}
	oddJournal := state()
	strange := filepath.Join(oddJournal, "journal")
	if err := os.RemoveAll(strange); err != nil {
		t.Fatal(err)
	}
	file(strange, "")
	oddData := state()
	dataFile := file(filepath.Join(oddData, dataDir), "")
	plain, long := file(filepath.Join(other, "f"), ""), filepath.Join(other, "long")
	file(long, strings.Repeat(" ", maxLine)+"\n")
	aside := filepath.Join(other, "aside")
	if err := os.Mkdir(aside+".1", 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ state, runs, want string }{
		{state(odd), "", "journal of start 1: " + oddText},
		{noJournal, "", oddText},
		{noFacts, "", filepath.Join(noFacts, "facts.db")},
		{oddJournal, "", strange},
		{oddData, "", dataFile},
		{fine, filepath.Join(plain, "x"), "read run record: open " + filepath.Join(plain, "x.1")},
		{fine, aside, "read run record " + aside + ".1: "},
		{fine, other, "read run record " + other + ": "},
		{fine, long, "read run record " + long + ": "},
	} {
		src := Source{Site: "x", StateDir: c.state, RunRecord: c.runs}
		got, err := Collect([]Source{src})
		if err == nil || !strings.HasPrefix(err.Error(), "audit x: ") ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, "audit x: "+c.want)
		}
		if diff := cmp.Diff(Records{}, got); diff != "" {
			t.Errorf("%v, and yet (-want +got):\n%s", err, diff)
		}
	}
}

// attemptRow is a fact of a site about an attempt, which has ended if the time is not 0.
func attemptRow(id grid.AttemptID, endedMS int64) step.Fact {
	return step.NewFact(kindAttempt, id.String(), map[string]any{
		"attempt": id, "ended_ms": endedMS,
	})
}

// All that is read of a job and its tasks, and what a removed row leaves of them.
func TestAWholeHistory(t *testing.T) {
	window := grid.Window{At: clock(5), Deadline: clock(9)}
	job := grid.Job{
		Count: 2, After: []grid.JobID{jobB}, Spec: grid.Spec{Kind: grid.KindReservation, Window: window},
	}
	done := map[string]any{
		"phase": grid.PhaseDone, "awarded_ms": 7000,
		"exit":   grid.Exit{Outputs: []grid.Produced{{Path: "/o", CID: "c1"}, {Path: "/p", CID: "c2"}}},
		"pledge": map[string]any{"promise": grid.PromiseLate},
	}
	h := newHistory()
	for _, f := range []step.Fact{
		step.NewFact(kindJob, string(jobA),
			map[string]any{"job": job, "submitted_ms": 3000, "ended_ms": 1}),
		jobRow(jobB, 1, 0),
		{Kind: kindJob, Key: string(jobB)},
		step.NewFact(kindTask, taskOf(jobA, 0).String(), done),
		{Kind: kindTask, Key: taskOf(jobA, 0).String()},
		taskRow(taskOf(jobA, 0), grid.PhaseFailed), taskRow(taskOf(jobA, 1), grid.PhaseFailed),
		attemptRow(attemptOf(0, 1), 0), attemptRow(attemptOf(0, 1), 5000),
		attemptRow(attemptOf(0, 1), 6000), attemptRow(attemptOf(1, 1), 0),
		{Kind: kindAttempt, Key: attemptOf(0, 1).String()},
	} {
		if err := h.note(f); err != nil {
			t.Fatal(err)
		}
	}
	id, other := taskOf(jobA, 0), taskOf(jobA, 1)
	want := history{
		jobs: map[grid.JobID]Submission{
			jobA: {
				Job: jobA, Count: 2, Held: true, Closed: true, Submitted: time.UnixMilli(3000),
				Window: window, Waits: true, Passive: true,
			},
			jobB: {Job: jobB, Count: 1, Submitted: time.UnixMilli(1)},
		},
		tasks: map[grid.TaskID]Task{
			id: {
				ID: id, Phase: grid.PhaseDone, Awarded: time.UnixMilli(7000), Promise: grid.PromiseLate,
			},
			other: {ID: other, Phase: grid.PhaseFailed, Token: 1},
		},
		outputs: map[grid.TaskID][]grid.CID{id: {"c1", "c2"}},
		ends:    map[grid.AttemptID]time.Time{attemptOf(0, 1): time.UnixMilli(5000)},
	}
	if diff := cmp.Diff(want, h, cmp.AllowUnexported(history{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// What is not among the facts at the end is not held.
	if err := h.settle([]step.Fact{jobRow(jobB, 1, 0)}); err != nil {
		t.Fatal(err)
	}
	if h.jobs[jobA].Held || !h.jobs[jobB].Held {
		t.Errorf("held at the end: %+v", h.jobs)
	}
	for text, f := range map[string]step.Fact{
		"fact job/1 j: 0 tasks":                                jobRow("j", 0, 0),
		"fact task/1 " + id.String() + ": phase 0 is unknown":  taskRow(id, 0),
		"fact task/1 " + id.String() + ": phase 99 is unknown": taskRow(id, 99),
		"fact task/2 k: this program reads job/1 and task/1":   step.NewFact("task/2", "k", 1),
	} {
		if err := newHistory().note(f); err == nil || err.Error() != text {
			t.Errorf("%v, want %q", err, text)
		}
	}
}

// What the lines of one attempt make of it: each is an event and its second.
func TestEventsBecomeSpans(t *testing.T) {
	id := attemptOf(0, 1)
	for _, c := range []struct {
		lines   string
		spans   []Span
		unended bool
		to      int // the last that is known
	}{
		{"started 1, ended 3", []Span{span(1, 3)}, false, 3},
		{"started 1, resumed 2, ended 3", []Span{span(1, 3)}, false, 3},
		{"started 1, started 4, ended 5", []Span{span(1, 1), span(4, 5)}, false, 5},
		{"started 1, frozen 2", []Span{span(1, 2)}, true, 2},
		{"started 1, frozen 2, frozen 3", []Span{span(1, 2)}, true, 3},
		{"started 1, frozen 2, ended 4", []Span{span(1, 2)}, false, 4},
		{"started 1, frozen 2, started 4, ended 5", []Span{span(1, 2), span(4, 5)}, false, 5},
		{"started 1, ended 2, resumed 3", []Span{span(1, 2), span(3, 3)}, true, 3},
		{"started 9, ended 8", []Span{span(9, 9)}, false, 8},
		{"started 1, other 5", []Span{span(1, 1)}, true, 1},
		{"resumed 1, ended 2", []Span{span(1, 2)}, false, 2},
		{"frozen 1, ended 2", nil, false, 2},
	} {
		var text strings.Builder
		var began float64
		for i, part := range strings.Split(c.lines, ", ") {
			var event string
			var sec float64
			if _, err := fmt.Sscan(part, &event, &sec); err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				began = sec
			}
			text.WriteString(line(id, event, sec, "b"))
		}
		records, err := parseRunRecord(strings.NewReader(text.String()))
		if err != nil {
			t.Fatal(err)
		}
		want := []Run{{
			Attempt: id, Site: "x", Spans: c.spans, Unended: c.unended,
			Began: time.UnixMilli(int64(began * 1000)), Ended: time.Unix(int64(c.to), 0),
		}}
		reader := runReader{site: "x", runs: map[grid.AttemptID]*openRun{}}
		if diff := cmp.Diff(want, reader.read(records)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.lines, diff)
		}
	}
}

// Lives that are told by their ends follow each other, whatever order they are told in.
func TestLivesByTheirEnds(t *testing.T) {
	at := func(sec int64) time.Time { return time.Unix(sec, 0) }
	want := []life{{to: at(12)}, {at(12), at(25)}, {at(25), at(40)}}
	got := livesUntil([]time.Time{at(40), at(12), at(25)})
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(life{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for end, c := range map[string]struct {
		wall float64
		want time.Duration
	}{
		"in the first":       {4, 11_999 * time.Millisecond},
		"as the second":      {12, 24_999 * time.Millisecond},
		"after all":          {50, 50 * time.Second},
		"as the last begins": {25, 39_999 * time.Millisecond},
		"just before an end": {39.999, 39_999 * time.Millisecond},
	} {
		r := runReader{lives: got}
		if at := r.end(runRecord{WallMS: int64(c.wall * 1000)}); at != c.want {
			t.Errorf("%s: until %s, want %s", end, at, c.want)
		}
	}
}

// Spans that touch are one, and what takes no time is none.
func TestSpansBecomeOne(t *testing.T) {
	for _, c := range []struct{ a, b, want []Span }{
		{nil, nil, nil},
		{[]Span{span(4, 9)}, []Span{span(0, 4)}, []Span{span(0, 9)}},
		{[]Span{span(5, 9)}, []Span{span(0, 4)}, []Span{span(0, 4), span(5, 9)}},
		{[]Span{span(0, 9)}, []Span{span(2, 4)}, []Span{span(0, 9)}},
		{[]Span{span(3, 3)}, nil, nil},
		{[]Span{span(3, 2), span(0, 1)}, []Span{span(0, 2)}, []Span{span(0, 2)}},
	} {
		if diff := cmp.Diff(c.want, union(c.a, c.b)); diff != "" {
			t.Errorf("%v and %v (-want +got):\n%s", c.a, c.b, diff)
		}
	}
}

// What was late is named, and nothing else.
func TestWhatIsNamedLate(t *testing.T) {
	id := taskOf(jobA, 0)
	got := Report{Late: []Late{
		{Task: id, Start: 1234567 * time.Microsecond}, {Task: id, End: 2 * time.Second, Said: true},
	}}.findings()
	want := []string{
		"late: task aaaaaaaaaaaaaaaa.0 began 1.235s late; its submitter says nothing of it",
		"late: task aaaaaaaaaaaaaaaa.0 ended 2s late; its submitter says so",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A line may be long, and where there is no run record none is looked for.
func TestRunRecordsThatAreRead(t *testing.T) {
	text := line(attemptOf(0, 1), eventStarted, 1, "b")
	padded := strings.Repeat(" ", maxLine-len(text)) + text
	if records, err := parseRunRecord(strings.NewReader(padded)); err != nil || len(records) != 1 {
		t.Errorf("a line of %d bytes: %d records, %v", len(padded), len(records), err)
	}
	dir := t.TempDir()
	agent(t, dir)
	t.Chdir(dir)
	if err := os.WriteFile(".1", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := Collect([]Source{{Site: "x", StateDir: dir}}); err != nil || len(got.Runs) != 0 {
		t.Errorf("%+v, %v", got.Runs, err)
	}
}
