package api_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/api"
)

// TestWhatIsToldOfDoors holds each error of a door against its whole text, and wants nothing left.
func TestWhatIsToldOfDoors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil   func(t *testing.T, dir string)
		options api.Options // with DIR in its paths
		want    string
	}{
		"no folder": {
			func(t *testing.T, dir string) { filled(t, filepath.Join(dir, "f")) },
			api.Options{Socket: "DIR/f/s"},
			"make folder of socket: mkdir DIR/f: not a directory",
		},
		"a file": {
			func(t *testing.T, dir string) { filled(t, filepath.Join(dir, "f")) },
			api.Options{Socket: "DIR/f"},
			"listen on socket DIR/f: a file that is no socket is there; remove it or choose another path",
		},
		"a folder": {
			func(*testing.T, string) {},
			api.Options{Socket: "DIR"},
			"listen on socket DIR: a file that is no socket is there; remove it or choose another path",
		},
		"something that stays": {
			func(t *testing.T, dir string) {
				if err := os.MkdirAll(filepath.Join(dir, "s.new", "below"), 0o700); err != nil {
					t.Fatal(err)
				}
			},
			api.Options{Socket: "DIR/s"},
			"listen on socket DIR/s: listen unix DIR/s.new: bind: address already in use",
		},
		"no port": {
			func(*testing.T, string) {},
			api.Options{Socket: "DIR/s", Listen: "127.0.0.1"},
			"listen on 127.0.0.1: want HOST:PORT: address 127.0.0.1: missing port in address",
		},
		"a port that is none": {
			func(*testing.T, string) {},
			api.Options{Socket: "DIR/s", Listen: "localhost:65536"},
			"listen on localhost:65536: listen tcp: address 65536: invalid port",
		},
		"another machine's": {
			func(*testing.T, string) {},
			api.Options{Socket: "DIR/s", Listen: "192.0.2.1:1"},
			"listen on 192.0.2.1:1: want a loopback address such as 127.0.0.1:4800",
		},
		"no host": {
			func(*testing.T, string) {},
			api.Options{Listen: ":1"},
			"listen on :1: want a loopback address such as 127.0.0.1:4800",
		},
	} {
		dir := shortDir(t)
		c.spoil(t, dir)
		o := c.options
		o.Socket, o.Token = strings.ReplaceAll(o.Socket, "DIR", dir), token
		_, _, err := open(t, o)
		text := "none"
		if err != nil {
			text = strings.ReplaceAll(err.Error(), dir, "DIR")
		}
		if text != c.want {
			t.Errorf("%s: the error is %s, want %s", name, text, c.want)
		}
		wantGone(t, filepath.Join(dir, "s"))
	}
	for _, host := range []string{"localhost", "127.0.0.1", "127.1.2.3"} {
		if _, _, err := open(t, api.Options{Listen: host + ":0", Token: token}); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
}

// filled makes a file.
func filled(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestWhatIsToldOfTokens holds each error of a token's file against its whole text.
func TestWhatIsToldOfTokens(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	filled(t, at("short"))
	filled(t, at("open"))
	if err := os.Chmod(at("open"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(at("folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{"link": "nowhere", "way": "nowhere/below"} {
		if err := os.Symlink(at(target), at(link)); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{
		"short": "read token: DIR/short holds less than 16 characters; remove it to get a new one",
		"open": "read token: others can read DIR/open; run chmod 600 on it, or remove it to get a " +
			"new one",
		"folder":  "read token: read DIR/folder: is a directory",
		"open/x":  "read token: stat DIR/open/x: not a directory",
		"link":    "make token: open DIR/link: file exists",
		"way/x/y": "make folder of token: mkdir DIR/way: file exists",
	} {
		got, err := api.LoadToken(at(path))
		if err == nil || strings.ReplaceAll(err.Error(), dir, "DIR") != want || got != "" {
			t.Errorf("%s: %q, %v, want %s", path, got, err, want)
		}
	}
}

// TestDoorsThatBreak closes a door behind the server's back: that ends it, and the other door.
func TestDoorsThatBreak(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(shortDir(t), "s")
	server, err := api.New(&spy{}, api.Options{Socket: socket, Listen: "127.0.0.1:0", Token: token})
	if err != nil {
		t.Fatal(err)
	}
	if err = server.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	address := server.Addr().String()
	// To serve twice closes what the first one serves.
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err = server.Serve(over); err != nil {
		t.Errorf("Serve: %v", err)
	}
	wantGone(t, socket)
	if conn, wrong := (&net.Dialer{}).DialContext(t.Context(), "tcp", address); wrong == nil {
		_ = conn.Close()
		t.Error("the TCP door is open after the end")
	}
	err = server.Serve(t.Context())
	if !errors.Is(err, net.ErrClosed) || !strings.HasPrefix(err.Error(), "serve api: ") {
		t.Errorf("Serve with doors that are closed: %v", err)
	}
}

// endless never answers, whatever its context says.
type endless struct {
	spy
	asked, free chan struct{}
}

func (e *endless) Resume(context.Context) error {
	close(e.asked)
	<-e.free
	return nil
}

// TestNoRequestHoldsTheEnd ends an agent that answers never: its connection is cut off after the
// grace, and not before it.
func TestNoRequestHoldsTheEnd(t *testing.T) {
	t.Parallel()
	agent := &endless{asked: make(chan struct{}), free: make(chan struct{})}
	defer close(agent.free)
	socket, cancel, served := serving(t, agent)
	told := make(chan error, 1)
	go func() {
		question, err := http.NewRequestWithContext(
			t.Context(), http.MethodPost, "http://localhost/api/v1/resume", nil)
		if err == nil {
			var answer *http.Response
			if answer, err = overSocket(socket).Do(question); err == nil {
				err = answer.Body.Close()
			}
		}
		told <- err
	}()
	<-agent.asked
	begin := time.Now()
	cancel()
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
	const grace, little = 3 * time.Second, time.Second
	if took := time.Since(begin); took < grace-little {
		t.Errorf("the end took %s, want a grace of %s", took, grace)
	}
	if err := <-told; !errors.Is(err, io.EOF) {
		t.Errorf("the request that was not answered: %v", err)
	}
}

// TestHeadersAreBounded sends more of them than an agent takes.
func TestHeadersAreBounded(t *testing.T) {
	t.Parallel()
	socket, _ := serve(t, &spy{}, nil)
	for size, want := range map[int]int{8 << 10: 204, 40 << 10: 431} {
		answer, _ := do(t, overSocket(socket), ask{
			method: "POST", url: "http://localhost/api/v1/resume",
			header: map[string]string{"X": strings.Repeat("x", size)},
		})
		if answer.StatusCode != want {
			t.Errorf("a header of %d bytes: %d, want %d", size, answer.StatusCode, want)
		}
	}
}
