package gate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/mrsmesh/mrsmesh/internal/member"
	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// linkTag protects gateways of linked domains from the connection manager.
const linkTag = "mrs-link"

// queueBorder is the label under wire.CountDropped of what is lost on its way to a linked domain.
const queueBorder = "border"

// errGated says that the other gateway's host turned this one away and gave no reason.
var errGated = errors.New("its gateway lets this site not in: it may have lost its record of " +
	"the link, or ended it long ago; to link again, at both: siteagent domain unlink")

// door is this side of one link. Its goroutine, run, dials.
type door struct {
	g    *Gates
	key  grid.DomainKey
	site grid.SiteID   // the domain's, as DomainSite names it
	name grid.DomainID // here

	queue  chan []byte // frames to send
	queued atomic.Int64
	anew   chan struct{} // holds one while the own card has changed since it was shown
	end    context.CancelFunc

	order sync.Mutex // held while the handlers are told

	mu      sync.Mutex
	closed  bool
	current *session
	leaving *session    // another one is to take its place; nil: none
	calling grid.SiteID // the gateway to which a stream is being opened; empty: none
	why     error       // it is not connected; nil before the first attempt
}

// run keeps the one stream: while there is none it dials, with pauses.
func (d *door) run(ctx context.Context) {
	wait := wire.Backoff{Low: d.g.cfg.Timing.BackoffMin, High: d.g.cfg.Timing.BackoffMax}
	for ctx.Err() == nil {
		if s := d.open(); s != nil {
			select {
			case <-d.anew:
				d.renew(ctx, s)
				continue
			case <-s.ended:
			case <-ctx.Done():
				return
			}
			wait.Reset()
			if !wire.Pause(ctx, wait.Next(false), nil) { // the other side may be dialling, too
				return
			}
			continue
		}
		err := d.try(ctx)
		if ctx.Err() != nil || errors.Is(err, member.LinkUnlinked) && d.g.endedByThem(d) {
			return
		}
		if err != nil {
			d.failed(err)
			refused := errors.As(err, new(member.LinkRefusal)) && !errors.Is(err, busy)
			if !wire.Pause(ctx, wait.Next(refused), nil) {
				return
			}
		}
	}
}

// open is the stream that is in use, or nil.
func (d *door) open() *session {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.current
}

func (d *door) holds(s *session) bool { return d.open() == s }

// failed notes why there is no stream.
func (d *door) failed(err error) {
	if errors.Is(err, busy) {
		return
	}
	d.mu.Lock()
	news := d.why == nil || d.why.Error() != err.Error()
	d.why = err
	d.mu.Unlock()
	d.g.cfg.Counts.Inc(wire.CountBorder, label(err))
	if news {
		d.g.cfg.Log.Info("a linked domain is not connected",
			"domain", string(d.name), "error", err)
	}
}

// label is the error as a label of wire.CountBorder.
func label(err error) string {
	if refusal, is := errors.AsType[member.LinkRefusal](err); is {
		return string(refusal)
	}
	return "failed"
}

// try opens a stream to one of the domain's gateways and takes it into use.
func (d *door) try(ctx context.Context) error {
	link, found := d.g.cfg.Links.Get(d.key)
	if !found {
		return member.LinkUnlinked
	}
	if !d.g.cfg.Links.Speaks() {
		return fmt.Errorf("%w; links are held by the site that does", member.ErrNoKey)
	}
	var problem error
	for _, gateway := range link.Side.Gateways {
		err := d.dial(ctx, gateway)
		if err == nil || errors.Is(err, busy) { // it calls, or has called, itself
			return err
		}
		if problem == nil || errors.As(err, new(member.LinkRefusal)) {
			problem = err
		}
	}
	return problem
}

// dial opens a stream to a gateway and takes it into use, unless the other side was quicker.
func (d *door) dial(ctx context.Context, gateway member.Gateway) error {
	stream, err := d.g.reach(ctx, gateway)
	if err != nil {
		return err
	}
	if !d.begin(gateway.Site) {
		_ = stream.Reset()
		return busy
	}
	defer d.begun()
	return d.enter(ctx, stream)
}

