package protocol

import (
	"fmt"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol/wirepb"
)

// setCall sets the body for the messages that find a site for a job; it reports
// false for all others.
func setCall(w *wirepb.Wire, m Message) bool {
	switch m := m.(type) {
	case Hello:
		w.Body = &wirepb.Wire_Hello{Hello: &wirepb.Hello{
			MinVersion: m.MinVersion, MaxVersion: m.MaxVersion, Domain: string(m.Domain),
			Name:        forPeople(m.Name),
			Incarnation: m.Incarnation, WallMs: m.WallMS, Capability: wireCapability(m.Capability),
			Refusal: uint32(m.Refusal), Peers: m.Peers, Roster: wireDigest(m.Roster),
			Run: wireRun(m.Run), Newer: wireRun(m.Newer), Owner: forPeople(m.Owner),
		}}
	case Announce:
		w.Body = &wirepb.Wire_Announce{Announce: wireAnnounce(m)}
	case Reannounce:
		w.Body = &wirepb.Wire_Reannounce{Reannounce: &wirepb.Reannounce{
			Job: string(m.Job), Seq: m.Seq, Submitter: string(m.Submitter), Digest: m.Digest[:],
			Count: m.Count, TtlNs: int64(m.TTL), Explain: m.Explain, ClockMs: wireTime(m.Clock),
		}}
	case NeedRequirements:
		w.Body = &wirepb.Wire_NeedRequirements{
			NeedRequirements: &wirepb.NeedRequirements{Job: string(m.Job), Seq: m.Seq},
		}
	case Requirements:
		w.Body = &wirepb.Wire_Requirements{
			Requirements: &wirepb.Requirements{Announce: wireAnnounce(m.Announce)},
		}
	case Bid:
		w.Body = &wirepb.Wire_Bid{
			Bid: &wirepb.Bid{Job: string(m.Job), Seq: m.Seq, Offer: wireOffer(m.Offer)},
		}
	case Refuse:
		w.Body = &wirepb.Wire_Refuse{Refuse: wireRefuse(m)}
	case Vacancy:
		w.Body = &wirepb.Wire_Vacancy{Vacancy: &wirepb.Vacancy{Jobs: each(m.Jobs, asText[grid.JobID])}}
	case HoldOffer:
		w.Body = &wirepb.Wire_HoldOffer{HoldOffer: &wirepb.HoldOffer{
			Job: string(m.Job), Seq: m.Seq, OfferId: m.OfferID, Tasks: m.Tasks, AtMs: wireTime(m.At),
			ClockMs: wireTime(m.Clock),
		}}
	case Clear:
		w.Body = &wirepb.Wire_Clear{Clear: &wirepb.Clear{
			Job: string(m.Job), Submitter: string(m.Submitter), Kind: uint32(m.Kind),
		}}
	default:
		return false
	}
	return true
}

// setAttempt sets the body for the messages about a job's attempts; it reports
// false for all others.
func setAttempt(w *wirepb.Wire, m Message) bool {
	switch m := m.(type) {
	case Award:
		w.Body = &wirepb.Wire_Award{Award: wireAward(m)}
	case Accepted:
		w.Body = &wirepb.Wire_Accepted{Accepted: &wirepb.Accepted{
			Attempts: each(m.Attempts, wireAttempt), Renewal: m.Renewal,
		}}
	case Declined:
		w.Body = &wirepb.Wire_Declined{Declined: wireDeclined(m)}
	case Renew:
		w.Body = &wirepb.Wire_Renew{Renew: wireRenew(m)}
	case MayStart:
		w.Body = &wirepb.Wire_MayStart{MayStart: &wirepb.MayStart{
			Renewal: m.Renewal, Attempts: each(m.Attempts, wireAttempt),
		}}
	case Lease:
		w.Body = &wirepb.Wire_Lease{Lease: &wirepb.Lease{
			Renewal: m.Renewal, Attempts: each(m.Attempts, wireAttempt), DurationNs: int64(m.Duration),
		}}
	case Fence:
		w.Body = &wirepb.Wire_Fence{Fence: &wirepb.Fence{Below: each(m.Below, wireAttempt)}}
	case Cancel:
		w.Body = &wirepb.Wire_Cancel{Cancel: &wirepb.Cancel{Job: string(m.Job)}}
	case Progress:
		w.Body = &wirepb.Wire_Progress{Progress: &wirepb.Progress{
			Attempt: wireAttempt(m.Attempt), Phase: uint32(m.Phase), Done: m.Done,
			Total: m.Total, Reason: uint32(m.Reason),
			StartsInNs: int64(m.StartsIn), StartedAgoNs: int64(m.StartedAgo),
		}}
	case Exited:
		w.Body = &wirepb.Wire_Exited{Exited: &wirepb.Exited{
			Attempt: wireAttempt(m.Attempt), Exit: wireExit(m.Exit),
			StartedAgoNs: int64(m.StartedAgo), EndedAgoNs: int64(m.EndedAgo),
		}}
	case ExitAck:
		w.Body = &wirepb.Wire_ExitAck{ExitAck: &wirepb.ExitAck{Attempts: each(m.Attempts, wireAttempt)}}
	default:
		return setSaved(w, m)
	}
	return true
}

