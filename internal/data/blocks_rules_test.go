package data

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	blocks "github.com/ipfs/go-block-format"
	"github.com/ipfs/go-cid"
	ipld "github.com/ipfs/go-ipld-format"
)

// blockFile writes a file for a block of this content, as an earlier run left it.
func blockFile(t *testing.T, dir string, content []byte, size int64) (d digest, path string) {
	t.Helper()
	d = sha256.Sum256(content)
	name := hex.EncodeToString(d[:])
	path = filepath.Join(dir, "blocks", name[:2], name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
	return d, path
}

// What can be a block is taken up, up to the largest size; what is empty or larger goes,
// and what is no block is left alone.
func TestBlocksAreTakenUp(t *testing.T) {
	t.Parallel()
	cfg := Config{Dir: t.TempDir()}
	one, _ := blockFile(t, cfg.Dir, []byte("1"), 1)
	most, _ := blockFile(t, cfg.Dir, []byte("2"), maxBlockBytes)
	_, empty := blockFile(t, cfg.Dir, []byte("3"), 0)
	_, larger := blockFile(t, cfg.Dir, []byte("4"), maxBlockBytes+1)
	left := filepath.Join(cfg.Dir, "tmp", "block-1")
	other := filepath.Join(cfg.Dir, "blocks", "00", "abcd")
	strange := filepath.Join(cfg.Dir, "blocks", "00", "strange")
	folder := filepath.Join(cfg.Dir, "blocks", "00", hex.EncodeToString(make([]byte, sha256.Size)))
	for _, path := range []string{left, other, strange} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	var synced []string
	b, err := openBlocks(cfg, &disk{
		syncDir: func(dir string) error { synced = append(synced, dir); return nil },
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(b.sizes) != 2 || b.sizes[one] != 1 || b.sizes[most] != maxBlockBytes ||
		b.usedBytes() != maxBlockBytes+1 {
		t.Errorf("taken up: %v, %d bytes", b.sizes, b.usedBytes())
	}
	for path, there := range map[string]bool{
		empty: false, larger: false, left: false, other: true, strange: true, folder: true,
	} {
		if _, wrong := os.Lstat(path); (wrong == nil) != there {
			t.Errorf("%s: %v, want it there: %t", path, wrong, there)
		}
	}
	want := []string{filepath.Join(cfg.Dir, "blocks"), cfg.Dir, filepath.Dir(cfg.Dir)}
	if !slices.Equal(synced, want) {
		t.Errorf("synced %v, want %v", synced, want)
	}
	shards, err := os.ReadDir(filepath.Join(cfg.Dir, "blocks"))
	if err != nil || len(shards) != 256 || shards[255].Name() != "ff" || shards[10].Name() != "0a" {
		t.Errorf("%d shards, %v", len(shards), err)
	}
}

// A store whose directories cannot be made, read or synced does not open.
func TestBlocksThatCannotBeOpened(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	fine := func(string) error { return nil }
	for name, spoil := range map[string]func(dir string) (*disk, error){
		"a file for the new blocks": func(dir string) (*disk, error) {
			return &disk{syncDir: fine}, os.WriteFile(dir, nil, 0o600)
		},
		"a file for the blocks": func(dir string) (*disk, error) {
			return &disk{syncDir: fine}, errors.Join(
				os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, "blocks"), nil, 0o600))
		},
		"a file for a shard": func(dir string) (*disk, error) {
			return &disk{syncDir: fine}, errors.Join(
				os.MkdirAll(filepath.Join(dir, "blocks"), 0o700),
				os.WriteFile(filepath.Join(dir, "blocks", "7f"), nil, 0o600))
		},
		"no sync": func(string) (*disk, error) {
			return &disk{syncDir: func(string) error { return broken }}, nil
		},
	} {
		dir := filepath.Join(t.TempDir(), "data")
		d, err := spoil(dir)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := openBlocks(Config{Dir: dir}, d, nil); err == nil {
			t.Errorf("%s: opened %v", name, b)
		}
	}
}

// A block has two MiB at most, is written once, and counts against the quota to the byte.
func TestBlocksAreWritten(t *testing.T) {
	t.Parallel()
	s := newPlayed(t, func(c *Config) { c.QuotaBytes = minQuota })
	b := s.blocks
	put := func(content []byte) error { return b.put(sha256.Sum256(content), content) }
	if err := put(noise(1, maxBlockBytes+1)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a byte more than a block: %v", err)
	}
	if err := put(nil); err != nil || b.usedBytes() != 0 || len(b.sizes) != 0 {
		t.Errorf("nothing: %v, %d bytes", err, b.usedBytes())
	}
	first := noise(1, maxBlockBytes)
	for range 2 {
		if err := put(first); err != nil || b.usedBytes() != maxBlockBytes {
			t.Errorf("the largest block: %v, %d bytes", err, b.usedBytes())
		}
	}
	if err := put(noise(2, minQuota-maxBlockBytes-1)); err != nil {
		t.Error(err)
	}
	if err := put(noise(3, 2)); !errors.Is(err, errNoRoom) || b.usedBytes() != minQuota-1 {
		t.Errorf("a byte beyond the quota: %v, %d bytes", err, b.usedBytes())
	}
	if err := put([]byte{1}); err != nil || b.usedBytes() != minQuota {
		t.Errorf("up to the quota: %v, %d bytes", err, b.usedBytes())
	}
	if _, err := os.Stat(b.path(sha256.Sum256(nil))); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the empty block has a file: %v", err)
	}
}

