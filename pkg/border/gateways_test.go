package border

import (
	"crypto/ed25519"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// changes lets another gateway of the neighbour take the link up.
func (r *rig) changes(gateway grid.SiteID) {
	r.do(step.NeighbourGone{Domain: other})
	r.do(step.NeighbourSeen{Domain: other, Name: "other", Gateway: gateway})
}

// takenBy is a border of which the gateway of a neighbour has taken an order, and been lent a
// lease.
func takenBy(t *testing.T, gateway grid.SiteID) (*rig, grid.AttemptID) {
	t.Helper()
	r, id := newRig(t, nil), attemptNo(3, 1)
	r.changes(gateway)
	r.tell(award(id))
	r.cross(protocol.BorderRenew{Number: 70, Attempts: []grid.AttemptID{id}})
	accepted := wantSaid[protocol.Accepted](t, r)
	r.tell(protocol.Lease{
		Renewal: accepted.Renewal, Attempts: accepted.Attempts, Duration: 3 * time.Second,
	})
	wantSaid[protocol.BorderLease](t, r)
	return r, id
}

// What one gateway of a neighbour has taken no other one gets, nor a lease of it, for the first may
// still run it. It is no end of it either, and goes on when the first is back.
func TestWhatOneGatewayHasTakenIsNoOthers(t *testing.T) {
	r, id := takenBy(t, "holder")
	for _, restarted := range []bool{false, true} {
		if restarted {
			r.restart()
		}
		r.changes("deputy")
		if o := said[protocol.BorderOrder](r); o != nil {
			t.Fatalf("ordered again: %+v", o)
		}
		r.wait(time.Minute)
		for _, m := range []protocol.Message{
			protocol.BorderRenew{Number: 8, Attempts: []grid.AttemptID{id}},
			protocol.BorderEnd{Attempt: id, Exit: grid.Exit{Cause: grid.CauseExited}},
		} {
			r.cross(m)
			if f := wantSaid[protocol.BorderFence](t, r); f.Below[0].Task != id.Task {
				t.Errorf("restarted %t: fenced %+v", restarted, f)
			}
			if len(r.out) != 1 {
				t.Errorf("restarted %t: %v, want a fence alone", restarted, r.out)
			}
		}
		r.cross(protocol.BorderState{Attempt: id, Phase: grid.PhaseRunning})
		if p := said[protocol.Progress](r); p != nil {
			t.Errorf("told %+v", p)
		}
		r.changes("holder")
		r.cross(protocol.BorderRenew{Number: 71, Attempts: []grid.AttemptID{id}})
		wantSaid[protocol.Renew](t, r)
	}
}

// Without that rule the next gateway gets the order, and a lease of it, while the first may run it.
func TestWhatOneGatewayHasTakenWouldBeTheNextOnes(t *testing.T) {
	r, id := takenBy(t, "holder")
	r.m.cfg.NoGateways = true
	r.changes("deputy")
	if o := wantSaid[protocol.BorderOrder](t, r); o.Attempt != id {
		t.Errorf("ordered %+v", o)
	}
	r.cross(protocol.BorderRenew{Number: 8, Attempts: []grid.AttemptID{id}})
	asked := wantSaid[protocol.Renew](t, r)
	r.tell(protocol.Lease{
		Renewal: asked.Renewal, Attempts: asked.Attempts, Duration: 3 * time.Second,
	})
	wantSaid[protocol.BorderLease](t, r)
}

// A lease that a submitter grants while another gateway is connected than the one that has asked
// goes nowhere.
func TestALeaseIsLentToWhoHasAskedForIt(t *testing.T) {
	r, id := takenBy(t, "holder")
	r.cross(protocol.BorderRenew{Number: 71, Attempts: []grid.AttemptID{id}})
	asked := wantSaid[protocol.Renew](t, r)
	r.changes("deputy")
	r.tell(protocol.Lease{
		Renewal: asked.Renewal, Attempts: asked.Attempts, Duration: 3 * time.Second,
	})
	if l := said[protocol.BorderLease](r); l != nil {
		t.Errorf("lent %+v to another gateway", l)
	}
	later := attemptNo(3, 2) // its submitter has waited for the lease to be over
	r.tell(award(later))
	if f := said[protocol.BorderFence](r); f != nil {
		t.Errorf("the other gateway is told %+v of what it does not have", f)
	}
	if o := wantSaid[protocol.BorderOrder](t, r); o.Attempt != later {
		t.Errorf("ordered %+v", o)
	}
}

// An order that nobody has taken goes to whichever gateway is there: the first has no lease of it.
func TestWhatNoGatewayHasTakenIsOrderedOfTheNext(t *testing.T) {
	r, id := newRig(t, nil), attemptNo(3, 1)
	r.changes("holder")
	r.tell(award(id))
	r.changes("deputy")
	if o := wantSaid[protocol.BorderOrder](t, r); o.Attempt != id {
		t.Errorf("ordered %+v", o)
	}
	r.cross(protocol.BorderRenew{Number: 3, Attempts: []grid.AttemptID{id}})
	wantSaid[protocol.Accepted](t, r)
	r.changes("holder")
	r.cross(protocol.BorderRenew{Number: 4, Attempts: []grid.AttemptID{id}})
	wantSaid[protocol.BorderFence](t, r)
}

// What an attempt has left at a gateway that is away cannot be had of the next one: the submitter
// hears so immediately, and runs the task again.
func TestOutputsAtAGatewayThatIsAwayAreLost(t *testing.T) {
	r, id := takenBy(t, "holder")
	r.cross(protocol.BorderEnd{Attempt: id, Exit: grid.Exit{
		Cause: grid.CauseExited, Stdout: grid.Produced{Path: "/o", CID: "c"},
	}})
	r.do(step.Collected{Attempt: id, Problem: "not reached"})
	if x := said[protocol.Exited](r); x != nil {
		t.Fatalf("told %+v before it is sure", x)
	}
	r.changes("deputy")
	r.do(step.Collected{Attempt: id, Problem: "not reached"})
	if x := wantSaid[protocol.Exited](t, r); x.Exit.Cause != grid.CauseData {
		t.Errorf("told %+v", x)
	}
}

// A submitter that goes before it has granted anything may award the same attempt by way of
// another gateway of this domain: here it is given up. One that has been lent a lease goes on.
func TestWhatHasNoLeaseIsGivenUpWithItsSubmitter(t *testing.T) {
	r, id := taken(t)
	r.do(step.PeerGone{Site: "somebody else"})
	if f := said[protocol.BorderFence](r); f != nil {
		t.Fatalf("fenced %+v", f)
	}
	r.do(step.PeerGone{Site: user})
	if f := wantSaid[protocol.BorderFence](t, r); f.Below[0].Task != id.Task {
		t.Errorf("fenced %+v", f)
	}
	r, _ = takenBy(t, "holder")
	r.do(step.PeerGone{Site: user})
	if there, _ := r.m.Orders(); len(there) != 1 {
		t.Errorf("has %+v, want the errand with a lease", there)
	}
}

// A receipt counts under a mandate of the taker's key as under the key itself, until that ends.
func TestAReceiptOfADeputyCounts(t *testing.T) {
	deputy := keyOf("deputy")
	for name, c := range map[string]struct {
		by   ed25519.PrivateKey // who signs the mandate
		ends time.Duration      // from now
		want bool
	}{
		"of the domain":      {keyOf(other), time.Minute, true},
		"that has ended":     {keyOf(other), 0, false},
		"of another domain":  {keyOf(third), time.Minute, false},
		"that it made alone": {deputy, time.Minute, false},
	} {
		r, id := ended(t)
		m := protocol.Mandate{
			Site: "deputy", Key: deputy[ed25519.SeedSize:], UntilMS: r.now.Add(c.ends).UnixMilli(),
		}
		m.Signature = ed25519.Sign(c.by, m.SignedBytes())
		receipt := protocol.BorderReceipt{
			Attempt: id, Giver: own, Taker: other, UsedCoreMS: 1000, Mandate: &m,
		}
		receipt.Signature = ed25519.Sign(deputy, receipt.SignedBytes())
		r.cross(receipt)
		_, here := r.m.Orders()
		if counted := len(here) == 0 && r.m.Links()[0].Given == 1; counted != c.want {
			t.Errorf("a mandate %s: counted %t", name, counted)
		}
	}
}

// The receipts of a deputy carry its mandate, also after a restart.
func TestADeputySignsUnderItsMandate(t *testing.T) {
	r, id := takenBy(t, "holder")
	r.cross(protocol.BorderEnd{Attempt: id, Exit: grid.Exit{Cause: grid.CauseExited}})
	r.tell(protocol.ExitAck{Attempts: []grid.AttemptID{id}})
	sign, deputy := wantSaid[step.Sign](t, r), keyOf("deputy")
	mandate := &protocol.Mandate{
		Site: here, Key: deputy[ed25519.SeedSize:], UntilMS: r.now.Add(time.Hour).UnixMilli(),
	}
	mandate.Signature = ed25519.Sign(keyOf(own), mandate.SignedBytes())
	r.do(step.Signed{
		ID: sign.ID, Signature: ed25519.Sign(deputy, sign.Text), Mandate: mandate,
	})
	key := linkWith(own, "own").Key
	for range 2 {
		if m := wantSaid[protocol.BorderReceipt](t, r); !m.IsSignedBy(key, r.now) {
			t.Errorf("receipt %+v", m)
		}
		r.restart()
		r.cross(protocol.BorderEnd{Attempt: id, Exit: grid.Exit{Cause: grid.CauseExited}})
	}
}

// Two gateways of a domain number their requests apart: a third domain would take one for the
// other else, and refuse it.
func TestGatewaysOfADomainNumberRequestsApart(t *testing.T) {
	seen := make(map[uint64]grid.SiteID)
	for _, site := range []grid.SiteID{here, "deputy", "another"} {
		r := newRig(t, func(c *Config) { c.Here = site })
		for index := range uint32(50) {
			r.tell(award(attemptNo(index, 1)))
			number := wantSaid[protocol.BorderOrder](t, r).Passage.Request
			if twin, twice := seen[number]; twice {
				t.Fatalf("%s and %s both have %d", site, twin, number)
			}
			seen[number] = site
		}
	}
}
