package protocol

import (
	"fmt"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol/wirepb"
)

func notForBorder(m Message) error {
	return fmt.Errorf("%w: %T on a border stream", ErrUnknownMessage, m)
}

// setBorder sets the body for the messages between the gateways of two domains; it reports false
// for all others.
func setBorder(w *wirepb.Wire, m Message) bool {
	switch m := m.(type) {
	case BorderQuery:
		w.Body = &wirepb.Wire_BorderQuery{BorderQuery: &wirepb.BorderQuery{
			Passage: wirePassage(m.Passage), Job: string(m.Job), Seq: m.Seq,
			Req: wireRequirement(m.Req), Count: m.Count, TtlNs: int64(m.TTL),
		}}
	case BorderAnswer:
		w.Body = &wirepb.Wire_BorderAnswer{BorderAnswer: wireBorderAnswer(m)}
	case BorderOrder:
		w.Body = &wirepb.Wire_BorderOrder{BorderOrder: &wirepb.BorderOrder{
			Passage: wirePassage(m.Passage), Attempt: wireAttempt(m.Attempt),
			Spec: wireSpec(m.Spec), Here: m.Here,
		}}
	case BorderDeclined:
		w.Body = &wirepb.Wire_BorderDeclined{BorderDeclined: &wirepb.BorderDeclined{
			Attempts: each(m.Attempts, wireAttempt), Refusal: wireRefusal(m.Refusal),
		}}
	case BorderRenew:
		w.Body = &wirepb.Wire_BorderRenew{BorderRenew: &wirepb.BorderRenew{
			Number: m.Number, Attempts: each(m.Attempts, wireAttempt),
		}}
	case BorderLease:
		w.Body = &wirepb.Wire_BorderLease{BorderLease: &wirepb.BorderLease{
			Number: m.Number, Attempts: each(m.Attempts, wireAttempt),
			DurationNs: int64(m.Duration),
		}}
	default:
		return setBorderEnd(w, m)
	}
	return true
}

// setBorderEnd is setBorder for what is said of attempts under way and their ends.
func setBorderEnd(w *wirepb.Wire, m Message) bool {
	switch m := m.(type) {
	case BorderState:
		w.Body = &wirepb.Wire_BorderState{BorderState: &wirepb.BorderState{
			Attempt: wireAttempt(m.Attempt), Phase: uint32(m.Phase), Done: m.Done, Total: m.Total,
			Reason: uint32(m.Reason), StartedAgoNs: int64(m.StartedAgo),
		}}
	case BorderEnd:
		w.Body = &wirepb.Wire_BorderEnd{BorderEnd: &wirepb.BorderEnd{
			Attempt: wireAttempt(m.Attempt), Exit: wireExit(m.Exit),
			StartedAgoNs: int64(m.StartedAgo), EndedAgoNs: int64(m.EndedAgo),
			UsedCoreMs: m.UsedCoreMS,
		}}
	case BorderFence:
		w.Body = &wirepb.Wire_BorderFence{
			BorderFence: &wirepb.BorderFence{Below: each(m.Below, wireAttempt)},
		}
	case BorderReceipt:
		w.Body = &wirepb.Wire_BorderReceipt{BorderReceipt: &wirepb.BorderReceipt{
			Attempt: wireAttempt(m.Attempt), Giver: string(m.Giver), Taker: string(m.Taker),
			UsedCoreMs: m.UsedCoreMS, Signature: m.Signature, Mandate: wireMandate(m.Mandate),
		}}
	default:
		return false
	}
	return true
}

func wirePassage(p Passage) *wirepb.Passage {
	return &wirepb.Passage{
		Request: p.Request, Path: each(p.Path, asText[grid.SiteID]), Hops: p.Hops,
	}
}

func passage(w *wirepb.Passage) Passage {
	return Passage{
		Request: w.GetRequest(), Hops: w.GetHops(),
		Path: each(w.GetPath(), func(s string) grid.SiteID { return grid.SiteID(s) }),
	}
}