// enter shows the own card on a new stream, and takes it into use.
func (d *door) enter(ctx context.Context, stream network.Stream) error {
	edition := d.g.currentEdition()
	deputy, err := d.g.call(stream, d.key)
	if err != nil {
		_ = stream.Reset()
		return gated(err)
	}
	s := newSession(stream, true, deputy)
	s.edition = edition
	if !d.adopt(ctx, s) {
		_ = stream.Reset()
		return busy
	}
	d.g.cfg.Go(func() { d.carry(ctx, s) })
	return nil
}

// renew shows the own card anew, on a stream that takes the place of the one in use: so the link
// is not down in between. The other side has heard the card, too, if it keeps the old stream.
func (d *door) renew(ctx context.Context, old *session) {
	d.replacing(old)
	defer func() {
		d.replacing(nil)
		select {
		case <-old.ended:
			d.leave(old) // nothing has taken its place
		default:
		}
	}()
	stream, err := d.g.reach(ctx, member.Gateway{Site: old.site})
	if err == nil {
		err = d.enter(ctx, stream)
	}
	if err != nil && !errors.Is(err, busy) {
		_ = old.stream.Reset() // it is dialled anew
	}
}

// replacing says which stream's end is no end of the link yet: the other side may take the new
// stream into use, and end the old one, before this side does.
func (d *door) replacing(s *session) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.leaving = s
}

// changed says that the own card is another one than before.
func (d *door) changed() {
	select {
	case d.anew <- struct{}{}:
	default:
	}
}

// begin notes that a gateway is being called. It reports false when there is a stream by now.
func (d *door) begin(gateway grid.SiteID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.current != nil {
		return false
	}
	d.calling = gateway
	return true
}

// begun is the end of a call, whatever came of it.
func (d *door) begun() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calling = ""
}

// reach connects to a gateway and opens a stream to it.
func (g *Gates) reach(ctx context.Context, gateway member.Gateway) (network.Stream, error) {
	id, err := wire.PeerOf(gateway.Site)
	if err != nil {
		return nil, err
	}
	ctx = network.WithAllowLimitedConn(ctx, "link")
	host := g.host.Load()
	if (*host).Network().Connectedness(id) != network.Connected {
		if s, ok := (*host).Network().(*swarm.Swarm); ok {
			s.Backoff().Clear(id) // the pauses between attempts are ours
		}
		dialling, cancel := context.WithTimeout(ctx, g.cfg.Timing.Dial)
		defer cancel()
		info := peer.AddrInfo{ID: id, Addrs: bare(gateway)}
		if err = (*host).Connect(dialling, info); err != nil {
			return nil, fmt.Errorf("its gateway %s is not reached: %w", gateway.Site, gated(err))
		}
	}
	opening, cancel := context.WithTimeout(ctx, g.cfg.Timing.Hello)
	defer cancel()
	stream, err := (*host).NewStream(opening, id, StreamID)
	if err != nil {
		return nil, fmt.Errorf("its gateway %s opens no stream: %w", gateway.Site, gated(err))
	}
	return stream, nil
}

// gated recognises the code with which a host closes a stranger's connection.
func gated(err error) error {
	var closed *network.ConnError
	if errors.As(err, &closed) && closed.Remote && closed.ErrorCode == network.ConnGated {
		return errGated
	}
	return err
}

// bare are the gateway's addresses without its ID.
func bare(gateway member.Gateway) []ma.Multiaddr {
	var addrs []ma.Multiaddr
	for _, text := range gateway.Addrs {
		if info, err := peer.AddrInfoFromString(text); err == nil {
			addrs = append(addrs, info.Addrs...)
		}
	}
	return addrs
}

