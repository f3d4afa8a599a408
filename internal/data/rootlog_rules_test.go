package data

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ipfs/go-cid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// A pin holds until its time, and without one until it is taken away.
func TestWhatIsPinned(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	for _, tt := range []struct {
		r    root
		want bool
	}{
		{root{}, false},
		{root{Until: now.Add(time.Hour)}, false},
		{root{Pinned: true}, true},
		{root{Pinned: true, Until: now.Add(1)}, true},
		{root{Pinned: true, Until: now}, false},
		{root{Pinned: true, Until: now.Add(-1)}, false},
	} {
		if got := tt.r.pinned(now); got != tt.want {
			t.Errorf("%+v is pinned: %t", tt.r, got)
		}
	}
}

// logText is a log of these lines.
func logText(t *testing.T, lines ...any) string {
	t.Helper()
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	for _, line := range lines {
		if s, is := line.(string); is {
			text.WriteString(s + "\n")
		} else if err := enc.Encode(line); err != nil {
			t.Fatal(err)
		}
	}
	return text.String()
}

// The last line of each root counts, what makes no sense is skipped, and blocks are given
// back.
func TestReadingTheLog(t *testing.T) {
	t.Parallel()
	a := gridCID(hashed(t, cid.Raw, 0x12, 32))
	b := gridCID(hashed(t, cid.DagProtobuf, 0x12, 32))
	path := filepath.Join(t.TempDir(), rootLogName)
	var given []string
	read := func(text string, restore error) (map[grid.CID]*root, error) {
		t.Helper()
		given = nil
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return readRoots(path, func(block []byte) error {
			given = append(given, string(block))
			return restore
		})
	}
	roots, err := read(logText(t,
		root{CID: a, Bytes: 1}, `{"cid":"half`, root{CID: b, Bytes: 2}, blockLine{[]byte("one")},
		root{CID: a, Bytes: 3, Gone: true}, `{}`, root{CID: "no-cid", Bytes: 4},
		root{CID: b, Bytes: 5, Stored: 6, Pinned: true}, blockLine{[]byte("two")},
		blockLine{bytes.Repeat([]byte("x"), loggedBlock)}, root{CID: a, Gone: true},
	), nil)
	if err != nil || len(roots) != 1 || roots[b] == nil || roots[b].Bytes != 5 ||
		roots[b].Stored != 6 || !roots[b].Pinned {
		t.Errorf("read %v, %v", roots, err)
	}
	if len(given) != 3 || given[0] != "one" || given[1] != "two" || len(given[2]) != loggedBlock {
		t.Errorf("%d blocks are given back", len(given))
	}
	broken := errors.New("broken")
	if _, err = read(logText(t, blockLine{[]byte("one")}), broken); !errors.Is(err, broken) {
		t.Errorf("a block that cannot be given back: %v", err)
	}
	roots, err = read(logText(t, root{CID: a, Bytes: 1}, strings.Repeat("\x00", maxRootLine)), nil)
	if err != nil || len(roots) != 1 {
		t.Errorf("behind a root a power cut left zeros: %v, %v", roots, err)
	}
	none := filepath.Join(t.TempDir(), "none")
	if roots, err := readRoots(none, nil); err != nil || len(roots) != 0 {
		t.Errorf("without a file: %v, %v", roots, err)
	}
	if _, err := readRoots(t.TempDir(), nil); !errors.Is(err, syscall.EISDIR) {
		t.Errorf("a directory: %v", err)
	}
	if _, err := readRoots(filepath.Join(path, "x"), nil); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("below a file: %v", err)
	}
}

// A log is grown beyond twice the roots and 256 lines, with 4 MiB of blocks, or when it is
// not known what is in it.
func TestWhenALogIsGrown(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		l    *rootLog
		want bool
	}{
		{&rootLog{lines: 2*10 + 256}, false},
		{&rootLog{lines: 2*10 + 256 + 1}, true},
		{&rootLog{bytes: 4 << 20}, false},
		{&rootLog{bytes: 4<<20 + 1}, true},
		{&rootLog{broken: true}, true},
	} {
		if got := tt.l.grown(10); got != tt.want {
			t.Errorf("%d lines, %d bytes, broken %t: grown %t",
				tt.l.lines, tt.l.bytes, tt.l.broken, got)
		}
	}
}

