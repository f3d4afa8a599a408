package site

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// "2. Sites receive broadcast and acknowledge (ACK) with euclidean distance of
// its Virtual Map location to origin. Sites also cache the requirements
// locally." (thesis 4.1, new job submission)
func TestPaperSubmissionStep2AcknowledgeWithDistance(t *testing.T) {
	r := newRig(t)
	r.receive(alice, announcement(job1, alice))

	bid := one[protocol.Bid](r, alice)
	p := bid.Offer.Parts
	if want := math.Sqrt(p.X*p.X + p.Y*p.Y + p.Z*p.Z); math.Abs(p.Distance-want) > 1e-12 {
		t.Errorf("distance %v of (%v, %v, %v), want %v", p.Distance, p.X, p.Y, p.Z, want)
	}
	// The module's 8 Mbit take 0.8 s over the submitter's 10 Mbit/s, of a minute.
	if want := 0.8 / 60; math.Abs(p.Y-want) > 1e-12 {
		t.Errorf("y = %v, want %v", p.Y, want)
	}
	if p.X != 0 || p.Z <= 0 || p.Z > 0.01 {
		t.Errorf("x = %v, z = %v, want 0 and a little", p.X, p.Z)
	}
	if bid.Job != job1 || bid.Seq != 1 || bid.Offer.TasksNow != 1 || bid.Offer.CoreMFLOPS != 2_000 {
		t.Errorf("bid = %+v", bid)
	}
	if got := r.m.Status().Cached; got != 1 {
		t.Errorf("%d requirements cached, want 1", got)
	}
}

// "4. Full job description is dispatched to the target site. 5. Target site
// acknowledges receipt of full job and begins processing execution request."
func TestPaperSubmissionSteps4And5AcknowledgeAndBegin(t *testing.T) {
	r := newRig(t)
	r.receive(alice, announcement(job1, alice))
	r.receive(alice, award(job1, one[protocol.Bid](r, alice).Offer, 1, 1))

	id := attemptID(job1, 0, 1)
	if got := one[protocol.Accepted](r, alice).Attempts; !slices.Equal(got, []grid.AttemptID{id}) {
		t.Errorf("accepted %v, want %s", got, id)
	}
	stages := only[step.Stage](r.out)
	if len(stages) != 1 || stages[0].Attempt != id || stages[0].Module.CID != "bmodule" ||
		stages[0].From != alice {
		t.Errorf("stages %+v", stages)
	}
	// The promise is durable before it is given.
	persist := slices.IndexFunc(r.out, func(e step.Effect) bool {
		_, is := e.(step.Persist)
		return is
	})
	send := slices.IndexFunc(r.out, func(e step.Effect) bool { _, is := e.(step.Send); return is })
	if persist < 0 || send < persist {
		t.Errorf("persists at %d and sends at %d", persist, send)
	}
}

// "5. ... Job submission location then issues a 'cache clear' to all sites for
// this job ID."
func TestPaperSubmissionStep5CacheClear(t *testing.T) {
	for _, kind := range []protocol.ClearKind{
		protocol.ClearPlaced, protocol.ClearEnded, protocol.ClearWithdrawn,
	} {
		r := newRig(t)
		r.receive(alice, announcement(job1, alice))
		r.receive(alice, protocol.Clear{Job: job1, Submitter: alice, Kind: kind})
		want := 0
		if kind == protocol.ClearPlaced { // kept for a failover
			want = 1
		}
		if s := r.m.Status(); s.Offers != 0 || s.Cached != want {
			t.Errorf("clear %d: %d offers and %d requirements left, want 0 and %d",
				kind, s.Offers, s.Cached, want)
		}
	}
}

