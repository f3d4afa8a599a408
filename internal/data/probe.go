package data

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	mrand "math/rand/v2"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"golang.org/x/time/rate"
)

// probeID is the stream on which links are measured: one request, and for a
// probe its bytes.
const probeID = protocol.ID("/mrs/1/probe")

// The requests of the stream: one byte, then a number of eight.
const (
	askBytes  = 1 // send me so many bytes
	tellSpeed = 2 // so many bit/s came from you
)

// Bounds of a probe. A link so fast that the larger size takes less than
// probeQuick is known well enough not to be anybody's bottleneck.
const (
	probeSmall     = 256 << 10
	probeLarge     = 1 << 20
	probeQuick     = 100 * time.Millisecond // a small probe that takes less is followed by a large one
	probeTimeout   = 30 * time.Second
	probePerPeer   = 10 * time.Minute // between two probes served to one peer
	probesAtOnce   = 4                // served
	probePeers     = 1024             // peers whose last probe is remembered
	probeRequest   = 9                // bytes
	reportPeriod   = time.Minute      // between two reports to one peer
	probePerMinute = 8                // served to all peers
	reportsWaiting = 64
)

// prober serves probes, and asks for them where a link is not known.
type prober struct {
	s     *Store
	all   *rate.Limiter
	slots chan struct{}

	reports chan report // to be told to peers

	mu       sync.Mutex
	served   map[peer.ID]time.Time
	reported map[peer.ID]time.Time
}

// report is the rate to be told to a peer, of what came from it.
type report struct {
	to  peer.ID
	bps float64
}

func newProber(s *Store) *prober {
	p := &prober{
		s: s, all: rate.NewLimiter(rate.Every(time.Minute/probePerMinute), probePerMinute),
		slots:   make(chan struct{}, probesAtOnce),
		reports: make(chan report, reportsWaiting),
		served:  make(map[peer.ID]time.Time), reported: make(map[peer.ID]time.Time),
	}
	s.host.SetStreamHandler(probeID, p.serve)
	return p
}

// every keeps a time for each peer, and reports whether the last one is so long
// ago; the table is bounded.
func every(table map[peer.ID]time.Time, id peer.ID, now time.Time, pause time.Duration) bool {
	if last, ok := table[id]; ok && now.Sub(last).Abs() < pause {
		return false
	}
	if len(table) >= probePeers {
		for other, last := range table {
			if now.Sub(last).Abs() >= pause {
				delete(table, other)
			}
		}
		if len(table) >= probePeers {
			return false
		}
	}
	table[id] = now
	return true
}

// serve answers one request of a peer.
func (p *prober) serve(stream network.Stream) {
	ctx, op, err := p.s.begin(context.Background())
	if err != nil {
		_ = stream.Reset()
		return
	}
	defer op.end()
	if err := p.answer(ctx, stream); err != nil {
		p.s.metrics.probes.With("refused").Inc()
		_ = stream.Reset()
		return
	}
	_ = stream.Close()
}

var errProbe = errors.New("no probe now")

func (p *prober) answer(ctx context.Context, stream network.Stream) error {
	id := stream.Conn().RemotePeer()
	if !p.s.cfg.Allow(id) {
		p.s.metrics.denied.Inc()
		return errProbe
	}
	if err := stream.SetDeadline(time.Now().Add(probeTimeout)); err != nil {
		return err
	}
	var request [probeRequest]byte
	if _, err := io.ReadFull(stream, request[:]); err != nil {
		return err
	}
	number := binary.BigEndian.Uint64(request[1:])
	switch request[0] {
	case tellSpeed:
		p.s.links.reported(id, float64(number))
		return nil
	case askBytes:
		return p.send(ctx, stream, id, number)
	default:
		return fmt.Errorf("%w: request %d", errProbe, request[0])
	}
}

// send gives a peer the bytes of a probe, of which it gets few.
func (p *prober) send(ctx context.Context, stream network.Stream, id peer.ID, bytes uint64) error {
	p.mu.Lock()
	first := bytes == probeSmall && every(p.served, id, p.s.now(), probePerPeer)
	follows := bytes == probeLarge && p.s.now().Sub(p.served[id]) < probeTimeout
	p.mu.Unlock()
	if !first && !follows || first && !p.all.Allow() {
		return errProbe
	}
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	default:
		return errProbe
	}
	if err := waitLimit(ctx, p.s.swap.upLimit, int(bytes)); err != nil {
		return err
	}
	p.s.metrics.probes.With("served").Inc()
	_, err := io.CopyN(stream, rand.Reader, int64(bytes))
	return err
}