// A block that two write at the same time counts once.
func TestBlocksWrittenTogether(t *testing.T) {
	t.Parallel()
	s := newPlayed(t, nil)
	content := []byte("content")
	d, write := digest(sha256.Sum256(content)), s.blocks.write
	s.blocks.write = func(f *os.File, data []byte) error {
		s.blocks.write = write
		if err := s.blocks.put(d, data); err != nil { // the other one
			t.Error(err)
		}
		return write(f, data)
	}
	if err := s.blocks.put(d, content); err != nil || s.UsedBytes() != 7 {
		t.Errorf("%v, %d bytes, want 7", err, s.UsedBytes())
	}
	wantNoRest(t, s.Store)
}

// wantNoRest checks that nothing is left of what was written aside.
func wantNoRest(t *testing.T, s *Store) {
	t.Helper()
	if left, err := os.ReadDir(filepath.Join(s.cfg.Dir, "tmp")); err != nil || len(left) != 0 {
		t.Errorf("%d files are left over, %v", len(left), err)
	}
}

// A block that cannot be written leaves nothing, and says why.
func TestBlocksThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	s := newPlayed(t, nil)
	content := []byte("content")
	d, write := digest(sha256.Sum256(content)), s.blocks.write
	wantNothing := func(what string, err, want error) {
		t.Helper()
		if !errors.Is(err, want) || errors.Is(err, ErrDiskFull) != errors.Is(want, ErrDiskFull) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
		if _, here := s.blocks.size(d); here || s.UsedBytes() != 0 {
			t.Errorf("%s: %d bytes are here", what, s.UsedBytes())
		}
	}
	for _, tt := range []struct{ err, want error }{
		{syscall.ENOSPC, ErrDiskFull}, {syscall.EDQUOT, ErrDiskFull}, {syscall.EROFS, syscall.EROFS},
	} {
		s.blocks.write = func(*os.File, []byte) error { return tt.err }
		wantNothing(tt.err.Error(), s.blocks.put(d, content), tt.want)
		wantNoRest(t, s.Store)
	}
	s.blocks.write = func(f *os.File, data []byte) error {
		return errors.Join(write(f, data), f.Close()) // and once more
	}
	wantNothing("it cannot be closed", s.blocks.put(d, content), os.ErrClosed)
	wantNoRest(t, s.Store)
	s.blocks.write = write
	if err := os.Remove(filepath.Dir(s.blocks.path(d))); err != nil {
		t.Fatal(err)
	}
	wantNothing("it has no place", s.blocks.put(d, content), fs.ErrNotExist)
	wantNoRest(t, s.Store)
	if err := os.Remove(filepath.Join(s.cfg.Dir, "tmp")); err != nil {
		t.Fatal(err)
	}
	wantNothing("nothing can be written aside", s.blocks.put(d, content), fs.ErrNotExist)
}

