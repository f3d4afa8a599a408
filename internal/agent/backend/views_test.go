package backend

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/index"
)

// at is so many seconds after the beginning of these tests' time.
func at(seconds int) time.Time {
	return time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC).Add(time.Duration(seconds) * time.Second)
}

// wantJSON holds what is shown, as JSON, against a text.
func wantJSON(t *testing.T, what string, got any, want string) {
	t.Helper()
	text, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	var a, b any
	if err := json.Unmarshal(text, &a); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(want), &b); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if diff := cmp.Diff(b, a); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func tasks(all ...broker.TaskState) []broker.TaskState {
	for i := range all {
		all[i].ID = grid.TaskID{Job: "j", Index: uint32(i)}
	}
	return all
}

// TestJobsAreShown holds whole jobs against what a list shows of them.
func TestJobsAreShown(t *testing.T) {
	t.Parallel()
	spec := grid.Spec{Kind: grid.KindWasm, Name: "n"}
	begun := []broker.Try{{Token: 1, StartedAt: at(9)}, {Token: 2, StartedAt: at(30)}}
	for want, job := range map[string]broker.JobState{
		`{"id":"j","name":"n","kind":"wasm","phase":"waiting","count":1,"tasks":{"waiting":1},
		"submitted":"2026-01-02T03:00:00Z","moves":0,"offers":0,
		"hint":"no site has answered yet; it is announced again until one does"}`: {
			Tasks: tasks(broker.TaskState{Phase: grid.PhaseWaiting}),
		},
		`{"id":"j","name":"n","kind":"wasm","phase":"waiting","count":1,"tasks":{"waiting":1},
		"submitted":"2026-01-02T03:00:00Z","moves":0,"offers":0,
		"hint":"no site has capacity now; it starts as soon as one does (submit why j)"}`: {
			Tasks:   tasks(broker.TaskState{Phase: grid.PhaseWaiting}),
			Answers: []broker.Answer{{Site: "s"}},
		},
		`{"id":"j","name":"n","kind":"wasm","phase":"announced","count":1,"tasks":{"announced":1},
		"submitted":"2026-01-02T03:00:00Z","moves":0,"offers":2}`: {
			Tasks: tasks(broker.TaskState{Phase: grid.PhaseAnnounced}),
			Answers: []broker.Answer{
				{Site: "s", Offer: &grid.Offer{}}, {Site: "r", Offer: &grid.Offer{}}, {Site: "q"},
			},
		},
		`{"id":"j","name":"n","kind":"wasm","phase":"running","count":2,"tasks":{"running":2},
		"submitted":"2026-01-02T03:00:00Z","started":"2026-01-02T03:00:05Z","moves":2,"offers":0,
		"promise":{"state":"late","text":"1 of 2 tasks, for example: x",
		"start_late_seconds":2,"end_late_seconds":3}}`: {
			Tasks: tasks(
				broker.TaskState{
					Phase: grid.PhaseRunning, StartedAt: at(30), Tries: begun, Token: 2,
					Promise: grid.PromiseKept,
				},
				broker.TaskState{
					Phase: grid.PhaseRunning, StartedAt: at(5), Promise: grid.PromiseLate,
					PromiseNote: "x", StartLate: 2 * time.Second, EndLate: 3 * time.Second,
				},
			),
		},
		`{"id":"j","name":"n","kind":"wasm","phase":"suspended","count":1,"tasks":{"suspended":1},
		"submitted":"2026-01-02T03:00:00Z","moves":0,"offers":0,
		"hint":"` + grid.ReasonOwnerBusy.String() +
			`; it resumes when that is over, and moves to another site if it lasts"}`: {
			Tasks: tasks(broker.TaskState{Phase: grid.PhaseFrozen, Standing: grid.ReasonOwnerBusy}),
		},
		`{"id":"j","name":"n","kind":"wasm","phase":"done","count":1,"tasks":{"done":1},"code":0,
		"submitted":"2026-01-02T03:00:00Z","started":"2026-01-02T03:00:09Z",
		"ended":"2026-01-02T03:01:00Z","moves":1,"offers":0}`: {
			Ended: at(60),
			Tasks: tasks(broker.TaskState{Phase: grid.PhaseDone, Tries: begun, Token: 2}),
		},
		`{"id":"j","name":"n","kind":"wasm","phase":"failed","count":3,
		"tasks":{"done":1,"failed":2},"code":137,"failed_index":1,
		"submitted":"2026-01-02T03:00:00Z","ended":"2026-01-02T03:01:00Z","moves":0,"offers":0}`: {
			Ended: at(60), Tasks: tasks(
				broker.TaskState{Phase: grid.PhaseDone},
				broker.TaskState{
					Phase: grid.PhaseFailed, Exit: &grid.Exit{Cause: grid.CauseSignal, Code: 9},
				},
				broker.TaskState{Phase: grid.PhaseFailed},
			),
		},
		`{"id":"j","name":"n","kind":"wasm","phase":"refused","count":1,"tasks":{"refused":1},
		"code":125,"failed_index":0,"reasons":["its reservation is over"],
		"submitted":"2026-01-02T03:00:00Z","ended":"2026-01-02T03:01:00Z","moves":0,"offers":1}`: {
			Ended: at(60), Tasks: tasks(broker.TaskState{
				Phase: grid.PhaseRefused, Exit: &grid.Exit{Text: "its reservation is over"},
			}), Answers: []broker.Answer{{Offer: &grid.Offer{}}},
		},
	} {
		job.ID, job.Submitted = "j", at(0)
		job.Job = grid.Job{Spec: spec, Count: uint32(len(job.Tasks))}
		wantJSON(t, "job", jobView(job), want)
	}
}

