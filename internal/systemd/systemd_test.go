package systemd_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/systemd"
)

// manager takes the place of the service manager, at the socket that programs are told.
func manager(t *testing.T) (heard func() string) {
	t.Helper()
	addr := &net.UnixAddr{Name: filepath.Join(t.TempDir(), "notify"), Net: "unixgram"}
	conn, err := net.ListenUnixgram("unixgram", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	t.Setenv("NOTIFY_SOCKET", addr.Name)
	t.Setenv("WATCHDOG_USEC", "")
	t.Setenv("WATCHDOG_PID", "")
	return func() string {
		t.Helper()
		buf := make([]byte, 4096)
		if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		n, err := conn.Read(buf)
		if err != nil {
			t.Fatalf("nothing is said: %v", err)
		}
		return string(buf[:n])
	}
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// start runs Live; end ends it and waits.
func start(t *testing.T, alive func(context.Context) error) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		systemd.Live(ctx, alive, quiet())
	}()
	end = func() { cancel(); <-done }
	t.Cleanup(end)
	return end
}

func watchdog(t *testing.T, allowed time.Duration) {
	t.Helper()
	t.Setenv("WATCHDOG_USEC", strconv.FormatInt(allowed.Microseconds(), 10))
}

func want(t *testing.T, heard func() string, state string) {
	t.Helper()
	if got := heard(); got != state {
		t.Fatalf("the service manager heard %q, want %q", got, state)
	}
}

// The agent is up when its loops have answered, alive as often as they do, and then it stops.
func TestUpAliveStopping(t *testing.T) {
	heard := manager(t)
	watchdog(t, 30*time.Millisecond)
	answer, asked := make(chan error), make(chan struct{})
	end := start(t, func(context.Context) error {
		asked <- struct{}{}
		return <-answer
	})
	next := func(err error) {
		<-asked
		answer <- err
	}
	next(errors.New("not yet"))
	next(nil)
	want(t, heard, "READY=1")
	next(nil)
	want(t, heard, "WATCHDOG=1")
	next(errors.New("stuck")) // of which nothing is said
	next(nil)
	want(t, heard, "WATCHDOG=1")
	go func() { // one question may be under way
		select {
		case <-asked:
			answer <- nil
		case <-t.Context().Done():
		}
	}()
	end()
	for {
		if got := heard(); got == "STOPPING=1" {
			return
		} else if got != "WATCHDOG=1" {
			t.Fatalf("heard %q", got)
		}
	}
}

// A loop that hangs is asked for a part of the watchdog's time, and nothing is told of it.
func TestALoopThatHangs(t *testing.T) {
	heard := manager(t)
	watchdog(t, 30*time.Millisecond)
	gaveUp := make(chan error, 1)
	end := start(t, func(ctx context.Context) error {
		<-ctx.Done()
		select {
		case gaveUp <- ctx.Err():
		default:
		}
		return ctx.Err()
	})
	if err := <-gaveUp; !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("asked until %v", err)
	}
	end()
	want(t, heard, "STOPPING=1") // and neither that it is up nor that it is alive
}

// Without a watchdog it is asked once.
func TestWithoutAWatchdog(t *testing.T) {
	heard := manager(t)
	asked := 0
	end := start(t, func(context.Context) error { asked++; return nil })
	want(t, heard, "READY=1")
	end()
	want(t, heard, "STOPPING=1")
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
}

// The watchdog of another process, as of a shell around the agent, is not fed.
func TestTheWatchdogOfAnother(t *testing.T) {
	heard := manager(t)
	watchdog(t, time.Millisecond)
	t.Setenv("WATCHDOG_PID", "1")
	end := start(t, func(context.Context) error { return nil })
	want(t, heard, "READY=1")
	end()
	want(t, heard, "STOPPING=1")
}

// A reload says when it begins, by the clock that systemd compares with, and when it is over.
func TestReloading(t *testing.T) {
	heard := manager(t)
	over := systemd.Reloading(quiet())
	begins := regexp.MustCompile(`^RELOADING=1\n(MONOTONIC_USEC=[1-9]\d*\n)?$`)
	if got := heard(); !begins.MatchString(got) {
		t.Errorf("heard %q, want %s", got, begins)
	}
	over()
	want(t, heard, "READY=1")
}

// A service manager that does not listen keeps the agent neither from reading its configuration nor
// from stopping.
func TestTheManagerHangs(t *testing.T) {
	manager(t)
	socket := &net.UnixAddr{Name: os.Getenv("NOTIFY_SOCKET"), Net: "unixgram"}
	conn, err := net.DialUnix("unixgram", nil, socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for err == nil { // until nothing more can wait for it
		if err = conn.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)); err == nil {
			_, err = conn.Write([]byte("WATCHDOG=1"))
		}
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
	var said bytes.Buffer
	systemd.Reloading(slog.New(slog.NewTextHandler(&said, nil)))
	if !strings.Contains(said.String(), "the service manager could not be told") {
		t.Errorf("the log has %q", said.String())
	}
	start(t, func(context.Context) error { return nil })()
}

// Without a service manager nothing happens, and with one that is gone the agent goes on.
func TestNobodyListens(t *testing.T) {
	for _, socket := range []string{"", filepath.Join(t.TempDir(), "gone")} {
		t.Setenv("NOTIFY_SOCKET", socket)
		asked := make(chan struct{}, 1)
		end := start(t, func(context.Context) error { asked <- struct{}{}; return nil })
		<-asked
		systemd.Reloading(quiet())()
		end()
	}
}
