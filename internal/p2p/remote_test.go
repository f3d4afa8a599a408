package p2p

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// The queue to a peer is bounded by messages and by bytes, to the byte.
func TestTheQueueToAPeer(t *testing.T) {
	q := newQuiet(t, func(c *Config) { c.Limits.QueueMessages, c.Limits.QueueBytes = 2, 10 })
	r := q.knows(q.stranger())
	for i, c := range []struct {
		bytes int
		want  error
	}{{8, nil}, {3, errQueueFull}, {2, nil}, {0, errQueueFull}} {
		if err := r.enqueue(make([]byte, c.bytes)); !errors.Is(err, c.want) ||
			(err == nil) != (c.want == nil) {
			t.Errorf("message %d of %d bytes: %v, want %v", i, c.bytes, err, c.want)
		}
	}
	if got := q.Count(wire.CountDropped, queueFull); got != 2 || r.queued.Load() != 10 {
		t.Errorf("%d messages dropped and %d bytes queued, want 2 and 10", got, r.queued.Load())
	}
	if !marked(r.filled) || marked(r.filled) {
		t.Error("want one mark for all that was queued")
	}
	r.abandon()
	if got := q.Count(wire.CountDropped, queueSend); got != 2 || r.queued.Load() != 0 ||
		len(r.queue) > 0 {
		t.Errorf("%d messages given up, %d bytes left; want 2 and none", got, r.queued.Load())
	}
	for _, c := range []chan struct{}{r.filled, r.dialed, r.news, r.better} {
		if cap(c) != 1 {
			t.Errorf("a channel has capacity %d, want that a mark is left once", cap(c))
		}
	}
}

// A peer is dialled again while it is a bootstrap peer, hearsay, remembered or connected.
func TestWhoIsNeeded(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*quiet, *remote)
		want   bool
	}{
		"nobody":      {func(*quiet, *remote) {}, false},
		"a bootstrap": {func(_ *quiet, r *remote) { r.bootstrap = addrAt(1) }, true},
		"hearsay":     {func(_ *quiet, r *remote) { r.hearsay = 1 }, true},
		"remembered":  {func(q *quiet, r *remote) { q.book.put(r.id, addrAt(1), time.Now()) }, true},
		"connected": {func(q *quiet, r *remote) {
			q.connected(r.id, "/ip4/10.0.0.1/tcp/1", network.DirInbound)
		}, true},
	} {
		q := newQuiet(t, nil)
		r := q.knows(q.stranger())
		c.change(q, r)
		if got := r.needed(); got != c.want {
			t.Errorf("%s: needed %t", name, got)
		}
		if got := q.forget(r); got == c.want || (q.lookup(r.site) == nil) == c.want {
			t.Errorf("%s: forgotten %t", name, got)
		}
	}
	q := newQuiet(t, nil)
	r := q.knows(q.stranger())
	if err := r.enqueue([]byte{1}); err != nil {
		t.Fatal(err)
	}
	if q.forget(r) || q.lookup(r.site) != r {
		t.Error("a peer for which a message waits is forgotten")
	}
}

