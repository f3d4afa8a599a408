package p2p

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/mrsmesh/mrsmesh/internal/p2p/relay"
	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// carry writes what is queued to the peer until the stream ends, for whatever
// reason, or there is a better one, which it returns. The peer says nothing on
// this stream after its Hello; its own messages come on the stream it opened.
func (r *remote) carry(ctx context.Context, l link) (next *link) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		// it returns when the stream ends, or the peer breaks the rule
		_, _ = l.stream.Read(make([]byte, 1))
	}()
	defer func() {
		if next != nil {
			r.leave(ctx, l, ended)
			return
		}
		_ = l.stream.Reset()
		<-ended
	}()
	moving := r.move(ctx, l) // what a better stream is put into, while one is opened
	out := bufio.NewWriterSize(
		wire.DeadlineWriter{Stream: l.stream, Limit: r.m.cfg.Timing.Write}, wire.BufferBytes,
	)
	var spread <-chan time.Time
	for {
		var err error
		select {
		case <-ended: // or ctx ended, which resets the stream
			return await(moving)
		case <-r.better:
			if moving == nil {
				moving = r.move(ctx, l)
			}
		case next = <-moving:
			if next != nil {
				return next
			}
			moving = nil
		case frame := <-r.queue:
			err = r.write(out, frame)
		case <-r.news:
			if spread == nil {
				spread = time.After(r.m.cfg.Timing.Spread)
			}
		case <-spread:
			spread = nil
			err = r.repeatHello(out)
		}
		if err == nil {
			continue
		}
		r.m.log.Info("stream to peer is lost", "peer", r.site, "error", err)
		if isTimeout(err) { // the peer takes nothing
			r.abandon()
		}
		return await(moving)
	}
}

// write writes the frame and all that is queued behind it, and flushes when the
// queue is empty.
func (r *remote) write(out *bufio.Writer, frame []byte) error {
	for {
		r.queued.Add(-int64(len(frame)))
		if _, err := out.Write(frame); err != nil {
			r.m.counts.Inc(wire.CountDropped, queueSend)
			return err
		}
		select {
		case frame = <-r.queue:
		default:
			return out.Flush()
		}
	}
}

// repeatHello tells the peer what changed: this site's capability, or members.
func (r *remote) repeatHello(out *bufio.Writer) error {
	r.mu.Lock()
	named := r.pending
	r.pending = nil
	r.mu.Unlock()
	frame, err := protocol.AppendFrame(nil, r.m.hello(grid.ReasonNone, named))
	if err != nil {
		r.m.log.Error("hello cannot be repeated", "error", err)
		return nil
	}
	if _, err := out.Write(frame); err != nil {
		return err
	}
	return out.Flush()
}

// tell makes the peer hear this site's Hello again, with more members.
func (r *remote) tell(members []string) {
	r.mu.Lock()
	r.pending = append(r.pending, members...)
	if over := len(r.pending) - protocol.MaxHelloPeers; over > 0 {
		r.pending = r.pending[over:]
	}
	r.mu.Unlock()
	signal(r.news)
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// serve reads a stream that a peer opened.
func (m *Mesh) serve(ctx context.Context, stream network.Stream) {
	if m.isStranger(stream.Conn()) || !m.enter() {
		_ = stream.Reset()
		return
	}
	defer m.wg.Done()
	stop := context.AfterFunc(ctx, func() { _ = stream.Reset() })
	defer stop()
	defer func() { _ = stream.Reset() }()
	leave, ok := m.guard.openStream(stream.Conn().RemotePeer())
	if !ok {
		m.counts.Inc(wire.CountDropped, queueStreams)
		return
	}
	defer leave()
	in := wire.NewReader(stream, m.cfg.Timing.Read)
	hello, ok := m.welcome(in, stream)
	if !ok {
		return
	}
	r := m.want(stream.Conn().RemotePeer(), (*remote).kick)
	if r == nil {
		return
	}
	if !r.current(hello, stream.Conn()) || !r.awaitSeen(ctx) || !r.isRun(runOf(hello)) {
		return
	}
	r.take(stream)
	m.hear(ctx, r, in)
}

// hear reads a peer's messages until its stream ends.
func (m *Mesh) hear(ctx context.Context, r *remote, in *wire.Reader) {
	for m.guard.pace(ctx, r.id, in.Size) {
		message, err := in.Next(protocol.MaxMessageBytes)
		if err == nil {
			if extra := extraWork(message); extra > 0 && !m.guard.work(ctx, r.id, extra) {
				return
			}
		}
		switch {
		case err == nil && !m.isGenuine(message):
			m.counts.Inc(wire.CountInvalid, causeTestimony)
		case err == nil:
			r.received(message)
		case errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF),
			errors.Is(err, network.ErrReset):
			return
		default:
			m.unusable(r.site, err)
			if !wire.Skippable(err) {
				return // where the next message begins is lost
			}
		}
	}
}

