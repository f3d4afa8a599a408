package gossip

import (
	"context"
	"time"

	pubsub "github.com/libp2p/go-libp2p-pubsub"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// Causes for which an envelope is thrown away, the label of wire.CountInvalid, beside
// those of package wire.
const (
	causeDomain    = "domain"    // of another domain
	causeDeadline  = "deadline"  // expired, or from a clock too far off
	causeRate      = "rate"      // more than a submitter may send
	causeStranger  = "stranger"  // signed by a site that is not on the list
	causeSignature = "signature" // not signed by the site it names
	causeReplay    = "replay"    // seen before
)

// Labels of wire.CountDropped.
const (
	queueGossip = "gossip_in"  // received faster than handled
	queueOwn    = "gossip_own" // said faster than others would listen
)

// check is the validator: cheap questions first, the signature last. Ignored
// messages cost nobody anything; rejected ones cost the peer that brought them
// its score.
func (g *Topic) check(
	_ context.Context, from peer.ID, raw *pubsub.Message,
) pubsub.ValidationResult {
	own := from == g.cfg.Host.ID()
	e, signed, signature, err := protocol.DecodeEnvelope(raw.GetData())
	if err != nil {
		return g.reject(wire.CauseOf(err))
	}
	if !own {
		if cause, result := g.checkCheaply(e, from); result != pubsub.ValidationAccept {
			return g.invalid(cause, result)
		}
		if !wire.SignedBy(e.Signer, signed, signature) {
			return g.reject(causeSignature)
		}
		if cause, result := g.checkTimely(e, from); result != pubsub.ValidationAccept {
			return g.invalid(cause, result)
		}
	}
	message, err := protocol.Decode(e.Payload)
	if err != nil {
		return g.reject(wire.CauseOf(err))
	}
	if !g.belongs(message, e.Signer, raw.GetTopic()) {
		return g.reject(wire.CauseFormat)
	}
	if !own {
		if cause := g.count(e, len(raw.GetData())); cause != "" {
			return g.invalid(cause, pubsub.ValidationIgnore)
		}
	}
	raw.ValidatorData = said{by: e.Signer, message: message}
	return g.reserve(len(raw.GetData()))
}

// belongs reports whether the signer may say the message on the topic: submitters what is their
// own on the one, and all members what is said on behalf of an owner on the other. By which right
// they say it only those can tell who know the owner's group.
func (g *Topic) belongs(message protocol.Message, signer grid.SiteID, topic string) bool {
	site, ok := speaker(message)
	if _, behalf := message.(protocol.OnBehalf); behalf {
		return ok && topic == protocol.BehalfTopic(g.cfg.Domain)
	}
	return ok && site == signer && topic == protocol.Topic(g.cfg.Domain)
}

// said is a checked message on its way to the handler.
type said struct {
	by      grid.SiteID
	message protocol.Message
}

// checkCheaply asks what needs no cryptography.
func (g *Topic) checkCheaply(
	e protocol.Envelope, from peer.ID,
) (cause string, result pubsub.ValidationResult) {
	switch {
	case e.Domain != g.cfg.Domain:
		return causeDomain, pubsub.ValidationReject
	case !g.cfg.Allowed(e.Signer): // the sender's list may be another one
		return causeStranger, pubsub.ValidationIgnore
	case !g.rates.ready(e.Signer, g.clock()):
		g.excess(e.Signer, from)
		return causeRate, pubsub.ValidationIgnore
	default:
		return "", pubsub.ValidationAccept
	}
}

// checkTimely checks that a genuine envelope is current and was not heard before. A
// peer that passes on one that is not may have been restarted, or have a clock that
// differs from ours, and its submitter may have slept or had its clock set; but no
// honest site goes on sending what has expired. All this comes after the signature,
// because no honest peer passes on what is not genuine: one that does pays for it.
func (g *Topic) checkTimely(
	e protocol.Envelope, from peer.ID,
) (cause string, result pubsub.ValidationResult) {
	switch {
	case e.Signer == g.cfg.Self: // no other site has anything new in our name
		return causeReplay, pubsub.ValidationIgnore
	case e.CheckTime(g.clock()) == nil:
		return "", pubsub.ValidationAccept
	case e.Signer == wire.SiteOf(from) && !g.cfg.LateOwn(from):
		return causeDeadline, pubsub.ValidationReject
	default:
		return causeDeadline, pubsub.ValidationIgnore
	}
}

// clock is the wall clock, except that it never steps back.
func (g *Topic) clock() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.tick()
}

// tick is clock; the caller holds g.mu.
func (g *Topic) tick() time.Time {
	if now := g.cfg.Now(); now.After(g.now) {
		g.now = now
	}
	return g.now
}

// count notes a verified envelope. It gives the cause for which the envelope is
// to be ignored: it came before, or its signer says too much. Only here tokens
// and sequences are used up, so that forgeries cost the forger's victim nothing.
func (g *Topic) count(e protocol.Envelope, size int) (cause string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.tick()
	switch {
	case g.replays.Check(e, now) != nil:
		return causeReplay
	case !g.rates.take(e.Signer, now, size):
		return causeRate
	case g.replays.Admit(e, now) != nil: // too many signers
		return causeRate
	default:
		return ""
	}
}

// reserve claims queue space for a message on its way to the handler.
func (g *Topic) reserve(size int) pubsub.ValidationResult {
	limits := g.cfg.Limits
	waiting, bytes := g.waiting.Add(1), g.bytes.Add(int64(size))
	if waiting <= int64(limits.Messages) && bytes <= limits.Bytes {
		return pubsub.ValidationAccept
	}
	g.release(size)
	g.cfg.Counts.Inc(wire.CountDropped, queueGossip)
	return pubsub.ValidationIgnore
}

func (g *Topic) release(size int) {
	g.waiting.Add(-1)
	g.bytes.Add(-int64(size))
}

func (g *Topic) reject(cause string) pubsub.ValidationResult {
	return g.invalid(cause, pubsub.ValidationReject)
}

func (g *Topic) invalid(cause string, result pubsub.ValidationResult) pubsub.ValidationResult {
	g.cfg.Counts.Inc(wire.CountInvalid, cause)
	return result
}
