package plan_test

import (
	"fmt"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/plan"
)

// A site with four cores quotes a place, holds it with a firm offer, and commits it when
// the award comes.
func Example() {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	p := plan.New(plan.Config{Total: grid.Resources{MilliCPUs: 4_000}})

	ask := func(job grid.JobID, cores int64, run time.Duration) plan.Ask {
		return plan.Ask{
			Submitter: "alice", Job: job, Need: grid.Resources{MilliCPUs: 1_000 * cores},
			Class: plan.ClassVarTime, Count: 1,
			Rate: func(grid.Resources) (int64, time.Duration) { return 0, run },
		}
	}
	for i, a := range []plan.Ask{
		ask("long", 3, time.Hour),
		ask("wide", 4, 30*time.Minute),
		ask("small", 1, 20*time.Minute),
	} {
		quote, _ := p.Quote(noon, a)
		offer, err := p.Open(noon, a, quote, true, time.Minute)
		if err != nil {
			fmt.Println(err)
			return
		}
		attempt := grid.AttemptID{Task: grid.TaskID{Job: a.Job}, Token: 1}
		err = p.Commit(noon, plan.Commitment{
			Attempt: attempt, Submitter: a.Submitter, Class: a.Class,
			Give: quote.Give, Start: quote.Start, End: quote.End,
		}, offer.Number)
		fmt.Println(i+1, a.Job, quote.Start.Format("15:04"), "to", quote.End.Format("15:04"), err)
	}
	// The small job fills the gap beside the long one: it delays nobody.

	// The long job ends early, and the wide one moves up behind the small one.
	p.Advance(noon)
	p.Release(grid.AttemptID{Task: grid.TaskID{Job: "long"}, Token: 1})
	for _, c := range p.Advance(noon.Add(10 * time.Minute)).Moved {
		fmt.Println(c.Attempt.Task.Job, "now starts at", c.Start.Format("15:04"))
	}
	// Output:
	// 1 long 12:00 to 13:00 <nil>
	// 2 wide 13:00 to 13:30 <nil>
	// 3 small 12:00 to 12:20 <nil>
	// wide now starts at 12:20
}