// TestMovesAreCounted counts attempts that were begun again: the last one of a task that has
// ended is no move, unless the task ended by another's doing.
func TestMovesAreCounted(t *testing.T) {
	t.Parallel()
	one, two := broker.Try{Token: 1, StartedAt: at(1)}, broker.Try{Token: 2, StartedAt: at(2)}
	unheard := broker.Try{Token: 2}
	for i, c := range []struct {
		phase grid.Phase
		token grid.Token
		tries []broker.Try
		moves uint32
		first time.Time
	}{
		{grid.PhaseRunning, 1, nil, 0, at(7)},
		{grid.PhaseDone, 1, []broker.Try{one}, 0, at(1)},
		{grid.PhaseDone, 2, []broker.Try{one, two}, 1, at(1)},
		{grid.PhaseDone, 2, []broker.Try{one, unheard}, 1, at(1)},
		{grid.PhaseDone, 2, []broker.Try{unheard, two}, 0, at(2)},
		{grid.PhaseDone, 3, []broker.Try{one, two}, 2, at(1)},
		{grid.PhaseAnnounced, 1, []broker.Try{one}, 1, at(1)},
		{grid.PhaseAnnounced, 2, []broker.Try{unheard}, 0, at(7)},
	} {
		task := broker.TaskState{Phase: c.phase, Token: c.token, Tries: c.tries, StartedAt: at(7)}
		if n, first := moves(task), firstStart(task); n != c.moves || !first.Equal(c.first) {
			t.Errorf("%d: %d moves and begun %v, want %d and %v", i, n, first, c.moves, c.first)
		}
	}
}

