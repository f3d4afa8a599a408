package data

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ipfs/go-cid"

	"github.com/mrsmesh/mrsmesh/internal/obs"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Every five minutes what is known of links is saved, and what is too old is dropped; the
// end saves it, too.
func TestKeeperSavesLinks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, p := newPlayed(t, nil), somePeer(t)
		done := make(chan struct{})
		go func() { s.keep(); close(done) }()
		saved := func() string {
			synctest.Wait()
			text, err := os.ReadFile(s.links.path)
			if err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			return string(text)
		}
		s.links.measured(p, 12345)
		time.Sleep(linksEvery - 1)
		if text := saved(); text != "" {
			t.Errorf("before five minutes %s is saved", text)
		}
		time.Sleep(time.Nanosecond)
		if text := saved(); !strings.Contains(text, "12345") {
			t.Errorf("after five minutes %s is saved", text)
		}
		time.Sleep(linkKept)
		if text := saved(); strings.Contains(text, "12345") {
			t.Errorf("after a day %s is saved", text)
		}
		s.links.measured(p, 777)
		close(s.stop)
		<-done
		if text := saved(); !strings.Contains(text, "777") {
			t.Errorf("at the end %s is saved", text)
		}
	})
}

// The keeper tells of changes, looks at the roots after damage, and rewrites a log that has
// grown; what fails is in the log of the site.
func TestKeeperDoesWhatIsDue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var told changeLog
		var text bytes.Buffer
		s := newPlayed(t, func(c *Config) {
			c.OnChange, c.Log = told.onChange, slog.New(slog.NewTextHandler(&text, nil))
		})
		go s.keep()
		defer close(s.stop)
		ref := mustAdd(t, s.Store, noise(1, 100))
		if synctest.Wait(); !told.has(ref.CID) {
			t.Error("nobody was told")
		}
		lines := s.log.lines
		s.compact.Store(true)
		s.wakeKeeper()
		s.wakeKeeper() // never waits
		if synctest.Wait(); s.log.lines != 1 || lines == 1 || s.compact.Load() {
			t.Errorf("%d lines, were %d", s.log.lines, lines)
		}
		d := digestFor(t, rootOf(t, ref.CID))
		damage(t, s.Store, d)
		if _, err := s.blocks.get(d); err == nil {
			t.Fatal("it is not damaged")
		}
		if synctest.Wait(); s.Has(ref.CID) || told.has(ref.CID) || s.damage.Load() {
			t.Errorf("after the damage it is held: %t, told: %t", s.Has(ref.CID), told.has(ref.CID))
		}
		if !strings.Contains(text.String(), "damaged block removed") ||
			!strings.Contains(text.String(), "no longer whole") {
			t.Errorf("the log of the site lacks the damage:\n%s", text.String())
		}
		text.Reset()
		if err := s.log.close(); err != nil { // so that closing it once more fails
			t.Fatal(err)
		}
		s.compact.Store(true)
		s.wakeKeeper()
		if synctest.Wait(); !strings.Contains(text.String(), "root index not rewritten") {
			t.Errorf("the log of the site lacks the error:\n%s", text.String())
		}
	})
}

// Links that cannot be saved are in the log of the site.
func TestLinksThatCannotBeSaved(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	s := newPlayed(t, func(c *Config) { c.Log = slog.New(slog.NewTextHandler(&text, nil)) })
	if s.saveLinks(); text.Len() != 0 {
		t.Errorf("nothing is wrong:\n%s", text.String())
	}
	s.links.path = s.cfg.Dir
	s.links.measured(somePeer(t), 100)
	if s.saveLinks(); !strings.Contains(text.String(), "not saved") {
		t.Errorf("the log of the site lacks the error:\n%s", text.String())
	}
}

// A damaged block is counted, noted, and wakes the keeper once.
func TestDamageIsNoted(t *testing.T) {
	t.Parallel()
	c := counters{obs.NewRegistry()}
	s := newPlayed(t, func(cfg *Config) { cfg.Metrics = c.reg })
	for range 2 {
		s.onDamage(digest{1})
	}
	if got := c.of(t, "data_damaged_blocks_total"); got != 2 || !s.damage.Load() || len(s.wake) != 1 {
		t.Errorf("%g are counted, noted %t, woken %d times", got, s.damage.Load(), len(s.wake))
	}
}

