package gate

import (
	"bytes"
	"crypto/rand"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/mrsmesh/mrsmesh/internal/member"
	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// StreamID is the libp2p protocol name of the stream between the gateways of two linked
// domains: opening, answer, proof and verdict, and then messages in both directions.
const StreamID = "/mrs/1/border"

const cardContext = "mrs/1/border-card"

// nonceBytes is the length of the number that each side draws for a conversation.
const nonceBytes = 32

// busy is the verdict on a stream beside one that is as good.
const busy member.LinkRefusal = "busy"

// card says under a domain's key who speaks for it.
type card struct {
	To       grid.DomainKey   `json:"to"`
	Speaker  grid.SiteID      `json:"speaker"`
	Gateways []member.Gateway `json:"gateways"` // the speaker among them
	Nonce    []byte           `json:"nonce"`    // that the other side has drawn
}

// What is said at the start of a stream, in this order.
type (
	// opening names the two domains.
	opening struct {
		From  grid.DomainKey `json:"from"`
		To    grid.DomainKey `json:"to"`
		Nonce []byte         `json:"nonce"`
	}
	// answer is the card of the side that was called, or why there is none.
	answer struct {
		Refusal member.LinkRefusal `json:"refusal,omitempty"`
		Card    member.Statement   `json:"card,omitzero"`
		Nonce   []byte             `json:"nonce,omitempty"`
	}
	// proof is the card of the side that called.
	proof struct {
		Card member.Statement `json:"card"`
	}
	// verdict says whether messages may follow.
	verdict struct {
		Refusal member.LinkRefusal `json:"refusal,omitempty"`
	}
)

func draw() []byte {
	nonce := make([]byte, nonceBytes)
	_, _ = rand.Read(nonce) // it never fails
	return nonce
}

// card makes this side's card for a domain.
func (g *Gates) card(to grid.DomainKey, nonce []byte) (member.Statement, error) {
	return g.cfg.Links.State(cardContext, card{
		To: to, Speaker: g.self, Gateways: g.gateways(), Nonce: nonce,
	})
}

// judge reads the card of the domain of that key, as the peer on the connection shows it. The
// error is a member.LinkRefusal.
func (g *Gates) judge(
	said member.Statement, key grid.DomainKey, nonce []byte, conn network.Conn,
) ([]member.Gateway, error) {
	var c card
	if said.Read(cardContext, key, &c) != nil || member.ValidGateways(c.Gateways) != nil {
		return nil, member.LinkForged
	}
	speaker := wire.SiteOf(conn.RemotePeer())
	if c.To != g.cfg.Links.Key() || c.Speaker != speaker || !bytes.Equal(c.Nonce, nonce) {
		return nil, member.LinkReplayed
	}
	if !slices.ContainsFunc(c.Gateways, func(w member.Gateway) bool { return w.Site == speaker }) {
		return nil, member.LinkForged
	}
	return c.Gateways, nil
}

// call proves on a stream that was opened to a linked domain's gateway that this site speaks for
// its domain, and has the other side prove it. The error is a member.LinkRefusal where the other
// side gives a reason, or has shown a card that is not good.
func (g *Gates) call(stream network.Stream, key grid.DomainKey) error {
	if err := stream.SetDeadline(time.Now().Add(g.cfg.Timing.Hello)); err != nil {
		return err
	}
	own := draw()
	if err := say(stream, opening{From: g.cfg.Links.Key(), To: key, Nonce: own}); err != nil {
		return err
	}
	var a answer
	if err := listen(stream, &a); err != nil {
		return err
	}
	if a.Refusal != "" {
		return member.RefusalOf(a.Refusal)
	}
	gateways, err := g.judge(a.Card, key, own, stream.Conn())
	if err != nil {
		return err
	}
	mine, err := g.card(key, a.Nonce)
	if err != nil {
		return member.RefusalOf(err)
	}
	if err := say(stream, proof{Card: mine}); err != nil {
		return err
	}
	var v verdict
	if err := listen(stream, &v); err != nil {
		return err
	}
	switch {
	case v.Refusal == busy:
		return busy
	case v.Refusal != "":
		if refusal := member.RefusalOf(v.Refusal); refusal != member.LinkUnlinked {
			return refusal
		}
		return member.LinkUnlinked // the domain's key has said so: the card was judged before
	}
	if err := g.cfg.Links.Met(key, gateways); err != nil {
		return err
	}
	return stream.SetDeadline(time.Time{})
}

// receive is the other side of call: it finds out which linked domain calls. With an error there
// is no stream, and the caller was told why.
func (g *Gates) receive(stream network.Stream) (grid.DomainKey, error) {
	if err := stream.SetDeadline(time.Now().Add(g.cfg.Timing.Hello)); err != nil {
		return "", err
	}
	var o opening
	if err := listen(stream, &o); err != nil {
		return "", err
	}
	_, linked := g.cfg.Links.Get(o.From)
	if !linked && !g.cfg.Links.HasEnded(o.From) {
		return "", g.turnAway(stream, answer{Refusal: member.LinkUnknown}, member.LinkUnknown)
	}
	if len(o.Nonce) != nonceBytes || o.To != g.cfg.Links.Key() {
		return "", g.turnAway(stream, answer{Refusal: member.LinkReplayed}, member.LinkReplayed)
	}
	mine, err := g.card(o.From, o.Nonce)
	if err != nil {
		return "", g.turnAway(stream, answer{Refusal: member.RefusalOf(err)}, err)
	}
	own := draw()
	if err = say(stream, answer{Card: mine, Nonce: own}); err != nil {
		return "", err
	}
	var p proof
	if err = listen(stream, &p); err != nil {
		return "", err
	}
	gateways, err := g.judge(p.Card, o.From, own, stream.Conn())
	if err == nil {
		err = g.cfg.Links.Met(o.From, gateways) // LinkUnlinked, where the link has ended
	}
	if err != nil {
		return "", g.turnAway(stream, verdict{Refusal: member.RefusalOf(err)}, err)
	}
	return o.From, nil
}

// turnAway tells the other side why, waits until it has read that, and returns the reason.
func (g *Gates) turnAway(stream network.Stream, what any, why error) error {
	if err := say(stream, what); err != nil {
		return err
	}
	_ = stream.CloseWrite()
	_, _ = stream.Read(make([]byte, 1)) // until the other side hangs up; the deadline is set
	return why
}