// A log counts its lines and the bytes of its blocks, and begins anew when it is rewritten:
// then it has a line for each root, by CID, and each block.
func TestRewritingTheLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, b := gridCID(hashed(t, cid.Raw, 0x12, 32)), gridCID(hashed(t, cid.DagProtobuf, 0x12, 32))
	l, roots, err := openRootLog(dir, realDisk(), nil)
	if err != nil || len(roots) != 0 {
		t.Fatal(roots, err)
	}
	if err = l.close(); err != nil {
		t.Errorf("closed before it was written: %v", err)
	}
	roots[a], roots[b] = &root{CID: a}, &root{CID: b}
	if err = l.rewrite(roots, [][]byte{[]byte("12345"), []byte("678")}); err != nil {
		t.Fatal(err)
	}
	defer l.close()
	if l.lines != 4 || l.bytes != 8 || l.written != 0 || l.synced != 0 {
		t.Errorf("rewritten it has %d lines, %d bytes, %d and %d", l.lines, l.bytes, l.written, l.synced)
	}
	if err = errors.Join(l.append(roots[a]), l.appendBlock([]byte("9"))); err != nil {
		t.Fatal(err)
	}
	if l.lines != 6 || l.bytes != 9 || l.written != 2 || l.synced != 0 {
		t.Errorf("then it has %d lines, %d bytes, %d and %d", l.lines, l.bytes, l.written, l.synced)
	}
	text, err := os.ReadFile(l.path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	first, second := min(a, b), max(a, b)
	if len(lines) != 6 || !strings.Contains(lines[0], string(first)) ||
		!strings.Contains(lines[1], string(second)) || !strings.Contains(lines[4], string(a)) {
		t.Errorf("it reads\n%s", text)
	}
	l.broken = true
	if err := l.rewrite(roots, nil); err != nil || l.lines != 2 || l.bytes != 0 || l.synced != 2 ||
		l.broken {
		t.Errorf("%v: %d lines, %d bytes, %d synced, broken %t",
			err, l.lines, l.bytes, l.synced, l.broken)
	}
	if err := l.file.Close(); err != nil { // so that closing it once more fails
		t.Fatal(err)
	}
	if err := l.rewrite(nil, [][]byte{[]byte("1")}); !errors.Is(err, os.ErrClosed) || l.file == nil ||
		l.lines != 2 || l.bytes != 0 {
		t.Errorf("for nothing: %v, %d lines, %d bytes", err, l.lines, l.bytes)
	}
	if err := l.append(roots[a]); err != nil {
		t.Errorf("after a rewrite that failed: %v", err)
	}
}

// A line of which a part was written would be continued by the next one: the log is broken
// then. One of which nothing was written is only missing.
func TestHalfALine(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	l := &rootLog{file: w}
	go func() { // takes a byte of a line that is longer than a pipe holds, and goes
		_, _ = io.ReadFull(r, make([]byte, 1))
		_ = r.Close()
	}()
	if err := l.appendBlock(make([]byte, 1<<20)); !errors.Is(err, syscall.EPIPE) || !l.broken {
		t.Errorf("half a line: %v, broken %t", err, l.broken)
	}
	_ = w.Close()
	if err := l.append(&root{}); !errors.Is(err, os.ErrClosed) || !l.broken {
		t.Errorf("one more: %v, broken %t", err, l.broken)
	}
	l.broken = false
	if err := l.append(&root{}); !errors.Is(err, os.ErrClosed) || l.broken {
		t.Errorf("no line: %v, broken %t", err, l.broken)
	}
}

// From outside a root is held when the index has it whole and its first block is there, in
// a file, in the log, or because it is empty.
func TestWhatIsHeldFromOutside(t *testing.T) {
	t.Parallel()
	s := newPlayed(t, nil)
	small, empty := mustAdd(t, s.Store, []byte("small")), mustAdd(t, s.Store, nil)
	large := mustAdd(t, s.Store, noise(1, loggedBlock+1))
	partial, gone := mustAdd(t, s.Store, []byte("partial")), mustAdd(t, s.Store, []byte("gone"))
	s.mu.Lock()
	err := errors.Join(s.setPartialLocked(partial.CID), s.dropLocked(gone.CID))
	s.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	for _, ref := range []Ref{small, large} {
		if err = os.Remove(s.blocks.path(digestFor(t, rootOf(t, ref.CID)))); err != nil {
			t.Fatal(err)
		}
	}
	holds, err := HeldBelow(s.cfg.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		ref  Ref
		want bool
	}{
		{"a small block, of which the log has the content", small, true},
		{"the empty file", empty, true},
		{"a large block without its file", large, false},
		{"what is not whole", partial, false},
		{"what was forgotten", gone, false},
		{"what nobody knows", Ref{CID: gridCID(hashed(t, cid.Raw, 0x12, 32))}, false},
	} {
		if got := holds(tt.ref.CID); got != tt.want {
			t.Errorf("%s is held: %t", tt.name, got)
		}
	}
	if err := os.Mkdir(filepath.Join(s.cfg.Dir, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(s.cfg.Dir, "x", rootLogName), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := HeldBelow(filepath.Join(s.cfg.Dir, "x")); err == nil {
		t.Error("a directory is read as an index")
	}
}