// wireRun is nil for the zero run.
func wireRun(m Run) *wirepb.Run {
	if m.Number == 0 {
		return nil
	}
	return &wirepb.Run{
		Number: m.Number, Nonce: m.Nonce, Line: m.Line, SinceMs: m.SinceMS, Signature: m.Signature,
	}
}

func run(w *wirepb.Run) Run {
	return Run{
		Number: w.GetNumber(), Nonce: w.GetNonce(), Line: w.GetLine(), SinceMS: w.GetSinceMs(),
		Signature: w.GetSignature(),
	}
}

func wireAnnounce(m Announce) *wirepb.Announce {
	return &wirepb.Announce{
		Job: string(m.Job), Seq: m.Seq, Submitter: string(m.Submitter),
		Addrs: m.Addrs, Req: wireRequirement(m.Req),
		Count: m.Count, TtlNs: int64(m.TTL), Sample: m.Sample, Theta: m.Theta, Explain: m.Explain,
		ClockMs: wireTime(m.Clock), Nearer: m.Nearer, Part: m.Part, Probe: m.Probe,
	}
}

func wireAward(m Award) *wirepb.Award {
	return &wirepb.Award{
		Job: string(m.Job), OfferId: m.OfferID, Spec: wireSpec(m.Spec),
		Tasks: each(m.Tasks, func(t AwardedTask) *wirepb.AwardedTask {
			return &wirepb.AwardedTask{
				Index: t.Index, Token: uint64(t.Token), Item: wireItem(t.Item),
				Saved: each(t.Saved, wireCheckpoint), CopyOf: t.CopyOf,
			}
		}),
		Quoted: m.Quoted, RunnerUp: m.RunnerUp, HasNext: m.HasNext, AskFirst: m.AskFirst,
		ClockMs: wireTime(m.Clock), Key: m.Key,
	}
}

func wireDeclined(m Declined) *wirepb.Declined {
	w := &wirepb.Declined{Attempts: each(m.Attempts, wireAttempt), Refusal: wireRefusal(m.Refusal)}
	if m.Quote != nil {
		w.Quote = wireOffer(*m.Quote)
	}
	return w
}

// message converts the body; nil if there is none that is known here.
func (r *reader) message(w *wirepb.Wire) Message {
	if m := r.call(w); m != nil {
		return m
	}
	if m := r.aboutAttempt(w); m != nil {
		return m
	}
	if m := r.aboutMembers(w); m != nil {
		return m
	}
	if m := aboutStandbys(w); m != nil {
		return m
	}
	if m := aboutDomain(w); m != nil {
		return m
	}
	if m := aboutNeighbours(w); m != nil {
		return m
	}
	return r.aboutBorder(w)
}

// call is the counterpart of setCall.
func (r *reader) call(w *wirepb.Wire) Message {
	switch b := w.GetBody().(type) {
	case *wirepb.Wire_Hello:
		h := b.Hello
		return Hello{
			MinVersion: h.GetMinVersion(),
			MaxVersion: h.GetMaxVersion(), Domain: grid.DomainID(h.GetDomain()),
			Name: h.GetName(), Incarnation: h.GetIncarnation(), WallMS: h.GetWallMs(),
			Capability: capability(h.GetCapability()), Refusal: reason(h.GetRefusal()), Peers: h.GetPeers(),
			Roster: r.optionalDigest(h.GetRoster()), Run: run(h.GetRun()), Newer: run(h.GetNewer()),
			Owner: h.GetOwner(),
		}
	case *wirepb.Wire_Announce:
		return r.announce(b.Announce)
	case *wirepb.Wire_Reannounce:
		return r.reannounce(b.Reannounce)
	case *wirepb.Wire_NeedRequirements:
		return NeedRequirements{
			Job: grid.JobID(b.NeedRequirements.GetJob()), Seq: b.NeedRequirements.GetSeq(),
		}
	case *wirepb.Wire_Requirements:
		return Requirements{Announce: r.announce(b.Requirements.GetAnnounce())}
	case *wirepb.Wire_Bid:
		return Bid{Job: grid.JobID(b.Bid.GetJob()), Seq: b.Bid.GetSeq(), Offer: offer(b.Bid.GetOffer())}
	case *wirepb.Wire_Refuse:
		return refuse(b.Refuse)
	case *wirepb.Wire_Vacancy:
		return Vacancy{Jobs: each(b.Vacancy.GetJobs(), func(s string) grid.JobID {
			return grid.JobID(s)
		})}
	case *wirepb.Wire_HoldOffer:
		return HoldOffer{
			Job: grid.JobID(b.HoldOffer.GetJob()),
			Seq: b.HoldOffer.GetSeq(), OfferID: b.HoldOffer.GetOfferId(),
			Tasks: b.HoldOffer.GetTasks(), At: r.time(b.HoldOffer.AtMs),
			Clock: r.time(b.HoldOffer.ClockMs),
		}
	case *wirepb.Wire_Clear:
		return Clear{
			Job: grid.JobID(b.Clear.GetJob()), Submitter: grid.SiteID(b.Clear.GetSubmitter()),
			Kind: small[ClearKind](b.Clear.GetKind()),
		}
	default:
		return nil
	}
}

