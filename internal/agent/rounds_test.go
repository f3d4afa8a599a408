package agent

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// answered is a job of so many tasks whose round so many sites have answered.
func answered(id grid.JobID, round uint32, sites, tasks int) broker.JobState {
	job := broker.JobState{ID: id, Tasks: make([]broker.TaskState, tasks)}
	for i := range sites {
		job.Answers = append(job.Answers, broker.Answer{
			Site: grid.SiteID(fmt.Sprint(i)), Seq: round,
		})
	}
	job.Ranks = make([]int, sites)
	return job
}

func numbers(of []Round) (all []uint32) {
	for _, r := range of {
		all = append(all, r.Number)
	}
	return all
}

// TestRoundsAreKept keeps the last rounds of each job, each one once, and without what the job
// computes.
func TestRoundsAreKept(t *testing.T) {
	t.Parallel()
	var r rounds
	now := time.Unix(1000, 0)
	first := answered("a", 1, 2, 2)
	first.Job.Spec.Name, first.Job.Spec.Args = "secret", []string{"secret"}
	first.Job.Spec.Map = grid.MapSeconds
	for i := range first.Tasks {
		first.Tasks[i] = broker.TaskState{Site: "1", Token: 3, Phase: grid.PhaseRunning}
	}
	r.add(first, now)
	r.add(first, now) // nobody has answered since
	r.add(answered("b", 7, 1, 1), now)
	probe := answered("c", 1, 1, 1)
	probe.Probe = true
	r.add(probe, now)
	r.add(answered("d", 0, 0, 1), now) // no site has answered
	kept := Round{Number: 1, Hosted: map[grid.SiteID]uint32{"1": 2}, State: broker.JobState{
		ID: "a", Answers: first.Answers, Ranks: first.Ranks,
	}}
	kept.State.Job.Spec.Map = grid.MapSeconds
	if diff := cmp.Diff([]Round{kept}, r.of("a")); diff != "" {
		t.Errorf("the first round (-want +kept):\n%s", diff)
	}
	for round := uint32(2); round <= 20; round++ {
		r.add(answered("a", round, 2, 1), now)
	}
	want := []uint32{5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}
	if diff := cmp.Diff(want, numbers(r.of("a"))); diff != "" {
		t.Errorf("of 20 rounds (-want +kept):\n%s", diff)
	}
	if got := numbers(r.of("b")); len(got) != 1 || got[0] != 7 || r.of("c") != nil {
		t.Errorf("of another job %v, of a probe %v are kept", got, r.of("c"))
	}
	r.forget("a")
	if r.of("a") != nil || r.answers != 1 || len(r.order) != 1 || len(r.at) != 1 {
		t.Errorf("of a job that is forgotten %v are kept; in all %d answers", r.of("a"), r.answers)
	}
}

// TestRoundsAreBounded gives more jobs with many answers than are kept: those of the oldest rounds
// go, whichever job they belong to.
func TestRoundsAreBounded(t *testing.T) {
	t.Parallel()
	var r rounds
	const sites = 256
	for i := range 2 * keptAnswers / sites {
		id := grid.JobID(fmt.Sprint(i / 4))
		r.add(answered(id, uint32(1+i%4), sites, 1), time.Unix(int64(i), 0))
	}
	if r.answers != keptAnswers || len(r.order) != keptAnswers/sites ||
		len(r.ofJob) != keptAnswers/sites/4 || len(r.at) != len(r.ofJob) {
		t.Errorf("%d answers of %d jobs are kept in %d rounds",
			r.answers, len(r.ofJob), len(r.order))
	}
	last := grid.JobID(fmt.Sprint(2*keptAnswers/sites/4 - 1))
	if diff := cmp.Diff([]uint32{1, 2, 3, 4}, numbers(r.of(last))); diff != "" || r.of("0") != nil {
		t.Errorf("of the last job (-want +kept):\n%s\nof the first one %v", diff, r.of("0"))
	}
}

// TestLargeJobsAreLookedAtLessOften pauses by the number of tasks, which a look copies.
func TestLargeJobsAreLookedAtLessOften(t *testing.T) {
	t.Parallel()
	var r rounds
	now := time.Unix(1000, 0)
	if !r.isDue("large", now) {
		t.Error("a first round is not looked at")
	}
	r.add(answered("large", 1, 1, 10_000), now)
	r.add(answered("small", 1, 1, 10), now)
	for after, want := range map[time.Duration][2]bool{
		999 * time.Microsecond: {false, false},
		time.Millisecond:       {false, true},
		999 * time.Millisecond: {false, true},
		time.Second:            {true, true},
	} {
		got := [2]bool{r.isDue("large", now.Add(after)), r.isDue("small", now.Add(after))}
		if got != want {
			t.Errorf("after %s a large and a small job are due: %v, want %v", after, got, want)
		}
	}
}

// TestARoundBeginsWithItsReport holds the name of the report against the submitter's machine: by it
// the rounds are noticed.
func TestARoundBeginsWithItsReport(t *testing.T) {
	t.Parallel()
	m, now := broker.New(broker.Default("here")), time.Unix(1000, 0)
	spec := grid.Spec{
		Kind: grid.KindWasm, Module: grid.Input{CID: "m", Bytes: 1}, Runtime: time.Minute,
		Need: grid.Resources{MilliCPUs: 1000}, Weights: grid.DefaultWeights(),
	}
	var asked []grid.JobID
	for _, in := range []step.Input{
		step.Boot{Incarnation: 1, Nonce: 1},
		step.Submit{Command: 1, Job: grid.Job{Spec: spec, Count: 1, TTL: time.Second}},
	} {
		for _, e := range m.Step(now, in) {
			if r, is := e.(step.Report); is && r.Event == eventAsked {
				asked = append(asked, r.Attempt.Task.Job)
			}
		}
	}
	if jobs := m.Jobs(); len(jobs) != 1 || len(asked) != 1 || asked[0] != jobs[0] {
		t.Errorf("of the jobs %v the machine reports that rounds of %v begin", jobs, asked)
	}
}
