package data

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ipfs/boxo/ipld/merkledag"
	"github.com/ipfs/boxo/ipld/unixfs"
	ipld "github.com/ipfs/go-ipld-format"
	"go.uber.org/goleak"

	"github.com/mrsmesh/mrsmesh/internal/obs"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

func TestConfigValidate(t *testing.T) {
	good := Config{Dir: "x", Allow: everybody}
	if err := good.Validate(); err != nil {
		t.Errorf("Validate = %v, want nil", err)
	}
	bad := Config{QuotaBytes: 5, UploadBps: -1, Limits: Limits{Files: -1}, Fetches: -1}
	err := bad.Validate()
	for _, field := range []string{"dir", "allow", "quota", "upload", "limits", "fetches"} {
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("Validate = %v, lacks %q", err, field)
		}
	}
	if _, err := Open(bad, nil); !errors.Is(err, errConfig) {
		t.Errorf("Open = %v, want ErrConfig", err)
	}
}

func TestAddFileOfEverySize(t *testing.T) {
	s := newSite(t, nil).Store
	for _, n := range []int{0, 1, chunkBytes - 1, chunkBytes, chunkBytes + 1, 3*chunkBytes + 5} {
		data := noise(uint64(n), n)
		ref := mustAdd(t, s, data)
		if ref.Bytes != int64(n) || ref.Dir || !s.Has(ref.CID) {
			t.Errorf("%d bytes: Ref = %+v", n, ref)
		}
		if !bytes.Equal(mustCat(t, s, ref.CID), data) {
			t.Errorf("%d bytes come out different", n)
		}
		to := filepath.Join(t.TempDir(), "f")
		if err := s.Export(within(t), ref.CID, to); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(to); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%d bytes are exported different: %v", n, err)
		}
	}
}

// The CIDs are those of kubo's `ipfs add --cid-version=1`, so other tools of the
// content-addressed world can check ours.
func TestKnownCIDs(t *testing.T) {
	s := newSite(t, nil).Store
	for text, want := range map[string]grid.CID{
		"":              "bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku",
		"hello world\n": "bafkreifjjcie6lypi6ny7amxnfftagclbuxndqonfipmb64f2km2devei4",
	} {
		if got := mustAdd(t, s, []byte(text)).CID; got != want {
			t.Errorf("CID of %q = %s, want %s", text, got, want)
		}
	}
}

