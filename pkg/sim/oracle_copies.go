package sim

import (
	"fmt"
	"slices"

	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// judgeVotes wants the right results where several sites were to agree, and no site outvoted that
// gives no other ones.
func (o *Oracle) judgeVotes(w *World, j *judged, s broker.JobState) []Finding {
	var findings []Finding
	add := func(flaw Flaw, site grid.SiteID, format string, args ...any) {
		findings = append(findings, Finding{flaw, site, j.Job, fmt.Sprintf(format, args...)})
	}
	for _, t := range s.Tasks {
		right := outputCID(t.ID)
		isRight := func(out grid.Produced) bool { return out.CID == right }
		if t.Phase == grid.PhaseDone && s.Job.Redundancy.Agreement > 1 &&
			!slices.ContainsFunc(t.Exit.Outputs, isRight) {
			add(flawWrong, j.Site, "task %s has a wrong result", t.ID)
		}
		for _, c := range t.Copies {
			if c.Vote == broker.VoteOutvoted && w.hosts[c.Site].errs == 0 {
				add(flawAccused, c.Site, "copy %d of task %s was outvoted", c.Number, t.ID)
			}
		}
	}
	return findings
}
