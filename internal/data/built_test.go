package data

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ipfs/go-cid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// toFiles is a sink that leaves blocks in files and has them taken.
type toFiles struct {
	dir  string
	take func(Block) error
}

func (f toFiles) Put(_ context.Context, d Digest, content []byte) error {
	if len(content) == 0 {
		return nil
	}
	b := Block{Digest: d, Bytes: int64(len(content))}
	if err := os.WriteFile(filepath.Join(f.dir, b.File()), content, 0o600); err != nil {
		return err
	}
	return f.take(b)
}

// built stores content that is built beside the store.
func built(t *testing.T, s *Store, content []byte) (Ref, error) {
	t.Helper()
	return s.AddBuilt(within(t), func(
		ctx context.Context, dir string, take func(Block) error,
	) (grid.CID, error) {
		return Build(ctx, Source{Content: bytes.NewReader(content)}, s.Limits(), toFiles{dir, take})
	})
}

// rawCID is the name of a file of one leaf.
func rawCID(content []byte) cid.Cid {
	d := sha256.Sum256(content)
	return cid.NewCidV1(cid.Raw, append([]byte{0x12, sha256.Size}, d[:]...))
}

func leftInTmp(t *testing.T, s *Store) int {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(s.cfg.Dir, "tmp"))
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// A graph that is built outside counts in the quota, which is freed for it, and is held.
func TestBuiltGraphsCountInTheQuota(t *testing.T) {
	t.Parallel()
	s := newPlayed(t, func(c *Config) { c.QuotaBytes = 8 << 20 })
	old := mustAdd(t, s.Store, noise(1, 4<<20))
	content := noise(2, 6<<20)
	ref, err := built(t, s.Store, content)
	if err != nil || !bytes.Equal(mustCat(t, s.Store, ref.CID), content) {
		t.Fatalf("%+v, %v", ref, err)
	}
	if s.Has(old.CID) || s.UsedBytes() > 8<<20 {
		t.Errorf("%d bytes are used; the old root is held: %t", s.UsedBytes(), s.Has(old.CID))
	}
	used := s.UsedBytes()
	again, err := built(t, s.Store, content)
	if err != nil || again != ref || s.UsedBytes() != used {
		t.Errorf("again: %+v, %v, %d bytes used instead of %d", again, err, s.UsedBytes(), used)
	}
	if _, err := built(t, s.Store, noise(3, 9<<20)); !errors.Is(err, ErrQuota) {
		t.Errorf("more than the quota: %v", err)
	}
	if n := leftInTmp(t, s.Store); n > 0 {
		t.Errorf("%d files are left", n)
	}
}

// What is said of a block has to hold as far as that costs nothing, and what is said of a graph
// has to be there.
func TestBuiltGraphsThatAreRefused(t *testing.T) {
	t.Parallel()
	text := []byte("content")
	good := Block{Digest: sha256.Sum256(text), Bytes: int64(len(text))}
	for name, tt := range map[string]struct {
		say   func(dir string, take func(Block) error) (grid.CID, error)
		cause error
	}{
		"no file": {func(_ string, take func(Block) error) (grid.CID, error) {
			return "", take(good)
		}, os.ErrNotExist},
		"another size": {func(dir string, take func(Block) error) (grid.CID, error) {
			_ = os.WriteFile(filepath.Join(dir, good.File()), text[1:], 0o600)
			return "", take(good)
		}, errNoBlock},
		"a directory": {func(dir string, take func(Block) error) (grid.CID, error) {
			_ = os.Mkdir(filepath.Join(dir, good.File()), 0o700)
			return "", take(good)
		}, errNoBlock},
		"nothing": {func(_ string, take func(Block) error) (grid.CID, error) {
			return "", take(Block{Digest: good.Digest})
		}, ErrTooLarge},
		"a large block": {func(_ string, take func(Block) error) (grid.CID, error) {
			return "", take(Block{Digest: good.Digest, Bytes: maxBlockBytes + 1})
		}, ErrTooLarge},
		"many blocks": {func(dir string, take func(Block) error) (grid.CID, error) {
			for range 4 {
				_ = os.WriteFile(filepath.Join(dir, good.File()), text, 0o600)
				if err := take(good); err != nil {
					return "", err
				}
			}
			return "", nil
		}, ErrTooLarge},
		"a root that is not there": {func(string, func(Block) error) (grid.CID, error) {
			return gridCID(rawCID([]byte("elsewhere"))), nil
		}, ErrNotHeld},
		"no root": {func(string, func(Block) error) (grid.CID, error) {
			return "none", nil
		}, ErrUnsupported},
	} {
		s := newPlayed(t, func(c *Config) { c.Limits.Nodes = 3 })
		ref, err := s.AddBuilt(within(t), func(
			_ context.Context, dir string, take func(Block) error,
		) (grid.CID, error) {
			return tt.say(dir, take)
		})
		if !errors.Is(err, tt.cause) || !strings.HasPrefix(err.Error(), "add data: ") {
			t.Errorf("%s: %+v, %v; want %v", name, ref, err, tt.cause)
		}
		if n := leftInTmp(t, s.Store); n > 0 {
			t.Errorf("%s: %d files are left", name, n)
		}
	}
}

// A block that is not what its name says is found when it is read, as a damaged one is.
func TestABuiltBlockIsCheckedWhenItIsRead(t *testing.T) {
	t.Parallel()
	s := newPlayed(t, nil)
	text := []byte("content")
	ref, err := s.AddBuilt(within(t), func(
		_ context.Context, dir string, take func(Block) error,
	) (grid.CID, error) {
		b := Block{Digest: sha256.Sum256(text), Bytes: int64(len(text))}
		if err := os.WriteFile(filepath.Join(dir, b.File()), []byte("CONTENT"), 0o600); err != nil {
			return "", err
		}
		return gridCID(rawCID(text)), take(b)
	})
	// A small block is read when it is made durable; a large one later.
	if !errors.Is(err, ErrNotHeld) {
		t.Errorf("%+v, %v; want %v", ref, err, ErrNotHeld)
	}
}