// TestTasksAreShown holds whole tasks against what is shown of them.
func TestTasksAreShown(t *testing.T) {
	t.Parallel()
	const s, begin = grid.SiteID("s"), `{"id":"j.0","index":0,`
	job := broker.JobState{ID: "j", Job: grid.Job{Spec: grid.Spec{
		Kind: grid.KindWasm, Outputs: []grid.Output{{Path: "/o", To: "to-{{item}}"}},
	}, Items: []grid.Item{{Value: "v"}}}}
	for want, task := range map[string]broker.TaskState{
		`"item":"v","phase":"announced"}`: {Phase: grid.PhaseAnnounced, Site: s, Distance: 2},
		`"item":"v","phase":"awarded","site":"s","site_name":"ben","distance":2,"token":3}`: {
			Phase: grid.PhaseAwarded, Site: s, Distance: 2, Token: 3,
		},
		`"item":"v","phase":"staging","site":"s","site_name":"ben","distance":0,"token":3,
		"progress":{"done_bytes":4,"total_bytes":9},"planned_start":"2026-01-02T03:00:08Z",
		"kept":0.5,"promise":{"state":"open"}}`: {
			Phase: grid.PhaseStaging, Site: s, Token: 3, Done: 4, Total: 9, PlannedStart: at(8),
			Kept: 0.5, Promise: 1,
		},
		`"item":"v","phase":"staging"}`: {Phase: grid.PhaseStaging},
		`"item":"v","phase":"preparing","text":"` + grid.ReasonPreparing.String() + `"}`: {
			Phase: grid.PhaseRunning, Standing: grid.ReasonPreparing, Done: 1, Total: 1,
		},
		`"item":"v","phase":"suspended","text":"` + grid.ReasonPaused.String() +
			`; it resumes when that is over, and moves to another site if it lasts"}`: {
			Phase: grid.PhaseFrozen, Standing: grid.ReasonPaused,
		},
		`"item":"v","phase":"running","started":"2026-01-02T03:00:05Z"}`: {
			Phase: grid.PhaseCollecting, StartedAt: at(5), Exit: &grid.Exit{Cause: grid.CauseExited},
		},
		`"item":"v","phase":"running","text":"it has ended; ` +
			`its outputs wait at their site for space on this machine's disk"}`: {
			Phase: grid.PhaseCollecting, Standing: grid.ReasonDisk,
		},
		`"item":"v","phase":"running","text":"its site is back on another disk, or another ` +
			`machine, and knows nothing of it; as it may still run on the old one until ` +
			at(0).Local().Format("15:04 on Jan 2") +
			`, it is placed again then; submit cancel ends it now"}`: {
			Phase: grid.PhaseRunning, Astray: at(0),
		},
		`"item":"v","phase":"done"}`: {Phase: grid.PhaseDone},
		`"item":"v","phase":"failed","code":7,"cause":"` + grid.CauseExited.String() + `","text":"x",
		"ended":"2026-01-02T03:00:40Z","attempts":[
		{"token":1,"site":"s","site_name":"ben","x":0,"y":0,"z":0,"distance":4,
		"awarded":"2026-01-02T03:00:01Z","started":"2026-01-02T03:00:02Z",
		"ended":"2026-01-02T03:00:20Z","cause":"lease over"},
		{"token":2,"site":"r","x":0,"y":0,"z":0,"distance":0,"ended":"2026-01-02T03:00:40Z"}],
		"outputs":[{"path":"/o","to":"to-v","cid":"b","bytes":3,"dir":true}],
		"printed":{"stdout_bytes":5,"stderr_bytes":0}}`: {
			Phase: grid.PhaseFailed,
			Exit: &grid.Exit{
				Cause: grid.CauseExited, Code: 7, Text: "x", Stdout: grid.Produced{CID: "p", Bytes: 5},
				Outputs: []grid.Produced{{Path: "/o", CID: "b", Bytes: 3, Dir: true}},
			},
			Tries: []broker.Try{
				{
					Token: 1, Site: s, Distance: 4, AwardedAt: at(1), StartedAt: at(2), EndedAt: at(20),
					Outcome: "lease over",
				},
				{Token: 2, Site: "r", EndedAt: at(40)},
			},
		},
	} {
		task.ID = grid.TaskID{Job: "j"}
		wantJSON(t, "task", taskView(job, task, names{"s": "ben"}), begin+want)
	}
}

