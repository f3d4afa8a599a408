package store

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// tally is a machine that remembers how often it was told something.
type tally struct{ n byte }

func (c *tally) Step(time.Time, step.Input) []step.Effect {
	c.n++
	return []step.Effect{step.Persist{Fact: step.Fact{Kind: "n/1", Value: []byte{'0' + c.n}}}}
}

func (c *tally) Restore(raw []byte) error {
	facts, err := step.DecodeFacts(raw)
	for _, f := range facts {
		c.n = f.Value[0] - '0'
	}
	return err
}

func (c *tally) Check() error     { return nil }
func (c *tally) Snapshot() []byte { return []byte{c.n} }

func newTally(Header) (step.Machine, error) { return &tally{}, nil }

// lived makes a directory in which a machine counted to three; the facts of the last input
// were never applied, as when the agent is killed just then.
func lived(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	s := open(t, dir)
	j, err := s.Begin(Header{Build: "b1", Machine: "site", Config: json.RawMessage("{}")})
	if err != nil {
		t.Fatal(err)
	}
	m := &tally{}
	for i := range 3 {
		effects := m.Step(time.Time{}, step.OwnerAway{})
		if err := j.Record(time.Unix(int64(i), 0), step.OwnerAway{}, effects); err != nil {
			t.Fatal(err)
		}
		if i < 2 {
			if err := s.Apply("site", []step.Fact{{Kind: "n/1", Value: []byte{'0' + m.n}}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	closed(t, s)
	return dir
}

// A site whose facts are gone does not begin anew in silence.
func TestLostFactsAreNoNewBeginning(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(string) error{
		"missing": os.Remove, "empty": func(path string) error { return os.Truncate(path, 0) },
	} {
		dir := lived(t)
		path := filepath.Join(dir, factsFile)
		if err := lose(path); err != nil {
			t.Fatal(err)
		}
		_, err := Open(dir, quiet())
		if !errors.Is(err, ErrFactsGone) || !strings.Contains(err.Error(), path) ||
			!strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "siteagent repair") {
			t.Errorf("%s: %v, want a refusal with the file and the remedy", name, err)
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "sign"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := OpenWith(dir, Options{Signs: []string{"sign"}}, quiet())
	if !errors.Is(err, ErrFactsGone) {
		t.Errorf("beside the sign of an earlier life: %v", err)
	}
}

// The same build finds by replay what the machine wanted last, another one what the journal
// has; the number of the next start is new in both cases.
func TestFactsFromTheJournal(t *testing.T) {
	t.Parallel()
	for build, want := range map[string]byte{"b1": '3', "b2": '2'} {
		dir := lived(t)
		if err := os.Truncate(filepath.Join(dir, factsFile), 100); err != nil {
			t.Fatal(err)
		}
		found, err := RebuildFacts(dir, build, newTally)
		if err != nil || found.Facts["site"] != 1 || found.Incarnation != 1 {
			t.Fatalf("build %s: %+v, %v", build, found, err)
		}
		if inexact := found.Inexact["site"] != ""; inexact != (build == "b2") {
			t.Errorf("build %s: inexact %t", build, inexact)
		}
		if _, err = os.Stat(found.Aside); err != nil {
			t.Errorf("the damaged file: %v", err)
		}
		s := open(t, dir)
		facts, err := s.Load("site")
		if err != nil || len(facts) != 1 || facts[0].Value[0] != want || s.Incarnation() != 2 {
			t.Errorf("build %s: %v, %v, start %d", build, facts, err, s.Incarnation())
		}
		closed(t, s)
		if _, err := RebuildFacts(dir, build, newTally); !errors.Is(err, errInOrder) {
			t.Errorf("facts in order were replaced: %v", err)
		}
	}
}

// A journal that is damaged in the middle is not half believed.
func TestFactsFromADamagedJournal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := RebuildFacts(dir, "b1", newTally); err == nil {
		t.Error("facts were made from nothing")
	}
	dir = lived(t)
	if err := os.Remove(filepath.Join(dir, factsFile)); err != nil {
		t.Fatal(err)
	}
	names, err := segmentNames(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(names[0].path, appendFrame(nil, 'X'), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := RebuildFacts(dir, "b1", newTally); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a damaged journal: %v", err)
	}
}

// A site that begins anew by order has no facts, and a start that nobody has seen.
func TestStartAsNew(t *testing.T) {
	t.Parallel()
	dir := lived(t)
	if err := os.Remove(filepath.Join(dir, factsFile)); err != nil {
		t.Fatal(err)
	}
	if _, err := StartAsNew(dir, time.Unix(5000, 0)); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir)
	if facts, err := s.Load("site"); err != nil || len(facts) != 0 || s.Incarnation() != 2 {
		t.Errorf("%v, %v, start %d", facts, err, s.Incarnation())
	}
	closed(t, s)
	bare := t.TempDir()
	if found, err := StartAsNew(bare, time.Unix(5000, 0)); err != nil || found.Incarnation != 5000 {
		t.Errorf("without a journal: %+v, %v", found, err)
	}
}
