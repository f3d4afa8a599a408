package p2p

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

func TestALogIsReadByAnAdmittedPeer(t *testing.T) {
	nodes := cluster(t, 2, nil)
	a, b := nodes[0], nodes[1]
	b.HandleLog(func(from grid.SiteID, rw io.ReadWriteCloser) {
		question := make([]byte, 4)
		if _, err := io.ReadFull(rw, question); err == nil && from == a.Self() {
			_, _ = rw.Write([]byte(string(question) + " and the answer"))
		}
	})
	rw, err := a.OpenLog(t.Context(), b.Self())
	if err != nil {
		t.Fatalf("OpenLog() = %v", err)
	}
	if _, err = rw.Write([]byte("what")); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(rw)
	if err != nil || string(got) != "what and the answer" {
		t.Errorf("read %q, %v", got, err)
	}
	if err := rw.Close(); err != nil {
		t.Errorf("Close() = %v", err)
	}
	if _, err := a.OpenLog(t.Context(), newForge(t).site); err == nil {
		t.Error("a log of an unknown site is opened")
	}
}

// untilItFails serves a log by sending back what it reads until that fails, and
// tells why.
func untilItFails(failed chan<- error) func(grid.SiteID, io.ReadWriteCloser) {
	return func(_ grid.SiteID, rw io.ReadWriteCloser) {
		_, err := io.Copy(rw, rw)
		failed <- err
	}
}

func TestALogStreamEndsWhenIdle(t *testing.T) {
	nodes := cluster(t, 2, func(_ int, cfg *Config) { cfg.Timing.LogIdle = 100 * time.Millisecond })
	a, b := nodes[0], nodes[1]
	failed := make(chan error, 1)
	b.HandleLog(untilItFails(failed))
	rw, err := a.OpenLog(t.Context(), b.Self())
	if err != nil {
		t.Fatal(err)
	}
	if _, err = rw.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if err = <-failed; !isTimeout(err) {
		t.Errorf("idle reader got %v, want a timeout", err)
	}
}

func TestALogStreamEndsWithItsContext(t *testing.T) {
	nodes := cluster(t, 2, nil)
	a, b := nodes[0], nodes[1]
	failed := make(chan error, 1)
	b.HandleLog(untilItFails(failed))
	ctx, cancel := context.WithCancel(t.Context())
	rw, err := a.OpenLog(ctx, b.Self())
	if err != nil {
		t.Fatal(err)
	}
	if _, err = rw.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err = io.ReadFull(rw, make([]byte, 1)); err != nil {
		t.Fatalf("the stream is not served: %v", err)
	}
	cancel()
	if _, err = io.ReadAll(rw); err == nil {
		t.Error("the stream outlives its context")
	}
	if err = <-failed; err == nil || isTimeout(err) {
		t.Errorf("the other side got %v, want the stream reset", err)
	}
}

func TestALogIsNotServedToAStranger(t *testing.T) {
	cfg := testConfig(t)
	cfg.Timing.Dial, cfg.Timing.Hello = 100*time.Millisecond, 100*time.Millisecond
	n := startSite(t, cfg)
	n.HandleLog(func(grid.SiteID, io.ReadWriteCloser) { t.Error("served") })
	s, err := rawPeer(t, n).NewStream(t.Context(), n.Host().ID(), protocol.LogStreamID)
	if err != nil {
		t.Fatal(err)
	}
	_ = s.SetDeadline(time.Now().Add(patience))
	if _, err := s.Read(make([]byte, 1)); err == nil || isTimeout(err) {
		t.Errorf("read = %v, want the stream reset", err)
	}
}
