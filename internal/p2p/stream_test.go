package p2p

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// served is a stream that a peer opened and that the mesh reads, with the peer's end of it.
func (q *quiet) served(conn *stubConn) (there *stubStream, here *stubStream) {
	q.t.Helper()
	here, there = newStream(q.t, conn)
	go q.serve(q.t.Context(), here)
	return there, here
}

// greets says Hello on a stream and gives the answer.
func greets(t *testing.T, s *stubStream, hello protocol.Hello) protocol.Hello {
	t.Helper()
	if err := writeHello(s, time.Minute, hello); err != nil {
		t.Fatal(err)
	}
	answer, err := readHello(wire.NewReader(s, time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// inBubble runs a test of a quiet mesh with a peer that is connected, on a clock of its own.
func inBubble(t *testing.T, change func(*Config), f func(t *testing.T, q *quiet, conn *stubConn)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		q := newQuiet(t, change)
		f(t, q, q.connected(q.stranger(), "/ip4/10.0.0.9/tcp/1", network.DirInbound))
	})
}

// A stream is read from its Hello on, until it ends: then the next one may be.
func TestAPeersStreamIsRead(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, q *quiet, conn *stubConn) {
		r, named := q.present(conn.peer), q.present(q.stranger())
		q.book.put(named.id, addrAt(4601), time.Now())
		ghost := q.stranger()
		for i := range 2 * bidStreams {
			s, here := q.served(conn)
			hello := validHello()
			hello.Peers = []string{"/ip4/10.0.0.7/tcp/4607/p2p/" + ghost.String()}
			answer := greets(t, s, hello)
			want := []string{addrAt(4601)[0].String() + "/p2p/" + string(named.site)}
			if answer.Refusal != grid.ReasonNone || !slices.Equal(answer.Peers, want) {
				t.Fatalf("answered with %+v, want the members named", answer)
			}
			if _, err := s.Write(frame(t, protocol.Cancel{Job: jobID(i)})); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if got := q.heard(); len(got) != i+1 || got[i].from != r.site ||
				got[i].message != (protocol.Cancel{Job: jobID(i)}) || r.inbound != network.Stream(here) {
				t.Fatalf("heard %+v", got)
			}
			_ = s.Close()
			synctest.Wait()
			if !here.isReset() || q.guard.of(conn.peer).streams != 0 {
				t.Error("a stream that has ended is kept")
			}
		}
		if got := q.Count(wire.CountIn, "Cancel"); got != 2*bidStreams {
			t.Errorf("%d messages are counted", got)
		}
		if q.lookup(wire.SiteOf(ghost)) == nil || !marked(r.dialed) {
			t.Error("whom it named is not dialled, or its owner does not wake")
		}
		if q.Count(wire.CountInvalid, "frame") != 0 {
			t.Error("the end of a stream is counted as a mistake")
		}
	})
}

// A message that makes no sense is left out; after one that is too large, or cut off, nothing more
// is read.
func TestWhatEndsAStream(t *testing.T) {
	cancel := frame(t, protocol.Cancel{Job: jobID(1)})
	for name, c := range map[string]struct {
		bytes []byte
		cause string
		ends  bool
	}{
		"no message": {[]byte{0, 0, 0, 2, 0xff, 0xff}, "format", false},
		"too large":  {binary.BigEndian.AppendUint32(nil, protocol.MaxMessageBytes+1), "size", true},
		"cut off":    {cancel[:len(cancel)-1], "frame", true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(t *testing.T, q *quiet, conn *stubConn) {
				q.present(conn.peer)
				s, here := q.served(conn)
				greets(t, s, validHello())
				if _, err := s.Write(c.bytes); err != nil {
					t.Fatal(err)
				}
				if c.cause == "frame" {
					_ = s.Close()
				}
				synctest.Wait()
				if here.isReset() != c.ends || q.Count(wire.CountInvalid, c.cause) != 1 {
					t.Errorf("ended %t, want %t, and it counted as %s", here.isReset(), c.ends, c.cause)
				}
				if c.ends {
					return
				}
				if _, err := s.Write(cancel); err != nil {
					t.Fatal(err)
				}
				if synctest.Wait(); q.count() != 1 {
					t.Error("the next message is not heard")
				}
				_ = s.Close()
			})
		})
	}
}

