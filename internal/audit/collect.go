package audit

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/store"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// Source is where one site wrote down what it did.
type Source struct {
	Site      string      // the site's name or ID, for people
	StateDir  string      // its state directory; nothing in it is changed
	RunRecord string      // the file its supervisors write; empty, or missing, if nothing ran
	Ends      []time.Time // when its agent died, ascending; for an agent that lives, the present at last
}

// Collect reads what all sites wrote. Agents may be running, or have been
// killed. A journal that is damaged is left out with a note; facts that cannot
// be read are an error, because without them nothing can be said.
func Collect(sources []Source) (Records, error) {
	var records Records
	files := make([][]runRecord, len(sources))
	for i, src := range sources {
		if err := records.addState(src); err != nil {
			return Records{}, fmt.Errorf("audit %s: %w", src.Site, err)
		}
		if src.RunRecord == "" {
			continue
		}
		var err error
		if files[i], err = readRunRecord(src.RunRecord); err != nil {
			return Records{}, fmt.Errorf("audit %s: %w", src.Site, err)
		}
	}
	boot := oneBoot(files)
	for i, src := range sources {
		reader := runReader{
			site: src.Site, boot: boot, ends: slices.SortedFunc(slices.Values(src.Ends), time.Time.Compare),
			runs: make(map[grid.AttemptID]*openRun),
		}
		records.Runs = append(records.Runs, reader.read(files[i])...)
	}
	return records, nil
}

func (r *Records) addState(src Source) error {
	h := newHistory()
	runs, err := store.Runs(src.StateDir)
	if err != nil {
		return err
	}
	for _, run := range runs {
		err = h.addRun(run)
		if errors.Is(err, store.ErrCorrupt) {
			r.Notes = append(r.Notes, fmt.Sprintf("%s: %v", src.Site, err))
		} else if err != nil {
			return err
		}
	}
	final, err := store.ReadFacts(src.StateDir)
	if err != nil {
		return err
	}
	var all []step.Fact
	for _, facts := range final {
		all = append(all, facts...)
	}
	if err := h.settle(all); err != nil {
		return err
	}
	for _, s := range h.jobs {
		r.Submissions = append(r.Submissions, s)
	}
	for id, phase := range h.tasks {
		r.Tasks = append(r.Tasks, Task{ID: id, Phase: phase})
	}
	return nil
}

func (h history) addRun(run store.Run) error {
	for facts, err := range run.FactChanges() {
		if err != nil {
			return err
		}
		for _, f := range facts {
			if err := h.note(f); err != nil {
				return fmt.Errorf("journal of start %d: %w", run.Incarnation, err)
			}
		}
	}
	return nil
}
