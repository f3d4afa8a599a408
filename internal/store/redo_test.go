package store

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mrsmesh/mrsmesh/pkg/standby"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// killed ends a store as SIGKILL does.
func killed(tb testing.TB, s *Store) {
	tb.Helper()
	s.closed = true
	if err := errors.Join(s.redo.close(), s.db.Close()); err != nil {
		tb.Error(err)
	}
}

// small opens a directory with room for a few changes outside facts.db.
func small(tb testing.TB, dir string) *Store {
	tb.Helper()
	s, err := OpenWith(dir, Options{RedoBytes: 16 * sector}, slog.New(slog.DiscardHandler))
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func counted(n int) []step.Fact { return []step.Fact{step.NewFact("count/1", "", n)} }

// However many changes there are, and whenever the agent is killed, the next start has them all,
// and who reads the directory meanwhile.
func TestAKilledAgentsFactsAreThere(t *testing.T) {
	t.Parallel()
	for n := range 40 {
		dir := t.TempDir()
		s := small(t, dir)
		s.db.NoSync = true // nobody pulls a plug here
		for k := range n {
			must(t, s.Apply("site", counted(k+1)))
			if k%7 == 3 {
				must(t, s.Apply("broker", counted(-k)))
			}
		}
		killed(t, s)
		read, err := ReadFacts(dir)
		s = small(t, dir)
		found, failed := s.Load("site")
		must(t, errors.Join(err, failed))
		if n > 0 && !cmp.Equal(found, counted(n)) || !cmp.Equal(read["site"], found) {
			t.Errorf("after %d changes: %s, read from outside %s", n, found, read["site"])
		}
		if s.Restored() {
			t.Errorf("after %d changes it counts as restored", n)
		}
		closed(t, s)
		read, err = ReadFacts(dir)
		if must(t, err); !cmp.Equal(read["site"], found, cmpopts.EquateEmpty()) {
			t.Errorf("after an orderly end: %s", read["site"])
		}
	}
}

// Whichever of the two files is put back by itself, the site knows that it may have promised more
// than its facts say.
func TestHalfAStateCountsAsRestored(t *testing.T) {
	t.Parallel()
	copied := func(t *testing.T, dir, name string) (back func()) {
		t.Helper()
		path := filepath.Join(dir, name)
		text, err := os.ReadFile(path)
		must(t, err)
		return func() { must(t, os.WriteFile(path, text, fileMode)) }
	}
	for name, spoil := range map[string]func(t *testing.T, dir string, s *Store){
		"the file is gone": func(t *testing.T, dir string, s *Store) {
			must(t, s.Apply("site", counted(1)))
			must(t, os.Remove(filepath.Join(dir, redoFile)))
		},
		"older facts": func(t *testing.T, dir string, s *Store) {
			must(t, s.Apply("site", counted(1)))
			back := copied(t, dir, factsFile)
			for n := range 100 {
				must(t, s.Apply("site", counted(n)))
			}
			back()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := small(t, dir)
			spoil(t, dir, s)
			killed(t, s)
			if _, err := ReadFacts(dir); !errors.Is(err, ErrCorrupt) {
				t.Errorf("who reads it from outside is told %v", err)
			}
			if s = small(t, dir); !s.Restored() {
				t.Error("it is not known to be restored")
			}
			closed(t, s)
		})
	}
	t.Run("after an orderly end no file is needed", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		s := small(t, dir)
		must(t, s.Apply("site", counted(1)))
		closed(t, s)
		must(t, os.Remove(filepath.Join(dir, redoFile)))
		s = small(t, dir)
		found, err := s.Load("site")
		if must(t, err); !cmp.Equal(found, counted(1)) || s.Restored() {
			t.Errorf("%s, %v, restored: %v", found, err, s.Restored())
		}
		closed(t, s)
	})
}

// What was written last may be there in part, which nobody was told of. Damage before it is found.
func TestDamageOfTheLastChanges(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		frame int // from 0
		want  error
	}{"the last one": {frame: 2}, "one before": {frame: 1, want: ErrCorrupt}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := small(t, dir)
			for n := range 3 {
				must(t, s.Apply("site", counted(n+1)))
			}
			_, err := s.redo.file.WriteAt([]byte("x"), int64(c.frame*sector+40))
			must(t, err)
			killed(t, s)
			read, err := ReadFacts(dir)
			if !errors.Is(err, c.want) || err == nil && !cmp.Equal(read["site"], counted(2)) {
				t.Errorf("%s, %v; want %v", read["site"], err, c.want)
			}
			s, err = Open(dir, slog.New(slog.DiscardHandler))
			if !errors.Is(err, c.want) {
				t.Errorf("it opens with %v, want %v", err, c.want)
			}
			if err == nil {
				closed(t, s)
				return
			}
			_, err = StartAsNew(dir, time.Unix(9, 0))
			if s, wrong := Open(dir, slog.New(slog.DiscardHandler)); wrong != nil {
				t.Errorf("it cannot be given up: %v, %v", err, wrong)
			} else {
				closed(t, s)
			}
		})
	}
}

// What facts.db would not take is refused before it is promised.
func TestChangesThatNoTransactionTakes(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	long := step.NewFact("k/1", strings.Repeat("x", 40_000), 1)
	for want, do := range map[string]func() error{
		`machine "": want`:        func() error { return s.Apply("", counted(1)) },
		`machine "a-b": want`:     func() error { return s.Apply("a-b", counted(1)) },
		"the key has 40004 bytes": func() error { return s.Apply("site", []step.Fact{long}) },
		"machine none has no group": func() error {
			return s.SaveMember("none", []standby.Save{{Ballot: &standby.Ballot{Term: 1}}})
		},
	} {
		if err := do(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	closed(t, s)
}

func FuzzRedo(f *testing.F) {
	ballot := standby.Ballot{Term: 3, Vote: 2, Commit: 7}
	at := standby.Position{Index: 8, Term: 3}
	whole := change{machine: "broker", facts: counted(1), saves: []standby.Save{
		{Ballot: &ballot, Entries: []standby.Entry{{Position: at, Kind: 1, Data: []byte("d")}}},
		{
			Applied: at, Base: at, Conf: &standby.Conf{Voters: []standby.MemberID{1, 2}},
			Facts: []step.Fact{
				{Kind: "k/1", Key: "gone"}, {Kind: "k/1", Key: "e", Value: []byte{}},
			},
		},
	}}
	r := redo{run: 5}
	frames := r.frame(whole)
	r.seq++
	f.Add(append(frames, r.frame(change{machine: "site", facts: counted(2)})...))
	f.Add([]byte(nil))
	f.Add(encodeChange(whole))
	f.Fuzz(func(t *testing.T, text []byte) {
		if c, err := decodeChange(text); err == nil {
			text = (&redo{run: 5}).frame(c) // with numbers in their shortest form
		}
		changes, err := readRedo(text, 5, 0)
		if err != nil && !errors.Is(err, ErrCorrupt) {
			t.Fatal(err)
		}
		again := redo{run: 5}
		var written []byte
		for _, c := range changes {
			written = append(written, again.frame(c)...)
			again.seq++
		}
		if err != nil {
			return
		}
		back, err := readRedo(written, 5, 0)
		alike := cmp.Options{cmp.AllowUnexported(change{}), cmpopts.EquateEmpty()}
		if diff := cmp.Diff(changes, back, alike); err != nil || diff != "" {
			t.Errorf("%v (-first +again):\n%s", err, diff)
		}
	})
}