func wireBorderAnswer(m BorderAnswer) *wirepb.BorderAnswer {
	w := &wirepb.BorderAnswer{Job: string(m.Job), Seq: m.Seq}
	if m.Offer != nil {
		w.Offer = wireOffer(*m.Offer)
		return w
	}
	w.Refusal = wireRefusal(m.Refusal)
	return w
}

func borderAnswer(w *wirepb.BorderAnswer) BorderAnswer {
	m := BorderAnswer{Job: grid.JobID(w.GetJob()), Seq: w.GetSeq()}
	if w.GetOffer() != nil {
		made := offer(w.GetOffer())
		m.Offer = &made
		return m
	}
	m.Refusal = refusal(w.GetRefusal())
	return m
}

// aboutBorder is the counterpart of setBorder.
func (r *reader) aboutBorder(w *wirepb.Wire) Message {
	switch b := w.GetBody().(type) {
	case *wirepb.Wire_BorderQuery:
		m := b.BorderQuery
		return BorderQuery{
			Passage: passage(m.GetPassage()), Job: grid.JobID(m.GetJob()), Seq: m.GetSeq(),
			Req: r.requirement(m.GetReq()), Count: m.GetCount(), TTL: time.Duration(m.GetTtlNs()),
		}
	case *wirepb.Wire_BorderAnswer:
		return borderAnswer(b.BorderAnswer)
	case *wirepb.Wire_BorderOrder:
		m := b.BorderOrder
		return BorderOrder{
			Passage: passage(m.GetPassage()), Attempt: attempt(m.GetAttempt()),
			Spec: r.spec(m.GetSpec()), Here: m.GetHere(),
		}
	case *wirepb.Wire_BorderDeclined:
		m := b.BorderDeclined
		return BorderDeclined{
			Attempts: attempts(m.GetAttempts()), Refusal: refusal(m.GetRefusal()),
		}
	case *wirepb.Wire_BorderRenew:
		m := b.BorderRenew
		return BorderRenew{Number: m.GetNumber(), Attempts: attempts(m.GetAttempts())}
	case *wirepb.Wire_BorderLease:
		m := b.BorderLease
		return BorderLease{
			Number: m.GetNumber(), Attempts: attempts(m.GetAttempts()),
			Duration: time.Duration(m.GetDurationNs()),
		}
	default:
		return aboutBorderEnd(w)
	}
}

// aboutBorderEnd is the counterpart of setBorderEnd.
func aboutBorderEnd(w *wirepb.Wire) Message {
	switch b := w.GetBody().(type) {
	case *wirepb.Wire_BorderState:
		m := b.BorderState
		return BorderState{
			Attempt: attempt(m.GetAttempt()), Phase: small[grid.Phase](m.GetPhase()),
			Done: m.GetDone(), Total: m.GetTotal(), Reason: reason(m.GetReason()),
			StartedAgo: time.Duration(m.GetStartedAgoNs()),
		}
	case *wirepb.Wire_BorderEnd:
		m := b.BorderEnd
		return BorderEnd{
			Attempt: attempt(m.GetAttempt()), Exit: exit(m.GetExit()),
			StartedAgo: time.Duration(m.GetStartedAgoNs()),
			EndedAgo:   time.Duration(m.GetEndedAgoNs()), UsedCoreMS: m.GetUsedCoreMs(),
		}
	case *wirepb.Wire_BorderFence:
		return BorderFence{Below: attempts(b.BorderFence.GetBelow())}
	case *wirepb.Wire_BorderReceipt:
		m := b.BorderReceipt
		return BorderReceipt{
			Attempt: attempt(m.GetAttempt()), Giver: grid.SiteID(m.GetGiver()),
			Taker: grid.SiteID(m.GetTaker()), UsedCoreMS: m.GetUsedCoreMs(),
			Signature: m.GetSignature(), Mandate: mandate(m.GetMandate()),
		}
	default:
		return nil
	}
}
