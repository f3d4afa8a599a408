package backend

import (
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// A neighbour's row counts the tasks that are there or ended there, and each job once.
func TestCountOfNeighbours(t *testing.T) {
	const campus, member = grid.SiteID("campus"), grid.SiteID("member")
	at := func(site grid.SiteID, phase grid.Phase) broker.TaskState {
		return broker.TaskState{Site: site, Phase: phase}
	}
	rows := map[grid.SiteID]*view.NeighbourRow{campus: {Name: "campus"}}
	for _, tasks := range [][]broker.TaskState{
		{at(campus, grid.PhaseDone), at(campus, grid.PhaseRunning), at(member, grid.PhaseDone)},
		{at(member, grid.PhaseDone), at(campus, grid.PhaseWaiting)}, // its attempt there is over
		{at(campus, grid.PhaseDone)},
	} {
		count(rows, broker.JobState{Tasks: tasks})
	}
	want := view.NeighbourRow{Name: "campus", Jobs: 2, Tasks: 3, Done: 2}
	if got := *rows[campus]; got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// A task says at which linked domain it is, its job for which one it runs here, and the offers what
// each domain has answered.
func TestViewsNameDomains(t *testing.T) {
	job := broker.JobState{
		Job:    grid.Job{Count: 1},
		Abroad: "own domain: full; domain campus: .41", Ordered: step.Ordered{Name: "lab"},
		Tasks: []broker.TaskState{{
			Site: "far", Domain: "campus", Phase: grid.PhaseRunning,
			Tries: []broker.Try{{Site: "far", Domain: "campus", Token: 1}, {Site: "here", Token: 2}},
		}},
	}
	v := taskView(job, job.Tasks[0], names{"far": "domain campus"})
	if v.Domain != "campus" {
		t.Errorf("the task is at domain %q, want campus", v.Domain)
	}
	if at := v.Attempts; at[0].Domain != "campus" || at[1].Domain != "" {
		t.Errorf("attempts at %q and %q, want campus and here", at[0].Domain, at[1].Domain)
	}
	if v := jobView(job); v.For != "lab" {
		t.Errorf("the job is for domain %q, want lab", v.For)
	}
	got := offerTable(job, nil, nil, job.Submitted).Domains
	if len(got) != 2 || got[0] != "own domain: full" || got[1] != "domain campus: .41" {
		t.Errorf("answers by domain: %q", got)
	}
}