func TestRestartKnowsRoots(t *testing.T) {
	a := newSite(t, nil)
	file := mustAdd(t, a.Store, noise(1, 1<<20))
	dir, err := a.AddDir(within(t), writeTree(t, map[string]string{"a": "1", "b/c": "2"}))
	if err != nil {
		t.Fatal(err)
	}
	lost := mustAdd(t, a.Store, noise(2, 1<<20))
	cut := mustAdd(t, a.Store, noise(3, 1<<20))
	until := time.Now().Add(time.Hour).Round(0)
	if err = a.Pin(file.CID, until); err != nil {
		t.Fatal(err)
	}
	if err = a.Pin(dir.CID, time.Time{}); err != nil {
		t.Fatal(err)
	}
	used := a.UsedBytes()
	// No Close: as after a kill. The log's last line is torn, one block is gone,
	// and one is shorter than it was, as after a power failure.
	log, err := os.OpenFile(filepath.Join(a.cfg.Dir, rootLogName), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = log.WriteString(`{"cid":"bafkrei`)
	_ = log.Close()
	leaf := func(c grid.CID) string {
		id, _ := parseCID(c)
		n, wrong := a.node(id)
		if wrong != nil {
			t.Fatal(wrong)
		}
		d, _ := digestOf(n.links[2].Cid)
		return a.blocks.path(d)
	}
	if err = os.Remove(leaf(lost.CID)); err != nil {
		t.Fatal(err)
	}
	if err = os.Truncate(leaf(cut.CID), 100); err != nil {
		t.Fatal(err)
	}
	b, err := Open(a.cfg, newHost(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close() }()
	roots := b.Roots()
	if len(roots) != 2 || b.Has(lost.CID) || b.Has(cut.CID) {
		t.Fatalf("Roots = %+v, want the file and the directory", roots)
	}
	for _, r := range roots {
		switch {
		case r.CID == file.CID && r.Ref == file && r.Pinned && r.PinnedUntil.Equal(until):
		case r.CID == dir.CID && r.Ref == dir && r.Pinned && r.PinnedUntil.IsZero():
		default:
			t.Errorf("root %+v is not as it was", r)
		}
	}
	if want := used - 2*chunkBytes; b.UsedBytes() != want {
		t.Errorf("UsedBytes = %d, want %d", b.UsedBytes(), want)
	}
}

func TestQuotaCollectsLeastRecentlyUsed(t *testing.T) {
	var log changeLog
	s := newSite(t, func(c *Config) { c.QuotaBytes = 8 << 20; c.OnChange = log.onChange }).Store
	clock := time.Now()
	s.now = func() time.Time { clock = clock.Add(time.Second); return clock }
	shared := noise(10, 1<<20)
	a := mustAdd(t, s, noise(1, 2<<20))
	b := mustAdd(t, s, append(bytes.Clone(shared), noise(2, 1<<20)...))
	c := mustAdd(t, s, append(bytes.Clone(shared), noise(3, 1<<20)...))
	d := mustAdd(t, s, noise(4, 2<<20))
	if err := s.Pin(a.CID, time.Time{}); err != nil {
		t.Fatal(err)
	}
	mustCat(t, s, d.CID)
	// 7 MiB are in use. 2 more push out b: of those not pinned, it was not used for the
	// longest time. Its half that c shares stays.
	e := mustAdd(t, s, noise(5, 3<<19))
	for _, want := range []struct {
		ref  Ref
		held bool
	}{{a, true}, {b, false}, {c, true}, {d, true}, {e, true}} {
		if got := s.Has(want.ref.CID); got != want.held {
			t.Errorf("Has(%s) = %v, want %v", want.ref.CID, got, want.held)
		}
	}
	if got := mustCat(t, s, c.CID); !bytes.Equal(got[:1<<20], shared) {
		t.Error("blocks shared with a collected root are damaged")
	}
	eventually(t, "listener hears of the collection", func() bool {
		return log.has(e.CID) && !log.has(b.CID)
	})
	if used := s.UsedBytes(); used > 8<<20 {
		t.Errorf("UsedBytes = %d, above the quota", used)
	}

	// Everything that may go is less than what is asked for: nothing goes.
	for _, r := range []Ref{c, d} {
		if err := s.Pin(r.CID, time.Time{}); err != nil {
			t.Fatal(err)
		}
	}
	_, err := s.AddFile(within(t), bytes.NewReader(noise(6, 5<<20)))
	if !errors.Is(err, ErrQuota) || !strings.Contains(err.Error(), "8.0 MiB") {
		t.Errorf("AddFile = %v, want ErrQuota with the sizes", err)
	}
	if err := s.Unpin(a.CID); err != nil {
		t.Fatal(err)
	}
	mustAdd(t, s, noise(7, 3<<19)) // usable again
}

func TestPins(t *testing.T) {
	s := newSite(t, func(c *Config) { c.QuotaBytes = 4 << 20 }).Store
	clock := time.Now()
	s.now = func() time.Time { return clock }
	a := mustAdd(t, s, noise(1, 3<<20))
	if err := s.Pin(a.CID, clock.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if err := s.Pin(a.CID, clock.Add(time.Minute)); err != nil { // does not make it shorter
		t.Fatal(err)
	}
	clock = clock.Add(30 * time.Minute)
	if _, err := s.AddFile(within(t), bytes.NewReader(noise(2, 2<<20))); !errors.Is(err, ErrQuota) {
		t.Errorf("AddFile = %v, want ErrQuota while the pin holds", err)
	}
	clock = clock.Add(time.Hour)
	mustAdd(t, s, noise(2, 2<<20))
	if s.Has(a.CID) {
		t.Error("an expired pin still holds")
	}
	if err := s.Pin(a.CID, time.Time{}); !errors.Is(err, ErrNotHeld) {
		t.Errorf("Pin of what is gone = %v, want ErrNotHeld", err)
	}
	if err := s.Unpin(a.CID); err != nil {
		t.Errorf("Unpin of what is gone = %v", err)
	}
}

func TestReadersKeepTheirData(t *testing.T) {
	s := newSite(t, func(c *Config) { c.QuotaBytes = 4 << 20 }).Store
	a := mustAdd(t, s, noise(1, 3<<20))
	r, err := s.Cat(within(t), a.CID)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.forget(a.CID); err == nil {
		t.Error("Forget took data from under a reader")
	}
	if _, err := s.AddFile(within(t), bytes.NewReader(noise(2, 2<<20))); !errors.Is(err, ErrQuota) {
		t.Errorf("AddFile = %v, want ErrQuota while the data is read", err)
	}
	if _, err := io.Copy(io.Discard, r); err != nil {
		t.Errorf("read: %v", err)
	}
	_ = r.Close()
	_ = r.Close()
	mustAdd(t, s, noise(2, 2<<20))
}

func TestFetchBeyondQuota(t *testing.T) {
	a := newSite(t, nil)
	b := newSite(t, func(c *Config) { c.QuotaBytes = 4 << 20 })
	b.knows(a)
	small := mustAdd(t, a.Store, noise(1, 2<<20))
	large := mustAdd(t, a.Store, noise(2, 6<<20))
	other := mustAdd(t, a.Store, noise(3, 3<<20))
	mustFetch(t, b.Store, small.CID, a.id)
	res, err := b.Fetch(within(t), large.CID, []grid.SiteID{a.id}, nil)
	if !errors.Is(err, ErrQuota) || !strings.Contains(err.Error(), "6.0 MiB") ||
		res.Bytes > maxBlockBytes {
		t.Errorf("Fetch = %d bytes, %v; want ErrQuota with the sizes before the data moves",
			res.Bytes, err)
	}
	if !b.Has(small.CID) {
		t.Error("a fetch that could not fit pushed other data out")
	}
	mustFetch(t, b.Store, other.CID, a.id)
	if b.Has(small.CID) || b.UsedBytes() > 4<<20 {
		t.Errorf("held %v, used %d: want the older data collected", b.Has(small.CID), b.UsedBytes())
	}
}

// What is here already needs no space: of 3 MiB that want to come beside 2 that stay, 1 is here.
func TestFetchNeedsRoomForWhatIsMissing(t *testing.T) {
	a := newSite(t, nil)
	b := newSite(t, func(c *Config) { c.QuotaBytes = 9 << 19 })
	b.knows(a)
	shared := noise(1, 1<<20)
	pinned := mustAdd(t, b.Store, append(bytes.Clone(shared), noise(2, 1<<20)...))
	if err := b.Pin(pinned.CID, time.Time{}); err != nil {
		t.Fatal(err)
	}
	wanted := mustAdd(t, a.Store, append(bytes.Clone(shared), noise(3, 2<<20)...))
	mustFetch(t, b.Store, wanted.CID, a.id)
	if !b.Has(pinned.CID) || b.UsedBytes() > 9<<19 {
		t.Errorf("what was pinned is here: %t, used %d", b.Has(pinned.CID), b.UsedBytes())
	}
}

func TestFullDisk(t *testing.T) {
	a, b := newSite(t, nil), newSite(t, nil)
	b.knows(a)
	ref := mustAdd(t, a.Store, noise(1, 2<<20))
	write := b.blocks.write
	b.blocks.write = func(f *os.File, data []byte) error {
		_ = write(f, data[:len(data)/2])
		return &os.PathError{Op: "write", Path: f.Name(), Err: syscall.ENOSPC}
	}
	if _, err := b.AddFile(within(t), bytes.NewReader(noise(2, 100))); !errors.Is(err, ErrDiskFull) {
		t.Errorf("AddFile = %v, want ErrDiskFull", err)
	}
	if _, err := b.Fetch(within(t), ref.CID, []grid.SiteID{a.id}, nil); !errors.Is(err, ErrDiskFull) {
		t.Errorf("Fetch = %v, want ErrDiskFull", err)
	}
	if left, _ := os.ReadDir(filepath.Join(b.cfg.Dir, "tmp")); len(left) != 0 || b.UsedBytes() != 0 {
		t.Errorf("%d files and %d bytes are left over", len(left), b.UsedBytes())
	}
	b.blocks.write = write
	mustFetch(t, b.Store, ref.CID, a.id)
}

// hostile puts nodes into a store behind its back and gives their root.
func hostile(t *testing.T, s *Store, n *merkledag.ProtoNode) grid.CID {
	t.Helper()
	if err := n.SetCidBuilder(cidBuilder()); err != nil {
		t.Fatal(err)
	}
	if err := s.blocks.Put(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	return gridCID(n.Cid())
}

func TestHostileGraphs(t *testing.T) {
	a := newSite(t, nil)
	b := newSite(t, func(c *Config) { c.Limits = Limits{Files: 1000, Bytes: 1 << 20, Depth: 64} })
	b.knows(a)
	leafRef := mustAdd(t, a.Store, []byte("content"))
	leafCID, _ := parseCID(leafRef.CID)
	leaf := &ipld.Link{Size: 7, Cid: leafCID}
	dir := func(names ...string) *merkledag.ProtoNode {
		n := merkledag.NodeWithData(unixfs.FolderPBData())
		for _, name := range names {
			if err := n.AddRawLink(name, leaf); err != nil {
				t.Fatal(err)
			}
		}
		return n
	}
	link, err := unixfs.SymlinkData("/etc/passwd")
	if err != nil {
		t.Fatal(err)
	}
	bomb := hostile(t, a.Store, dir("x"))
	for range 20 { // 2^20 files in 20 blocks
		id, _ := parseCID(bomb)
		n := merkledag.NodeWithData(unixfs.FolderPBData())
		for _, name := range []string{"a", "b"} {
			if err := n.AddRawLink(name, &ipld.Link{Size: 1, Cid: id}); err != nil {
				t.Fatal(err)
			}
		}
		bomb = hostile(t, a.Store, n)
	}
	refused := map[string]grid.CID{
		"symbolic link": hostile(t, a.Store, merkledag.NodeWithData(link)),
		"no UnixFS":     hostile(t, a.Store, merkledag.NodeWithData([]byte("hello"))),
		"parent":        hostile(t, a.Store, dir("..")),
		"slash":         hostile(t, a.Store, dir("a/b")),
		"twice":         hostile(t, a.Store, dir("a", "a")),
		"empty name":    hostile(t, a.Store, dir("")),
	}
	for name, c := range refused {
		t.Run(name, func(t *testing.T) {
			if _, err := b.Fetch(within(t), c, []grid.SiteID{a.id}, nil); !errors.Is(err, ErrUnsupported) {
				t.Errorf("Fetch = %v, want ErrUnsupported", err)
			}
			if b.Has(c) {
				t.Error("it is held all the same")
			}
		})
	}
	t.Run("bomb", func(t *testing.T) {
		if res := mustFetch(t, b.Store, bomb, a.id); res.Bytes > 1<<20 {
			t.Errorf("moved %d bytes for 21 blocks", res.Bytes)
		}
		to := filepath.Join(t.TempDir(), "out")
		if err := b.Export(within(t), bomb, to); !errors.Is(err, ErrTooLarge) {
			t.Errorf("Export = %v, want ErrTooLarge", err)
		}
		if _, err := os.Lstat(to); !errors.Is(err, os.ErrNotExist) {
			t.Error("a failed export left something")
		}
	})
}

func TestReadErrors(t *testing.T) {
	s := newSite(t, nil).Store
	dir, err := s.AddDir(within(t), writeTree(t, map[string]string{"a": "1"}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Cat(within(t), dir.CID); !errors.Is(err, ErrUnsupported) {
		t.Errorf("Cat of a directory = %v, want ErrUnsupported", err)
	}
	missing := grid.CID("bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy")
	if _, err := s.Cat(within(t), missing); !errors.Is(err, ErrNotHeld) {
		t.Errorf("Cat = %v, want ErrNotHeld", err)
	}
	if _, err := s.Tar(within(t), missing); !errors.Is(err, ErrNotHeld) {
		t.Errorf("Tar = %v, want ErrNotHeld", err)
	}
	if err := s.Export(
		within(t), missing, filepath.Join(t.TempDir(), "x"),
	); !errors.Is(err, ErrNotHeld) {
		t.Errorf("Export = %v, want ErrNotHeld", err)
	}
	if _, err := s.Stat(missing); !errors.Is(err, ErrNotHeld) {
		t.Errorf("Stat = %v, want ErrNotHeld", err)
	}
	link := filepath.Join(t.TempDir(), "link")
	target := filepath.Join(t.TempDir(), "target")
	if err := os.Symlink(target, link); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
	if err := s.Export(within(t), dir.CID, link); !errors.Is(err, errExists) {
		t.Errorf("Export onto a link = %v, want ErrExists", err)
	}
	if _, err := os.Lstat(target); err == nil {
		t.Error("Export followed a link")
	}
}

func TestRootLogStaysSmall(t *testing.T) {
	s := newSite(t, nil).Store
	ref := mustAdd(t, s, []byte("x"))
	for range 2000 {
		if err := s.Pin(ref.CID, time.Time{}); err != nil {
			t.Fatal(err)
		}
		if err := s.Unpin(ref.CID); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the root log is rewritten without what is history", func() bool {
		info, err := os.Stat(filepath.Join(s.cfg.Dir, rootLogName))
		return err == nil && info.Size() <= 100<<10
	})
}

func TestCloseLeavesNothing(t *testing.T) {
	a, h := newSite(t, nil), newHost(t)
	ref := mustAdd(t, a.Store, noise(1, 16<<20))
	h.Peerstore().AddAddrs(a.host.ID(), a.host.Addrs(), time.Hour)
	if err := h.Connect(within(t), a.host.Peerstore().PeerInfo(a.host.ID())); err != nil {
		t.Fatal(err)
	}
	reg := obs.NewRegistry()
	warm, err := Open(Config{Dir: t.TempDir(), Allow: everybody}, h) // libraries start what they keep
	if err != nil {
		t.Fatal(err)
	}
	mustFetch(t, warm, mustAdd(t, a.Store, []byte("warm")).CID, a.id)
	if err = warm.Close(); err != nil {
		t.Fatal(err)
	}
	ignore := goleak.IgnoreCurrent()
	s, err := Open(
		Config{Dir: t.TempDir(), Allow: everybody, Metrics: reg, OnChange: func(_, _ []grid.CID) {}}, h,
	)
	if err != nil {
		t.Fatal(err)
	}
	if err = reg.Err(); err != nil {
		t.Errorf("metrics: %v", err)
	}
	own := mustAdd(t, s, noise(2, 1<<20))
	open, err := s.Cat(within(t), own.CID)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := s.Tar(within(t), own.CID)
	if err != nil {
		t.Fatal(err)
	}
	started, ended := make(chan struct{}, 1), make(chan error, 1)
	go func() {
		_, err := s.Fetch(context.Background(), ref.CID, []grid.SiteID{a.id}, func(int64, int64) {
			select {
			case started <- struct{}{}:
			default:
			}
		})
		ended <- err
	}()
	<-started
	if err := s.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	select {
	case err := <-ended:
		t.Logf("fetch under way ended with: %v", err)
	case <-within(t).Done():
		t.Fatal("a fetch outlives its store")
	}
	if _, err := io.ReadAll(open); err == nil {
		t.Error("a reader outlives its store")
	}
	_, _ = open.Close(), stream.Close()
	if _, err := s.AddFile(t.Context(), strings.NewReader("x")); !errors.Is(err, ErrClosed) {
		t.Errorf("AddFile after Close = %v, want ErrClosed", err)
	}
	// Streams of the other side may end a moment later; nothing of ours may stay.
	leaked := goleak.Find(
		ignore,
		goleak.IgnoreAnyFunction("github.com/libp2p/go-yamux/v5.(*Stream).Read"),
		goleak.IgnoreAnyFunction("github.com/ipfs/boxo/bitswap/network/bsnet.(*impl).handleNewStream"),
	)
	if leaked != nil {
		t.Error(leaked)
	}
}