// aboutAttempt is the counterpart of setAttempt.
func (r *reader) aboutAttempt(w *wirepb.Wire) Message {
	switch b := w.GetBody().(type) {
	case *wirepb.Wire_Award:
		return r.award(b.Award)
	case *wirepb.Wire_Accepted:
		return Accepted{Attempts: attempts(b.Accepted.GetAttempts()), Renewal: b.Accepted.GetRenewal()}
	case *wirepb.Wire_Declined:
		return declined(b.Declined)
	case *wirepb.Wire_Renew:
		return renew(b.Renew)
	case *wirepb.Wire_MayStart:
		return MayStart{Renewal: b.MayStart.GetRenewal(), Attempts: attempts(b.MayStart.GetAttempts())}
	case *wirepb.Wire_Lease:
		return Lease{
			Renewal: b.Lease.GetRenewal(), Attempts: attempts(b.Lease.GetAttempts()),
			Duration: time.Duration(b.Lease.GetDurationNs()),
		}
	case *wirepb.Wire_Fence:
		return Fence{Below: attempts(b.Fence.GetBelow())}
	case *wirepb.Wire_Cancel:
		return Cancel{Job: grid.JobID(b.Cancel.GetJob())}
	case *wirepb.Wire_Progress:
		return Progress{
			Attempt: attempt(b.Progress.GetAttempt()), Phase: small[grid.Phase](b.Progress.GetPhase()),
			Done: b.Progress.GetDone(), Total: b.Progress.GetTotal(), Reason: reason(b.Progress.GetReason()),
			StartsIn:   time.Duration(b.Progress.GetStartsInNs()),
			StartedAgo: time.Duration(b.Progress.GetStartedAgoNs()),
		}
	case *wirepb.Wire_Exited:
		return Exited{
			Attempt: attempt(b.Exited.GetAttempt()), Exit: exit(b.Exited.GetExit()),
			StartedAgo: time.Duration(b.Exited.GetStartedAgoNs()),
			EndedAgo:   time.Duration(b.Exited.GetEndedAgoNs()),
		}
	case *wirepb.Wire_ExitAck:
		return ExitAck{Attempts: attempts(b.ExitAck.GetAttempts())}
	default:
		return aboutSaved(w)
	}
}

// announce reads an announcement. One within Requirements may be missing: then it is empty, and
// refused as such.
func (r *reader) announce(w *wirepb.Announce) Announce {
	if w == nil {
		w = &wirepb.Announce{}
	}
	return Announce{
		Job: grid.JobID(w.GetJob()), Seq: w.GetSeq(), Submitter: grid.SiteID(w.GetSubmitter()),
		Addrs: w.GetAddrs(),
		Req:   r.requirement(w.GetReq()), Count: w.GetCount(), TTL: time.Duration(w.GetTtlNs()),
		Sample: w.GetSample(), Theta: w.GetTheta(), Explain: w.GetExplain(),
		Clock: r.time(w.ClockMs), Nearer: w.GetNearer(), Part: w.GetPart(), Probe: w.GetProbe(),
	}
}

func (r *reader) reannounce(w *wirepb.Reannounce) Reannounce {
	m := Reannounce{
		Job: grid.JobID(w.GetJob()), Seq: w.GetSeq(), Submitter: grid.SiteID(w.GetSubmitter()),
		Count: w.GetCount(), TTL: time.Duration(w.GetTtlNs()), Explain: w.GetExplain(),
		Clock: r.time(w.ClockMs),
	}
	if copy(m.Digest[:], w.GetDigest()) != len(m.Digest) || len(w.GetDigest()) != len(m.Digest) {
		r.fail(fmt.Errorf("%w: digest of %d bytes, want %d",
			ErrMalformed, len(w.GetDigest()), len(m.Digest)))
	}
	return m
}

func (r *reader) award(w *wirepb.Award) Award {
	return Award{
		Job: grid.JobID(w.GetJob()), OfferID: w.GetOfferId(), Spec: r.spec(w.GetSpec()),
		Tasks: each(w.GetTasks(), func(t *wirepb.AwardedTask) AwardedTask {
			return AwardedTask{
				Index: t.GetIndex(), Token: grid.Token(t.GetToken()), Item: item(t.GetItem()),
				Saved: each(t.GetSaved(), checkpoint), CopyOf: t.GetCopyOf(),
			}
		}),
		Quoted: w.GetQuoted(), RunnerUp: w.GetRunnerUp(), HasNext: w.GetHasNext(),
		AskFirst: w.GetAskFirst(), Clock: r.time(w.ClockMs), Key: w.GetKey(),
	}
}

func declined(w *wirepb.Declined) Declined {
	m := Declined{Attempts: attempts(w.GetAttempts()), Refusal: refusal(w.GetRefusal())}
	if w.GetQuote() != nil {
		quote := offer(w.GetQuote())
		m.Quote = &quote
	}
	return m
}
