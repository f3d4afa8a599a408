package data

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/mrsmesh/mrsmesh/internal/obs"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// playedStream is one end of a stream; what is read from it and written to it is the test's.
type playedStream struct {
	network.Stream

	peer   peer.ID
	in     io.Reader
	out    bytes.Buffer
	broken error // of a deadline, or of writing
	frozen bool  // the deadline cannot be set

	deadline      time.Time
	closed, reset bool
}

func (s *playedStream) Conn() network.Conn { return playedConn{peer: s.peer} }

type playedConn struct {
	network.Conn
	peer peer.ID
}

func (c playedConn) RemotePeer() peer.ID { return c.peer }

func (s *playedStream) SetDeadline(at time.Time) error {
	s.deadline = at
	if s.frozen {
		return s.broken
	}
	return nil
}

func (s *playedStream) Read(p []byte) (int, error) { return s.in.Read(p) }

func (s *playedStream) Write(p []byte) (int, error) {
	if s.broken != nil {
		return 0, s.broken
	}
	return s.out.Write(p)
}

func (s *playedStream) Close() error { s.closed = true; return nil }

func (s *playedStream) Reset() error { s.reset = true; return nil }

// requestOf is a request as it is sent.
func requestOf(kind byte, number uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{kind}, number)
}

// Of requests that come too early, from too many, the table keeps a bounded number.
func TestEveryPeerNowAndThen(t *testing.T) {
	t.Parallel()
	table, at := make(map[peer.ID]time.Time), time.Unix(1_800_000_000, 0)
	for _, tt := range []struct {
		after time.Duration
		want  bool
	}{
		{0, true},
		{time.Minute - 1, false},
		{time.Minute, true},
		{1, false}, // the clock was set back, by less than the pause
		{-time.Minute, true},
	} {
		if got := every(table, "p", at.Add(tt.after), time.Minute); got != tt.want {
			t.Errorf("after %s: %t", tt.after, got)
		}
	}
	clear(table)
	for i := range probePeers {
		if !every(table, peer.ID(fmt.Sprint(i)), at.Add(time.Duration(i)), time.Minute) {
			t.Fatalf("peer %d has no place", i)
		}
	}
	if every(table, "p", at.Add(time.Minute-1), time.Minute) || len(table) != probePeers {
		t.Errorf("one more has a place among %d", len(table))
	}
	if !every(table, "p", at.Add(time.Minute+9), time.Minute) || len(table) != probePeers-9 {
		t.Errorf("after ten of them could come again there are %d", len(table))
	}
}

// A peer gets a small probe every ten minutes, and within half a minute a large one; all
// together get eight in a minute, four at the same time.
func TestProbesServed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := counters{obs.NewRegistry()}
		s := newPlayed(t, func(cfg *Config) { cfg.Metrics = c.reg })
		served := 0
		ask := func(p peer.ID, n uint64, want bool) {
			t.Helper()
			stream := &playedStream{peer: p, in: bytes.NewReader(requestOf(askBytes, n))}
			s.prober.serve(stream)
			if want {
				served++
			}
			if got := stream.out.Len() == int(n); got != want || stream.closed != want ||
				stream.reset == want || !want && stream.out.Len() != 0 {
				t.Errorf("%s asks for %d: %d bytes came, closed %t, reset %t",
					p, n, stream.out.Len(), stream.closed, stream.reset)
			}
			if got := time.Until(stream.deadline); got != probeTimeout {
				t.Errorf("the stream has %s left, want %s", got, probeTimeout)
			}
			wantIdle(t, s.Store)
		}
		ask("a", probeLarge, false)
		ask("a", probeSmall-1, false)
		ask("a", probeSmall, true)
		ask("a", probeSmall, false)
		ask("b", probeLarge, false)
		time.Sleep(probeTimeout - 1)
		ask("a", probeLarge, true)
		time.Sleep(time.Nanosecond)
		ask("a", probeLarge, false)
		time.Sleep(probePerPeer - probeTimeout - 1)
		ask("a", probeSmall, false)
		time.Sleep(time.Nanosecond)
		for i := range probePerMinute - 1 {
			ask(peer.ID(fmt.Sprint(i)), probeSmall, true)
		}
		ask("a", probeSmall, true)
		ask("z", probeSmall, false)
		time.Sleep(time.Minute / probePerMinute)
		ask("y", probeSmall, true)
		ask("x", probeSmall, false)
		time.Sleep(time.Minute)
		for range probesAtOnce {
			s.prober.slots <- struct{}{}
		}
		ask("w", probeSmall, false)
		<-s.prober.slots
		ask("v", probeSmall, true)
		if len(s.prober.slots) != probesAtOnce-1 {
			t.Errorf("%d slots are taken", len(s.prober.slots))
		}
		for range probesAtOnce - 1 {
			<-s.prober.slots
		}
		if got := c.of(t, `data_probes_total{result="served"}`); got != float64(served) {
			t.Errorf("%g probes are counted, want %d", got, served)
		}
	})
}