// TestReasonsAreListedOnce, in the order of their words.
func TestReasonsAreListedOnce(t *testing.T) {
	t.Parallel()
	refusal := grid.Refusal{Reason: grid.ReasonMemory, Never: true, Want: 4 << 30, Have: 2 << 30}
	job := broker.JobState{
		Tasks: tasks(
			broker.TaskState{Phase: grid.PhaseRefused, Exit: &grid.Exit{Text: "a"}},
			broker.TaskState{Phase: grid.PhaseRefused, Exit: &grid.Exit{Text: "a"}},
			broker.TaskState{Phase: grid.PhaseRefused, Exit: &grid.Exit{}},
			broker.TaskState{Phase: grid.PhaseRefused},
			broker.TaskState{Phase: grid.PhaseFailed, Exit: &grid.Exit{Text: "not this"}},
		),
		Answers: []broker.Answer{{Refusal: refusal}, {Refusal: refusal}, {Offer: &grid.Offer{}}},
	}
	if diff := cmp.Diff([]string{"a", refusal.Explain()}, refusalReasons(job)); diff != "" {
		t.Errorf("reasons (-want +got):\n%s", diff)
	}
}

// TestOffersAreShown holds a table of two offers and a refusal against what it was made of.
func TestOffersAreShown(t *testing.T) {
	t.Parallel()
	offer := func(site grid.SiteID, distance float64, wait time.Duration) *grid.Offer {
		return &grid.Offer{
			ID: 1, Site: site, Parts: grid.Parts{Distance: distance, Wait: wait, Run: time.Minute},
		}
	}
	job := broker.JobState{
		ID: "j", Job: grid.Job{Spec: grid.Spec{Map: grid.MapSeconds}},
		Tasks: tasks(
			broker.TaskState{Phase: grid.PhaseRunning, Token: 1, Site: "s"},
			broker.TaskState{Phase: grid.PhaseAwarded, Token: 1, Site: "s"},
			broker.TaskState{Phase: grid.PhaseRunning, Site: "s"},             // of no attempt
			broker.TaskState{Phase: grid.PhaseAnnounced, Token: 1, Site: "s"}, // called back
		),
		Answers: []broker.Answer{
			{Site: "s", Seq: 2, Offer: offer("s", 1, 30*time.Second), At: at(5)},
			{Site: "r", Seq: 3, Offer: offer("r", 2, 0), At: at(3)},
			{Site: "q", Seq: 1, Refusal: grid.Refusal{
				Reason: grid.ReasonMemory, Never: true, Want: 4 << 30, Have: 2 << 30,
			}, At: at(4)},
		},
		Ranks:  []int{1, 2, 0},
		Behind: []index.Lag{{}, {Dimension: grid.Computation, Value: 2, Nearest: 1}, {}},
	}
	members := []broker.MemberState{
		{Site: "s", Fault: broker.FaultState{Own: 7}, LastSeen: at(0)},
		{Site: "r", LastSeen: at(41)}, // within a minute
		{Site: "q", LastSeen: at(40)},
		{Site: "p", LastSeen: at(0), Connected: true},
	}
	table := offerTable(job, members, names{"s": "ben"}, at(100))
	if len(table.Rows) != 3 || len(table.Counterfactuals) != 1 {
		t.Fatalf("table %+v", table)
	}
	rows := table.Rows
	table.Rows, table.Counterfactuals = nil, nil
	wantJSON(t, "table", table, `{"job":"j","asked":"2026-01-02T03:00:03Z","round":3,"members":3,
		"answered":3,"never":false,"map":"`+grid.MapSeconds.String()+`",
		"counterfactuals":null,"rows":null}`)
	nearest, far, refused := rows[0], rows[1], rows[2]
	if nearest.Name != "ben" || nearest.Rank != 1 || nearest.FaultIndex != 7 ||
		nearest.Awarded != 2 || nearest.Behind != "" || !nearest.EarliestStart.Equal(at(35)) {
		t.Errorf("nearest %+v", nearest)
	}
	if far.Rank != 2 || far.Awarded != 0 || far.FaultIndex != 0 ||
		far.Behind != view.Behind(grid.Computation, 2, 1) || !far.EarliestStart.Equal(at(3)) {
		t.Errorf("far %+v", far)
	}
	if refused.Rank != 0 || !refused.Never || refused.Reason != grid.ReasonMemory {
		t.Errorf("refused %+v", refused)
	}
	job.Answers = job.Answers[2:]
	if never := offerTable(job, nil, nil, at(100)); !never.Never || never.Members != 1 {
		t.Errorf("one site that says never: %+v", never)
	}
	job.Answers[0].Refusal.Never = false
	if offerTable(job, nil, nil, at(100)).Never {
		t.Error("a site that says not now counts as never")
	}
	job.Answers = nil
	wantJSON(t, "no answer", offerTable(job, nil, nil, at(100)), `{"job":"j","round":0,"members":1,
		"answered":0,"never":false,"map":"`+grid.MapSeconds.String()+`",
		"counterfactuals":[],"rows":[]}`)
}