// What is damaged or gone is forgotten and told once; what cannot be read now stays.
func TestBlocksAreChecked(t *testing.T) {
	t.Parallel()
	s := newPlayed(t, nil)
	var told []digest
	s.blocks.damaged = func(d digest) { told = append(told, d) }
	spoil := map[string]func(path string) error{
		"damaged": func(path string) error { return os.WriteFile(path, []byte("x"), 0o600) },
		"gone":    os.Remove,
	}
	for name, do := range spoil {
		c := hostileLeaf(t, s.Store, name)
		d := digestFor(t, c)
		if data, err := s.blocks.get(d); err != nil || string(data) != name {
			t.Errorf("%s: %q, %v", name, data, err)
		}
		if err := do(s.blocks.path(d)); err != nil {
			t.Fatal(err)
		}
		told = nil
		for range 2 {
			if data, err := s.blocks.get(d); !ipld.IsNotFound(err) || data != nil {
				t.Errorf("%s: %q, %v", name, data, err)
			}
		}
		if !slices.Equal(told, []digest{d}) || s.blocks.doubtful(d) || s.UsedBytes() != 0 {
			t.Errorf("%s: told %d times, %d bytes are here", name, len(told), s.UsedBytes())
		}
		if _, err := os.Lstat(s.blocks.path(d)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: its file: %v", name, err)
		}
	}
	c := hostileLeaf(t, s.Store, "a directory")
	d := digestFor(t, c)
	if err := errors.Join(
		os.Remove(s.blocks.path(d)), os.MkdirAll(filepath.Join(s.blocks.path(d), "x"), 0o700),
	); err != nil {
		t.Fatal(err)
	}
	told = nil
	if _, err := s.blocks.get(d); err == nil || ipld.IsNotFound(err) || len(told) != 0 {
		t.Errorf("what cannot be read: %v, told %d times", err, len(told))
	}
	if _, err := s.blocks.Get(t.Context(), c); err == nil || ipld.IsNotFound(err) {
		t.Errorf("what cannot be read: %v", err)
	}
	if _, here := s.blocks.size(d); !here {
		t.Error("what cannot be read is forgotten")
	}
	if n, err := s.node(c); err == nil || errors.Is(err, ErrNotHeld) {
		t.Errorf("what cannot be read: %+v, %v", n, err)
	}
	if err := s.blocks.DeleteBlock(t.Context(), c); !errors.Is(err, syscall.ENOTEMPTY) {
		t.Errorf("what cannot be removed: %v", err)
	}
}

