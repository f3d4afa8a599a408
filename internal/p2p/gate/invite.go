package gate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"

	"github.com/mrsmesh/mrsmesh/internal/member"
	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
)

// LinkStreamID is the libp2p protocol name of the stream on which a domain joins another one by
// an invitation: ask, proposal, agreement and end.
const LinkStreamID = "/mrs/1/link"

// ErrNotReached says that none of the inviter's addresses answers.
var ErrNotReached = errors.New("the inviting domain's gateway does not answer")

// ErrTurnedAway says that the inviter let this site not even ask.
var ErrTurnedAway = errors.New("the inviting domain's gateway turned this site away: no " +
	"invitation is open there any more, or too many ask at this moment; ask for a new token there")

// What is said, in this order; each of the inviter's may be a refusal.
type (
	ask struct {
		Ask member.Statement `json:"ask"`
	}
	proposal struct {
		Refusal member.LinkRefusal `json:"refusal,omitempty"`
		Record  member.LinkRecord  `json:"record,omitzero"`
	}
	agreement struct {
		Record member.LinkRecord `json:"record"`
	}
	closing struct {
		Refusal member.LinkRefusal `json:"refusal,omitempty"`
	}
)

// Join asks the inviter of a token and links the two domains. Both sides have the same record
// then. The error is a member.LinkRefusal, ErrNotReached, ErrTurnedAway, or what went wrong when
// the inviter was asked: then it may have linked this domain, and the same token can be used again.
func (g *Gates) Join(ctx context.Context, token member.Token) (member.Link, error) {
	own := g.cfg.Links.Side(g.gateways())
	said, err := g.cfg.Links.Ask(token, own)
	if err != nil {
		return member.Link{}, err
	}
	id, err := wire.PeerOf(token.Inviter)
	if err != nil {
		return member.Link{}, err
	}
	ids := append(g.relaysOf(token), id)
	g.expect(ids, 1)
	defer g.expect(ids, -1)
	record, err := g.ask(ctx, id, token, said)
	for _, id := range ids {
		if !g.Linked(id) {
			_ = (*g.host.Load()).Network().ClosePeer(id) // it was a guest's
		}
	}
	if err != nil {
		return member.Link{}, err
	}
	link, err := g.cfg.Links.Join(record)
	if err != nil {
		return link, err
	}
	g.cfg.Log.Info("linked with another domain", "domain", string(link.Name))
	g.Review()
	return link, nil
}

// relaysOf are the members of the inviting domain through which its gateway is reached.
func (g *Gates) relaysOf(token member.Token) (ids []peer.ID) {
	for _, addr := range bare(member.Gateway{Site: token.Inviter, Addrs: token.Dial()}) {
		if id, err := wire.PeerOf(g.cfg.Through(addr)); err == nil {
			ids = append(ids, id)
		}
	}
	return ids
}

func (g *Gates) expect(ids []peer.ID, n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, id := range ids {
		if g.expected[id] += n; g.expected[id] == 0 {
			delete(g.expected, id)
		}
	}
}

// ask connects to the inviter and comes back with a record that both sides have signed.
func (g *Gates) ask(
	ctx context.Context, id peer.ID, token member.Token, said member.Statement,
) (record member.LinkRecord, err error) {
	h := *g.host.Load()
	ctx = network.WithAllowLimitedConn(ctx, "link")
	dialling, cancel := context.WithTimeout(ctx, g.cfg.Timing.Dial)
	defer cancel()
	if s, ok := h.Network().(*swarm.Swarm); ok {
		s.Backoff().Clear(id)
	}
	inviter := member.Gateway{Site: token.Inviter, Addrs: token.Dial()}
	if err = h.Connect(dialling, peer.AddrInfo{ID: id, Addrs: bare(inviter)}); err != nil {
		if errors.Is(gated(err), errGated) {
			return record, ErrTurnedAway
		}
		return record, fmt.Errorf("%w: %w", ErrNotReached, err)
	}
	opening, cancel := context.WithTimeout(ctx, g.cfg.Timing.Hello)
	defer cancel()
	stream, err := h.NewStream(opening, id, LinkStreamID)
	if err == nil {
		defer func() { _ = stream.Reset() }()
		record, err = g.agree(stream, token, said)
	}
	if err != nil && !errors.As(err, new(member.LinkRefusal)) &&
		(errors.Is(gated(err), errGated) || h.Network().Connectedness(id) != network.Connected) {
		err = ErrTurnedAway
	}
	return record, err
}