// A stream on which no Hello comes in time ends, and so does one whose peer is not admitted in
// time.
func TestStreamsThatWait(t *testing.T) {
	change := func(c *Config) {
		c.Timing.Hello, c.Timing.Dial, c.Timing.Read = time.Second, 2*time.Second, time.Minute
	}
	inBubble(t, change, func(t *testing.T, q *quiet, conn *stubConn) {
		began := time.Now()
		s, _ := q.served(conn)
		if s.ends(t); time.Since(began) != time.Second {
			t.Errorf("a silent stream ends after %s", time.Since(began))
		}
		began = time.Now()
		s, _ = q.served(conn)
		greets(t, s, validHello())
		if s.ends(t); time.Since(began) != 3*time.Second {
			t.Errorf("a stream of one that is not admitted ends after %s", time.Since(began))
		}
		if q.lookup(wire.SiteOf(conn.peer)) == nil {
			t.Error("the peer has no owner that would admit it")
		}
		s, _ = q.served(conn)
		greets(t, s, validHello())
		time.Sleep(3*time.Second - 1)
		q.present(conn.peer)
		if _, err := s.Write(frame(t, protocol.Cancel{Job: jobID(1)})); err != nil {
			t.Errorf("a stream of one that was admitted in time has ended: %v", err)
		}
		if synctest.Wait(); q.count() != 1 {
			t.Error("one that was admitted in time is not heard")
		}
		_ = s.SetDeadline(time.Time{}) // of the peer
		time.Sleep(time.Hour)
		if _, err := s.Write(frame(t, protocol.Cancel{Job: jobID(2)})); err != nil {
			t.Errorf("a stream on which nothing was said for an hour has ended: %v", err)
		}
		_ = s.Close()
	})
}

// Who does not fit is told why, has a moment to read it, and is disconnected.
func TestHowAPeerIsRefused(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, q *quiet, conn *stubConn) {
		s, here := q.served(conn)
		hello := validHello()
		hello.Domain = "other"
		hello.Peers = []string{"/ip4/10.0.0.7/tcp/4607/p2p/" + q.stranger().String()}
		began := time.Now()
		q.present(q.stranger())
		answer := greets(t, s, hello)
		if answer.Refusal != grid.ReasonDomain || len(answer.Peers) > 0 {
			t.Errorf("answered with %+v", answer)
		}
		if synctest.Wait(); here.isReset() {
			t.Error("the stream ends before the peer could read why")
		}
		if s.ends(t); time.Since(began) != refusalGrace {
			t.Errorf("the stream ends after %s, want %s", time.Since(began), refusalGrace)
		}
		synctest.Wait()
		if got := q.soon(); len(got) != 1 || got[0] != refusalGrace || !q.stub.net.isClosed(conn.peer) {
			t.Errorf("to be done %v, want the connection closed after %s", got, refusalGrace)
		}
		if q.Count(wire.CountRefused, "domain") != 1 || len(q.begun) != 1 {
			t.Errorf("%d refusals, %d owners; want one, and none of it or of whom it named",
				q.Count(wire.CountRefused, "domain"), len(q.begun))
		}
	})
}

