package p2p

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/mrsmesh/mrsmesh/internal/p2p/death"
	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// As many attempts are told dead in a stream as one site may have of one submitter, and no more.
func TestHowManyDeathsAreTold(t *testing.T) {
	for n, want := range map[int]error{
		0: nil, 1: nil, death.MaxAttempts: nil, death.MaxAttempts + 1: protocol.ErrTooLarge,
	} {
		var said bytes.Buffer
		for i := range n {
			_, _ = said.Write(frame(t, protocol.Exited{
				Attempt: deadAttempt(uint32(i)), Exit: grid.Exit{Cause: grid.CauseSiteRestart},
			}))
		}
		got, err := readDeaths(&pieces{Reader: &said})
		if !errors.Is(err, want) || (err == nil) != (want == nil) || err == nil && len(got) != n {
			t.Errorf("of %d attempts %d are read, %v; want %v", n, len(got), err, want)
		}
	}
}

// What is said of deaths is taken from members alone, within the Hello's time; a stream that says
// nothing is no news.
func TestHowDeathsAreHeard(t *testing.T) {
	exited := frame(t, protocol.Exited{
		Attempt: deadAttempt(1), Exit: grid.Exit{Cause: grid.CauseSiteRestart},
	})
	for name, c := range map[string]struct {
		before func(q *quiet, conn *stubConn, here *stubStream)
		says   []byte
		silent bool // it neither says anything nor ends
		taken  bool
		told   int
		after  time.Duration
	}{
		"a death":     {says: exited, taken: true, told: 1},
		"nothing":     {taken: true},
		"half of one": {says: exited[:9]},
		"silence":     {silent: true, after: 2 * time.Second},
		"a stranger's": {before: func(q *quiet, _ *stubConn, _ *stubStream) {
			q.cfg.AcceptAnyone = false
		}},
		"of a closed mesh": {before: func(q *quiet, _ *stubConn, _ *stubStream) { q.closed = true }},
		"without deadline": {before: func(_ *quiet, _ *stubConn, s *stubStream) { s.stuck = errSelf }},
		"one too many": {before: func(q *quiet, conn *stubConn, _ *stubStream) {
			for range bidStreams {
				q.guard.openStream(conn.peer)
			}
		}},
		"nobody asks": {before: func(q *quiet, _ *stubConn, _ *stubStream) {
			q.Mesh.handlers.OnAttemptsDied = nil
		}, says: exited, taken: true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(c *Config) { c.Timing.Hello = 2 * time.Second },
				func(t *testing.T, q *quiet, conn *stubConn) {
					here, there := newStream(t, conn)
					if c.before != nil {
						c.before(q, conn, here)
					}
					streams := q.guard.of(conn.peer).streams
					began := time.Now()
					go q.serveDeaths(t.Context(), here)
					synctest.Wait() // it waits for what is said, or has ended
					if !c.silent {
						_, _ = there.Write(c.says)
						synctest.Wait()
						_ = there.pipe.Close()
					}
					q.wg.Wait()
					synctest.Wait()
					if here.isReset() == c.taken || here.isClosed() != c.taken || time.Since(began) != c.after {
						t.Errorf("taken %t after %s", here.isClosed(), time.Since(began))
					}
					if got := q.died(); len(got) != c.told || c.told > 0 &&
						(got[0].site != wire.SiteOf(conn.peer) ||
							!slices.Equal(got[0].attempts, []grid.AttemptID{deadAttempt(1)})) {
						t.Errorf("told %+v", got)
					}
					if q.guard.of(conn.peer).streams != streams {
						t.Error("a stream that has ended is counted")
					}
					if got := q.lines.has("INFO", "a site's agent has died"); got != c.taken {
						t.Errorf("logged %t", got)
					}
					if got := q.Count(wire.CountDropped, queueStreams) == 1; got != (name == "one too many") {
						t.Errorf("counted as too many: %t", got)
					}
					if got := q.Count(wire.CountInvalid, "frame") == 1; got != (name == "half of one" ||
						c.silent) {
						t.Errorf("counted as unusable: %t", got)
					}
				})
		})
	}
}

// Where a member may be told of a death: where its connection leads, else where it was.
func TestTheWaysToAMember(t *testing.T) {
	q := newQuiet(t, nil)
	if got := q.Ways("nobody"); got != nil {
		t.Errorf("ways to nobody: %q", got)
	}
	r := q.knows(q.stranger())
	q.at(r.id, "/ip4/10.0.0.1/tcp/1")
	if got := q.Ways(r.site); !slices.Equal(got, []string{"/ip4/10.0.0.1/tcp/1"}) {
		t.Errorf("ways to one that was lost: %q", got)
	}
	for i := range death.MaxAddrs {
		q.at(r.id, fmt.Sprintf("/ip4/10.0.1.%d/tcp/1", i))
	}
	if got := q.Ways(r.site); len(got) != death.MaxAddrs {
		t.Errorf("%d ways, want %d", len(got), death.MaxAddrs)
	}
	r.circuits = parseAddrs([]string{through(r.id, "/ip4/10.0.2.1/tcp/1")})
	q.connected(r.id, "/ip4/10.0.1.5/tcp/1", network.DirOutbound)
	if got := q.Ways(r.site); len(got) != maxRememberedAddr || got[0] != "/ip4/10.0.1.5/tcp/1" ||
		got[maxRememberedAddr-1] != r.circuits[0].String() {
		t.Errorf("ways to one that is connected: %q", got)
	}
}

