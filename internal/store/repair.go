package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/mrsmesh/mrsmesh/internal/durable"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// ErrFactsGone says that the facts are missing although the agent lived here before.
var ErrFactsGone = errors.New("the facts of an earlier life are gone")

var errInOrder = errors.New("facts.db is in order: there is nothing to repair")

// remedy follows what is wrong with the facts.
const remedy = "restore the file from a backup, or rebuild it from the journal with " +
	"siteagent repair --facts-from-journal; siteagent repair --start-as-new gives up all that " +
	"the site has promised and its jobs"

// checkEarlierLife refuses to begin anew where an agent lived before: it would promise again
// what it has promised, and hand out tokens that it has handed out.
func (s *Store) checkEarlierLife() error {
	path := filepath.Join(s.dir, factsFile)
	info, err := os.Stat(path)
	what := "is missing"
	switch {
	case err == nil && info.Size() > 0:
		return nil
	case err == nil:
		what = "is empty"
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("open state: %w", err)
	}
	names, err := segmentNames(s.dir)
	if err != nil {
		return err
	}
	sign := ""
	if len(names) > 0 {
		sign = names[0].path
	}
	for _, name := range s.options.Signs {
		if info, err := os.Stat(filepath.Join(s.dir, name)); err == nil && info.Size() > 0 {
			sign = filepath.Join(s.dir, name)
		}
	}
	if sign == "" {
		return nil
	}
	return fmt.Errorf("%w: %s %s, but there is %s; %s", ErrFactsGone, path, what, sign, remedy)
}

// Rebuilt says what a repair found.
type Rebuilt struct {
	Incarnation uint64            // the newest start that is known
	Facts       map[string]int    // rows by machine
	Inexact     map[string]string // machines whose facts of the last moments may be missing, and why
	Aside       string            // where the file that was there is now; empty = there was none
}

// RebuildFacts makes a new facts.db from the journals. Where build wrote them, newMachine
// makes a machine as for Replay, and its inputs give all it wanted to be remembered;
// otherwise the journal's own copy of the facts is taken, which lacks those of the last
// Options.FlushEvery before the agent ended. The agent must not run.
func RebuildFacts(
	dir, build string, newMachine func(Header) (step.Machine, error),
) (Rebuilt, error) {
	runs, err := Runs(dir)
	if err != nil {
		return Rebuilt{}, fmt.Errorf("rebuild facts: %w", err)
	}
	if len(runs) == 0 {
		return Rebuilt{}, fmt.Errorf("rebuild facts: %s holds no journal; %s", dir, remedy)
	}
	found := Rebuilt{Facts: make(map[string]int), Inexact: make(map[string]string)}
	last := make(map[string]Run)
	for _, run := range runs { // ascending
		last[run.Machine] = run
		found.Incarnation = max(found.Incarnation, run.Incarnation)
	}
	var all []change
	for machine, run := range last {
		table, inexact, failed := run.wantedFacts(build, newMachine)
		if failed != nil {
			return Rebuilt{}, fmt.Errorf("rebuild facts of %s: %w; %s", machine, failed, remedy)
		}
		if inexact != nil {
			found.Inexact[machine] = inexact.Error()
		}
		all = append(all, change{machine: machine, facts: table.All()})
		found.Facts[machine] = len(table.All())
	}
	found.Aside, err = writeNew(dir, found.Incarnation, all)
	return found, err
}

// wantedFacts are all facts that the machine wanted by the end of the run, or those that the
// journal knows and why they may not be all.
func (r Run) wantedFacts(
	build string, newMachine func(Header) (step.Machine, error),
) (table *step.Facts, inexact, err error) {
	if r.Build != build {
		inexact = fmt.Errorf("build %s wrote the journal, this is %s", r.Build, build)
	} else if table, inexact = r.replayFacts(newMachine); inexact == nil {
		return table, nil, nil
	}
	table, err = r.finalFacts()
	return table, inexact, err
}

func (r Run) replayFacts(newMachine func(Header) (step.Machine, error)) (*step.Facts, error) {
	table := step.NewFacts()
	facts, err := step.DecodeFacts(r.Facts)
	if err != nil {
		return nil, err
	}
	for _, f := range facts {
		table.Apply(f)
	}
	result, err := Replay(r, newMachine, func(_ Entry, effects []step.Effect) {
		for _, e := range effects {
			if p, ok := e.(step.Persist); ok {
				table.Apply(p.Fact)
			}
		}
	})
	if err == nil && result.Divergence != nil {
		err = errors.New(result.Divergence.String())
	}
	return table, err
}

// StartAsNew makes a facts.db without facts, where all that was promised is to be given up.
// The number of the next start is higher than any before, also where no journal tells them:
// then it is the time in seconds. The agent must not run.
func StartAsNew(dir string, now time.Time) (Rebuilt, error) {
	found := Rebuilt{Incarnation: uint64(max(now.Unix(), 0))}
	runs, err := Runs(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Rebuilt{}, fmt.Errorf("start as new: %w", err)
	}
	for i, run := range runs {
		if i == 0 {
			found.Incarnation = 0
		}
		found.Incarnation = max(found.Incarnation, run.Incarnation)
	}
	found.Aside, err = writeNew(dir, found.Incarnation, nil)
	return found, err
}

// writeNew puts a file of facts in place, and what was there aside.
func writeNew(dir string, incarnation uint64, all []change) (aside string, err error) {
	path := filepath.Join(dir, factsFile)
	if err = notInOrder(path); err != nil {
		return "", err
	}
	fresh := path + ".new"
	if err = os.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("write facts: %w", err)
	}
	db, err := openDB(fresh, false)
	if err != nil {
		return "", fmt.Errorf("write facts: %w", err)
	}
	s := &Store{dir: dir, db: db, incarnation: incarnation}
	err = db.Update(func(tx *bolt.Tx) error {
		if err = s.writeMeta(tx, formatAlone); err != nil {
			return err
		}
		for _, c := range all {
			if err = c.write(tx); err != nil {
				return err
			}
		}
		return nil
	})
	if err = errors.Join(err, db.Close()); err != nil {
		return "", fmt.Errorf("write facts: %w", err)
	}
	if _, err := os.Stat(path); err == nil {
		aside = path + ".damaged"
		if err := os.Rename(path, aside); err != nil {
			return "", fmt.Errorf("write facts: %w", err)
		}
	}
	if err := os.Rename(fresh, path); err != nil {
		return aside, fmt.Errorf("write facts: %w", err)
	}
	return aside, durable.SyncDir(dir)
}

// notInOrder refuses to replace facts that can be read, or that an agent uses.
func notInOrder(path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at facts: %w", err)
	}
	db, err := openDB(path, true)
	switch {
	case errors.Is(err, ErrCorrupt):
		return nil
	case err != nil:
		return err
	}
	look := func(tx *bolt.Tx) error {
		_, wrong := unsettled(tx, filepath.Dir(path))
		return errors.Join(walk(tx), wrong)
	}
	err = errors.Join(guard(path, func() error { return db.View(look) }), db.Close())
	if errors.Is(err, ErrCorrupt) {
		return nil
	}
	return errors.Join(err, errInOrder)
}