// What is sent for a probe counts below the cap.
func TestProbesKeepToTheCap(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newPlayed(t, func(c *Config) { c.UploadBps = bitsPerByte * probeSmall })
		if err := s.Store.swap.upLimit.WaitN(t.Context(), limitBurst); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		stream := &playedStream{peer: "a", in: bytes.NewReader(requestOf(askBytes, probeSmall))}
		s.prober.serve(stream)
		if took := time.Since(began); took != time.Second || stream.out.Len() != probeSmall {
			t.Errorf("%d bytes in %s, want a second", stream.out.Len(), took)
		}
	})
}

// Only members are answered, only what is a request, and only within the time.
func TestRequestsOfTheProbeStream(t *testing.T) {
	t.Parallel()
	c, member := counters{obs.NewRegistry()}, somePeer(t)
	s := newPlayed(t, func(cfg *Config) {
		cfg.Metrics, cfg.Allow = c.reg, func(p peer.ID) bool { return p == member }
	})
	broken := errors.New("broken")
	for _, tt := range []struct {
		name   string
		stream *playedStream
	}{
		{"a stranger", &playedStream{peer: "s", in: bytes.NewReader(requestOf(tellSpeed, 9000))}},
		{"no time", &playedStream{
			peer: member, in: bytes.NewReader(requestOf(tellSpeed, 9000)), frozen: true, broken: broken,
		}},
		{"half a request", &playedStream{
			peer: member, in: bytes.NewReader(requestOf(tellSpeed, 9000)[:8]),
		}},
		{"another request", &playedStream{peer: member, in: bytes.NewReader(requestOf(3, 9000))}},
		{"no request", &playedStream{peer: member, in: bytes.NewReader(requestOf(0, 9000))}},
		{"nobody reads", &playedStream{
			peer: member, in: bytes.NewReader(requestOf(askBytes, probeSmall)), broken: broken,
		}},
	} {
		s.prober.serve(tt.stream)
		if tt.stream.closed || !tt.stream.reset {
			t.Errorf("%s: closed %t, reset %t", tt.name, tt.stream.closed, tt.stream.reset)
		}
		wantIdle(t, s.Store)
	}
	if got := s.Link(siteOf(member)); got != (Link{}) || s.Link("s") != (Link{}) {
		t.Errorf("what was refused is noted: %+v", got)
	}
	if got := c.of(t, `data_probes_total{result="refused"}`); got != 6 {
		t.Errorf("%g requests are counted as refused, want 6", got)
	}
	if got := c.of(t, "data_denied_requests_total"); got != 1 {
		t.Errorf("%g strangers are counted, want 1", got)
	}
	good := &playedStream{peer: member, in: bytes.NewReader(requestOf(tellSpeed, 9000))}
	if s.prober.serve(good); !good.closed || good.reset {
		t.Errorf("a report: closed %t, reset %t", good.closed, good.reset)
	}
	if got := s.Link(siteOf(member)); got != (Link{UpBps: 9000}) {
		t.Errorf("noted %+v, want 9000 bit/s away", got)
	}
	s.closed = true
	late := &playedStream{peer: member, in: bytes.NewReader(requestOf(tellSpeed, 100))}
	if s.prober.serve(late); late.closed || !late.reset {
		t.Errorf("a closed store: closed %t, reset %t", late.closed, late.reset)
	}
}

// paced gives one byte immediately, the others after a time.
type paced struct {
	left  int
	after time.Duration
	begun bool
}

func (r *paced) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	n := min(r.left, len(p), 1)
	if r.begun {
		time.Sleep(r.after)
		n, r.after = min(r.left, len(p)), 0
	}
	r.begun = true
	r.left -= n
	return n, nil
}