// welcome reads the peer's Hello, judges it and answers.
func (m *Mesh) welcome(in *wire.Reader, stream network.Stream) (protocol.Hello, bool) {
	id := stream.Conn().RemotePeer()
	if stream.SetReadDeadline(time.Now().Add(m.cfg.Timing.Hello)) != nil {
		return protocol.Hello{}, false
	}
	hello, err := readHello(in)
	now := m.cfg.Now()
	if err != nil {
		m.unusable(wire.SiteOf(id), err)
	}
	reason := grid.ReasonInvalid
	switch {
	case err == nil:
		_, reason = m.judge(wire.SiteOf(id), hello, now, now)
	case !errors.Is(err, grid.ErrInvalid): // not even a Hello
		return hello, false
	}
	var named []string
	if reason == grid.ReasonNone {
		named = m.membersFor(id, stream.Conn())
	} else {
		m.refused(&refusedError{Site: wire.SiteOf(id), Reason: reason})
	}
	answer := m.refusal(wire.SiteOf(id), reason, runOf(hello))
	answer.Peers = named
	if err := writeHello(stream, m.cfg.Timing.Hello, answer); err != nil {
		m.log.Debug("peer takes no hello", "peer", wire.SiteOf(id), "error", err)
		return hello, false
	}
	if reason != grid.ReasonNone {
		_ = stream.SetReadDeadline(time.Now().Add(refusalGrace))
		_, _ = stream.Read(make([]byte, 1)) // until the peer has read why
		m.after(refusalGrace, func() { _ = m.host.Network().ClosePeer(id) })
		return hello, false
	}
	m.learn(id, hello.Peers)
	return hello, stream.SetReadDeadline(time.Time{}) == nil
}

// unusable counts and logs a message that cannot be used. A peer whose message can be
// read but cannot be true, such as more computation than exists, is named once.
func (m *Mesh) unusable(site grid.SiteID, err error) {
	m.counts.Inc(wire.CountInvalid, wire.CauseOf(err))
	say := m.log.Debug
	if errors.Is(err, grid.ErrInvalid) && m.firstRefusal(&refusedError{Site: site}) {
		say = m.log.Info
	}
	say("message is not usable", "peer", site, "error", err)
}

// current reports whether the peer's Hello is of its latest incarnation. After a
// crash that went unnoticed the new process comes before the old connection is
// known to be dead: that connection is then closed, and the old process seems to
// have died.
func (r *remote) current(hello protocol.Hello, at network.Conn) bool {
	facts, present := r.admitted()
	if c := facts.Run.Compare(runOf(hello)); !present || c >= 0 {
		return !present || c == 0
	}
	r.gone(facts.Run, true)
	for _, c := range r.m.host.Network().ConnsToPeer(r.id) {
		if c.ID() != at.ID() {
			_ = c.Close()
		}
	}
	r.mu.Lock()
	old := r.outgoing
	r.mu.Unlock()
	if old != nil {
		_ = old.Reset()
	}
	return true
}

// awaitSeen waits until the peer is admitted on our own stream to it, where its
// answer shows that it admits us, too.
func (r *remote) awaitSeen(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, r.m.cfg.Timing.Dial+r.m.cfg.Timing.Hello)
	defer cancel()
	r.mu.Lock()
	seen := r.seen
	r.mu.Unlock()
	select {
	case <-seen:
		return true
	case <-ctx.Done():
		return false
	}
}

// isRun reports whether this run of the peer is the one that was admitted. Another one may have
// been while its stream waited; what a run says is never taken for the word of another.
func (r *remote) isRun(run protocol.Run) bool {
	facts, present := r.admitted()
	return present && facts.Run.Compare(run) == 0
}

// take makes the stream the one on which the peer speaks, and ends an older one: a
// peer that opens a second one has lost the first, or moves from a relay to a direct
// connection and still has messages on the way in the first.
func (r *remote) take(stream network.Stream) {
	r.mu.Lock()
	old := r.inbound
	r.inbound = stream
	r.mu.Unlock()
	switch {
	case old == nil:
	case relay.IsCircuit(old.Conn().RemoteMultiaddr()) &&
		!relay.IsCircuit(stream.Conn().RemoteMultiaddr()):
		r.m.after(leaveGrace, func() { _ = old.Reset() })
	default:
		_ = old.Reset()
	}
}

// received hands a message on; a repeated Hello is for the mesh itself.
func (r *remote) received(message protocol.Message) {
	if r.isExpelled() || r.m.aboutMembers(r, message) {
		return
	}
	hello, ok := message.(protocol.Hello)
	if !ok {
		r.m.counts.Inc(wire.CountIn, wire.NameOf(message))
		r.m.handlers.OnMessage(r.site, message)
		return
	}
	if hello.Refusal != grid.ReasonNone { // it banned us, and hangs up
		r.m.heedRefusal(r.site, hello)
		r.m.refused(&refusedError{Site: r.site, Reason: hello.Refusal, ByPeer: true})
		return
	}
	if !r.m.guard.hello(r.id) {
		r.m.counts.Inc(wire.CountDropped, queueHello)
		return
	}
	r.m.learn(r.id, hello.Peers)
	now := r.m.cfg.Now()
	facts, reason := r.m.judge(r.site, hello, now, now)
	if reason != grid.ReasonNone {
		return // a new stream decides about that
	}
	old, _ := r.admitted()
	if drift := facts.Skew - old.Skew; drift.Abs() < time.Minute {
		facts.Skew = old.Skew // measured with a round trip, and so better
	}
	r.update(facts, true)
	r.compareRoster(hello.Roster)
}
