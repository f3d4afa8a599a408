package border

import (
	"crypto/ed25519"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// script reads choices from bytes; it gives 0 when they are over.
type script []byte

func (s *script) n(below int) int {
	if len(*s) == 0 {
		return 0
	}
	v := int((*s)[0]) % below
	*s = (*s)[1:]
	return v
}

func (s *script) domain() grid.SiteID {
	return []grid.SiteID{other, third, own, "stranger", ""}[s.n(5)]
}

func (s *script) attempt() grid.AttemptID {
	return attemptNo(uint32(s.n(4)), grid.Token(1+s.n(3)))
}

func (s *script) way(from grid.SiteID) protocol.Passage {
	p := protocol.Passage{Request: uint64(1 + s.n(4)), Path: []grid.SiteID{from}}
	p.Hops = uint32(s.n(3))
	if s.n(4) == 0 {
		p.Path = append([]grid.SiteID{s.domain()}, from)
	}
	return p
}

func (s *script) req() grid.Requirement {
	req := grid.Requirement{
		Kind: grid.WorkKind(1 + s.n(3)), Need: grid.Resources{MilliCPUs: int64(s.n(6)) * 1000},
		Runtime: time.Minute, Sources: make([]grid.DataSource, s.n(2)),
	}
	if s.n(6) == 0 {
		req.Window.Deadline = time.Unix(2_000_000_000, 0)
	}
	return req
}

func (s *script) exit() grid.Exit {
	e := grid.Exit{Cause: grid.CauseExited, Wall: time.Duration(s.n(90)) * time.Second}
	if s.n(2) == 0 {
		e.Stdout = grid.Produced{Path: "/out", CID: "c"}
	}
	return e
}

// fromNeighbour draws something that a neighbour's gateway may say, in any order.
func (s *script) fromNeighbour(r *rig) step.Input {
	from := s.domain()
	ids := []grid.AttemptID{s.attempt()}
	var msg protocol.Message
	switch s.n(10) {
	case 0:
		msg = protocol.BorderQuery{
			Passage: s.way(from), Job: jobID, Seq: uint32(s.n(4)), Req: s.req(),
			Count: uint32(1 + s.n(4)), TTL: time.Second,
		}
	case 1:
		a := protocol.BorderAnswer{Job: jobID, Seq: uint32(1 + s.n(3))}
		a.Refusal.Reason = grid.Reason(s.n(50))
		if s.n(2) == 0 {
			a.Offer = &grid.Offer{ID: 1, Validity: time.Minute, TasksNow: uint32(1 + s.n(9))}
		}
		msg = a
	case 2, 3:
		o := order(ids[0], uint64(1+s.n(5)))
		o.Passage, o.Here = s.way(from), s.n(2) == 0
		if s.n(2) == 0 {
			o.Spec.Inputs = []grid.Input{{Path: "/in", CID: "c", Bytes: 5}}
		}
		msg = o
	case 4:
		msg = protocol.BorderDeclined{Attempts: ids, Refusal: grid.Refusal{Reason: grid.ReasonFull}}
	case 5:
		msg = protocol.BorderRenew{Number: uint64(s.n(9)), Attempts: ids}
	case 6:
		number := r.m.last - uint64(s.n(4))
		msg = protocol.BorderLease{Number: number, Attempts: ids, Duration: time.Minute}
	case 7:
		msg = protocol.BorderState{Attempt: ids[0], Phase: grid.Phase(s.n(9)), Done: int64(s.n(5))}
	case 8:
		msg = protocol.BorderEnd{Attempt: ids[0], Exit: s.exit(), UsedCoreMS: int64(s.n(200)) << 20}
	default:
		receipt := protocol.BorderReceipt{Attempt: ids[0], Giver: own, Taker: from}
		receipt.UsedCoreMS = int64(s.n(3)) * 1000
		receipt.Signature = ed25519.Sign(keyOf(from), receipt.SignedBytes())
		msg = receipt
		if s.n(3) == 0 {
			msg = protocol.BorderFence{Below: ids}
		}
	}
	return step.BorderReceived{Domain: from, Message: msg}
}

// fromMember draws something that a submitter of the domain may say to a neighbour.
func (s *script) fromMember(r *rig) step.Input {
	from := []grid.SiteID{user, here, "mallory"}[s.n(3)]
	to, ids := s.domain(), []grid.AttemptID{s.attempt()}
	call := protocol.Announce{
		Job: jobID, Seq: uint32(1 + s.n(3)), Submitter: from, Req: s.req(), Count: 2,
		TTL: time.Second, Sample: 1,
	}
	return step.MessageReceived{From: from, To: to, Message: []protocol.Message{
		call,
		protocol.Requirements{Announce: call},
		protocol.Reannounce{Job: jobID, Seq: 1, Submitter: from, Count: 1, TTL: time.Second},
		award(ids...), award(attemptNo(0, 1), attemptNo(1, 1), attemptNo(2, 2)),
		protocol.Lease{
			Renewal: r.m.last - uint64(s.n(3)), Attempts: ids,
			Duration: time.Duration(1+s.n(9)) * time.Second,
		},
		protocol.Fence{Below: ids},
		protocol.Cancel{Job: jobID},
		protocol.ExitAck{Attempts: ids},
		protocol.Clear{Job: jobID, Submitter: from, Kind: protocol.ClearEnded},
		protocol.HoldOffer{Job: jobID, Seq: 1, OfferID: 1, Tasks: 1},
		protocol.Held{Attempt: ids[0], Number: 1},
	}[s.n(12)]}
}

// fromHere draws something that this site itself may say.
func (s *script) fromHere(r *rig) step.Input {
	id, job := s.attempt(), grid.JobID([]string{"aaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbb"}[s.n(2)])
	ref := guestName(s.domain(), id)
	if s.n(4) == 0 {
		ref = probeName(s.domain(), jobID)
	}
	exit := s.exit()
	problem := []string{"", "lost"}[s.n(2)]
	return []step.Input{
		step.Staged{Attempt: id, Problem: problem},
		step.Collected{Attempt: id, Problem: problem},
		step.Replied{Command: r.m.last - uint64(s.n(4)), Job: job, Err: problem},
		step.OrderNews{Ref: ref, Job: job, Phase: grid.Phase(s.n(8)), Done: int64(s.n(3))},
		step.OrderNews{Ref: ref, Job: job, Phase: grid.PhaseDone, Exit: &exit},
		step.OrderNews{Ref: ref, Job: job, Phase: grid.PhaseRefused},
		step.OrderNews{Ref: ref, Job: job, Probed: true, Tasks: uint32(s.n(9)), Offer: &grid.Offer{
			ID: 1, Validity: time.Minute, TasksNow: 1,
		}},
		step.OrderNews{Ref: ref, Job: job, Probed: true, Refusal: &grid.Refusal{
			Reason: grid.Reason(s.n(60)),
		}},
		step.Signed{ID: id.String(), Signature: make([]byte, 64*s.n(2)), Problem: problem},
		step.NeighbourSeen{
			Domain: s.domain(), Name: "other",
			Gateway: []grid.SiteID{"", "holder", "deputy"}[s.n(3)],
		},
		step.NeighbourGone{Domain: s.domain()},
		step.PeerSeen{Site: user, Capability: grid.Capability{
			Total: grid.Resources{MilliCPUs: int64(s.n(9)) * 1000},
		}},
		step.PeerGone{Site: user},
		step.Boot{Incarnation: 1},
		step.Resume{},
		step.BansChanged{Banned: []grid.SiteID{"mallory"}},
		step.ClockStepped{By: time.Duration(s.n(5)-2) * time.Hour},
		step.TimerFired{Key: step.TimerKey{Name: "moon"}},
		step.TimerFired{Key: step.TimerKey{Name: timerGuest, ID: ref}},
		step.TimerFired{Key: step.TimerKey{Name: timerErrand, ID: id.String()}},
		step.LinksChanged{Links: r.links[s.n(2) : 1+s.n(2)]},
	}[s.n(21)]
}

// play feeds a border whatever comes, in any order: it never panics, says nothing that is not
// valid, holds its bounds, its facts are its snapshot, and its next run takes them up.
func play(t interface{ Fatalf(string, ...any) }, s script) {
	r := newRig(t, func(c *Config) {
		c.MaxQueries, c.MaxOrders, c.MaxHops = 2, 3, 2
		c.Forget = 5 * time.Minute
	})
	for len(s) > 0 {
		switch s.n(9) {
		case 0:
			r.wait(time.Duration(s.n(60)) * time.Second)
		case 1:
			if s.n(4) == 0 {
				r.restart()
			}
		case 2, 3, 4:
			r.do(s.fromNeighbour(r))
		case 5, 6:
			r.do(s.fromMember(r))
		default:
			r.do(s.fromHere(r))
		}
	}
	r.wait(10 * time.Minute) // what nobody speaks of any more is forgotten
	if there, guests := r.m.Orders(); len(there)+len(guests) > 0 {
		for _, o := range there { // an end that its submitter has not acknowledged is kept
			if o.Phase != grid.PhaseCollecting {
				t.Fatalf("still has %+v", o)
			}
		}
		for _, g := range guests {
			t.Fatalf("still has %+v", g)
		}
	}
}

func FuzzStep(f *testing.F) {
	f.Add([]byte("two domains and a border between them"))
	f.Add([]byte{2, 0, 0, 0, 2, 0, 0, 0, 0, 1, 7, 2, 0, 0, 0, 0, 3, 0, 5, 0, 0, 0, 0, 3})
	f.Add([]byte{
		5, 0, 0, 0, 0, 3, 2, 0, 0, 0, 5, 1, 7, 1, 0, 2, 0, 0, 0, 8, 3, 1, 5, 0, 0, 0, 0, 8,
	})
	f.Fuzz(func(t *testing.T, text []byte) { play(t, text) })
}

func TestABorderTakesWhateverComes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		play(t, rapid.SliceOfN(rapid.Byte(), 0, 600).Draw(t, "script"))
	})
}

func FuzzRestore(f *testing.F) {
	r := newRig(f, nil)
	r.cross(order(attemptNo(0, 1), 9))
	r.tell(award(attemptNo(3, 1)))
	r.cross(protocol.BorderRenew{Number: 70, Attempts: []grid.AttemptID{attemptNo(3, 1)}})
	f.Add(r.facts.Encode())
	f.Fuzz(func(t *testing.T, facts []byte) {
		m, err := New(Default(here, own, "own"))
		if err != nil {
			t.Fatal(err)
		}
		if m.Restore(facts) != nil {
			return
		}
		m.Step(time.Unix(1_900_000_000, 0), step.Boot{Incarnation: 1})
	})
}