// A link is measured from the first byte to the last; a fast one with four times as much.
func TestProbesMeasure(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		took time.Duration // of each probe
		left int           // bytes of each that are not sent
		asks []uint64
		bps  float64
	}{
		{"slow", probeQuick, 0, []uint64{probeSmall}, (probeSmall - 1) * 8 * 10},
		{
			"quick", probeQuick - 1, 0,
			[]uint64{probeSmall, probeLarge},
			(probeLarge - 1) * 8 / 0.099999999,
		},
		{"immediately", 0, 0, []uint64{probeSmall, probeLarge}, (probeLarge - 1) * 8 * 1000},
		{"a byte short", time.Second, 1, []uint64{probeSmall}, 0},
		{"a byte more", time.Second, -1, []uint64{probeSmall}, 0},
		{"nothing", time.Second, probeSmall, []uint64{probeSmall}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := counters{obs.NewRegistry()}
				var text bytes.Buffer
				s, p := newPlayed(t, func(cfg *Config) {
					cfg.Metrics = c.reg
					debug := &slog.HandlerOptions{Level: slog.LevelDebug}
					cfg.Log = slog.New(slog.NewTextHandler(&text, debug))
				}), somePeer(t)
				var asked []*playedStream
				s.net.stream = func(ctx context.Context, to peer.ID) (network.Stream, error) {
					if no, _ := network.GetNoDial(ctx); to != p || !no {
						t.Errorf("a stream to %s may dial", to)
					}
					want := tt.asks[len(asked)]
					out := &playedStream{in: &paced{left: int(want) - tt.left, after: tt.took}}
					asked = append(asked, out)
					return out, nil
				}
				s.prober.measure(p)
				if len(asked) != len(tt.asks) {
					t.Fatalf("%d probes, want %d", len(asked), len(tt.asks))
				}
				for i, stream := range asked {
					if got := stream.out.Bytes(); !bytes.Equal(got, requestOf(askBytes, tt.asks[i])) ||
						!stream.reset || stream.deadline.IsZero() {
						t.Errorf("probe %d asks %x, reset %t, until %s", i, got, stream.reset, stream.deadline)
					}
				}
				if got := s.Link(siteOf(p)); math.Abs(float64(got.DownBps)-tt.bps) > 1 || got.UpBps != 0 {
					t.Errorf("measured %+v, want %f", got, tt.bps)
				}
				measured := float64(min(tt.bps, 1))
				if ok, failed := c.of(t, `data_probes_total{result="measured"}`),
					c.of(t, `data_probes_total{result="failed"}`); ok != measured || failed != 1-measured {
					t.Errorf("%g are counted as measured, %g as failed", ok, failed)
				}
				if got := strings.Contains(text.String(), "not measured"); got != (tt.bps == 0) {
					t.Errorf("the log of the site says %q", text.String())
				}
				if len(s.prober.reports) != int(measured) {
					t.Errorf("%d reports wait", len(s.prober.reports))
				}
				wantIdle(t, s.Store)
			})
		})
	}
}

// What a probe brings counts below the cap, before it is asked for.
func TestProbesWaitForTheCap(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, p := newPlayed(t, func(c *Config) { c.DownloadBps = bitsPerByte * probeSmall }), somePeer(t)
		if err := s.Store.swap.downLimit.WaitN(t.Context(), limitBurst); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		bps, took, err := s.prober.fetch(t.Context(), p, probeSmall)
		if err == nil || bps != 0 || took != 0 {
			t.Errorf("a probe without a stream: %f bit/s in %s", bps, took)
		}
		if wait := time.Since(began); wait != time.Second {
			t.Errorf("it was asked for after %s, want a second", wait)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		bps, took, err = s.prober.fetch(ctx, p, probeSmall)
		if !errors.Is(err, context.Canceled) || bps != 0 || took != 0 {
			t.Errorf("after its context: %f bit/s in %s, %v", bps, took, err)
		}
		s.net.stream = func(context.Context, peer.ID) (network.Stream, error) {
			return &playedStream{in: new(paced)}, nil
		}
		bps, took, err = s.prober.fetch(t.Context(), p, probeSmall)
		if !errors.Is(err, io.EOF) || bps != 0 || took != 0 {
			t.Errorf("nothing came: %f bit/s in %s, %v", bps, took, err)
		}
	})
}

