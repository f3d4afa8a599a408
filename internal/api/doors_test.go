package api_test

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/api"
)

// open opens the doors, and gives what closes them, which the end of the test does as well.
func open(t *testing.T, o api.Options) (*api.Server, func(), error) {
	t.Helper()
	server, err := api.New(&spy{}, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Listen(t.Context()); err != nil {
		return nil, nil, err
	}
	shut := sync.OnceFunc(func() { // to serve for no time closes the doors
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := server.Serve(ctx); err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	t.Cleanup(shut)
	return server, shut, nil
}

// deadSocket leaves a socket at the path that nobody listens at.
func deadSocket(t *testing.T, path string) {
	t.Helper()
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	listener.SetUnlinkOnClose(false)
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
}

func wantMode(t *testing.T, path string, want fs.FileMode) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != want {
		t.Errorf("%s: %v, %v, want %v", path, info, err, want)
	}
}

func wantGone(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is left behind: %v", path, err)
	}
}

// TestTheSocketIsPrivate looks at the modes of a new socket and its folder, and at what is left
// when the agent has ended.
func TestTheSocketIsPrivate(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(shortDir(t), "a", "s.sock")
	server, shut, err := open(t, api.Options{Socket: socket})
	if err != nil {
		t.Fatal(err)
	}
	wantMode(t, socket, 0o600)
	wantMode(t, filepath.Dir(socket), 0o700)
	if server.Addr() != nil {
		t.Errorf("Addr without a TCP door = %v", server.Addr())
	}
	want := "listen on socket " + socket +
		": another agent answers there; stop it or choose another path"
	if _, _, err := open(t, api.Options{Socket: socket}); err == nil || err.Error() != want {
		t.Errorf("a second agent on the same socket: %v", err)
	}
	shut()
	wantGone(t, socket)
}

// TestADeadAgentsSocketIsReplaced leaves two of them: at the path, and where an agent that is
// killed while it starts leaves one.
func TestADeadAgentsSocketIsReplaced(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(shortDir(t), "s")
	deadSocket(t, socket)
	deadSocket(t, socket+".new")
	if _, _, err := open(t, api.Options{Socket: socket}); err != nil {
		t.Error(err)
	}
	wantMode(t, socket, 0o600)
	wantGone(t, socket+".new")
}

// TestAnotherAgentsSocketStays puts another socket where this agent's was: it is not removed
// with this one.
func TestAnotherAgentsSocketStays(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(shortDir(t), "s")
	_, shut, err := open(t, api.Options{Socket: socket})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(socket, socket+".old"); err != nil {
		t.Fatal(err)
	}
	deadSocket(t, socket)
	shut()
	if _, err := os.Lstat(socket); err != nil {
		t.Errorf("another agent's socket was removed: %v", err)
	}
}

// TestLongestSocket makes one whose path is as long as may be.
func TestLongestSocket(t *testing.T) {
	t.Parallel()
	const most = 99
	dir := shortDir(t)
	for name, bytes := range map[string]int{"a": most, "b": most + 1} {
		path := filepath.Join(dir, strings.Repeat(name, bytes-len(dir)-1))
		_, _, err := open(t, api.Options{Socket: path})
		if fits := bytes <= most; (err == nil) != fits {
			t.Errorf("a path of %d bytes: %v, want it to be taken: %v", bytes, err, fits)
		}
		if bytes > most && (err == nil || !strings.Contains(err.Error(), "longer than 99 bytes")) {
			t.Errorf("a path of %d bytes: %v", bytes, err)
		}
	}
}

func TestDoorsThatAreRefused(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]api.Options{
		"serve api: neither a socket nor an address; give one of them":   {},
		"serve api: an address without a token; make one with LoadToken": {Listen: "127.0.0.1:0"},
		"serve api: an address without a token; make one with LoadToken (two)": {
			Listen: "x", Socket: "y",
		},
	} {
		if _, err := api.New(&spy{}, o); err == nil || !strings.HasPrefix(want, err.Error()) {
			t.Errorf("New(%+v): %v, want %s", o, err, want)
		}
	}
	dir := shortDir(t)
	file, socket := filepath.Join(dir, "file"), filepath.Join(dir, "s")
	if err := os.WriteFile(file, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, o := range map[string]api.Options{
		"listen on 0.0.0.0:0: want a loopback address such as 127.0.0.1:4800": {Listen: "0.0.0.0:0"},
		"listen on name:0: want a loopback address such as 127.0.0.1:4800":    {Listen: "name:0"},
		"listen on 127.0.0.1: want HOST:PORT": {
			Listen: "127.0.0.1", Socket: socket,
		},
		"listen on 127.0.0.1:x: ": {Listen: "127.0.0.1:x"},
		"make folder of socket: ": {Socket: file + "/s"},
		"listen on socket " + file + ": a file that is no socket is there": {Socket: file},
	} {
		o.Token = token
		if _, _, err := open(t, o); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("Listen(%+v): %v, want %s", o, err, want)
		}
	}
	wantGone(t, socket) // no door stays open alone
}

