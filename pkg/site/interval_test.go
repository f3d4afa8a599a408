package site

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// By itself a site saves as often as costs least at its own rate of failures, within limits.
func TestIntervalsFollowTheSite(t *testing.T) {
	for _, c := range []struct {
		hour float64 // probability of staying for one
		cost time.Duration
		want time.Duration
	}{
		{0, time.Second, 10 * time.Second},                     // lost within a minute
		{math.Exp(-1), 0, 84 * time.Second},                    // MTBF 1 h, cost not measured: 1 s
		{math.Exp(-1), 10 * time.Second, 262 * time.Second},    // sqrt(2*10*3600), corrected
		{math.Exp(-1. / 168), time.Second, 1099 * time.Second}, // a week
		{1, time.Second, 2276 * time.Second},                   // never: a month
		{1, time.Hour, mostInterval},
		{math.Exp(-1), time.Millisecond, 10 * time.Second},
	} {
		got := bestInterval(c.cost, mtbf(c.hour))
		if (got - c.want).Abs() > time.Second+c.want/100 {
			t.Errorf("stays for an hour with %v, cost %s: every %s, want %s; MTBF %s",
				c.hour, c.cost, got, c.want, mtbf(c.hour))
		}
	}
	r, a := newRig(t), &attempt{}
	a.task.Checkpoint.Every = 3 * time.Second
	for counts, want := range map[time.Duration]time.Duration{
		0: 2 * time.Second, 10 * time.Millisecond: 2980 * time.Millisecond,
		time.Minute: 1500 * time.Millisecond,
	} {
		a.saving.counts = counts
		if got := r.m.saveInterval(a); got != want {
			t.Errorf("every 3 s, counts after %s: next after %s, want %s", counts, got, want)
		}
	}
}

// ruled is for a job with a rule for its checkpoints and this run time.
func ruled(rule grid.SavingRule, every, runtime time.Duration) func(*grid.Spec) {
	return func(s *grid.Spec) {
		s.Checkpoint, s.Runtime = grid.Saving{Rule: rule, Every: every}, runtime
	}
}

// saves says of each checkpoint that becomes due, until n were, that it is taken (S) or left out
// (-), and for how long the site was up then. What is taken counts immediately.
func (r *rig) saves(id grid.AttemptID, n int) (signs string, up []time.Duration) {
	r.t.Helper()
	for range 1_000_000 {
		out := r.advance(10 * time.Millisecond)
		if taking := only[step.Save](out); len(taking) > 0 {
			signs, up = signs+"S", append(up, r.m.upFor())
			r.step(step.Saved{Attempt: id, Checkpoint: taken(taking[0].Number)})
			r.receive(alice, protocol.Held{Attempt: id, Number: taking[0].Number})
		} else if slices.Contains(r.events(), eventSaveLeftOut) {
			signs, up = signs+"-", append(up, r.m.upFor())
		}
		if len(signs) == n {
			return signs, up
		}
	}
	r.t.Fatalf("only %q of %d", signs, n)
	return "", nil
}

// "If the last failure of the resource was within the job's execution time, the checkpoint is
// taken, else it is omitted"; after several in a row one is forced (FIBR paper, 3.2, steps 3, 4).
func TestPaperLFCALeavesOut(t *testing.T) {
	r := newRig(t)
	id := r.saving(ruled(grid.SaveLFCA, 10*time.Second, time.Minute))
	runtime := r.m.roster.all[id].estimate
	signs, up := r.saves(id, 16)
	first, _ := slices.BinarySearch(up, runtime+1)
	if first < 3 || first > 8 || signs[:first] != strings.Repeat("S", first) {
		t.Errorf("up for less than %s: %s", runtime, signs[:first])
	}
	if want := "---S---S"; signs[first:first+8] != want {
		t.Errorf("up for longer than %s: %s, want %s", runtime, signs[first:], want)
	}
}

// The last checkpoint of a task that is to leave is not left out.
func TestLFCAKeepsNobodyHere(t *testing.T) {
	r := newRig(t)
	id := r.saving(ruled(grid.SaveLFCA, 10*time.Second, time.Minute))
	for sign := ""; sign != "-"; { // two more will be left out
		sign, _ = r.saves(id, 1)
	}
	r.receive(alice, protocol.Move{Attempt: id})
	last := one[protocol.Movable](r, alice).Next
	r.step(step.Saved{Attempt: id, Problem: "the state changed while it was read"})
	r.reported(eventSaveFailed)
	if again := only[step.Save](r.advance(hurrySave)); len(again) != 1 || again[0].Number <= last {
		t.Errorf("after a failure it asks for %+v, want one after number %d", again, last)
	}
}

// "If RE < Mf and I < alpha E ... I_new = I_old + I, else I_new = I_old - I" (FIBR paper, 3.3).
func TestPaperMFCAAdapts(t *testing.T) {
	r := newRig(t)
	id := r.saving(ruled(grid.SaveMFCA, 20*time.Second, 4*time.Minute))
	_, up := r.saves(id, 8)
	var pauses []string
	for i := range up[1:] {
		pauses = append(pauses, fmt.Sprintf("%.0f", (up[i+1]-up[i]).Seconds()))
	}
	// This site is lost less often. The limit is a quarter of what is estimated here, four minutes
	// and some seconds; the interval passes it by less than a step.
	if got := strings.Join(pauses, " "); got != "30 40 50 60 70 60 70" {
		t.Errorf("pauses of %s s", got)
	}
	long := &attempt{estimate: 10 * mostMTBF} // longer than any site stays
	long.task.Checkpoint = grid.Saving{Rule: grid.SaveMFCA, Every: 4 * time.Second}
	var got []time.Duration
	for range 4 {
		r.m.adapt(long)
		got = append(got, r.m.saveInterval(long))
	}
	if want := "[2s 1s 1s 1s]"; fmt.Sprint(got) != want {
		t.Errorf("where it is lost often: %s, want %s", got, want)
	}
	long.saving.cost = time.Minute
	if r.m.adapt(long); r.m.saveInterval(long) != 2*time.Minute {
		t.Errorf("a checkpoint of a minute: every %s", r.m.saveInterval(long))
	}
}