// probe measures the link from a peer, in bit/s.
func (p *prober) probe(ctx context.Context, id peer.ID) (float64, error) {
	bps, took, err := p.fetch(ctx, id, probeSmall)
	if err == nil && took < probeQuick {
		bps, _, err = p.fetch(ctx, id, probeLarge)
	}
	return bps, err
}

// fetch asks for bytes and times them, from the first to the last: the round
// trip before them is not the link's rate.
func (p *prober) fetch(
	ctx context.Context, id peer.ID, bytes int64,
) (float64, time.Duration, error) {
	if err := waitLimit(ctx, p.s.swap.downLimit, int(bytes)); err != nil {
		return 0, 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	stream, err := p.request(ctx, id, askBytes, uint64(bytes))
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = stream.Reset() }()
	var head [1]byte
	if _, err = io.ReadFull(stream, head[:]); err != nil {
		return 0, 0, err
	}
	start := time.Now()
	n, err := io.Copy(io.Discard, io.LimitReader(stream, bytes))
	took := time.Since(start)
	if err != nil || n != bytes-1 {
		return 0, took, fmt.Errorf("probe ended after %d bytes: %w", n, errors.Join(err, errProbe))
	}
	return float64(n) * bitsPerByte / max(took, time.Millisecond).Seconds(), took, nil
}

func (p *prober) request(
	ctx context.Context, id peer.ID, kind byte, number uint64,
) (network.Stream, error) {
	stream, err := p.s.host.NewStream(network.WithNoDial(ctx, "links of connected peers"), id, probeID)
	if err != nil {
		return nil, err
	}
	if err := stream.SetDeadline(time.Now().Add(probeTimeout)); err != nil {
		_ = stream.Reset()
		return nil, err
	}
	request := [probeRequest]byte{kind}
	binary.BigEndian.PutUint64(request[1:], number)
	if _, err := stream.Write(request[:]); err != nil {
		_ = stream.Reset()
		return nil, err
	}
	return stream, nil
}

// report tells a peer what was measured of what it sent, now and then.
func (p *prober) report(id peer.ID, bps float64) {
	p.mu.Lock()
	due := every(p.reported, id, p.s.now(), reportPeriod)
	p.mu.Unlock()
	if !due || !p.s.cfg.Allow(id) {
		return
	}
	select {
	case p.reports <- report{id, bps}:
	default: // the next measurement is told
	}
}

// tell sends the reports that wait.
func (p *prober) tell() {
	for {
		select {
		case <-p.s.stop:
			return
		case r := <-p.reports:
			p.deliver(r)
		}
	}
}

func (p *prober) deliver(r report) {
	ctx, op, err := p.s.begin(context.Background())
	if err != nil {
		return
	}
	defer op.end()
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	stream, err := p.request(ctx, r.to, tellSpeed, uint64(min(r.bps, linkMaxBps)))
	if err == nil {
		_ = stream.Close()
	}
}

// run measures one unknown link after another, with a pause between them.
func (p *prober) run() {
	if p.s.cfg.ProbeEvery <= 0 {
		return
	}
	for {
		// Random, so that sites do not probe in step.
		pause := p.s.cfg.ProbeEvery/2 + mrand.N(p.s.cfg.ProbeEvery) //nolint:gosec // no secret
		timer := time.NewTimer(pause)
		select {
		case <-p.s.stop:
			timer.Stop()
			return
		case <-timer.C:
		}
		if id, ok := p.unknown(); ok {
			p.measure(id)
		}
	}
}

// unknown draws one of the connected members whose link was not measured lately.
func (p *prober) unknown() (peer.ID, bool) {
	var ids []peer.ID
	for _, id := range p.s.host.Network().Peers() {
		if p.s.cfg.Allow(id) && p.s.links.get(id).DownBps == 0 {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return "", false
	}
	return ids[mrand.N(len(ids))], true //nolint:gosec // a fair choice, no secret
}

func (p *prober) measure(id peer.ID) {
	ctx, op, err := p.s.begin(context.Background())
	if err != nil {
		return
	}
	defer op.end()
	bps, err := p.probe(ctx, id)
	if err != nil {
		p.s.metrics.probes.With("failed").Inc()
		p.s.cfg.Log.Debug("a link was not measured", "peer", id.String(), "error", err)
		return
	}
	p.s.metrics.probes.With("measured").Inc()
	p.s.links.measured(id, bps)
	p.report(id, bps)
}
