package death

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

func attempt(index uint32) grid.AttemptID {
	id := grid.TaskID{Job: grid.JobID(strings.Repeat("a", 16)), Index: index}
	return grid.AttemptID{Task: id, Token: 1}
}

// put writes files into a new directory.
func put(t *testing.T, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func encoded(t *testing.T, n Note) []byte {
	t.Helper()
	text, err := n.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Notes are taken once, by submitter. What is none, or too long, or says nothing that makes
// sense is told of and removed, and keeps nothing else from being told.
func TestTake(t *testing.T) {
	ann, ben := newHost(t), newHost(t)
	toAnn, toBen := grid.SiteID(ann.ID().String()), grid.SiteID(ben.ID().String())
	good := Note{Attempt: attempt(1), To: toAnn, Addrs: []string{"/ip4/127.0.0.1/tcp/1"}}
	dir := put(t, map[string][]byte{
		"a": encoded(t, good), "b": encoded(t, Note{Attempt: attempt(2), To: toBen}),
		"c":       []byte("{"),
		"d":       encoded(t, Note{Attempt: grid.AttemptID{}, To: toBen}),
		"e":       encoded(t, Note{Attempt: attempt(3)}),
		"f":       append(encoded(t, good), make([]byte, maxNoteBytes)...),
		".unread": encoded(t, good),
	})
	if err := os.Mkdir(filepath.Join(dir, "directory"), 0o700); err != nil {
		t.Fatal(err)
	}
	notes, err := take(dir)
	if len(notes) != 2 || len(notes[toAnn]) != 1 || len(notes[toBen]) != 1 ||
		notes[toAnn][0].Addrs[0] != good.Addrs[0] || notes[toBen][0].Attempt != attempt(2) {
		t.Errorf("notes %+v", notes)
	}
	if err == nil || strings.Count(err.Error(), "read death note ") != 4 ||
		!strings.Contains(err.Error(), "are too many") {
		t.Errorf("errors %v, want one for each of c, d, e, f", err)
	}
	left, wrong := os.ReadDir(dir)
	if wrong != nil || len(left) != 2 {
		t.Errorf("%v are left, %v", left, wrong)
	}
	if again, err := take(dir); len(again) != 0 || err != nil {
		t.Errorf("taken again: %v, %v", again, err)
	}
	if _, err := take(filepath.Join(dir, "absent")); err == nil {
		t.Error("a directory that is not there was read")
	}
}

// A note may name several that are to be told; each is told of the attempt, and one that cannot be
// a site spoils the note.
func TestWhoElseIsTold(t *testing.T) {
	var n Note
	n.Attempt = attempt(1)
	for i, to := range []grid.SiteID{"ann", "ben", "cid"} {
		n = n.With(to, []string{fmt.Sprint("/ip4/127.0.0.1/tcp/", i+1)})
	}
	bad := n
	bad.Also = []Listener{{To: "a/b"}}
	notes, err := take(put(t, map[string][]byte{
		"a": encoded(t, n), "b": encoded(t, bad),
		"c": encoded(t, Note{Attempt: attempt(2), To: "ben"}),
	}))
	if err == nil || strings.Count(err.Error(), "read death note ") != 1 {
		t.Errorf("errors %v, want one", err)
	}
	for i, to := range []grid.SiteID{"ann", "ben", "cid"} {
		of := notes[to]
		if len(of) == 0 || of[0].Attempt != n.Attempt || of[0].To != to || len(of[0].Also) != 0 ||
			of[0].Addrs[0] != fmt.Sprint("/ip4/127.0.0.1/tcp/", i+1) {
			t.Errorf("%s: %+v", to, of)
		}
	}
	if len(notes) != 3 || len(notes["ben"]) != 2 {
		t.Errorf("notes %+v", notes)
	}
}

// The longest note is read, one more byte is too much.
func TestTheLongestNote(t *testing.T) {
	note := Note{Attempt: attempt(1), To: grid.SiteID(newHost(t).ID().String())}
	text := encoded(t, note)
	spaces := strings.Repeat(" ", maxNoteBytes-len(text))
	for extra, want := range []int{1, 0} {
		dir := put(t, map[string][]byte{"n": append(text, spaces+strings.Repeat(" ", extra)...)})
		if notes, err := take(dir); len(notes) != want || (err == nil) != (want == 1) {
			t.Errorf("%d bytes beyond: %d taken, %v", extra, len(notes), err)
		}
	}
}

// A submitter is told of no more attempts than a message may hold.
func TestTheMostNotes(t *testing.T) {
	to := grid.SiteID(newHost(t).ID().String())
	files := make(map[string][]byte)
	for i := range uint32(MaxAttempts + 2) {
		files[fmt.Sprint(i)] = encoded(t, Note{Attempt: attempt(i), To: to})
	}
	if notes, err := take(put(t, files)); err != nil || len(notes[to]) != MaxAttempts {
		t.Errorf("%d taken, %v", len(notes[to]), err)
	}
}

// A submitter is reached on all its addresses, each once and not too many; what is none is
// passed over.
func TestCompose(t *testing.T) {
	to := grid.SiteID(newHost(t).ID().String())
	var many []string
	for i := range MaxAddrs + 3 {
		many = append(many, fmt.Sprintf("/ip4/127.0.0.1/tcp/%d", i+1))
	}
	notes := []Note{
		{Attempt: attempt(1), To: to, Addrs: []string{many[0], "nonsense", many[0]}},
		{Attempt: attempt(2), To: to, Addrs: []string{many[0], many[1]}},
	}
	frames, target, err := compose(to, notes)
	if err != nil || len(target.Addrs) != 2 || target.ID.String() != string(to) || len(frames) == 0 {
		t.Errorf("%d bytes to %+v, %v", len(frames), target, err)
	}
	if _, target, err = compose(to, []Note{{Attempt: attempt(1), Addrs: many}}); err != nil ||
		len(target.Addrs) != MaxAddrs {
		t.Errorf("%d addresses, %v", len(target.Addrs), err)
	}
	if _, _, err := compose("nobody", notes); err == nil {
		t.Error("somebody without an identity can be reached")
	}
	if _, _, err := compose(to, []Note{{}}); err == nil {
		t.Error("an attempt without a name is told of")
	}
}

func newHost(t *testing.T) host.Host {
	t.Helper()
	h, err := libp2p.New(libp2p.ListenAddrStrings("/ip4/127.0.0.1/tcp/0"), libp2p.DisableMetrics())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}

// A death is told when its submitter has read all of it and closed the stream, and not before.
func TestTelling(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key")
	if _, err := wire.LoadIdentity(key); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		take  func(network.Stream)
		taken bool
	}{
		"taken":   {func(s network.Stream) { _, _ = io.ReadAll(s); _ = s.Close() }, true},
		"refused": {func(s network.Stream) { _ = s.Reset() }, false},
		"talked back to": {func(s network.Stream) {
			_, _ = io.ReadAll(s)
			_, _ = s.Write([]byte("what?"))
			_ = s.Close()
		}, false},
		"never read": {func(network.Stream) {}, false},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			h.SetStreamHandler(protocol.DeathStreamID, c.take)
			info := peer.AddrInfo{ID: h.ID(), Addrs: h.Addrs()}
			note := Note{Attempt: attempt(1), To: grid.SiteID(h.ID().String())}
			for _, a := range info.Addrs {
				note.Addrs = append(note.Addrs, a.String())
			}
			dir := put(t, map[string][]byte{"n": encoded(t, note)})
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := Tell(ctx, key, dir); (err == nil) != c.taken {
				t.Errorf("error %v, want none: %v", err, c.taken)
			}
		})
	}
}

func TestMainOfTelling(t *testing.T) {
	t.Cleanup(func() { signal.Reset(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP) })
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr := os.Stderr
	os.Stderr = write
	codes := []int{Main(nil), Main([]string{filepath.Join(t.TempDir(), "absent"), t.TempDir()})}
	os.Stderr = stderr
	_ = write.Close()
	text, err := io.ReadAll(read)
	if err != nil || codes[0] != exitUsage || codes[1] != exitWrong {
		t.Errorf("exit codes %v, %v", codes, err)
	}
	for _, want := range []string{
		"want the file of a key and a directory", "tell deaths: read identity",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("it says %q, not %q", text, want)
		}
	}
}