// One that takes no answer is given up, and one that says something else than Hello is answered
// nothing.
func TestPeersThatDoNotGreet(t *testing.T) {
	change := func(c *Config) { c.Timing.Hello = time.Second }
	inBubble(t, change, func(t *testing.T, q *quiet, conn *stubConn) {
		s, here := q.served(conn)
		if err := writeHello(s, time.Minute, validHello()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if !here.isReset() || len(q.begun) != 0 || !q.lines.has("DEBUG", "peer takes no hello") {
			t.Error("a peer that takes no answer is not given up, or it is not logged")
		}
		s, here = q.served(conn)
		if _, err := s.Write(frame(t, protocol.Cancel{Job: jobID(1)})); err != nil {
			t.Fatal(err)
		}
		if n, err := s.Read(make([]byte, 1)); n > 0 || !errors.Is(err, io.EOF) {
			t.Errorf("another message is answered with %d bytes, %v", n, err)
		}
		synctest.Wait()
		if !here.isReset() || q.Count(wire.CountInvalid, "format") != 1 || len(q.Refusals()) != 0 {
			t.Errorf("want it counted as no message, refusals %v", q.Refusals())
		}
	})
}

// A stream on which no deadline can be set has ended, a closed mesh serves none, and no guest has
// one; nor has a peer that cannot be known.
func TestStreamsThatAreNotServed(t *testing.T) {
	for name, c := range map[string]struct {
		before func(q *quiet, conn *stubConn, here *stubStream)
		greets bool
	}{
		"no deadline": {before: func(_ *quiet, _ *stubConn,
			here *stubStream,
		) {
			here.stuck = io.ErrClosedPipe
		}},
		"closed":  {before: func(q *quiet, _ *stubConn, _ *stubStream) { q.closed = true }},
		"a guest": {before: func(q *quiet, conn *stubConn, _ *stubStream) { q.lobby.Enter(conn) }},
		"too many peers": {before: func(q *quiet, _ *stubConn, _ *stubStream) {
			q.cfg.AcceptAnyone, q.cfg.Limits.Peers = true, 0
		}, greets: true},
		"too many streams": {before: func(q *quiet, conn *stubConn, _ *stubStream) {
			for range bidStreams {
				q.guard.openStream(conn.peer)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, keeper(t), func(t *testing.T, q *quiet, conn *stubConn) {
				here, there := newStream(t, conn)
				c.before(q, conn, here)
				q.wg.Wait()
				go q.serve(t.Context(), here)
				if c.greets {
					greets(t, there, validHello())
				}
				began := time.Now()
				there.ends(t)
				synctest.Wait()
				if !here.isReset() || time.Since(began) != 0 || len(q.begun) > 0 {
					t.Errorf("it is served for %s", time.Since(began))
				}
				if got := q.Count(wire.CountDropped, queueStreams) == 1; got != (name == "too many streams") {
					t.Errorf("counted as too many: %t", got)
				}
				q.wg.Wait()
			})
		})
	}
}

// The end of the mesh ends its streams.
func TestStreamsEndWithTheMesh(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, q *quiet, conn *stubConn) {
		q.present(conn.peer)
		here, there := newStream(t, conn)
		ctx, cancel := context.WithCancel(t.Context())
		go q.serve(ctx, here)
		greets(t, there, validHello())
		synctest.Wait()
		cancel()
		there.ends(t)
		q.wg.Wait()
	})
}

