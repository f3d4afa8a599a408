package backend

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// nameDomains names the neighbours that tasks are at, or were, also of jobs that only the history
// knows.
func (b *Backend) nameDomains(tasks []broker.TaskState) {
	known := b.agent.NeighbourNames()
	for i, t := range tasks {
		if t.Domain == "" {
			tasks[i].Domain = known[t.Site]
		}
		for k, try := range t.Tries {
			if try.Domain == "" {
				t.Tries[k].Domain = known[try.Site]
			}
		}
	}
}

// Neighbours lists the linked domains that this agent's jobs may run in, by name, with how its
// newest jobs used them.
func (b *Backend) Neighbours(ctx context.Context) ([]view.NeighbourRow, error) {
	rows := make(map[grid.SiteID]*view.NeighbourRow)
	var list []*view.NeighbourRow
	for domain, name := range b.agent.NeighbourNames() {
		rows[domain] = &view.NeighbourRow{
			Name: name, Domain: domain, Reachable: b.agent.Reaches(domain),
		}
		list = append(list, rows[domain])
	}
	if len(list) == 0 {
		return nil, nil
	}
	jobs, err := b.Jobs(ctx, view.JobQuery{Limit: view.NeighbourJobs})
	if err != nil {
		return nil, err
	}
	for _, v := range jobs {
		job, _, err := b.findJob(ctx, v.ID)
		if errors.Is(err, view.ErrNotFound) {
			continue // it was forgotten meanwhile
		}
		if err != nil {
			return nil, err
		}
		count(rows, job)
	}
	slices.SortFunc(list, func(x, y *view.NeighbourRow) int {
		return strings.Compare(string(x.Name)+string(x.Domain), string(y.Name)+string(y.Domain))
	})
	all := make([]view.NeighbourRow, 0, len(list))
	for _, row := range list {
		all = append(all, *row)
	}
	return all, nil
}

// count adds how a job used each neighbour.
func count(rows map[grid.SiteID]*view.NeighbourRow, job broker.JobState) {
	seen := make(map[grid.SiteID]bool)
	for _, t := range job.Tasks {
		row := rows[t.Site]
		if row == nil || t.Phase < grid.PhaseAwarded {
			continue
		}
		if !seen[t.Site] {
			row.Jobs++
		}
		seen[t.Site] = true
		row.Tasks++
		if t.Phase == grid.PhaseDone {
			row.Done++
		}
	}
}
