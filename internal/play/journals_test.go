package play

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/scenario"
	"github.com/mrsmesh/mrsmesh/internal/store"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/sim"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// echo is a machine that takes every job under its name's own ID, and reports each input that
// it is told of.
type echo struct{ heard int }

func (e *echo) Step(_ time.Time, in step.Input) []step.Effect {
	e.heard++
	report := step.Report{Event: fmt.Sprintf("heard_%d", e.heard)}
	if s, is := in.(step.Submit); is {
		id := grid.JobID(strings.Repeat(s.Job.Spec.Name[:1], 16))
		return []step.Effect{step.Reply{Command: s.Command, Job: id}, report}
	}
	return []step.Effect{step.Reply{Command: 99}, report}
}

func (*echo) Snapshot() []byte     { return []byte("[]") }
func (*echo) Check() error         { return nil }
func (*echo) Restore([]byte) error { return nil }

func newEcho(store.Header) (step.Machine, error) { return new(echo), nil }

// heardOf is an input of an agent's journal, some seconds after the first one of all.
type heardOf struct {
	machine string
	second  int
	in      step.Input
}

// agentDir writes the journals of an agent's starts, and returns its state directory.
func agentDir(t *testing.T, config string, starts ...[]heardOf) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "agent")
	for _, start := range starts {
		s, err := store.Open(dir, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		journals, machines := make(map[string]*store.Journal), make(map[string]*echo)
		for _, e := range start {
			if journals[e.machine] == nil {
				h := store.Header{Build: "test", Machine: e.machine, Config: json.RawMessage(config)}
				if journals[e.machine], err = s.Begin(h); err != nil {
					t.Fatal(err)
				}
				machines[e.machine] = new(echo)
			}
			at := time.Unix(1_900_000_000+int64(e.second), 0).UTC()
			if err := journals[e.machine].Record(at, e.in, machines[e.machine].Step(at, e.in)); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func attemptOf(job string) grid.AttemptID {
	return grid.AttemptID{Task: grid.TaskID{Job: grid.JobID(strings.Repeat(job, 16))}, Token: 1}
}

// anna's agent was started twice, and killed while one attempt ran and another had ended; her
// owner used the machine twice, the second time to the end.
func anna(t *testing.T) string {
	t.Helper()
	submit := step.Submit{Command: 7, Job: grid.Job{Spec: grid.Spec{Name: "render"}}}
	return agentDir(t, `{"Self":"siteA","Name":"anna"}`, []heardOf{
		{"site", 0, step.OwnerBusy{Reason: grid.ReasonOwnerBusy}},
		{"site", 1, step.AttemptStarted{Attempt: attemptOf("a")}},
		{"site", 2, step.AttemptFrozen{Attempt: attemptOf("a")}},
		{"site", 3, step.OwnerAway{}},
		{"site", 4, step.AttemptResumed{Attempt: attemptOf("a")}},
		{"site", 5, step.AttemptStarted{Attempt: attemptOf("b")}},
		{"site", 6, step.AttemptExited{Attempt: attemptOf("b")}},
		{"broker", 2, submit},
		{"broker", 3, step.OwnerBusy{}},
	}, []heardOf{
		{"site", 9, step.Pause{}},
		{"site", 10, step.AttemptStarted{Attempt: attemptOf("a")}},
	})
}

func TestReadJournals(t *testing.T) {
	ben := agentDir(t, `{"Self":"siteB"}`, []heardOf{
		{"site", 4, step.Pause{}},
		{"site", 12, step.Resume{}},
		{"standbyabc", 5, step.OwnerBusy{}}, // another owner's, of no interest here
	})
	rec, notes, err := ReadJournals([]string{anna(t), ben}, newEcho)
	if err != nil || len(notes) > 0 {
		t.Fatal(err, notes)
	}
	var happened []string
	for i, s := range rec.sights {
		if s.Number != i+1 {
			t.Errorf("sight %d has the number %d", i+1, s.Number)
		}
		if s.Kind != sim.SightReported {
			what := fmt.Sprint(s.At.Seconds(), " ", s.Site, " ", s.Kind)
			if s.Attempt.Token > 0 {
				what += " " + string(s.Attempt.Task.Job[:1])
			}
			happened = append(happened, what)
		}
	}
	want := []string{
		fmt.Sprint("0 anna ", sim.SightUp), fmt.Sprint("1 anna ", sim.SightRuns, " a"),
		fmt.Sprint("2 anna ", sim.SightFrozen, " a"), fmt.Sprint("4 anna ", sim.SightRuns, " a"),
		fmt.Sprint("4 agent ", sim.SightUp), fmt.Sprint("5 anna ", sim.SightRuns, " b"),
		fmt.Sprint("6 anna ", sim.SightGone, " b"), fmt.Sprint("6 anna ", sim.SightGone, " a"),
		fmt.Sprint("6 anna ", sim.SightDown), fmt.Sprint("9 anna ", sim.SightUp),
		fmt.Sprint("10 anna ", sim.SightRuns, " a"),
	}
	if !slices.Equal(happened, want) {
		t.Errorf("it happened\n%q, want\n%q", happened, want)
	}
	if !slices.Equal(rec.sites, []string{"anna", "agent"}) || rec.end != 12*time.Second {
		t.Errorf("sites %q, end %v", rec.sites, rec.end)
	}
	troubles := []trouble{
		{span{0, 3 * time.Second}, "anna", scenario.Busy, grid.ReasonOwnerBusy.String()},
		{span{9 * time.Second, 12 * time.Second}, "anna", scenario.Pause, "paused"},
		{span{4 * time.Second, 12 * time.Second}, "agent", scenario.Pause, "paused"},
	}
	if !slices.Equal(rec.troubles, troubles) {
		t.Errorf("troubles %+v, want %+v", rec.troubles, troubles)
	}
	name := rec.names[grid.JobID(strings.Repeat("r", 16))]
	if name != "render(rrrr)" || len(rec.names) != 1 {
		t.Errorf("the jobs are called %v", rec.names)
	}
}

// What machines decided is derived again, under each one's own name.
func TestDecisionsOfJournals(t *testing.T) {
	rec, _, err := ReadJournals([]string{anna(t)}, newEcho)
	if err != nil {
		t.Fatal(err)
	}
	decided := make(map[bool][]string)
	for _, s := range rec.sights {
		if s.Kind == sim.SightReported {
			decided[s.Broker] = append(decided[s.Broker], s.Report.Event)
		}
	}
	if !slices.Equal(decided[true], []string{"heard_1", "heard_2"}) || len(decided[false]) != 9 {
		t.Errorf("the submitter's machine %q, the site's %q", decided[true], decided[false])
	}
	_, notes, err := ReadJournals([]string{anna(t)}, func(h store.Header) (step.Machine, error) {
		if h.Machine == "broker" {
			return nil, errors.New("no such machine")
		}
		return &echo{heard: 3}, nil
	})
	const other = "site machine, start 2: decisions are left out from here on, " +
		"as another build decided otherwise: "
	if err != nil || len(notes) != 3 || !strings.Contains(notes[2], other) ||
		!strings.HasPrefix(notes[1], "anna, broker machine, start 1: decisions are left out: ") {
		t.Errorf("notes %q, %v", notes, err)
	}
}

func TestJournalsThatCannotBeRead(t *testing.T) {
	first, one := anna(t), []heardOf{{"site", 0, step.Pause{}}}
	for want, dirs := range map[string][]string{
		"it holds no journal": {t.TempDir()},
		"no such file":        {filepath.Join(t.TempDir(), "absent")},
		"it is of anna, of which another directory was given": {first, first},
		"its journals do not say whose they are":              {agentDir(t, `{}`, one)},
		"configuration of the site machine: ":                 {agentDir(t, `[]`, one)},
	} {
		if _, _, err := ReadJournals(dirs, newEcho); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	twice := agentDir(t, `{"Self":"siteC","Name":"anna"}`, one)
	rec, _, err := ReadJournals([]string{first, twice}, newEcho)
	if err != nil || !slices.Equal(rec.sites, []string{"anna", "anna-1"}) {
		t.Errorf("two of one name: %v", err)
	}
}