// agree says what there is to say on a stream to the inviter.
func (g *Gates) agree(
	stream network.Stream, token member.Token, said member.Statement,
) (member.LinkRecord, error) {
	var record member.LinkRecord
	if err := stream.SetDeadline(time.Now().Add(g.cfg.Timing.Hello)); err != nil {
		return record, err
	}
	if err := say(stream, ask{Ask: said}); err != nil {
		return record, err
	}
	var p proposal
	if err := listen(stream, &p); err != nil {
		return record, err
	}
	if p.Refusal != "" {
		return record, member.RefusalOf(p.Refusal)
	}
	record, err := g.cfg.Links.Agree(token, p.Record, g.cfg.Links.Side(nil))
	if err != nil {
		return record, err
	}
	if err := say(stream, agreement{Record: record}); err != nil {
		return record, err
	}
	var c closing
	if err := listen(stream, &c); err != nil {
		return record, fmt.Errorf("%w; join again with the same token", err)
	}
	if c.Refusal != "" {
		return record, member.RefusalOf(c.Refusal)
	}
	return record, nil
}

// ServeJoin lets another domain use an invitation.
func (g *Gates) ServeJoin(ctx context.Context, stream network.Stream) {
	id := stream.Conn().RemotePeer()
	release, ok := g.cfg.Hold()
	if !ok {
		_ = stream.Reset()
		return
	}
	defer release()
	stop := context.AfterFunc(ctx, func() { _ = stream.Reset() })
	defer stop()
	defer func() { _ = stream.Reset() }()
	leave, ok := g.cfg.OpenStream(id)
	if !ok {
		return
	}
	defer leave()
	link, err := g.propose(stream)
	if err != nil {
		g.cfg.Counts.Inc(wire.CountBorder, label(err))
		g.cfg.Log.Warn("a domain is not linked", "peer", wire.SiteOf(id), "error", err)
		return
	}
	g.cfg.Counts.Inc(wire.CountBorder, "linked")
	g.cfg.Log.Info("linked with another domain", "domain", string(link.Name))
	g.Review()
	_, _ = stream.Read(make([]byte, 1)) // until the other side has read the end
	if g.cfg.Guest(stream.Conn()) {
		_ = stream.Conn().Close() // it comes back as a neighbour
	}
}

// propose is the inviter's side of agree.
func (g *Gates) propose(stream network.Stream) (member.Link, error) {
	if err := stream.SetDeadline(time.Now().Add(g.cfg.Timing.Hello)); err != nil {
		return member.Link{}, err
	}
	var a ask
	if err := listen(stream, &a); err != nil {
		g.cfg.Blame(stream.Conn())
		return member.Link{}, err
	}
	from := wire.SiteOf(stream.Conn().RemotePeer())
	record, err := g.cfg.Links.Propose(a.Ask, from, g.cfg.Links.Side(g.gateways()))
	if refusal := member.RefusalOf(err); err != nil &&
		(refusal == member.LinkUnknown || refusal == member.LinkForged) {
		g.cfg.Blame(stream.Conn()) // before it can leave
	}
	if err != nil {
		return member.Link{}, g.turnAway(stream, proposal{Refusal: member.RefusalOf(err)}, err)
	}
	if err = say(stream, proposal{Record: record}); err != nil {
		return member.Link{}, err
	}
	var b agreement
	if err = listen(stream, &b); err != nil {
		return member.Link{}, err
	}
	link, err := g.cfg.Links.Seal(b.Record)
	if err != nil {
		return link, g.turnAway(stream, closing{Refusal: member.RefusalOf(err)}, err)
	}
	g.cfg.OnLinks() // deputies let the other gateway pass, which is about to come back
	return link, say(stream, closing{})
}