// Only the stream of the run that is admitted is heard. A later run ends the earlier one, with its
// connections.
func TestWhoseStreamIsHeard(t *testing.T) {
	for name, c := range map[string]struct {
		admitted, says uint64
		want, gone     bool
	}{
		"the run that is admitted": {admitted: 4, says: 4, want: true},
		"an earlier one":           {admitted: 4, says: 3},
		"a later one":              {admitted: 4, says: 5, want: true, gone: true},
		"none is admitted":         {says: 4, want: true},
	} {
		q := newQuiet(t, nil)
		r := q.knows(q.stranger())
		if c.admitted > 0 {
			r.update(Facts{Run: protocol.Run{Number: c.admitted}}, false)
		}
		old := q.connected(r.id, "/ip4/10.0.0.9/tcp/1", network.DirInbound)
		at := q.connected(r.id, "/ip4/10.0.0.9/tcp/2", network.DirInbound)
		outgoing, _ := newStream(t, old)
		r.outgoing = outgoing
		if got := r.current(protocol.Hello{Incarnation: c.says}, at); got != c.want {
			t.Errorf("%s: heard %t", name, got)
		}
		if got := len(q.losses()) == 1 && q.losses()[0].refusing; got != c.gone || old.closed != c.gone ||
			at.closed || outgoing.isReset() != c.gone {
			t.Errorf("%s: losses %+v, its old connection closed %t", name, q.losses(), old.closed)
		}
		if got := r.isRun(protocol.Run{Number: c.says}); got != (c.admitted == c.says) {
			t.Errorf("%s: the run that is present: %t", name, got)
		}
	}
	q := newQuiet(t, nil)
	r := q.present(q.stranger())
	if !r.current(protocol.Hello{Incarnation: 9}, q.connected(r.id, "/ip4/10.0.0.9/tcp/1", 0)) {
		t.Error("a later run is not heard where no stream to the earlier one is open")
	}
	if r.isRun(protocol.Run{Number: 1}) {
		t.Error("a run that is gone is present")
	}
}

// An older stream of a peer ends, but for what is on its way through a relay while the peer moves
// to a direct connection.
func TestWhichStreamIsAPeers(t *testing.T) {
	relay := somebody(t)
	direct := "/ip4/10.0.0.9/tcp/1"
	for name, c := range map[string]struct {
		old, next string
		grace     bool
	}{
		"again":            {direct, direct, false},
		"to a direct one":  {through(relay, direct), direct, true},
		"through a relay":  {direct, through(relay, direct), false},
		"to another relay": {through(relay, direct), through(relay, direct), false},
	} {
		q := newQuiet(t, nil)
		r := q.knows(q.stranger())
		old, _ := newStream(t, q.connected(r.id, c.old, network.DirInbound))
		next, _ := newStream(t, q.connected(r.id, c.next, network.DirInbound))
		if r.take(old); old.isReset() || len(q.later) > 0 {
			t.Errorf("%s: the first stream ends", name)
		}
		r.take(next)
		if old.isReset() == c.grace || next.isReset() || r.inbound != network.Stream(next) {
			t.Errorf("%s: the old stream ends %t", name, old.isReset())
		}
		if got := q.soon(); c.grace && (len(got) != 1 || got[0] != leaveGrace) || !old.isReset() {
			t.Errorf("%s: to be done %v, want the old stream to end after %s", name, got, leaveGrace)
		}
	}
}

// A Hello that is repeated renews what is known of the peer; its clock is taken over only where it
// moved by a minute or more, for it is measured worse.
func TestAHelloThatIsRepeated(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	for name, c := range map[string]struct {
		drift time.Duration
		want  time.Duration
	}{
		"a little":   {time.Minute - time.Millisecond, 0},
		"backwards":  {time.Millisecond - time.Minute, 0},
		"a minute":   {time.Minute, time.Minute},
		"a lot back": {-2 * time.Minute, -2 * time.Minute},
	} {
		q := newQuiet(t, func(cfg *Config) { cfg.Now = func() time.Time { return now } })
		r := q.knows(q.stranger())
		const skew = 5 * time.Second
		r.update(Facts{Name: "raw", Skew: skew, Run: protocol.Run{Number: 1}}, false)
		hello := validHello()
		hello.Name = "renamed"
		hello.WallMS = now.Add(skew + c.drift).UnixMilli()
		hello.Peers = []string{"/ip4/10.0.0.7/tcp/4607/p2p/" + q.stranger().String()}
		q.tells(r, hello)
		if f, _ := r.admitted(); f.Name != "renamed" || f.Skew != skew+c.want {
			t.Errorf("%s: %+v, want it renamed with a skew of %s", name, f, skew+c.want)
		}
		if len(q.begun) != 2 {
			t.Errorf("%s: whom it names is not dialled", name)
		}
		hello.Domain, hello.Name = "other", "n"
		q.tells(r, hello)
		if f, present := r.admitted(); !present || f.Name != "renamed" {
			t.Errorf("%s: a Hello that does not fit is taken over: %+v", name, f)
		}
	}
}