// adopt takes a stream into use, unless there is one that is as good: where both sides dial at
// the same time, both keep the stream of the domain with the lower key, which turns the other one
// away while its own is under way; so what is said on a stream is not lost with it. Otherwise the
// newer one is good, for who opens it has lost the other. A deputy is taken when no other gateway
// of its domain is there; one that is said to be there is asked.
func (d *door) adopt(ctx context.Context, s *session) bool {
	d.order.Lock()
	defer d.order.Unlock()
	d.mu.Lock()
	old := d.current
	other := old != nil && old.site != s.site
	if d.closed || other && s.deputy || d.prefersOwn(s) ||
		old != nil && !other && d.bothDial(old, s) {
		d.mu.Unlock()
		if other {
			d.g.cfg.Go(func() { d.ask(ctx, old) })
		}
		return false
	}
	d.current, d.why = s, nil
	d.mu.Unlock()
	if old != nil {
		_ = old.stream.Reset()
	}
	if other {
		d.lost(old)
	}
	if old == nil || other {
		d.found(s)
	}
	return true
}

// prefersOwn reports whether a stream that the other side has opened is turned away for one that
// is being opened; d.mu is held.
func (d *door) prefersOwn(s *session) bool {
	return !s.byUs && d.calling == s.site && d.g.cfg.Links.Key() < d.key
}

// bothDial reports whether the old one of two streams between the same sites stays.
func (d *door) bothDial(old, s *session) bool {
	return old.byUs != s.byUs && old.byUs == (d.g.cfg.Links.Key() < d.key) &&
		time.Since(old.began) < d.g.cfg.Timing.Hello
}

// ask finds out whether the gateway at the other end of a stream still answers, and ends the stream
// if not: its machine may have died silently.
func (d *door) ask(ctx context.Context, s *session) {
	ctx, cancel := context.WithTimeout(ctx, d.g.cfg.Timing.Hello)
	defer cancel()
	stream, err := d.g.reach(ctx, member.Gateway{Site: s.site})
	if err == nil {
		_ = stream.SetDeadline(time.Now().Add(d.g.cfg.Timing.Hello))
		var a answer
		err = say(stream, opening{From: d.g.cfg.Links.Key(), To: d.key, Nonce: draw()})
		if err == nil {
			err = listen(stream, &a)
		}
		_ = stream.Reset()
	}
	if err != nil && d.holds(s) {
		d.g.cfg.Log.Info("the gateway of a linked domain does not answer any more",
			"domain", string(d.name), "gateway", s.site, "error", err)
		_ = s.stream.Reset()
	}
}

// found tells that a stream is in use; d.order is held.
func (d *door) found(s *session) {
	(*d.g.host.Load()).ConnManager().Protect(s.stream.Conn().RemotePeer(), linkTag)
	d.g.cfg.Counts.Inc(wire.CountBorder, "opened")
	d.g.cfg.Log.Info("a linked domain is connected", "domain", string(d.name), "gateway", s.site,
		"deputy", s.deputy)
	d.g.cfg.OnSeen(d.site, d.name, s.site)
}

// lost tells that none to that gateway is any more; d.order is held.
func (d *door) lost(s *session) {
	for len(d.queue) > 0 { // it would arrive too late to be true
		frame := <-d.queue
		d.queued.Add(-int64(len(frame)))
		d.g.cfg.Counts.Inc(wire.CountDropped, queueBorder)
	}
	(*d.g.host.Load()).ConnManager().Unprotect(s.stream.Conn().RemotePeer(), linkTag)
	d.g.cfg.Counts.Inc(wire.CountBorder, "lost")
	d.g.cfg.Log.Info("a linked domain is gone", "domain", string(d.name), "gateway", s.site)
	d.g.cfg.OnGone(d.site)
}

// leave takes a stream that has ended out of use.
func (d *door) leave(s *session) {
	d.order.Lock()
	defer d.order.Unlock()
	d.mu.Lock()
	if d.current != s || d.leaving == s {
		d.mu.Unlock()
		return // another one is in use, or about to be
	}
	d.current, d.why = nil, errLost
	d.mu.Unlock()
	d.lost(s)
}

// errLost says that there was a stream a moment ago.
var errLost = errors.New("the connection was lost; it is dialled again")

// shut ends the link's stream, and the goroutine that would open another one.
func (d *door) shut() {
	d.mu.Lock()
	d.closed = true
	s := d.current
	d.mu.Unlock()
	if s != nil {
		_ = s.stream.Reset()
	}
	d.end()
}
