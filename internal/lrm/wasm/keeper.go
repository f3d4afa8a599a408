package wasm

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"os"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// When a keeper looks whether a state is wanted, and when again after it could save none. These
// times are the host's: the guest learns nothing of them.
const (
	lookEvery  = 100 * time.Millisecond
	firstAgain = time.Second
	mostAgain  = 5 * time.Second
)

// keeper saves the states of a stepper, between two steps, when they are wanted.
type keeper struct {
	s     *stepper
	next  time.Time     // when to look again
	wish  fs.FileInfo   // the last one that was seen
	saved bool          // a state was saved for it
	again time.Time     // when to try once more to save one for it
	pause time.Duration // until that
	told  string        // why none was saved
}

func newKeeper(s *stepper) *keeper { return &keeper{s: s} }

// look saves a state if one is wanted. It is called before each step, so it looks at a clock and,
// once in a while, at a file.
func (k *keeper) look() {
	if k.due() {
		k.keep()
	}
}

// due reports whether a state is to be saved now.
func (k *keeper) due() bool {
	now := time.Now()
	if !k.s.guest.work.Saves || now.Before(k.next) {
		return false
	}
	k.next = now.Add(lookEvery)
	wish := k.s.states.Asked()
	switch {
	case wish == nil:
		return false
	case !lrm.SameState(wish, k.wish):
		k.wish, k.pause, k.told = wish, 0, ""
		return true
	default: // one that was saved may have been removed again, for want of space
		there := k.saved && k.s.guest.jail.quota.saved > 0
		return !there && !now.Before(k.again)
	}
}

// keep saves a state, and says why if it cannot.
func (k *keeper) keep() {
	problem := k.save()
	if k.saved = problem == ""; !k.saved && problem != k.told {
		_ = k.s.states.Explain(problem)
		k.told = problem
	}
	k.pause = min(max(2*k.pause, firstAgain), mostAgain)
	k.again = time.Now().Add(k.pause)
}

// save saves a state, or says why it does not.
func (k *keeper) save() (problem string) {
	s := k.s
	if s.problem != "" {
		return s.problem
	}
	if j := s.guest.jail; j.handles > 0 || j.root == rootClosed {
		return "the program has files or directories open between two steps, or has closed its root"
	}
	if s.stdout.over || s.stderr.over {
		return "the program has printed too much"
	}
	d, err := s.describe()
	if err != nil {
		return err.Error()
	}
	text, err := json.Marshal(d)
	if err != nil {
		return err.Error()
	}
	if len(text) > maxDescription {
		return fmt.Sprintf("the program has too many files, %d", len(d.Files))
	}
	need := occupied(s.memory()) + d.size() - int64(d.Pages)*pageBytes + int64(len(text))
	if problem = s.makeSpace(need); problem != "" {
		return problem
	}
	err = s.states.Put(s.percent, func(f *os.File) error { return s.writeState(f, d, text) })
	if err != nil {
		return err.Error()
	}
	s.guest.jail.quota.saved = need
	return ""
}

// makeSpace looks whether the task's disk has space for a state beside the one before, or in its
// place.
func (s *stepper) makeSpace(need int64) (problem string) {
	q := s.guest.jail.quota
	if need <= q.limit-q.used-q.saved {
		return ""
	}
	if need > q.limit-q.used {
		return fmt.Sprintf("the task's disk of %s has no space for its state of %s",
			grid.FormatBytes(q.limit), grid.FormatBytes(need))
	}
	if q.saved > 0 {
		q.saved = 0
		q.shed()
	}
	return ""
}

// describe says what a state of now holds.
func (s *stepper) describe() (d description, err error) {
	jail := s.guest.jail
	d = description{
		Module: s.program.digest, Steps: s.steps, Pages: s.pages(), Clock: jail.clock.now,
		Stdout: int64(len(s.stdout.text)), Stderr: int64(len(s.stderr.text)),
		Entries: jail.quota.entries, Globals: make([]uint64, 0, len(s.program.globals)),
	}
	for _, g := range s.program.globals {
		value := s.instance.ExportedGlobal(g.name).Get()
		if !g.wide() {
			value &= math.MaxUint32
		}
		d.Globals = append(d.Globals, value)
	}
	if d.Random, err = s.guest.random.MarshalBinary(); err != nil {
		return d, fmt.Errorf("save random numbers: %w", err)
	}
	if d.Files, err = jail.files(); err != nil {
		return d, fmt.Errorf("list files: %w", err)
	}
	return d, nil
}

// writeState writes the parts in their order.
func (s *stepper) writeState(f *os.File, d description, text []byte) error {
	w := &stateWriter{file: f}
	if err := w.put(s.memory()); err != nil {
		return err
	}
	for _, file := range d.Files {
		if file.Dir {
			continue
		}
		from, err := s.guest.jail.scratch.Open(string(file.Path))
		if err != nil {
			return err
		}
		err = w.copy(from, file.Bytes)
		from.Close()
		if err != nil {
			return err
		}
	}
	for _, stream := range []*printed{s.stdout, s.stderr} {
		if err := w.put(stream.text); err != nil {
			return err
		}
	}
	return w.end(text)
}