// What changes in a peer's facts is told, and messages to another run of it are dropped.
func TestHowFactsChange(t *testing.T) {
	first := Facts{Name: "n", Run: protocol.Run{Number: 1}}
	renamed, second := first, first
	renamed.Name, second.Run.Number = "m", 2
	for name, c := range map[string]struct {
		old, facts Facts
		known      bool // it repeats its Hello
		expelled   bool
		taken      bool // the new facts are those of the peer
		gone, seen bool // told
		dropped    bool // the queue
	}{
		"it comes":         {facts: first, taken: true, seen: true},
		"it says the same": {old: first, facts: first, taken: true},
		"it changed":       {old: first, facts: renamed, taken: true, seen: true},
		"it was started again": {
			old: first, facts: second, taken: true, gone: true, seen: true,
			dropped: true,
		},
		"a Hello before it came":   {facts: first, known: true},
		"a Hello again":            {old: first, facts: first, known: true, taken: true},
		"a Hello with a change":    {old: first, facts: renamed, known: true, taken: true, seen: true},
		"a Hello of another run":   {old: first, facts: second, known: true},
		"it was expelled meantime": {facts: first, expelled: true},
	} {
		q := newQuiet(t, nil)
		r := q.knows(q.stranger())
		if c.old.Run.Number > 0 {
			r.update(c.old, false)
		}
		seen := q.sightings
		q.lines.text.Reset()
		if err := r.enqueue([]byte{1}); err != nil {
			t.Fatal(err)
		}
		r.expelled = c.expelled
		r.update(c.facts, c.known)
		got, present := r.admitted()
		if taken := present && got.same(c.facts); taken != c.taken {
			t.Errorf("%s: facts %+v, present %t", name, got, present)
		}
		if told := len(q.losses()) == 1 && q.losses()[0].refusing; told != c.gone ||
			q.Count(wire.CountLost, "refusing") == 1 != c.gone {
			t.Errorf("%s: losses %+v", name, q.losses())
		}
		if told := q.sightings == seen+1; told != c.seen {
			t.Errorf("%s: told %d times", name, q.sightings-seen)
		}
		if dropped := len(r.queue) == 0; dropped != c.dropped {
			t.Errorf("%s: the queue dropped %t", name, dropped)
		}
		comes := c.seen && (c.old.Run.Number == 0 || c.gone)
		if logged := q.lines.has("INFO", "peer admitted", "peer="+string(r.site)); logged != comes {
			t.Errorf("%s: logged %t, want %t", name, logged, comes)
		}
		select {
		case <-r.seen:
			if !present {
				t.Errorf("%s: its messages are heard", name)
			}
		default:
			if present {
				t.Errorf("%s: its messages wait", name)
			}
		}
	}
}

// Facts of a run that was admitted are kept when a peer that was gone comes again as another run.
func TestAPeerThatComesAgain(t *testing.T) {
	q := newQuiet(t, nil)
	r := q.present(q.stranger())
	r.gone(protocol.Run{Number: 1}, false)
	if err := r.enqueue([]byte{1}); err != nil {
		t.Fatal(err)
	}
	r.update(Facts{Run: protocol.Run{Number: 2}}, false)
	if len(r.queue) > 0 || len(q.losses()) != 1 {
		t.Error("want what was meant for the run before dropped, and no second loss")
	}
	r.gone(protocol.Run{Number: 2}, false)
	r.update(Facts{Run: protocol.Run{Number: 2}}, false)
	if q.sightings != 3 {
		t.Errorf("told %d times of it, want each time that it came", q.sightings)
	}
}

// A loss is told once, of the run that was admitted, and the peer is protected no longer.
func TestHowALossIsTold(t *testing.T) {
	for refusing, how := range map[bool]string{true: "refusing", false: "silent"} {
		q := newQuiet(t, nil)
		r := q.present(q.stranger())
		q.stub.manager.protected[r.id] = memberTag
		r.gone(protocol.Run{Number: 2}, refusing)
		if _, present := r.admitted(); !present || len(q.losses()) > 0 {
			t.Error("the loss of another run is told")
		}
		for range 2 {
			r.gone(protocol.Run{Number: 1}, refusing)
		}
		if got := q.losses(); len(got) != 1 || got[0].site != r.site || got[0].refusing != refusing {
			t.Errorf("losses %+v, want one", got)
		}
		if q.Count(wire.CountLost, how) != 1 || !q.lines.has("INFO", "peer is gone",
			"peer="+string(r.site)) {
			t.Errorf("the loss is not counted as %s, or not logged", how)
		}
		if _, is := q.stub.manager.protected[r.id]; is {
			t.Error("a peer that is gone is protected from the connection manager")
		}
		select {
		case <-r.seen:
			t.Error("messages of a peer that is gone are heard")
		default:
		}
	}
}