// A request that cannot be sent leaves no stream.
func TestRequestsThatCannotBeSent(t *testing.T) {
	t.Parallel()
	s, broken := newPlayed(t, nil), errors.New("broken")
	for _, frozen := range []bool{true, false} {
		out := &playedStream{frozen: frozen, broken: broken}
		s.net.stream = func(context.Context, peer.ID) (network.Stream, error) { return out, nil }
		if got, err := s.prober.request(
			within(t), "p", askBytes, 1,
		); !errors.Is(err, broken) || got != nil || !out.reset {
			t.Errorf("no time: %t: %v, reset %t", frozen, err, out.reset)
		}
	}
}

// A member is told what was measured of it once in a minute; what does not fit waits for
// the next measurement.
func TestReports(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newPlayed(t, func(c *Config) { c.Allow = func(p peer.ID) bool { return p != "stranger" } })
		told := make(chan *playedStream, 1)
		s.net.stream = func(context.Context, peer.ID) (network.Stream, error) {
			out := new(playedStream)
			told <- out
			return out, nil
		}
		s.prober.report("stranger", 1000)
		s.prober.report("a", 1000)
		s.prober.report("a", 2000)
		time.Sleep(reportPeriod)
		s.prober.report("a", 3e12)
		if len(s.prober.reports) != 2 {
			t.Fatalf("%d reports wait, want 2", len(s.prober.reports))
		}
		go s.prober.tell()
		for _, want := range []uint64{1000, linkMaxBps} {
			out := <-told
			synctest.Wait()
			if got := out.out.Bytes(); !bytes.Equal(got, requestOf(tellSpeed, want)) || !out.closed {
				t.Errorf("told %x, closed %t; want %d", got, out.closed, want)
			}
		}
		wantIdle(t, s.Store)
		close(s.stop)
		synctest.Wait()
		for i := range reportsWaiting + 1 {
			s.prober.report(peer.ID(fmt.Sprint("p", i)), 1000)
		}
		if len(s.prober.reports) != reportsWaiting {
			t.Errorf("%d reports wait, want %d", len(s.prober.reports), reportsWaiting)
		}
		s.closed = true
		s.prober.deliver(report{"a", 1000})
		s.prober.measure("a")
		if len(told) != 0 {
			t.Error("a closed store tells or asks somebody")
		}
	})
}

// Links are measured with a pause of half to one and a half times the period, one after the
// other, and only where nothing is known of a member's.
func TestPausesOfProbes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const period = time.Hour
		s := newPlayed(t, func(c *Config) {
			c.ProbeEvery, c.Allow = period, func(p peer.ID) bool { return p != "stranger" }
		})
		known, unknown := somePeer(t), somePeer(t)
		for _, p := range []peer.ID{known, unknown, "stranger"} {
			s.net.set(p, true)
		}
		probes := make(chan peer.ID)
		s.net.stream = func(_ context.Context, to peer.ID) (network.Stream, error) {
			probes <- to
			return nil, errors.New("no stream")
		}
		done := make(chan struct{})
		go func() { s.prober.run(); close(done) }()
		var sum, least, most time.Duration
		const many = 400
		for range many {
			s.links.measured(known, 1e6)
			before := time.Now()
			if p := <-probes; p != unknown {
				t.Errorf("%s is probed", p)
			}
			pause := time.Since(before)
			if least == 0 || pause < least {
				least = pause
			}
			most = max(most, pause)
			sum += pause
		}
		if least < period/2 || least > period*6/10 || most >= period*3/2 || most < period*14/10 ||
			sum < many*period*9/10 || sum > many*period*11/10 {
			t.Errorf("pauses from %s to %s, %s on average", least, most, sum/many)
		}
		close(s.stop)
		<-done
		s.cfg.ProbeEvery = 0
		s.prober.run() // ends immediately
		s.links.measured(unknown, 1e6)
		s.links.measured(known, 1e6)
		if p, ok := s.prober.unknown(); ok {
			t.Errorf("%s is unknown", p)
		}
		if got := s.Link(grid.SiteID("no peer")); got != (Link{}) {
			t.Errorf("the link to nobody is %+v", got)
		}
	})
}
