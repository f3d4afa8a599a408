package intake

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/mrsmesh/mrsmesh/internal/data"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// argAgent has the test's program play an agent that takes in a file and waits in the middle.
const argAgent = "play-the-agent"

// TestMain plays the agent's program, too: it runs again as the process.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case Arg:
			os.Exit(Main(os.Args[2:]))
		case argAgent:
			os.Exit(playAgent(os.Args[2], os.Args[3]))
		}
	}
	os.Exit(m.Run())
}

const patience = time.Minute

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); <-tick.C {
		if holds() {
			return
		}
	}
	t.Fatalf("after %s still not true: %s", patience, what)
}

// openStore opens a store that exchanges nothing with anybody.
func openStore(dir string, change func(*data.Config)) (*data.Store, func() error, error) {
	h, err := libp2p.New(libp2p.NoListenAddrs, libp2p.DisableRelay(), libp2p.DisableMetrics())
	if err != nil {
		return nil, nil, err
	}
	cfg := data.Config{Dir: dir, Allow: func(peer.ID) bool { return false }}
	change(&cfg)
	s, err := data.Open(cfg, h)
	if err != nil {
		return nil, nil, err
	}
	return s, func() error {
		if err := s.Close(); err != nil {
			return err
		}
		return h.Close()
	}, nil
}

// newStore opens a store and gives its directory.
func newStore(t *testing.T, change func(*data.Config)) (*data.Store, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	if change == nil {
		change = func(*data.Config) {}
	}
	s, end, err := openStore(dir, change)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := end(); err != nil {
			t.Error(err)
		}
	})
	return s, dir
}

// newIntake starts the test's program as the process; began is told of each.
func newIntake(began func(pid int)) *Intake {
	in := New(Command(os.Args[0]))
	if began != nil {
		in.began = began
	}
	return in
}

// paused is a store that stops for a moment before it takes a block: the first one, or a later.
type paused struct {
	Store
	at    func(building context.Context)
	later int
}

func (p paused) AddBuilt(
	ctx context.Context,
	build func(context.Context, string, func(data.Block) error) (grid.CID, error),
) (data.Ref, error) {
	return p.Store.AddBuilt(ctx, func(
		ctx context.Context, dir string, take func(data.Block) error,
	) (grid.CID, error) {
		left := p.later
		return build(ctx, dir, func(b data.Block) error {
			if left == 0 {
				p.at(ctx)
			}
			left--
			return take(b)
		})
	})
}

// playAgent takes a file in and waits in the middle for its own end.
func playAgent(dir, file string) int {
	s, _, err := openStore(dir, func(*data.Config) {})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	f, err := os.Open(file)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	pid := 0
	in := newIntake(func(p int) { pid = p })
	_, err = in.Take(context.Background(), paused{Store: s, at: func(context.Context) {
		fmt.Println(pid)
		select {}
	}, later: 1}, Content{File: f})
	fmt.Println(err)
	return 1
}

// noise is n bytes that do not repeat.
func noise(n int) []byte {
	out := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(n), byte(n >> 8)}).Read(out)
	return out
}

// fileOf is an open file with the content.
func fileOf(t *testing.T, content []byte) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "content"))
	if err == nil {
		_, err = io.Copy(f, bytes.NewReader(content))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// nothingLeft checks that the store has no file of a block that it did not take.
func nothingLeft(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(dir, "tmp"))
	if err != nil || len(entries) != 0 {
		t.Errorf("left are %v, %v", entries, err)
	}
}

// tree makes a directory with empty ones in it, files that may be run, and one directory with so
// many names that it is split.
func tree(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write := func(name, content string, mode os.FileMode) {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if mode == 0 {
			mode = 0o600
		}
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("a", "alpha", 0)
	write("sub/same", "alpha", 0)
	write("sub/deep/er/large", string(noise(600<<10)), 0)
	write("bin/run", "#!/bin/sh\n", 0o700)
	write("bin/large", string(noise(300<<10)), 0o700)
	write("nothing", "", 0)
	for i := range 1150 {
		write(fmt.Sprintf("many/%s%d", strings.Repeat("n", 200), i), fmt.Sprint(i%7), 0)
	}
	for _, empty := range []string{"empty", "sub/deep/empty"} {
		if err := os.MkdirAll(filepath.Join(dir, empty), 0o750); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
