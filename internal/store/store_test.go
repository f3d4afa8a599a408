package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	bolt "go.etcd.io/bbolt"
	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/step"
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func open(tb testing.TB, dir string) *Store {
	tb.Helper()
	s, err := Open(dir, quiet())
	if err != nil {
		tb.Fatalf("Open: %v", err)
	}
	tb.Cleanup(func() { closed(tb, s) })
	return s
}

func closed(tb testing.TB, s *Store) {
	tb.Helper()
	if err := s.Close(); err != nil {
		tb.Errorf("Close: %v", err)
	}
}

func TestIncarnationGrowsWithEveryStart(t *testing.T) {
	dir := t.TempDir()
	for want := uint64(1); want <= 3; want++ {
		s := open(t, dir)
		if got := s.Incarnation(); got != want {
			t.Errorf("incarnation = %d, want %d", got, want)
		}
		closed(t, s)
	}
}

func TestASecondOpenerIsTurnedAway(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	_, err := Open(dir, quiet())
	if !errors.Is(err, ErrLocked) || !strings.Contains(fmt.Sprint(err), dir) {
		t.Errorf("second Open = %v, want %v with the directory's name", err, ErrLocked)
	}
	closed(t, s)
	if s := open(t, dir); s.Incarnation() != 2 {
		t.Errorf("incarnation = %d after one start and one refusal, want 2", s.Incarnation())
	}
}

func TestOthersCannotReadTheState(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	s := open(t, dir)
	if _, err := s.Begin(Header{Machine: "site"}); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// The twin is step.Facts.
func TestFactsSurviveRestarts(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir := t.TempDir()
		twins := map[string]*step.Facts{"site": step.NewFacts(), "broker": step.NewFacts()}
		s := open(t, dir)
		s.db.NoSync = true // this test pulls no plug
		for range rapid.IntRange(1, 4).Draw(rt, "batches") {
			for machine, twin := range twins {
				facts := drawFacts(rt)
				if err := s.Apply(machine, facts); err != nil {
					rt.Fatal(err)
				}
				for _, f := range facts {
					twin.Apply(f)
				}
			}
			switch rapid.IntRange(0, 3).Draw(rt, "restart") {
			case 0:
				closed(t, s)
				s = open(t, dir)
			case 1:
				killed(t, s)
				s = open(t, dir)
			}
		}
		for machine, twin := range twins {
			got, err := s.Load(machine)
			if err != nil {
				rt.Fatal(err)
			}
			if !bytes.Equal(step.EncodeFacts(got), twin.Encode()) {
				rt.Fatalf("%s: facts are %s, want %s", machine, step.EncodeFacts(got), twin.Encode())
			}
		}
		closed(t, s)
	})
}

func drawFacts(t *rapid.T) []step.Fact {
	var facts []step.Fact
	for range rapid.IntRange(0, 4).Draw(t, "facts") {
		kind := rapid.SampledFrom([]string{"job/1", "task/1"}).Draw(t, "kind")
		key := rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "key")
		f := step.Fact{Kind: kind, Key: key}
		if rapid.Bool().Draw(t, "put") {
			f = step.NewFact(kind, key, rapid.Int().Draw(t, "value"))
		}
		facts = append(facts, f)
	}
	return facts
}

func TestABatchIsAllOrNothing(t *testing.T) {
	s := open(t, t.TempDir())
	good := step.NewFact("job/1", "a", 1)
	tooLong := step.NewFact("job/1", strings.Repeat("x", bolt.MaxKeySize), 1)
	err := s.Apply("site", []step.Fact{good, tooLong})
	if err == nil {
		t.Fatal("a key that is too long was taken")
	}
	if facts, err := s.Load("site"); err != nil || len(facts) != 0 {
		t.Errorf("after a failed batch: %v, %v", facts, err)
	}
}