// "2. Sites with requirements in cache ACK with euclidean measure. Sites without
// requirements in cache ACKs with requirements request." (thesis 4.1, job
// re-submission)
func TestPaperResubmissionStep2CacheOrRequest(t *testing.T) {
	r := newRig(t)
	first := announcement(job1, alice)
	again := protocol.Reannounce{
		Job: job1, Seq: 2, Submitter: alice, Digest: protocol.DigestOf(first.Req), Count: 1,
		TTL: time.Second,
	}

	r.receive(alice, again)
	if need := one[protocol.NeedRequirements](r, alice); need.Job != job1 || need.Seq != 2 {
		t.Errorf("cold: need = %+v", need)
	}
	none[protocol.Bid](r)

	// "4. Sites receives requirements and acknowledges (ACK) with euclidean
	// distance ... Sites also caches the requirements locally."
	first.Seq = 2
	r.receive(alice, protocol.Requirements{Announce: first})
	if bid := one[protocol.Bid](r, alice); bid.Seq != 2 {
		t.Errorf("after Requirements: bid = %+v", bid)
	}

	again.Seq = 3
	r.receive(alice, again)
	if bid := one[protocol.Bid](r, alice); bid.Seq != 3 {
		t.Errorf("warm: bid = %+v", bid)
	}
	none[protocol.NeedRequirements](r)
}

// "As multiple jobs arrive in a site, the Euclidean measure is computed
// sequentially and resources pre-emptively deducted. These resources will be
// re-included in the site as a 'cache clear' is received for the intended job
// ID."
func TestPaperHoldAllDeductsUntilCacheClear(t *testing.T) {
	r := newRig(t, func(c *Config) { c.HoldAll = true })
	whole := func(s *grid.Spec) { s.Need.MilliCPUs = 4_000; s.Need.MFLOPS = 0 }
	r.receive(alice, announcement(job1, alice, whole))
	one[protocol.Bid](r, alice)

	second := announcement(job2, alice, whole)
	second.Explain = true
	r.receive(alice, second)
	if got := one[protocol.Refuse](r, alice).Refusal; got.Reason != grid.ReasonCPUs || got.Never {
		t.Errorf("while another offer holds all: %+v", got)
	}

	r.receive(alice, protocol.Clear{Job: job1, Submitter: alice, Kind: protocol.ClearPlaced})
	r.advance(vacancyDelay)
	if got := one[protocol.Vacancy](r, alice).Jobs; !slices.Equal(got, []grid.JobID{job2}) {
		t.Errorf("after the clear the vacancy names %v, want %s", got, job2)
	}
}

// Without hold-all an offer is soft: it holds nothing and is made again at the
// award.
func TestSoftOffersHoldNothing(t *testing.T) {
	r := newRig(t)
	whole := func(s *grid.Spec) { s.Need.MilliCPUs = 4_000; s.Need.MFLOPS = 0 }
	for _, job := range []grid.JobID{job1, job2} {
		r.receive(alice, announcement(job, alice, whole))
		one[protocol.Bid](r, alice)
	}
}

// A held offer that expires gives back what it held, by its own timer.
func TestHoldAllOfferExpires(t *testing.T) {
	r := newRig(t, func(c *Config) { c.HoldAll = true })
	r.receive(alice, announcement(job1, alice))
	if got := r.m.Status().Free.MilliCPUs; got != 3_000 {
		t.Fatalf("free while held: %d, want 3000", got)
	}
	r.advance(31 * time.Second)
	if got := r.m.Status(); got.Free.MilliCPUs != 4_000 || got.Offers != 0 {
		t.Errorf("free after expiry: %d with %d offers", got.Free.MilliCPUs, got.Offers)
	}
}

// An award uses what its own offer holds, though nothing else is free.
func TestHoldAllAwardUsesItsHold(t *testing.T) {
	r := newRig(t, func(c *Config) { c.HoldAll = true })
	a := announcement(job1, alice)
	a.Count = 4
	r.receive(alice, a)
	offer := one[protocol.Bid](r, alice).Offer
	if offer.TasksNow != 4 {
		t.Fatalf("offers %d tasks, want 4", offer.TasksNow)
	}
	r.receive(alice, award(job1, offer, 4, 1))
	if got := len(one[protocol.Accepted](r, alice).Attempts); got != 4 {
		t.Errorf("accepted %d, want 4", got)
	}
}