// Bitswap sees the blocks as it wants them: those of another kind are not here, and none
// can be put or removed.
func TestBlocksForBitswap(t *testing.T) {
	t.Parallel()
	s, ctx := newPlayed(t, nil), t.Context()
	b, odd := s.blocks, hashed(t, cid.Raw, 0x16, 32)
	one, two := blocks.NewBlock([]byte("one")), blocks.NewBlock([]byte("two!"))
	raw := func(blk blocks.Block) cid.Cid { return cid.NewCidV1(cid.Raw, blk.Cid().Hash()) }
	strange, err := blocks.NewBlockWithCid([]byte("x"), odd)
	if err != nil {
		t.Fatal(err)
	}
	if err = b.PutMany(ctx, []blocks.Block{one, two}); err != nil {
		t.Fatal(err)
	}
	if err = b.PutMany(ctx, []blocks.Block{strange}); !errors.Is(err, ErrUnsupported) {
		t.Errorf("a block of another kind: %v", err)
	}
	for _, tt := range []struct {
		c    cid.Cid
		text string
	}{{raw(one), "one"}, {raw(two), "two!"}, {hashed(t, cid.Raw, 0x12, 32), ""}, {odd, ""}} {
		here := tt.text != ""
		if has, wrong := b.Has(ctx, tt.c); wrong != nil || has != here {
			t.Errorf("%s is here: %t, %v", tt.c, has, wrong)
		}
		if n, wrong := b.GetSize(ctx, tt.c); n != len(tt.text) || ipld.IsNotFound(wrong) == here ||
			(wrong == nil) != here {
			t.Errorf("%s has %d bytes, %v", tt.c, n, wrong)
		}
		blk, wrong := b.Get(ctx, tt.c)
		if ipld.IsNotFound(wrong) == here ||
			here && (string(blk.RawData()) != tt.text || !blk.Cid().Equals(tt.c)) {
			t.Errorf("%s is %v, %v", tt.c, blk, wrong)
		}
	}
	all, err := b.AllKeysChan(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for c := range all {
		keys = append(keys, c.String())
	}
	wanted := []string{raw(one).String(), raw(two).String()}
	slices.Sort(keys)
	slices.Sort(wanted)
	if !slices.Equal(keys, wanted) {
		t.Errorf("the blocks are %v, want %v", keys, wanted)
	}
	for range 2 {
		if err := b.DeleteBlock(ctx, raw(one)); err != nil || b.usedBytes() != 4 {
			t.Errorf("removed: %v, %d bytes are left", err, b.usedBytes())
		}
	}
	if err := b.DeleteBlock(ctx, odd); !errors.Is(err, ErrUnsupported) {
		t.Errorf("removed a block of another kind: %v", err)
	}
	if err := b.remove(digestFor(t, raw(one))); !ipld.IsNotFound(err) {
		t.Errorf("removed what is not here: %v", err)
	}
}

// Who stops listing the blocks leaves nothing behind.
func TestListOfBlocksEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newPlayed(t, nil)
		for i := range 3 {
			hostileLeaf(t, s.Store, fmt.Sprint(i))
		}
		ctx, cancel := context.WithCancel(t.Context())
		all, err := s.blocks.AllKeysChan(ctx)
		if err != nil {
			t.Fatal(err)
		}
		<-all
		cancel()
		synctest.Wait()
		rest := 0
		for range all {
			rest++
		}
		if rest != 0 {
			t.Errorf("%d blocks more", rest)
		}
	})
}

// The block without content is everywhere, without a file.
func TestTheEmptyBlock(t *testing.T) {
	t.Parallel()
	s := newPlayed(t, nil)
	d := digest(sha256.Sum256(nil))
	if n, here := s.blocks.size(d); n != 0 || !here {
		t.Errorf("it has %d bytes, here: %t", n, here)
	}
	if data, err := s.blocks.get(d); len(data) != 0 || err != nil {
		t.Errorf("it is %q, %v", data, err)
	}
	ref := mustAdd(t, s.Store, nil)
	if !s.Has(ref.CID) || ref.Bytes != 0 || !bytes.Equal(mustCat(t, s.Store, ref.CID), nil) {
		t.Errorf("as a file it is %+v", ref)
	}
}

// Files of the last five minutes before the newest may not be on disk yet.
func TestWhatAPowerCutMayTake(t *testing.T) {
	t.Parallel()
	s := newPlayed(t, nil)
	last := time.Unix(1_800_000_000, 0)
	written := map[digest]time.Time{
		{1}: last, {2}: last.Add(1 - writtenBackBy),
		{3}: last.Add(-writtenBackBy), {4}: last.Add(-time.Hour),
	}
	s.blocks.distrust(written)
	for d, want := range map[digest]bool{{1}: true, {2}: true, {3}: false, {4}: false} {
		if got := s.blocks.doubtful(d); got != want {
			t.Errorf("written %s before the last one: doubtful %t", last.Sub(written[d]), got)
		}
		if s.blocks.unsynced[d] {
			t.Errorf("the log has %x", d)
		}
	}
	if !s.blocks.anyUnsynced() {
		t.Error("nothing is doubtful")
	}
}