// Log streams are served to admitted peers, of one peer and of all so many at a time.
func TestWhichLogsAreServed(t *testing.T) {
	for name, c := range map[string]struct {
		before func(q *quiet, conn *stubConn)
		served bool
		counts bool
		after  time.Duration
	}{
		"of a peer":     {before: func(q *quiet, c *stubConn) { q.present(c.peer) }, served: true},
		"nobody reads":  {before: func(q *quiet, c *stubConn) { q.present(c.peer); q.HandleLog(nil) }},
		"of a stranger": {before: func(*quiet, *stubConn) {}},
		"of one that is not admitted": {
			before: func(q *quiet, c *stubConn) { q.knows(c.peer) }, after: 5 * time.Second,
		},
		"one too many of a peer": {before: func(q *quiet, c *stubConn) {
			q.present(c.peer)
			q.guard.openLog(c.peer)
		}, counts: true},
		"one too many of all": {before: func(q *quiet, c *stubConn) {
			q.present(c.peer)
			for range cap(q.logs.slots) {
				q.logs.slots <- struct{}{}
			}
		}, counts: true},
		"of a closed mesh": {before: func(q *quiet, c *stubConn) { q.present(c.peer); q.closed = true }},
	} {
		t.Run(name, func(t *testing.T) {
			change := func(c *Config) {
				c.Limits.LogStreams, c.Timing.Dial, c.Timing.Hello = 8, 2*time.Second, 3*time.Second
			}
			inBubble(t, change, func(t *testing.T, q *quiet, conn *stubConn) {
				served := 0
				q.HandleLog(func(from grid.SiteID, _ io.ReadWriteCloser) {
					served++
					if from != wire.SiteOf(conn.peer) {
						t.Errorf("served to %s", from)
					}
				})
				c.before(q, conn)
				for range 3 { // each place is free again
					used, streams := len(q.logs.slots), q.guard.of(conn.peer).logs
					here, _ := newStream(t, conn)
					began := time.Now()
					q.logs.serve(t.Context(), here)
					if here.isReset() == c.served || here.isClosed() != c.served || time.Since(began) != c.after {
						t.Errorf("closed %t, reset %t after %s", here.isClosed(), here.isReset(), time.Since(began))
					}
					if len(q.logs.slots) != used || q.guard.of(conn.peer).logs != streams {
						t.Error("a stream that has ended is counted")
					}
				}
				if served == 3 != c.served || q.Count(wire.CountDropped, queueLogs) == 3 != c.counts {
					t.Errorf("served %d times, %d dropped", served, q.Count(wire.CountDropped, queueLogs))
				}
				q.wg.Wait()
			})
		})
	}
}

// Each read of a log may last Timing.LogIdle, and each write Timing.Write; a stream that is closed
// does not hang on its context.
func TestTheDeadlinesOfALog(t *testing.T) {
	change := func(c *Config) { c.Timing.LogIdle, c.Timing.Write = time.Minute, time.Second }
	inBubble(t, change, func(t *testing.T, q *quiet, conn *stubConn) {
		ctx, cancel := context.WithCancel(t.Context())
		here, _ := newStream(t, conn)
		s := newAskedStream(ctx, q.Mesh, here)
		for range 2 {
			began := time.Now()
			if _, err := s.Read(make([]byte, 1)); !isTimeout(err) || time.Since(began) != time.Minute {
				t.Errorf("a read ends after %s, %v", time.Since(began), err)
			}
			began = time.Now()
			if _, err := s.Write(make([]byte, 1)); !isTimeout(err) || time.Since(began) != time.Second {
				t.Errorf("a write ends after %s, %v", time.Since(began), err)
			}
		}
		here.stuck = errSelf
		if n, err := s.Read(make([]byte, 1)); n != 0 || !errors.Is(err, errSelf) {
			t.Errorf("a read without deadline: %d, %v", n, err)
		}
		if n, err := s.Write(make([]byte, 1)); n != 0 || !errors.Is(err, errSelf) {
			t.Errorf("a write without deadline: %d, %v", n, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		cancel()
		if synctest.Wait(); here.isReset() {
			t.Error("a closed stream is reset when its context ends")
		}
		here, _ = newStream(t, conn)
		ctx, cancel = context.WithCancel(t.Context())
		newAskedStream(ctx, q.Mesh, here)
		cancel()
		if synctest.Wait(); !here.isReset() {
			t.Error("an open stream outlives its context")
		}
	})
}

// A log is opened at an admitted peer, within the Hello's time.
func TestWhereALogIsOpened(t *testing.T) {
	inBubble(t, func(c *Config) { c.Timing.Hello = 3 * time.Second },
		func(t *testing.T, q *quiet, conn *stubConn) {
			q.stub.open = func(ctx context.Context) (network.Stream, error) {
				if until, ok := ctx.Deadline(); !ok || time.Until(until) != 3*time.Second {
					t.Errorf("it may take %s", time.Until(until))
				}
				return nil, errRelayed
			}
			if _, err := q.OpenLog(t.Context(), wire.SiteOf(conn.peer)); !errors.Is(err, errUnknownSite) {
				t.Errorf("of a stranger: %v", err)
			}
			r := q.knows(conn.peer)
			if _, err := q.OpenLog(t.Context(), r.site); !errors.Is(err, errUnknownSite) {
				t.Errorf("of one that is not admitted: %v", err)
			}
			q.present(conn.peer)
			if _, err := q.OpenLog(t.Context(), r.site); !errors.Is(err, errRelayed) {
				t.Errorf("of one that gives no stream: %v", err)
			}
		})
}
