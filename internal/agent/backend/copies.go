package backend

import (
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/broker"
)

// copiesView shows the copies in which a task runs.
func copiesView(t broker.TaskState, n names) []view.CopyView {
	var all []view.CopyView
	for _, c := range t.Copies {
		v := view.CopyView{
			Number: c.Number, ID: c.RunsAs.String(),
			Phase:  phaseOf(broker.TaskState{Phase: c.Phase}),
			Digest: c.Digest, Vote: c.Vote.String(),
		}
		if c.Site != "" {
			v.Site, v.SiteName = c.Site, n[c.Site]
		}
		if c.Vote != broker.VoteNone {
			status := c.Status
			v.Code = &status
		}
		all = append(all, v)
	}
	return all
}