// A peer that refuses this site on a stream bans it: that is counted as the peer's refusal, and
// changes nothing else.
func TestARefusalOnAStream(t *testing.T) {
	q := newQuiet(t, func(c *Config) {
		keeper(t)(c)
		c.AcceptAnyone, c.Timing.Spread = true, time.Hour
	})
	r := q.present(q.stranger())
	hello := validHello()
	hello.Refusal, hello.Name = grid.ReasonBanned, "n"
	q.tells(r, hello)
	if f, present := r.admitted(); !present || f.Name == "n" ||
		q.Count(wire.CountRefused, "banned") != 1 ||
		!q.lines.has("peer is not admitted", "by_peer=true") {
		t.Errorf("facts %+v, present %t, refusals %v", f, present, q.Refusals())
	}
	hello.Refusal = grid.ReasonOlderRun
	if q.tells(r, hello); q.Count(wire.CountInvalid, "run") != 1 {
		t.Error("word of a newer run is not looked at")
	}
	hello.Refusal, hello.Roster = grid.ReasonNone, protocol.Digest{1}
	q.tells(r, hello)
	if len(r.waiting(t)) == 0 {
		t.Error("it keeps another roster, and is not sent this site's")
	}
	for range helloBurst {
		q.guard.hello(r.id)
	}
	hello.Name = "too often"
	q.tells(r, hello)
	if f, _ := r.admitted(); f.Name == "too often" || q.Count(wire.CountDropped, queueHello) != 1 {
		t.Error("a Hello too many is heeded, or not counted")
	}
}

// News for a peer are collected for a while and told in one Hello, with the last 64 members.
func TestNewsAreCollected(t *testing.T) {
	change := func(c *Config) { c.Timing.Spread = time.Second }
	inBubble(t, change, func(t *testing.T, q *quiet, conn *stubConn) {
		r := q.present(conn.peer)
		here, there := newStream(t, conn)
		gone := make(chan *link)
		go func() { gone <- r.carry(t.Context(), link{stream: here}) }()
		in := wire.NewReader(there, time.Hour)
		for range 2 {
			began := time.Now()
			r.tell([]string{"/ip4/10.0.0.1/tcp/1"})
			time.Sleep(300 * time.Millisecond)
			r.tell([]string{"/ip4/10.0.0.2/tcp/1"})
			hello, err := readHello(in)
			if err != nil || !slices.Equal(hello.Peers,
				[]string{"/ip4/10.0.0.1/tcp/1", "/ip4/10.0.0.2/tcp/1"}) {
				t.Fatalf("%+v, %v; want a Hello with both", hello, err)
			}
			if took := time.Since(began); took != time.Second {
				t.Errorf("it is told after %s", took)
			}
		}
		_ = there.Close()
		if next := <-gone; next != nil || !here.isReset() {
			t.Error("a stream that ended leads to a better one, or is kept")
		}
	})
	q := newQuiet(t, nil)
	r := q.knows(q.stranger())
	var names []string
	for i := range protocol.MaxHelloPeers + 1 {
		names = append(names, fmt.Sprint(i))
	}
	r.tell(names[:60])
	if r.tell(names[60:]); !slices.Equal(r.pending, names[1:]) {
		t.Errorf("%d members are to be named, want the last %d", len(r.pending), protocol.MaxHelloPeers)
	}
}