// Where a peer is admitted it is protected and remembered, its addresses and members are taken, and
// the others are told.
func TestWhatAdmissionDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQuiet(t, keeper(t))
		q.cfg.AcceptAnyone = true
		other, r := q.present(q.stranger()), q.knows(q.stranger())
		q.connected(other.id, "/ip4/10.0.0.8/tcp/1", network.DirInbound)
		conn := q.connected(r.id, "/ip4/10.0.0.9/udp/4609/quic-v1", network.DirOutbound)
		q.stub.store.AddAddrs(r.id, []ma.Multiaddr{conn.at}, time.Hour)
		ghost := wire.SiteOf(q.stranger())
		stream, _ := newStream(t, conn)
		r.admit(t.Context(), link{
			stream: stream, facts: Facts{Name: "new", Run: protocol.Run{Number: 1}},
			peers: []string{"/ip4/10.0.0.7/tcp/4607/p2p/" + string(ghost)}, roster: protocol.Digest{1},
		})
		q.wg.Wait()
		if f, present := r.admitted(); !present || f.Name != "new" {
			t.Errorf("facts %+v, present %t", f, present)
		}
		if q.stub.manager.protected[r.id] != memberTag {
			t.Error("it is not protected from the connection manager")
		}
		if got := q.book.addrs(r.id); len(got) != 1 || !got[0].Equal(conn.at) {
			t.Errorf("remembered at %v", got)
		}
		if !q.book.entries[r.id].seen.Equal(time.Now()) {
			t.Error("the moment at which it was seen is not remembered")
		}
		if q.lookup(ghost) == nil {
			t.Error("the member that it named is not dialled")
		}
		want := conn.at.String() + "/p2p/" + string(r.site)
		if len(other.pending) != 1 || other.pending[0] != want || !marked(other.news) {
			t.Errorf("others are told %v, want %s", other.pending, want)
		}
		if len(r.waiting(t)) == 0 {
			t.Error("its roster is another one, and this site's is not sent")
		}
	})
}

// A failed attempt counts, uses up hearsay, and asks members where the peer is; a refusal closes
// the connection after a moment.
func TestAFailedAttempt(t *testing.T) {
	q := newQuiet(t, nil)
	r := q.knows(q.stranger())
	r.hearsay = 2
	for i, want := range []bool{true, false, false} {
		if got := r.failed(t.Context(), errRelayed); got != want {
			t.Errorf("attempt %d: needed %t, want %t", i+1, got, want)
		}
	}
	if r.hearsay != 0 || r.failures != 3 || len(q.later) != 0 {
		t.Errorf("%d attempts left, %d failed, %d things to do", r.hearsay, r.failures, len(q.later))
	}
	if !q.lines.has("DEBUG", "peer is not reached", "peer="+string(r.site), errRelayed.Error()) {
		t.Error("it is not logged")
	}
	q.connected(r.id, "/ip4/10.0.0.8/tcp/1", network.DirInbound)
	if !r.failed(t.Context(), &refusedError{}) {
		t.Error("a connected peer is not needed")
	}
	if got := q.soon(); len(got) != 1 || got[0] != refusalGrace || !q.stub.net.isClosed(r.id) {
		t.Errorf("after a refusal %v is to be done, want the connection closed after %s", got,
			refusalGrace)
	}
}

