package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mrsmesh/mrsmesh/internal/audit"
	"github.com/mrsmesh/mrsmesh/internal/localmesh"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// result is the outcome.
type result struct {
	reserved, kept int // reservations
	held, remapped int // of them: by the site that was killed, and elsewhere before their start
	done, nextDoor int // tasks, and of them those that ran in the other domain
	receipts       receipts
	audit          audit.Report // of all sites of both domains
	twice          []grid.TaskID
	leaks          []leak
	unseen         []string // that the search should have found at their own domain
}

// receipts are what each domain says was given and taken, in core-seconds.
type receipts struct{ labGave, labTook, campusGave, campusTook float64 }

// agree reports whether both say the same.
func (r receipts) agree() bool { return r.labTook == r.campusGave && r.labGave == r.campusTook }

// String says it for both sides.
func (r receipts) String() string {
	return fmt.Sprintf("domain %s has taken %.1f core-seconds and given %.1f; "+
		"domain %s has given %.1f and taken %.1f",
		labName, r.labTook, r.labGave, campusName, r.campusGave, r.campusTook)
}

// inspect asks the records of all eight sites what became of the work, and looks for leaks in them.
func (s *story) inspect(looks []look) error {
	var sources []audit.Source
	for _, a := range slices.Concat(s.lab.Agents, s.campus.Agents) {
		sources = append(sources, audit.Source{
			Site: a.Name, StateDir: a.Config.StateDir, RunRecord: a.RunRecord(),
			Ends: append(slices.Clone(a.Deaths), a.Ended),
		})
	}
	records, err := audit.Collect(sources)
	if err != nil {
		return err
	}
	r := &s.result
	r.held, r.audit = len(s.there), audit.Audit(records)
	r.twice = twice(s.overflow, records.Runs)
	for _, l := range looks {
		found, err := l.leaks()
		if err != nil {
			return err
		}
		unseen, err := l.unseen()
		if err != nil {
			return err
		}
		r.leaks, r.unseen = append(r.leaks, found...), append(r.unseen, unseen...)
	}
	if s.out.Verbose() || !r.audit.Clean() {
		if err := r.audit.Write(s.out.Rows()); err != nil {
			return err
		}
	}
	for _, l := range r.leaks {
		s.out.Say("leaked: %s", l)
	}
	return nil
}

// twice are the tasks that ran at a site of the first domain while they ran in the other one, where
// the audit knows them by other names. A run that never ended counts to the end.
func twice(tasks []view.TaskView, runs []audit.Run) (doubled []grid.TaskID) {
	for _, t := range tasks {
		for _, at := range t.Attempts {
			if at.SiteName != "domain "+campusName || at.Started.IsZero() {
				continue
			}
			for _, run := range runs {
				if run.Attempt.Task.String() == t.ID && run.Began.Before(at.Ended.Time) &&
					at.Started.Before(run.Ended) {
					doubled = append(doubled, run.Attempt.Task)
				}
			}
		}
	}
	return slices.CompactFunc(doubled, func(a, b grid.TaskID) bool { return a == b })
}

// verdict is the last line. Anything but a full success is an error.
func (r result) verdict(out *localmesh.Screen) error {
	lost, doubled := len(r.audit.Lost), len(r.audit.Doubled)+len(r.twice)
	line := fmt.Sprintf("%d reservations kept, %d of them remapped before their start, "+
		"%d tasks ran next door, %d lost, %d doubled, %d names leaked",
		r.kept, r.remapped, r.nextDoor, lost, doubled, len(r.leaks))
	var wrong []string
	for _, check := range []struct {
		wrong bool
		what  string
	}{
		{r.reserved == 0 || r.kept != r.reserved, fmt.Sprintf("%d were reserved", r.reserved)},
		{r.held == 0 || r.remapped != r.held, fmt.Sprintf("the killed site held %d", r.held)},
		{r.done != tasks, fmt.Sprintf("%d of %d tasks are done", r.done, tasks)},
		{r.nextDoor == 0, "nothing ran next door"},
		{r.receipts.labTook == 0 || !r.receipts.agree(), "the receipts do not tell of it"},
		{!r.audit.Clean() || doubled > 0, "the audit is not clean"},
		{len(r.leaks) > 0, "the domains see into each other"},
		{len(r.unseen) > 0, "the search is blind to " + strings.Join(r.unseen, ", ")},
	} {
		if check.wrong {
			wrong = append(wrong, check.what)
		}
	}
	if len(wrong) > 0 {
		return errors.New(line + ": " + strings.Join(wrong, ", ") +
			"; run it again with -keep and look at the logs")
	}
	out.Final("twodomains: " + line)
	return nil
}
