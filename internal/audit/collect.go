package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/data"
	"github.com/mrsmesh/mrsmesh/internal/store"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// Source names the directories in which one site recorded what it did.
type Source struct {
	Site      string // the site's name or ID, for people
	StateDir  string // its state directory; nothing in it is changed
	RunRecord string // the file its supervisors write; empty, or missing, if nothing ran
	// Ends lists when its agent died, ascending, and the present if it lives; empty: as its
	// journals tell.
	Ends []time.Time
}

// Collect reads what all sites wrote. Agents may be running, or have been
// killed. A journal that is damaged is left out with a note; facts that cannot
// be read are an error, because without them nothing can be said.
func Collect(sources []Source) (Records, error) {
	var records Records
	files := make([][]runRecord, len(sources))
	lives, ends := make([][]life, len(sources)), make([]map[grid.AttemptID]time.Time, len(sources))
	for i, src := range sources {
		var err error
		if lives[i], ends[i], err = records.addState(src); err != nil {
			return Records{}, fmt.Errorf("audit %s: %w", src.Site, err)
		}
		if len(src.Ends) > 0 {
			lives[i] = livesUntil(src.Ends)
		}
		if src.RunRecord == "" {
			continue
		}
		if files[i], err = readRunRecord(src.RunRecord); err != nil {
			return Records{}, fmt.Errorf("audit %s: %w", src.Site, err)
		}
	}
	boot := oneBoot(files)
	for i, src := range sources {
		reader := runReader{
			site: src.Site, boot: boot, lives: lives[i], ends: ends[i],
			runs: make(map[grid.AttemptID]*openRun),
		}
		records.Runs = append(records.Runs, reader.read(files[i])...)
	}
	return records, nil
}

// addState reads a state directory and returns when its agent lived, and when attempts ended as far
// as it heard of that.
func (r *Records) addState(src Source) ([]life, map[grid.AttemptID]time.Time, error) {
	h := newHistory()
	runs, err := store.Runs(src.StateDir)
	if err != nil {
		return nil, nil, err
	}
	spans := make(map[uint64]life)
	for _, run := range runs {
		err = h.addRun(run)
		if err == nil {
			err = stretch(spans, run)
		}
		if errors.Is(err, store.ErrCorrupt) {
			r.Notes = append(r.Notes, fmt.Sprintf("%s: %v", src.Site, err))
		} else if err != nil {
			return nil, nil, err
		}
	}
	final, err := store.ReadFacts(src.StateDir)
	if err != nil {
		return nil, nil, err
	}
	var all []step.Fact
	for _, facts := range final {
		all = append(all, facts...)
	}
	if err := h.settle(all); err != nil {
		return nil, nil, err
	}
	lives := slices.SortedFunc(maps.Values(spans), func(a, b life) int {
		return a.from.Compare(b.from)
	})
	for _, s := range h.jobs {
		if len(lives) > 0 {
			s.Seen = lives[len(lives)-1].to
		}
		r.Submissions = append(r.Submissions, s)
	}
	return lives, h.ends, r.addTasks(h, src.StateDir)
}

// addTasks adds a submitter's tasks, and looks whether it has the results of those that are
// done. A copy of its journals alone has no data to look at.
func (r *Records) addTasks(h history, stateDir string) error {
	dir := filepath.Join(stateDir, dataDir)
	_, err := os.Stat(dir)
	whole := !errors.Is(err, fs.ErrNotExist)
	holds, err := data.HeldBelow(dir)
	if err != nil {
		return err
	}
	for id, t := range h.tasks {
		if whole && h.jobs[id.Job].Held {
			for _, c := range h.outputs[id] {
				if holds(c) {
					t.Found = append(t.Found, c)
				} else {
					t.Missing = append(t.Missing, c)
				}
			}
		}
		r.Tasks = append(r.Tasks, t)
	}
	return nil
}

// dataDir is the data room's directory in a state directory.
const dataDir = "data"

// stretch makes the life of the run's start as long as the run, whichever
// machine's it is.
func stretch(spans map[uint64]life, run store.Run) error {
	first, last, err := run.Times()
	if err != nil || first.IsZero() {
		return err
	}
	l, known := spans[run.Incarnation]
	if !known || first.Before(l.from) {
		l.from = first
	}
	if last.After(l.to) {
		l.to = last
	}
	spans[run.Incarnation] = l
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