// A lost peer that is not back within the debounce time is gone, one that refuses immediately.
func TestHowLongALossIsAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQuiet(t, func(c *Config) { c.Timing.Debounce = time.Second })
		r := q.present(q.stranger())
		run, lost := protocol.Run{Number: 1}, time.Now()
		took := func(lost time.Time, err error) (bool, time.Duration) {
			began := time.Now()
			told := r.mourn(t.Context(), run, lost, err)
			return told, time.Since(began)
		}
		if told, pause := took(lost, errRelayed); told || pause != lostPause {
			t.Errorf("told %t after %s, want a pause of %s", told, pause, lostPause)
		}
		r.kick()
		if told, pause := took(lost, errRelayed); told || pause != 0 {
			t.Errorf("told %t after %s, want no pause when the peer dials", told, pause)
		}
		if told, _ := took(time.Now().Add(1-time.Second), errRelayed); told || len(q.losses()) > 0 {
			t.Error("a loss is told too early")
		}
		if told, _ := took(time.Now().Add(-time.Second), errRelayed); !told || len(q.losses()) != 1 ||
			q.losses()[0].refusing || q.stub.net.isClosed(r.id) {
			t.Errorf("losses %+v, want one that proves nothing", q.losses())
		}
		r.update(Facts{Run: run}, false)
		q.connected(r.id, "/ip4/10.0.0.8/tcp/1", network.DirInbound)
		if told, _ := took(time.Now(), errRefusing); !told || len(q.losses()) != 2 ||
			!q.losses()[1].refusing || !q.stub.net.isClosed(r.id) {
			t.Errorf("losses %+v, want one that is refused, and the connection closed", q.losses())
		}
	})
}

// The pause before the next attempt ends when the peer dials, and after the shortest one when there
// is something to send.
func TestWhatEndsAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQuiet(t, func(c *Config) { c.Timing.BackoffMin = 2 * time.Second })
		r := q.knows(q.stranger())
		rests := func(d time.Duration, while func()) time.Duration {
			began := time.Now()
			go while()
			r.rest(t.Context(), d)
			return time.Since(began)
		}
		for name, c := range map[string]struct {
			pause time.Duration
			while func()
			want  time.Duration
		}{
			"nothing":  {10 * time.Second, func() {}, 10 * time.Second},
			"it dials": {10 * time.Second, func() { time.Sleep(time.Second); r.kick() }, time.Second},
			"a message": {
				10 * time.Second, func() { time.Sleep(time.Second); signal(r.filled) },
				2 * time.Second,
			},
			"a late one": {
				10 * time.Second, func() { time.Sleep(5 * time.Second); signal(r.filled) },
				5 * time.Second,
			},
			"a short pause": {time.Second, func() { signal(r.filled) }, time.Second},
		} {
			if got := rests(c.pause, c.while); got != c.want {
				t.Errorf("%s: it took %s, want %s", name, got, c.want)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		began := time.Now()
		if r.rest(ctx, time.Hour); time.Since(began) != 0 {
			t.Error("the pause outlives the mesh")
		}
	})
}

// Between two streams there is a pause where the last one ended soon, and the peer is connected.
func TestThePauseBetweenTwoStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQuiet(t, nil)
		low := q.cfg.Timing.BackoffMin
		wait := wire.Backoff{Low: low, High: time.Hour}
		r := q.knows(q.stranger())
		breathes := func(lasted time.Duration) time.Duration {
			began := time.Now()
			r.breathe(t.Context(), began.Add(-lasted), &wait)
			return time.Since(began)
		}
		if got := breathes(0); got != 0 {
			t.Errorf("a pause of %s for a peer that is not connected", got)
		}
		q.connected(r.id, "/ip4/10.0.0.8/tcp/1", network.DirInbound)
		if got := breathes(low); got < low/2 || got > low {
			t.Errorf("the first pause is %s, want at most %s", got, low)
		}
		if got := breathes(low); got < low || got > 2*low {
			t.Errorf("the second pause is %s, want twice as long", got)
		}
		if got := breathes(low + 1); got != 0 {
			t.Errorf("a pause of %s after a stream that lasted", got)
		}
		if got := breathes(low); got > low {
			t.Errorf("then the pause is %s, want it short again", got)
		}
	})
}

// A stream that is ready when the mesh has ended admits nobody.
func TestAStreamThatComesTooLate(t *testing.T) {
	q := newQuiet(t, nil)
	r := q.knows(q.stranger())
	stream, _ := newStream(t, q.connected(r.id, "/ip4/10.0.0.8/tcp/1", network.DirOutbound))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	next := r.use(ctx, link{stream: stream, facts: Facts{Run: protocol.Run{Number: 1}}})
	if _, present := r.admitted(); present || next != nil || !stream.isReset() || r.outgoing != nil {
		t.Error("want the stream reset, and nobody admitted")
	}
}