func TestSitesAreShown(t *testing.T) {
	t.Parallel()
	wantJSON(t, "kinds", kindNames([]grid.WorkKind{grid.KindWasm, grid.KindCommand}),
		`["wasm","command"]`)
	wantJSON(t, "no kinds", kindNames(nil), `[]`)
	row := siteRow("s", "ben", grid.Capability{
		CoreMFLOPS: 5, Kinds: []grid.WorkKind{grid.KindWasm}, OS: "linux", Arch: "arm64",
		Total: grid.Resources{MilliCPUs: 1000},
	})
	if row.ID != "s" || row.Name != "ben" || row.CoreMFLOPS != 5 || len(row.Kinds) != 1 ||
		row.OS != "linux" || row.Arch != "arm64" || row.Total == nil || row.Total.MilliCPUs != 1000 {
		t.Errorf("row %+v", row)
	}
}

// The code of a job is that of the task that failed, not of one that was stopped for its sake.
func TestTheCodeOfAJob(t *testing.T) {
	t.Parallel()
	stopped := broker.TaskState{
		Phase: grid.PhaseFailed, Exit: &grid.Exit{Cause: grid.CauseStopped, Text: "stopped"},
	}
	failed := broker.TaskState{
		Phase: grid.PhaseFailed, Exit: &grid.Exit{Cause: grid.CauseExited, Code: 3},
	}
	done := broker.TaskState{Phase: grid.PhaseDone, Exit: &grid.Exit{Cause: grid.CauseExited}}
	for _, c := range []struct {
		tasks []broker.TaskState
		code  int
		index uint32
	}{
		{tasks(done, stopped, failed), 3, 2},
		{tasks(done, stopped), 125, 1},
		{tasks(broker.TaskState{Phase: grid.PhaseCancelled}, failed), 125, 0},
	} {
		for i := range c.tasks {
			c.tasks[i].ID.Index = uint32(i)
		}
		code, at := jobCode(broker.JobState{Tasks: c.tasks})
		if code != c.code || at == nil || *at != c.index {
			t.Errorf("%+v: code %d of %v, want %d of %d", c.tasks, code, at, c.code, c.index)
		}
	}
	if code, at := jobCode(broker.JobState{Tasks: tasks(done)}); code != 0 || at != nil {
		t.Errorf("all done: %d of %v", code, at)
	}
}

// Each member that is kept out is named, with what an owner can do.
func TestMembersThatAreKeptOutAreNamed(t *testing.T) {
	got := keptOutNotices([]grid.SiteID{"a", "b"})
	if len(got) != 2 || !strings.Contains(got[0].Cause, "a made") ||
		!strings.HasSuffix(got[1].Action, "siteagent ban b") {
		t.Errorf("%+v, want both named", got)
	}
	if got = keptOutNotices(nil); len(got) != 0 {
		t.Errorf("%+v, want nothing to say", got)
	}
}
