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

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/internal/store"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// threeBursts lets a mesh of three sites have three bursts of nine jobs, more than it has cores,
// and returns where the journals are.
func threeBursts(t *testing.T, change func(*paced)) []string {
	t.Helper()
	p := newPaced(t, 1, 2, 3)
	if change != nil {
		change(p)
	}
	p.run(2 * time.Second)
	for burst := range 3 {
		for i := range 9 {
			name := fmt.Sprintf("job%d.%d", burst, i)
			p.submit("siteA", pacedJob(name, time.Duration(3+i)*time.Second))
		}
		p.run(8 * time.Second)
	}
	p.run(5 * time.Minute)
	return p.end()
}

func observe(t *testing.T, dirs []string) *Observed {
	t.Helper()
	o, err := Observe(dirs, machineOf)
	if err != nil {
		t.Fatal(err)
	}
	if len(o.Courses) != 27 {
		t.Fatalf("%d jobs are observed, want 27", len(o.Courses))
	}
	return o
}

// Where everything takes a time that is always the same, a simulation repeats what was, to the
// nanosecond: jobs that find capacity and jobs that wait for it, at all sites, also while an owner
// pauses one of them.
func TestTheSimulationIsWhatWasObserved(t *testing.T) {
	pause := func(p *paced) {
		at := watched{site: "siteC"}
		p.later(time.Second, at, step.Pause{Until: pacedBegin.Add(12 * time.Second)})
		p.later(25*time.Second, at, step.Pause{})
		p.later(40*time.Second, at, step.Resume{})
	}
	var plain []Course
	for name, change := range map[string]func(*paced){"open": nil, "paused": pause} {
		o := observe(t, threeBursts(t, change))
		if len(o.Notes) > 0 {
			t.Errorf("%s: %v", name, o.Notes)
		}
		for seed := range uint64(2) {
			again, err := o.Simulate(t.Context(), seed)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(o.Courses, again); diff != "" {
				t.Errorf("%s, seed %d: it was - and is simulated +\n%s", name, seed, diff)
			}
		}
		if plain != nil && cmp.Equal(plain, o.Courses) {
			t.Error("the pause changes nothing")
		}
		plain = o.Courses
	}
}

// The order in which the journals are given changes nothing but the order of the sites.
func TestTheOrderOfJournalsDoesNotMatter(t *testing.T) {
	dirs := threeBursts(t, nil)
	before := observe(t, dirs)
	slices.Reverse(dirs)
	after := observe(t, dirs)
	if diff := cmp.Diff(before.Courses, after.Courses); diff != "" {
		t.Error(diff)
	}
	if before.Lags.String() != after.Lags.String() {
		t.Errorf("lags differ:\n%s%s", before.Lags, after.Lags)
	}
}

// What was slow for a while is slow in the simulation at that time, and only then: jobs of the
// slow burst take longer by the same, up to the two lags among which a draw is at its edges.
func TestLagsHaveTheirTime(t *testing.T) {
	const slow = 300 * time.Millisecond
	o := observe(t, threeBursts(t, func(p *paced) {
		p.slow = func(at time.Duration) time.Duration {
			if at >= 9*time.Second && at < 11*time.Second {
				return slow
			}
			return 0
		}
	}))
	for seed := range uint64(4) {
		again, err := o.Simulate(t.Context(), seed)
		if err != nil {
			t.Fatal(err)
		}
		for i, was := range o.Courses[:6] { // they are placed before anything is slow
			if off := again[i].Took - was.Took; off.Abs() > 2*slow {
				t.Errorf("seed %d: %s took %s, and %s simulated",
					seed, was.Name, was.Took, again[i].Took)
			}
		}
		// Of the burst at 10 s, which finds capacity: asked, offered, awarded, ...
		first := o.Courses[9]
		if off := again[9].Took - first.Took; off.Abs() > slow/10 {
			t.Errorf("seed %d: %s took %s, and %s simulated",
				seed, first.Name, first.Took, again[9].Took)
		}
	}
}

func TestNear(t *testing.T) {
	lags := []lag{{1, 10}, {3, 30}, {3, 31}, {7, 70}}
	for _, c := range []struct {
		at, low, high time.Duration // drawn with the lowest and the highest chance
	}{{0, 10, 30}, {1, 10, 30}, {2, 30, 31}, {3, 30, 31}, {4, 30, 31}, {6, 31, 70}, {99, 31, 70}} {
		low, high := near(lags, c.at, 0), near(lags, c.at, .999)
		if low != c.low || high != c.high {
			t.Errorf("at %d: %d to %d, want %d to %d", c.at, low, high, c.low, c.high)
		}
	}
	if got := near(lags[:1], 5, .7); got != 10 {
		t.Errorf("of one lag %d is drawn", got)
	}
	if got := near(nil, 5, .7); got != 0 {
		t.Errorf("of none %d is drawn", got)
	}
}