// The life of a peer's owner: attempts with pauses that grow, admission, loss, and its end when
// nobody needs the peer.
func TestTheLifeOfAnOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQuiet(t, func(c *Config) {
			c.Timing.BackoffMin, c.Timing.BackoffMax = time.Second, 4*time.Second
			c.Timing.Debounce = 100 * time.Millisecond
		})
		r := q.knows(q.stranger())
		r.hearsay = 4
		var tries []time.Time
		fails := errors.New("nobody is there")
		q.stub.connect = func(context.Context, peer.AddrInfo) error {
			tries = append(tries, time.Now())
			if len(tries) == 1 {
				if err := q.Send(r.site, protocol.Cancel{Job: jobID(1)}); err != nil {
					t.Error(err)
				}
			}
			return fails
		}
		r.run(t.Context())
		if q.lookup(r.site) != nil || len(tries) != 4 || r.failures != 4 {
			t.Fatalf("%d attempts, %d failed; want 4, and the peer forgotten", len(tries), r.failures)
		}
		if got := q.Count(wire.CountDropped, queueSend); got != 1 {
			t.Errorf("%d messages given up, want the one that waited", got)
		}
		if got := q.Count(wire.CountDials, "failed"); got != 4 {
			t.Errorf("%d dials are counted", got)
		}
		low := q.cfg.Timing.BackoffMin
		for i, most := range []time.Duration{low, 2 * low, 4 * low} {
			if pause := tries[i+1].Sub(tries[i]); pause < most/2 && i > 0 || pause > most {
				t.Errorf("pause %d is %s, want up to %s", i+1, pause, most)
			}
		}
	})
}

// An owner that was admitted once tells a loss after the debounce time, and goes on dialling.
func TestAnOwnersLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQuiet(t, func(c *Config) { c.Timing.Debounce = 100 * time.Millisecond })
		r := q.knows(q.stranger())
		r.bootstrap = addrAt(4601)
		r.failures = 7
		ctx, cancel := context.WithCancel(t.Context())
		conn := q.connected(r.id, "/ip4/10.0.0.8/tcp/1", network.DirOutbound)
		opened, lost := 0, time.Time{}
		q.stub.open = func(context.Context) (network.Stream, error) {
			if opened++; opened > 1 {
				return nil, errRelayed
			}
			here, there := newStream(t, conn)
			go func() {
				if _, err := readHello(wire.NewReader(there, time.Hour)); err != nil {
					t.Error(err)
				}
				if err := writeHello(there, time.Hour, validHello()); err != nil {
					t.Error(err)
				}
				time.Sleep(time.Minute)
				if _, present := r.admitted(); !present {
					t.Error("it is not admitted")
				}
				lost = time.Now()
				_ = there.Close()
				q.stub.net.ClosePeer(r.id)
			}()
			return here, nil
		}
		dials := 0
		q.stub.connect = func(ctx context.Context, _ peer.AddrInfo) error {
			if dials++; dials == 1 && r.failures != 0 {
				t.Errorf("%d attempts failed since it was admitted", r.failures)
			}
			if until, ok := ctx.Deadline(); ok && dials == 1 && time.Until(until) != 100*time.Millisecond {
				t.Errorf("the first dial has %s, want what is left until the loss is told", time.Until(until))
			}
			if len(q.losses()) > 0 && dials > 12 {
				cancel()
			}
			return errRelayed
		}
		r.run(ctx)
		got := q.losses()
		if len(got) != 1 || got[0].refusing || got[0].site != r.site {
			t.Fatalf("losses %+v, want one", got)
		}
		if after := got[0].at.Sub(lost); after < 100*time.Millisecond ||
			after > 100*time.Millisecond+lostPause {
			t.Errorf("the loss is told after %s", after)
		}
		if _, present := r.admitted(); present || q.Judge(r.site) != grid.ReasonNone {
			t.Error("want it gone, and still a member")
		}
	})
}