// A root of which a block is gone, shorter or, where a power cut may have hit it, another
// one, is held no longer; one that is whole is.
func TestRootsAreChecked(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	s := newPlayed(t, func(c *Config) { c.Log = slog.New(slog.NewTextHandler(&text, nil)) })
	file := func(seed uint64) Ref { return mustAdd(t, s.Store, noise(seed, 2*chunkBytes)) }
	leaf := func(ref Ref) digest { return leavesOf(t, s.Store, ref.CID)[1] }
	whole, gone, other, short := file(1), file(2), file(3), file(4)
	s.checkRoots()
	if got := len(s.Roots()); got != 4 {
		t.Fatalf("%d of four are held", got)
	}
	if err := s.blocks.remove(leaf(gone)); err != nil {
		t.Fatal(err)
	}
	s.blocks.mu.Lock()
	for _, ref := range []Ref{other, whole} {
		s.blocks.unsynced[leafUnlocked(t, s.Store, ref)] = false
	}
	s.blocks.mu.Unlock()
	damage(t, s.Store, leaf(other))
	cut := leaf(short)
	if err := os.Truncate(s.blocks.path(cut), 5); err != nil {
		t.Fatal(err)
	}
	s.blocks.mu.Lock()
	s.blocks.sizes[cut] = 5 // as it is found when the store opens
	s.blocks.mu.Unlock()
	s.checkRoots()
	for _, tt := range []struct {
		name string
		ref  Ref
		want bool
	}{
		{"whole", whole, true},
		{"gone", gone, false},
		{"another one", other, false},
		{"short", short, false},
	} {
		if got := s.Has(tt.ref.CID); got != tt.want {
			t.Errorf("%s: held %t", tt.name, got)
		}
	}
	if err := s.log.close(); err != nil {
		t.Fatal(err)
	}
	if err := s.blocks.remove(leaf(whole)); err != nil {
		t.Fatal(err)
	}
	s.checkRoots() // although it cannot be noted
	if s.Has(whole.CID) || !strings.Contains(text.String(), "root index not written") {
		t.Errorf("held: %t; the log of the site:\n%s", s.Has(whole.CID), text.String())
	}
	s.checkRoot("no-cid")
	s.checkRoot(gridCID(hashed(t, cid.Raw, 0x12, 32)))
	if got := s.storedBytes("no-cid"); got != 0 {
		t.Errorf("what nobody knows has %d bytes", got)
	}
}

// leafUnlocked is the second leaf of a file, for who holds the lock of the blocks.
func leafUnlocked(t *testing.T, s *Store, ref Ref) digest {
	t.Helper()
	content, err := os.ReadFile(s.blocks.path(digestFor(t, rootOf(t, ref.CID))))
	if err != nil {
		t.Fatal(err)
	}
	n, err := decode(rootOf(t, ref.CID), content)
	if err != nil {
		t.Fatal(err)
	}
	return digestFor(t, n.links[1].Cid)
}

// Changes are told together, in order, each as it is at last; there and back is none.
func TestChangesAreTold(t *testing.T) {
	t.Parallel()
	var added, removed []grid.CID
	times := 0
	s := newPlayed(t, func(c *Config) {
		c.OnChange = func(a, r []grid.CID) { times++; added, removed = a, r }
	})
	change := func(c grid.CID, held bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.changeLocked(c, held)
	}
	for _, c := range []grid.CID{"b", "a", "back", "again"} {
		change(c, true)
	}
	change("gone", false)
	change("back", false)
	change("again", true)
	if len(s.wake) != 1 {
		t.Errorf("the keeper is woken %d times", len(s.wake))
	}
	s.tell()
	if !slices.Equal(added, []grid.CID{"a", "again", "b"}) ||
		!slices.Equal(removed, []grid.CID{"gone"}) {
		t.Errorf("told of %v and %v", added, removed)
	}
	if s.tell(); times != 1 {
		t.Errorf("told %d times", times)
	}
	change("a", false)
	if s.tell(); times != 2 || len(added) != 0 || !slices.Equal(removed, []grid.CID{"a"}) {
		t.Errorf("told %d times, at last of %v and %v", times, added, removed)
	}
	s.cfg.OnChange = nil
	change("a", true)
	if s.tell(); len(s.changes) != 0 {
		t.Error("changes that nobody wants to hear of are kept")
	}
	if errors.Is(s.log.close(), os.ErrClosed) {
		t.Error("the log is closed")
	}
}