// TestToken makes one, and reads it again.
func TestToken(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "d", "api.token")
	first, err := api.LoadToken(path)
	if err != nil || !regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(first) {
		t.Fatalf("LoadToken = %q, %v, want 32 bytes in hexadecimal digits", first, err)
	}
	wantMode(t, path, 0o600)
	wantMode(t, filepath.Dir(path), 0o700)
	if text, err := os.ReadFile(path); err != nil || string(text) != first+"\n" {
		t.Errorf("the file holds %q, %v, want a line with %q", text, err, first)
	}
	if again, err := api.LoadToken(path); err != nil || again != first {
		t.Errorf("LoadToken again = %q, %v, want %q", again, err, first)
	}
	if other, err := api.LoadToken(path + "2"); err != nil || other == first {
		t.Errorf("LoadToken of another file = %q, %v, want another one than %q", other, err, first)
	}
}

// TestTokensThatAreRefused changes the file of a token.
func TestTokensThatAreRefused(t *testing.T) {
	t.Parallel()
	const good = "0123456789abcdef"
	for name, c := range map[string]struct {
		text string
		mode fs.FileMode
	}{
		"":                                {" " + good + "\n", 0o600},
		"holds less than 16 characters":   {good[1:] + " \n", 0o600},
		"others can read":                 {good, 0o640},
		"others can read (write)":         {good, 0o620},
		"others can read (all)":           {good, 0o604},
		"others can read (all may write)": {good, 0o602},
		"others can read (all may run)":   {good, 0o601},
		"others can read (group may run)": {good, 0o610},
	} {
		path := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, c.mode); err != nil {
			t.Fatal(err)
		}
		want, _, _ := strings.Cut(name, " (")
		token, err := api.LoadToken(path)
		switch {
		case want == "" && (err != nil || token != good):
			t.Errorf("%q: %q, %v, want %q", c.text, token, err, good)
		case want != "" && (token != "" || err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q with mode %v: %q, %v, want an error that %s", c.text, c.mode, token, err, want)
		}
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte(good), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "private"), 0o700); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		file + "/token": "read token: ", filepath.Join(dir, "private"): "read token: ",
	} {
		if token, err := api.LoadToken(path); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("LoadToken(%s) = %q, %v, want %s", path, token, err, want)
		}
	}
}

// slow answers Resume when it is let go, whatever its context says.
type slow struct {
	spy
	asked, free chan struct{}
}

func (s *slow) Resume(context.Context) error {
	s.asked <- struct{}{}
	<-s.free
	return nil
}

// TestTheLastRequestIsAnswered ends the agent while it answers.
func TestTheLastRequestIsAnswered(t *testing.T) {
	t.Parallel()
	agent := &slow{asked: make(chan struct{}), free: make(chan struct{})}
	socket, cancel, served := serving(t, agent)
	go func() {
		<-agent.asked
		cancel()
		for ctx, stop := context.WithTimeout(context.Background(), time.Minute); ; {
			conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
			if err != nil { // the door is closed, and the request is still there
				stop()
				close(agent.free)
				return
			}
			_ = conn.Close()
		}
	}()
	answer, _ := request{method: "POST", path: "/resume"}.send(t, socket)
	if answer.StatusCode != http.StatusNoContent {
		t.Errorf("POST /resume = %d, want 204", answer.StatusCode)
	}
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
}