// What is queued is written; where the peer takes nothing, what waits is given up.
func TestWhatIsQueuedIsWritten(t *testing.T) {
	change := func(c *Config) { c.Timing.Write = time.Second }
	inBubble(t, change, func(t *testing.T, q *quiet, conn *stubConn) {
		r := q.present(conn.peer)
		here, there := newStream(t, conn)
		gone := make(chan *link)
		go func() { gone <- r.carry(t.Context(), link{stream: here}) }()
		in := wire.NewReader(there, time.Hour)
		for i := range 3 {
			if err := q.Send(r.site, protocol.Cancel{Job: jobID(i)}); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 3 {
			if m, err := in.Next(protocol.MaxMessageBytes); err != nil ||
				m != (protocol.Cancel{Job: jobID(i)}) {
				t.Fatalf("%+v, %v", m, err)
			}
		}
		synctest.Wait()
		if r.queued.Load() != 0 {
			t.Errorf("%d bytes wait", r.queued.Load())
		}
		began := time.Now()
		if err := q.Send(r.site, protocol.Cancel{Job: jobID(4)}); err != nil { // nobody reads it
			t.Fatal(err)
		}
		synctest.Wait()
		if err := q.Send(r.site, protocol.Cancel{Job: jobID(5)}); err != nil {
			t.Fatal(err)
		}
		if next := <-gone; next != nil || time.Since(began) != time.Second || !here.isReset() {
			t.Errorf("the stream is given up after %s", time.Since(began))
		}
		if len(r.queue) > 0 || r.queued.Load() != 0 || q.Count(wire.CountDropped, queueSend) != 1 {
			t.Errorf("%d bytes wait, %d messages are given up", r.queued.Load(),
				q.Count(wire.CountDropped, queueSend))
		}
		if !q.lines.has("INFO", "stream to peer is lost", "peer="+string(r.site)) {
			t.Error("nothing says that the stream is lost")
		}
	})
}

// A message that cannot be written is counted, and what waits behind it stays where the stream was
// cut off: it goes on the next one.
func TestAMessageThatIsNotWritten(t *testing.T) {
	q := newQuiet(t, nil)
	r := q.present(q.stranger())
	out := bufio.NewWriterSize(&full{pieces{strings.NewReader("")}}, 16)
	r.queued.Store(100)
	if err := r.write(out, make([]byte, 40)); !errors.Is(err, io.ErrShortWrite) ||
		q.Count(wire.CountDropped, queueSend) != 1 || r.queued.Load() != 60 {
		t.Errorf("%v, %d given up, %d bytes left; want one given up", err,
			q.Count(wire.CountDropped, queueSend), r.queued.Load())
	}
	if err := r.repeatHello(out); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("a Hello that is not written: %v", err)
	}
	inBubble(t, nil, func(t *testing.T, q *quiet, conn *stubConn) {
		r := q.present(conn.peer)
		here, there := newStream(t, conn)
		here.stuck = io.ErrClosedPipe // no timeout
		gone := make(chan *link)
		go func() { gone <- r.carry(t.Context(), link{stream: here}) }()
		for i := range 2 {
			if err := q.Send(r.site, protocol.Vacancy{Jobs: []grid.JobID{jobID(i)}}); err != nil {
				t.Fatal(err)
			}
		}
		<-gone
		_ = there.Close()
		if got := q.Count(wire.CountDropped, queueSend); got != 0 {
			t.Errorf("%d messages are given up where the stream was cut off", got)
		}
	})
}

// A Hello that cannot be made is logged, and the stream goes on.
func TestAHelloThatCannotBeRepeated(t *testing.T) {
	q := newQuiet(t, func(c *Config) {
		c.Capability = func() grid.Capability { return grid.Capability{CoreMFLOPS: -1} }
	})
	r := q.knows(q.stranger())
	r.tell([]string{"/ip4/10.0.0.1/tcp/1"})
	if err := r.repeatHello(nil); err != nil || len(r.pending) > 0 ||
		!q.lines.has("ERROR", "hello cannot be repeated") {
		t.Errorf("%v, want it logged", err)
	}
}