// What a task ran leaves out the time in which it was frozen, and an attempt that its site ended
// is none.
func TestObservedRuns(t *testing.T) {
	w := newWatcher(&Observed{ends: make(map[grid.TaskID]observedEnd)}, pacedBegin)
	id, stopped := attemptOf("a"), attemptOf("b")
	site := watched{site: "siteA"}
	done := grid.Exit{Cause: grid.CauseExited, Code: 3}
	for at, in := range []step.Input{
		step.AttemptStarted{Attempt: id, Preparing: true},
		step.AttemptStarted{Attempt: id},
		step.AttemptStarted{Attempt: stopped}, // 1 s, 2 s
		step.AttemptFrozen{Attempt: id},
		step.AttemptFrozen{Attempt: id},
		step.AttemptResumed{Attempt: id},
		step.AttemptExited{Attempt: stopped, Exit: grid.Exit{Cause: grid.CauseStopped}},
		step.AttemptExited{Attempt: id, Exit: done},
		step.AttemptFrozen{Attempt: id}, // 7 s
	} {
		w.step(site, time.Duration(at)*time.Second, in, nil)
	}
	want := map[grid.TaskID]observedEnd{id.Task: {ran: 4 * time.Second, exit: done}}
	if diff := cmp.Diff(want, w.o.ends, cmp.AllowUnexported(observedEnd{})); diff != "" {
		t.Error(diff)
	}
}

// What is not simulated again is told, as long as it concerns a job.
func TestObserveNotes(t *testing.T) {
	p := newPaced(t, 1, 1)
	p.run(2 * time.Second)
	p.submit("siteA", pacedJob("job", 3*time.Second))
	p.later(0, watched{site: "siteB"}, step.PeerGone{Site: "siteA"})
	p.later(0, watched{site: "siteB"}, step.MessageReceived{
		From: "siteZ", Message: protocol.Clear{
			Job: attemptOf("z").Task.Job, Submitter: "siteZ", Kind: protocol.ClearEnded,
		},
	})
	p.later(time.Minute, watched{site: "siteB"}, step.PeerGone{Site: "siteA"}) // all is over
	p.run(2 * time.Minute)
	o, err := Observe(p.end(), machineOf)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"not simulated: 1 times PeerGone", "1 messages came of which no journal has the sender",
	}
	if diff := cmp.Diff(want, o.Notes); diff != "" {
		t.Error(diff)
	}
}

// refusals are journals that are refused, by what is said of them.
func refusals(t *testing.T) map[string][]string {
	t.Helper()
	submitted := func(change func(*grid.Job)) []string {
		p := newPaced(t, 1)
		job := pacedJob("job", time.Second)
		change(&job)
		p.submit("siteA", job)
		return p.end()
	}
	skewed := newPaced(t, 1)
	skewed.tell(watched{site: "siteA"},
		step.PeerSeen{Site: "siteB", Name: "ben", Skew: -time.Minute})
	whole := newPaced(t, 1).end()
	return map[string][]string{
		"its clock and the one of ben are 1m0s apart": skewed.end(),
		"has a time to begin or to end by": submitted(func(j *grid.Job) {
			j.Spec.Window.Deadline = pacedBegin.Add(time.Hour)
		}),
		"is about a reservation": submitted(func(j *grid.Job) {
			j.Spec.Kind, j.Spec.Module, j.Spec.Args = grid.KindReservation, grid.Input{}, nil
			j.Spec.Window.At = pacedBegin.Add(time.Hour)
		}),
		"started more than once": startedAgain(t, newPaced(t, 1).end()[0]),
		"one of its machines is missing": {
			agentDir(t, `{"Self":"siteA"}`, []heardOf{{siteMachine, 0, step.Pause{}}}),
		},
		"another directory was given": append(slices.Clone(whole), whole...),
		"it holds no journal":         {t.TempDir()},
	}
}

func TestObserveRefuses(t *testing.T) {
	for want, c := range refusals(t) {
		_, err := Observe(c, machineOf)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want that it says %q", err, want)
		}
		ours := want != "another directory was given" && want != "it holds no journal"
		if errors.Is(err, ErrNotSimulated) != ours {
			t.Errorf("%v is ErrNotSimulated: %t", err, !ours)
		}
	}
	if _, err := Observe(threeBursts(t, nil), newEcho); err == nil ||
		!strings.Contains(err.Error(), "another build") {
		t.Errorf("journals of other machines: %v", err)
	}
}

// startedAgain starts an agent once more.
func startedAgain(t *testing.T, dir string) []string {
	t.Helper()
	s, err := store.Open(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	h := store.Header{Machine: siteMachine, Config: json.RawMessage(`{"Self":"siteA"}`)}
	if _, err = s.Begin(h); err != nil {
		t.Fatal(err)
	}
	if err = s.Close(); err != nil {
		t.Fatal(err)
	}
	return []string{filepath.Clean(dir)}
}
