package sim

import (
	"flag"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

var errants = flag.Int("errants", 8, "how many seeds each story of wrong results plays")

// erring is the part of its results that a site gets wrong in these stories.
const erring = .2

// errant plays jobs, one after the other, on seven sites one of which errs, and is nearest.
type errant struct {
	*World

	jobs []grid.JobID
}

func newErrant(seed uint64, tune func(*broker.Config)) *errant {
	cfg := Config{Seed: seed, Sites: fleet(7), Network: lan(), CheckEvery: 50, CheckFacts: true}
	if tune != nil {
		submitters(tune)(&cfg)
	}
	x := &errant{World: New(cfg)}
	_ = x.Run(time.Second)
	return x
}

// play runs jobs of one task, a few at a time.
func (x *errant) play(t *testing.T, count int, how grid.Redundancy) {
	t.Helper()
	for range count {
		job := elsewhere(5 * time.Second)
		job.Redundancy = how
		x.jobs = append(x.jobs, mustSubmit(t, x.World, "s0", job))
		_ = x.Run(x.elapsed + 2*time.Second)
	}
	x.await(t, x.jobs...)
}

// await lets the world go on until jobs have ended.
func (x *errant) await(t *testing.T, jobs ...grid.JobID) {
	t.Helper()
	for limit := x.elapsed + 2*time.Hour; len(jobs) > 0; {
		if err := x.Run(x.elapsed + time.Second); err != nil || x.elapsed > limit {
			t.Fatalf("seed %d: %d jobs go on: %v", x.cfg.Seed, len(jobs), err)
		}
		jobs = slices.DeleteFunc(slices.Clone(jobs), func(id grid.JobID) bool {
			s, _ := x.Job("s0", id)
			return !s.Ended.IsZero()
		})
	}
}

// wrong counts the jobs whose delivered result is wrong.
func (x *errant) wrong() (n int) {
	for _, id := range x.jobs {
		s, _ := x.Job("s0", id)
		t := s.Tasks[0]
		if t.Phase == grid.PhaseDone && t.Exit.Outputs[0].CID != outputCID(t.ID) {
			n++
		}
	}
	return n
}

// outvoted counts for each site how often the submitter found it to lie.
func (x *errant) outvoted() map[grid.SiteID]int {
	n := make(map[grid.SiteID]int)
	for _, note := range x.Trace().Notes {
		if note.Report.Event == "outvoted" {
			n[note.Report.Site]++
		}
	}
	return n
}

// With two copies that have to agree no wrong result is delivered, though a site gives wrong ones
// in one job of five, and no honest site is accused.
func TestNoWrongResultWithAgreement(t *testing.T) {
	found := 0
	for seed := range uint64(*errants) {
		x := newErrant(seed, nil)
		liar := x.order[1+seed%6]
		x.Err(liar, erring, 0)
		x.play(t, 40, grid.Redundancy{Replicas: 2, Agreement: 2})
		if n := x.wrong(); n > 0 {
			t.Errorf("seed %d: %d wrong results were delivered", seed, n)
		}
		for site, n := range x.outvoted() {
			if found += n; site != liar {
				t.Errorf("seed %d: %s is accused, and only %s lies", seed, site, liar)
			}
		}
		for _, id := range x.jobs {
			s, _ := x.Job("s0", id)
			wantAllDone(t, s)
		}
	}
	if found == 0 {
		t.Error("nobody was ever outvoted: the stories test nothing")
	}
}

// A site that errs is found within foundWithin of its jobs with at least that chance, as 1 - .8^20:
// its first 20 results are all compared.
const (
	foundWithin = 100
	foundChance = .98
)

// With spot checks alone a site that errs is found within 100 of its jobs, loses what it has, and
// gets hardly anything more; honest sites keep their work.
func TestSpotChecksFindWhoErrs(t *testing.T) {
	missed := 0
	for seed := range uint64(*errants) {
		x := newErrant(seed, nil)
		x.Err("s6", erring, 0) // the fastest is nearest
		x.play(t, 120, grid.Redundancy{Verify: .02})
		jobs, later := x.awardsTo("s6")
		found := x.outvoted()
		for site := range found {
			if site != "s6" {
				t.Errorf("seed %d: %s is accused", seed, site)
			}
		}
		if found["s6"] == 0 || jobs > foundWithin {
			missed++
		}
		if later > trials(x.elapsed) {
			t.Errorf("seed %d: %d awards to the liar after it was found", seed, later)
		}
		t.Logf("seed %d: found with its job %d; %d awards later; %d of %d results wrong",
			seed, jobs, later, x.wrong(), len(x.jobs))
	}
	if most := int(math.Ceil(float64(*errants) * (1 - foundChance))); missed > most {
		t.Errorf("%d of %d seeds did not find the liar within %d jobs, want at most %d",
			missed, *errants, foundWithin, most)
	}
}

// awardsTo counts the awards to a site until it was outvoted first, and those later.
func (x *errant) awardsTo(site grid.SiteID) (before, later int) {
	found := false
	for _, n := range x.Trace().Notes {
		switch {
		case !n.Broker || n.Report.Site != site:
		case n.Report.Event == "outvoted":
			found = true
		case n.Report.Event == "awarded" && found:
			later++
		case n.Report.Event == "awarded":
			before++
		}
	}
	return before, later
}

// With auto a task runs twice, side by side, while its site is new, and alone as a rule once it is
// trusted; a site that errs from the beginning delivers nothing wrong.
func TestAutoFallsWithTrust(t *testing.T) {
	x := newErrant(1, nil)
	x.Err("s6", erring, 0)
	var early, late int
	for n := range 120 {
		x.play(t, 1, grid.Redundancy{Auto: true})
		s, _ := x.Job("s0", x.jobs[n])
		switch copies := len(s.Tasks[0].Copies); {
		case n < trustedSoon:
			early += copies
		case n >= 120-trustedSoon:
			late += copies
		}
	}
	if x.wrong() > 0 || x.outvoted()["s6"] == 0 {
		t.Errorf("%d wrong results; outvoted: %v", x.wrong(), x.outvoted())
	}
	if early < 2*trustedSoon || late > trustedSoon*5/4 {
		t.Errorf("%d copies of the first %d tasks, %d of the last", early, trustedSoon, late)
	}
}

// trustedSoon counts tasks with which no site is trusted yet.
const trustedSoon = 20

// A site that was trusted begins to err in the midst of a job. When it is found it has nothing of
// it any more, what it had delivered is confirmed by others or computed again, and honest sites
// keep what they have. Without that wrong results are left.
func TestALiarLosesItsWork(t *testing.T) {
	left := 0
	for seed := range uint64(*errants) {
		if n := playTraitor(t, seed, false); n > 0 {
			t.Errorf("seed %d: %d wrong results are left", seed, n)
		}
		left += playTraitor(t, seed, true)
	}
	if left == 0 {
		t.Error("nothing is left without it: the stories test nothing")
	}
}

// playTraitor plays that, and counts the wrong results in the end.
func playTraitor(t *testing.T, seed uint64, off bool) (wrong int) {
	t.Helper()
	x := newErrant(seed, func(b *broker.Config) { b.NoDisown = off })
	x.play(t, 60, grid.Redundancy{Verify: .02})
	x.Err("s6", 1, 0)
	job := elsewhere(20 * time.Second)
	job.Count, job.Redundancy = 60, grid.Redundancy{Verify: .2}
	id := mustSubmit(t, x.World, "s0", job)
	x.await(t, id)
	s, _ := x.Job("s0", id)
	wantAllDone(t, s)
	for _, task := range s.Tasks {
		if task.Exit.Outputs[0].CID != outputCID(task.ID) {
			wrong++
		}
	}
	if off {
		return wrong
	}
	found := false
	for _, n := range x.Trace().Notes {
		switch {
		case !n.Broker || n.Report.Attempt.Task.Job != id:
		case n.Report.Event == "outvoted" && n.Report.Site != "s6":
			t.Errorf("seed %d: %s is accused", seed, n.Report.Site)
		case n.Report.Event == "outvoted":
			found = true
		case found && n.Report.Event == "running" && n.Report.Site == "s6":
			t.Errorf("seed %d: task %s still runs at the liar", seed, n.Report.Attempt)
		}
	}
	for _, task := range s.Tasks {
		for _, try := range task.Tries {
			if strings.Contains(try.Outcome, "taken away") && try.Site != "s6" {
				t.Errorf("seed %d: %s has lost %s", seed, try.Site, task.ID)
			}
		}
	}
	if !found {
		t.Errorf("seed %d: the liar was not found among %d results", seed, len(s.Tasks))
	}
	return wrong
}

// The copies of a task are at different sites, also where they move.
func TestCopiesAreApart(t *testing.T) {
	for seed := range uint64(*errants) {
		x := newErrant(seed, nil)
		job := wasmJob(4, 30*time.Second)
		job.Redundancy = grid.Redundancy{Replicas: 3, Agreement: 2}
		x.jobs = append(x.jobs, mustSubmit(t, x.World, "s0", job))
		victim := x.order[1+seed%6]
		x.At(10*time.Second, func() { x.Crash(victim) })
		x.await(t, x.jobs[0])
		s, _ := x.Job("s0", x.jobs[0])
		wantAllDone(t, s)
		for _, task := range s.Tasks {
			sites := make(map[grid.SiteID]bool)
			for _, c := range task.Copies {
				if c.Digest != "" && sites[c.Site] {
					t.Errorf("seed %d: two results of task %s from %s", seed, task.ID, c.Site)
				}
				sites[c.Site] = true
			}
		}
	}
}

// wasm is not repeated by the world's default outputs alone: a job without redundancy has no
// copies.
func TestNoCopiesUnasked(t *testing.T) {
	x := newErrant(1, nil)
	x.play(t, 1, grid.Redundancy{})
	if s, _ := x.Job("s0", x.jobs[0]); len(s.Tasks[0].Copies) > 0 {
		t.Errorf("copies: %s", fmt.Sprint(s.Tasks[0].Copies))
	}
}
