package p2p

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/mrsmesh/mrsmesh/internal/p2p/death"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

func deadAttempt(n uint32) grid.AttemptID {
	return grid.AttemptID{Task: grid.TaskID{Job: "mfrggzdfmztwq2lk", Index: n}, Token: 3}
}

// leaveNotes writes notes to a mesh as supervisors do.
func leaveNotes(t *testing.T, to grid.SiteID, addrs []string, n int) string {
	t.Helper()
	dir := t.TempDir()
	for i := range n {
		note := death.Note{Attempt: deadAttempt(uint32(i)), To: to, Addrs: addrs}
		text, err := note.Encode()
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(dir, note.Attempt.Task.String())
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A site's deaths are told with its own key, over TCP and over QUIC; the notes are gone then.
func TestDeathsAreTold(t *testing.T) {
	nodes := cluster(t, 1, func(_ int, cfg *Config) {
		cfg.Listen = []string{"/ip4/127.0.0.1/tcp/0", "/ip4/127.0.0.1/udp/0/quic-v1"}
	})
	key := filepath.Join(t.TempDir(), "key")
	id, err := LoadIdentity(key)
	if err != nil {
		t.Fatal(err)
	}
	for i, addr := range nodes[0].Host().Addrs() {
		dir := leaveNotes(t, nodes[0].Self(), []string{"/ip4/127.0.0.1/tcp/1", addr.String()}, 3)
		if err := death.Tell(t.Context(), key, dir); err != nil {
			t.Fatalf("%s: %v", addr, err)
		}
		got := nodes[0].died()
		if len(got) != i+1 {
			t.Fatalf("%s: told %+v", addr, got)
		}
		slices.SortFunc(got[i].attempts, grid.AttemptID.Compare)
		want := []grid.AttemptID{deadAttempt(0), deadAttempt(1), deadAttempt(2)}
		if got[i].site != id.Site() || !slices.Equal(got[i].attempts, want) {
			t.Errorf("%s: told %+v", addr, got[i])
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
			t.Errorf("%s: left %v, %v", addr, left, err)
		}
	}
	if n := len(nodes[0].losses()); n != 0 {
		t.Errorf("%d sites were lost that were never there", n)
	}
}

// Nobody but members is heard, and nothing but deaths.
func TestDeathsOfStrangersAndOtherWords(t *testing.T) {
	known, err := NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	nodes := cluster(t, 1, func(_ int, cfg *Config) {
		cfg.AcceptAnyone, cfg.Allow = false, []grid.SiteID{known.Site()}
	})
	addrs := []string{nodes[0].Host().Addrs()[0].String()}
	stranger, err := LoadIdentity(filepath.Join(t.TempDir(), "key"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "stranger")
	if err := stranger.Save(file); err != nil {
		t.Fatal(err)
	}
	if err := death.Tell(t.Context(), file, leaveNotes(t, nodes[0].Self(), addrs, 1)); err == nil {
		t.Error("a stranger was heard")
	}
	exit := grid.Exit{Cause: grid.CauseExited}
	for name, frames := range map[string][]byte{
		"another end":     frame(t, protocol.Exited{Attempt: deadAttempt(1), Exit: exit}),
		"another message": frame(t, protocol.NeedRequirements{Job: "mfrggzdfmztwq2lk", Seq: 1}),
		"half a message":  frame(t, protocol.Exited{Attempt: deadAttempt(1), Exit: exit})[:9],
		"too much":        append([]byte{0, 1, 0, 0}, make([]byte, 1<<16)...),
	} {
		stream := deathStream(t, known, nodes[0])
		_, _ = stream.Write(frames)
		_ = stream.CloseWrite()
		_ = stream.SetReadDeadline(time.Now().Add(30 * time.Second))
		if _, err := stream.Read(make([]byte, 1)); errors.Is(err, io.EOF) {
			t.Errorf("%s was taken", name)
		}
	}
	if got := nodes[0].died(); len(got) != 0 {
		t.Errorf("told %+v", got)
	}
}

func frame(t *testing.T, m protocol.Message) []byte {
	t.Helper()
	raw, err := protocol.AppendFrame(nil, m)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func deathStream(t *testing.T, as Identity, to node) network.Stream {
	t.Helper()
	h, err := libp2p.New(libp2p.Identity(as.Key()), libp2p.NoListenAddrs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	target := peer.AddrInfo{ID: to.Host().ID(), Addrs: to.Host().Addrs()}
	if err = h.Connect(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	stream, err := h.NewStream(t.Context(), target.ID, protocol.DeathStreamID)
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

// A key that is not there is not made, and notes that cannot be read are nobody's.
func TestNothingToTell(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "none")
	if err := death.Tell(t.Context(), missing, t.TempDir()); err == nil {
		t.Error("told without a key")
	}
	if _, err := os.Stat(missing); err == nil {
		t.Error("a key was made")
	}
	key := filepath.Join(t.TempDir(), "key")
	if _, err := LoadIdentity(key); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"garbage": "{{", "empty": "", "nobody": "{}", ".hidden": "{{", "long": strings.Repeat(" ", 1<<20),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := death.Tell(t.Context(), key, dir); err == nil {
		t.Error("garbage is no error")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 || left[0].Name() != ".hidden" {
		t.Errorf("left %v, %v", left, err)
	}
}
