package gate

import (
	"bytes"
	"crypto/rand"
	"errors"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/mrsmesh/mrsmesh/internal/member"
	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// StreamID is the libp2p protocol name of the stream between the gateways of two linked
// domains: opening, answer, proof and verdict, and then messages in both directions.
const StreamID = "/mrs/1/border"

const cardContext = "mrs/1/border-card"

// nonceBytes is the length of the number that each side draws for a conversation.
const nonceBytes = 32

// busy is the verdict on a stream beside one that is as good.
const busy member.LinkRefusal = "busy"

// card says under a domain's key, or under a mandate of it, who speaks for the domain.
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
		shown
		Nonce []byte `json:"nonce,omitempty"`
	}
	// proof is the card of the side that called.
	proof struct {
		shown
	}
	// shown is a card, and the mandate of a deputy, whose own key has signed it.
	shown struct {
		Card    member.Statement  `json:"card,omitzero"`
		Mandate *protocol.Mandate `json:"mandate,omitempty"`
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
func (g *Gates) card(to grid.DomainKey, nonce []byte) (mine shown, err error) {
	mine.Card, mine.Mandate, err = g.cfg.Links.State(cardContext, card{
		To: to, Speaker: g.self, Gateways: g.gateways(), Nonce: nonce,
	})
	return mine, err
}

// judge reads the card of the domain of that key, as the peer on the connection shows it, and says
// which gateways that domain has. The error is a member.LinkRefusal.
func (g *Gates) judge(
	said shown, key grid.DomainKey, nonce []byte, conn network.Conn,
) ([]member.Gateway, error) {
	var c card
	speaker := wire.SiteOf(conn.RemotePeer())
	err := said.Card.Read(cardContext, key, &c)
	if said.Mandate != nil {
		err = g.judgeDeputy(said, key, speaker, &c)
	}
	if refusal, is := errors.AsType[member.LinkRefusal](err); is {
		return nil, refusal
	}
	if err != nil || member.ValidGateways(c.Gateways) != nil {
		return nil, member.LinkForged
	}
	if c.To != g.cfg.Links.Key() || c.Speaker != speaker || !bytes.Equal(c.Nonce, nonce) {
		return nil, member.LinkReplayed
	}
	if !slices.ContainsFunc(c.Gateways, func(w member.Gateway) bool { return w.Site == speaker }) {
		return nil, member.LinkForged
	}
	if said.Mandate != nil {
		return g.known(key, speaker, c.Gateways), nil
	}
	return c.Gateways, nil
}

// judgeDeputy reads the card of a deputy. It counts while its mandate lasts, and only for a site
// that the domain's key has named last among its gateways: so a mandate is taken back.
func (g *Gates) judgeDeputy(
	said shown, key grid.DomainKey, speaker grid.SiteID, into *card,
) error {
	named, _, found := g.cfg.Links.Gateway(speaker)
	switch now := g.cfg.Now(); {
	case said.Mandate.Site != speaker || !found || named != key ||
		!said.Mandate.IsSignedBy(key, time.Time{}):
		return member.LinkForged
	case !said.Mandate.IsSignedBy(key, now):
		return member.LinkLapsed
	}
	return said.Card.ReadUnder(cardContext, *said.Mandate, into)
}

// known are the gateways of a linked domain as its key has named them, with the addresses that a
// deputy names of itself.
func (g *Gates) known(
	key grid.DomainKey, deputy grid.SiteID, named []member.Gateway,
) []member.Gateway {
	link, found := g.cfg.Links.Get(key)
	if !found {
		return named // it has ended, and nothing is written down
	}
	all := slices.Clone(link.Side.Gateways)
	is := func(w member.Gateway) bool { return w.Site == deputy }
	at, from := slices.IndexFunc(all, is), slices.IndexFunc(named, is)
	if at >= 0 && from >= 0 {
		all[at] = named[from]
	}
	return all
}

// call proves on a stream that was opened to a linked domain's gateway that this site speaks for
// its domain, and has the other side prove it. The error is a member.LinkRefusal where the other
// side gives a reason, or has shown a card that is not good. deputy: the one there speaks under
// a mandate.
func (g *Gates) call(
	stream network.Stream, key grid.DomainKey,
) (deputy bool, err error) {
	if err = stream.SetDeadline(time.Now().Add(g.cfg.Timing.Hello)); err != nil {
		return false, err
	}
	own := draw()
	if err = say(stream, opening{From: g.cfg.Links.Key(), To: key, Nonce: own}); err != nil {
		return false, err
	}
	var a answer
	if err = listen(stream, &a); err != nil {
		return false, err
	}
	if a.Refusal != "" {
		return false, member.RefusalOf(a.Refusal)
	}
	gateways, err := g.judge(a.shown, key, own, stream.Conn())
	if err != nil {
		return false, err
	}
	mine, err := g.card(key, a.Nonce)
	if err != nil {
		return false, member.RefusalOf(err)
	}
	if err = say(stream, proof{shown: mine}); err != nil {
		return false, err
	}
	var v verdict
	if err = listen(stream, &v); err != nil {
		return false, err
	}
	switch {
	case v.Refusal == busy:
		return false, busy
	case v.Refusal != "":
		if refusal := member.RefusalOf(v.Refusal); refusal != member.LinkUnlinked {
			return false, refusal
		}
		return false, member.LinkUnlinked // that domain has said so: the card was judged before
	}
	if err = g.cfg.Links.Met(key, gateways); err != nil {
		return false, err
	}
	return a.Mandate != nil, stream.SetDeadline(time.Time{})
}

// receive is the other side of call: it finds out which linked domain calls. With an error there
// is no stream, and the caller was told why.
func (g *Gates) receive(
	stream network.Stream,
) (key grid.DomainKey, deputy bool, err error) {
	if err = stream.SetDeadline(time.Now().Add(g.cfg.Timing.Hello)); err != nil {
		return "", false, err
	}
	var o opening
	if err = listen(stream, &o); err != nil {
		return "", false, err
	}
	_, linked := g.cfg.Links.Get(o.From)
	if !linked && !g.cfg.Links.HasEnded(o.From) {
		why := member.LinkUnknown
		return "", false, g.turnAway(stream, answer{Refusal: why}, why)
	}
	if len(o.Nonce) != nonceBytes || o.To != g.cfg.Links.Key() {
		why := member.LinkReplayed
		return "", false, g.turnAway(stream, answer{Refusal: why}, why)
	}
	mine, err := g.card(o.From, o.Nonce)
	if err != nil {
		return "", false, g.turnAway(stream, answer{Refusal: member.RefusalOf(err)}, err)
	}
	own := draw()
	if err = say(stream, answer{shown: mine, Nonce: own}); err != nil {
		return "", false, err
	}
	var p proof
	if err = listen(stream, &p); err != nil {
		return "", false, err
	}
	gateways, err := g.judge(p.shown, o.From, own, stream.Conn())
	if err == nil {
		err = g.cfg.Links.Met(o.From, gateways) // LinkUnlinked, where the link has ended
	}
	if err != nil {
		return "", false, g.turnAway(stream, verdict{Refusal: member.RefusalOf(err)}, err)
	}
	return o.From, p.Mandate != nil, nil
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