func TestADamagedFileIsNamedWithARemedy(t *testing.T) {
	filled := func(t *testing.T) (dir, path string) {
		t.Helper()
		dir = t.TempDir()
		s := open(t, dir)
		var facts []step.Fact
		for i := range 2000 {
			facts = append(facts, step.NewFact("job/1", fmt.Sprint(i), strings.Repeat("v", 100)))
		}
		if err := s.Apply("site", facts); err != nil {
			t.Fatal(err)
		}
		closed(t, s)
		return dir, filepath.Join(dir, factsFile)
	}
	damages := map[string]func(path string, raw []byte) error{
		"no database": func(path string, raw []byte) error {
			return os.WriteFile(path, bytes.Repeat([]byte("x"), len(raw)), 0o600)
		},
		"truncated": func(path string, raw []byte) error { return os.Truncate(path, int64(len(raw)/2)) },
		"cut short": func(path string, _ []byte) error { return os.Truncate(path, 100) },
		"pages overwritten": func(path string, raw []byte) error {
			return os.WriteFile(path, append(raw[:2*os.Getpagesize():2*os.Getpagesize()], bytes.Repeat(
				[]byte{0xee}, len(raw)-2*os.Getpagesize(),
			)...), 0o600)
		},
	}
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			dir, path := filled(t)
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := damage(path, raw); err != nil {
				t.Fatal(err)
			}
			for what, err := range map[string]error{
				"ReadFacts": second(ReadFacts(dir)), "Open": second(Open(dir, quiet())),
			} {
				if !errors.Is(err, ErrCorrupt) || !strings.Contains(fmt.Sprint(err), path) {
					t.Errorf("%s = %v, want %v with the file's name", what, err, ErrCorrupt)
				}
			}
		})
	}
}

func second[T any](_ T, err error) error { return err }

func TestAnotherFormatIsNotTouched(t *testing.T) {
	dir := t.TempDir()
	closed(t, open(t, dir))
	db, err := bolt.Open(filepath.Join(dir, factsFile), fileMode, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bolt.Tx) error {
		return tx.Bucket(metaBucket).Put(formatKey, []byte("3"))
	})
	if err = errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, quiet()); !errors.Is(err, errFormat) {
		t.Errorf("Open = %v, want %v", err, errFormat)
	}
	if _, err := ReadFacts(dir); !errors.Is(err, errFormat) {
		t.Errorf("ReadFacts = %v, want %v", err, errFormat)
	}
}

func TestFactsCanBeReadWhileTheAgentRuns(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	if err := s.Apply(
		"site", []step.Fact{step.NewFact("job/1", "before", 1), step.NewFact("job/1", "gone", 1)},
	); err != nil {
		t.Fatal(err)
	}
	j, err := s.Begin(Header{Machine: "site", Config: json.RawMessage(`{}`)})
	if err != nil {
		t.Fatal(err)
	}
	facts := []step.Fact{step.NewFact("job/1", "during", 2), {Kind: "job/1", Key: "gone"}}
	if err = errors.Join(s.Apply("site", facts), j.flush()); err != nil {
		t.Fatal(err)
	}
	want := map[string][]step.Fact{
		"site": {step.NewFact("job/1", "before", 1), step.NewFact("job/1", "during", 2)},
	}
	got, err := ReadFacts(dir)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("ReadFacts of a running agent: %v (-want +got):\n%s", err, diff)
	}
	closed(t, s)
	got, err = ReadFacts(dir)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("ReadFacts of a stopped agent: %v (-want +got):\n%s", err, diff)
	}
	if _, err := ReadFacts(t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("ReadFacts of an empty directory = %v", err)
	}
}

// The two sub-benchmarks show what durability costs beyond the disk itself.
func BenchmarkSync(b *testing.B) {
	b.Run("raw", func(b *testing.B) {
		f, err := os.Create(filepath.Join(b.TempDir(), "raw"))
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		for b.Loop() {
			if _, err := f.Write(make([]byte, 1000)); err != nil {
				b.Fatal(err)
			}
			if err := f.Sync(); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, n := range []int{1, 100} {
		b.Run(fmt.Sprintf("apply %d", n), func(b *testing.B) { benchmarkApply(b, n) })
	}
}

func benchmarkApply(b *testing.B, facts int) {
	b.Helper()
	s := open(b, b.TempDir())
	if _, err := s.Begin(Header{Machine: "site"}); err != nil {
		b.Fatal(err)
	}
	batch := make([]step.Fact, facts)
	round := 0
	for b.Loop() {
		for i := range batch {
			batch[i] = step.NewFact("task/1", fmt.Sprint(i), round)
		}
		round++
		if err := s.Apply("site", batch); err != nil {
			b.Fatal(err)
		}
	}
}
