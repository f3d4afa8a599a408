package border

import (
	"errors"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// linked has the border know the neighbour on other terms.
func (r *rig) linked(change func(*step.Link)) {
	l := linkWith(other, "other")
	change(&l)
	r.do(step.LinksChanged{Links: []step.Link{l}})
}

// announced is an announcement of this site for a job of its own, or of another domain.
func announced(job grid.JobID) protocol.Announce {
	return protocol.Announce{
		Job: job, Seq: 1, Submitter: here, Count: 1, TTL: time.Second, Sample: 1,
		Req: grid.Requirement{
			Kind: grid.KindCommand, Need: spec().Need, Runtime: time.Minute,
			Weights: grid.DefaultWeights(),
		},
	}
}

// What is asked over a link may cross as many borders more as the link says.
func TestALinkSaysHowFarItsRequestsMayGo(t *testing.T) {
	for _, onward := range []uint32{0, 1, protocol.MaxHops - 1} {
		r := newRig(t, nil)
		r.linked(func(l *step.Link) { l.Onward = onward })
		r.do(step.MessageReceived{From: here, To: other, Message: announced(jobID)})
		if q := wantSaid[protocol.BorderQuery](t, r); q.Passage.Hops != onward {
			t.Errorf("asked with %d hops, want %d", q.Passage.Hops, onward)
		}
		r.tell(award(attemptNo(0, 1)))
		if o := wantSaid[protocol.BorderOrder](t, r); o.Passage.Hops != onward {
			t.Errorf("ordered with %d hops, want %d", o.Passage.Hops, onward)
		}
	}
	l := linkWith(other, "other")
	if l.Onward = protocol.MaxHops; !errors.Is(checkLink(l), grid.ErrInvalid) {
		t.Errorf("a link with %d borders onward is taken", l.Onward)
	}
}

// A query of a neighbour that is not wanted any more does not go on as this domain's own: that
// would be as far as this one may ask, and back to where it came from.
func TestWhatIsNotWantedAnyMoreIsNotPassedOn(t *testing.T) {
	const abandoned = grid.JobID("abandonedjob2lk2")
	r := newRig(t, nil)
	r.do(step.OrderNews{Ref: probeName(other, jobID), Job: abandoned, Phase: grid.PhaseAnnounced})
	r.do(step.MessageReceived{From: here, To: other, Message: announced(abandoned)})
	if q := said[protocol.BorderQuery](r); q != nil {
		t.Fatalf("passed on as %+v", q)
	}
	if why := wantSaid[protocol.Refuse](t, r); why.Refusal.Reason != grid.ReasonPassedOn {
		t.Errorf("refused for %s", why.Refusal.Reason)
	}
	r.do(step.MessageReceived{From: here, To: other, Message: announced(jobID)})
	wantSaid[protocol.BorderQuery](t, r)
}

// A neighbour that asks again and again for the same leaves nothing behind.
func TestTheSameQueryAgainLeavesNothingBehind(t *testing.T) {
	r := newRig(t, nil)
	for i := range uint32(10) {
		q := announced(jobID)
		r.cross(protocol.BorderQuery{
			Passage: way(uint64(i + 1)), Job: jobID, Seq: i + 1, Req: q.Req, Count: 1, TTL: q.TTL,
		})
		wantSaid[step.Probe](t, r)
		job := grid.JobID(string(jobID)[:15] + string(rune('a'+i)))
		r.do(step.OrderNews{Ref: probeName(other, jobID), Job: job, Phase: grid.PhaseAnnounced})
		if len(r.m.foreign) != 1 || len(r.m.commands) != 1 {
			t.Fatalf("%d jobs of neighbours and %d commands, want one each",
				len(r.m.foreign), len(r.m.commands))
		}
		if i%2 == 1 {
			r.do(step.OrderNews{Ref: probeName(other, jobID), Job: job, Probed: true})
			if len(r.m.foreign)+len(r.m.commands)+len(r.m.probes) != 0 {
				t.Fatalf("an answered query leaves %v, %v", r.m.foreign, r.m.commands)
			}
		}
	}
}
