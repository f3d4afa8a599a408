package border

import (
	"crypto/ed25519"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// taken is a border of which a neighbour has taken an order.
func taken(t *testing.T) (*rig, grid.AttemptID) {
	t.Helper()
	r, id := newRig(t, nil), attemptNo(3, 1)
	r.tell(award(id))
	o := wantSaid[protocol.BorderOrder](t, r)
	if !o.Here || o.Spec.Args[1] != "3" || o.Spec.Project != "" {
		t.Fatalf("ordered %+v, want one whole task, and nothing of this domain alone", o)
	}
	r.cross(protocol.BorderRenew{Number: 70, Attempts: []grid.AttemptID{id}})
	if a := wantSaid[protocol.Accepted](t, r); a.Attempts[0] != id {
		t.Fatalf("accepted %+v", a)
	}
	return r, id
}

func TestALeaseIsLentOnUnderTheNeighboursOwnNumber(t *testing.T) {
	r, id := newRig(t, nil), attemptNo(3, 1)
	r.tell(award(id))
	r.cross(protocol.BorderRenew{Number: 70, Attempts: []grid.AttemptID{id}})
	first := wantSaid[protocol.Accepted](t, r)
	r.now = r.now.Add(time.Second)
	r.tell(protocol.Lease{
		Renewal: first.Renewal, Attempts: first.Attempts, Duration: 3 * time.Second,
	})
	l := wantSaid[protocol.BorderLease](t, r)
	if l.Number != 70 || l.Duration != 3*time.Second {
		t.Errorf("lent %+v, want all of it under number 70", l)
	}
	r.tell(protocol.Lease{
		Renewal: first.Renewal + 9, Attempts: first.Attempts, Duration: 3 * time.Second,
	})
	if l := said[protocol.BorderLease](r); l != nil {
		t.Errorf("lent %+v on a lease that was not asked for", l)
	}
}

func TestWhatNobodyWantsAnyMoreIsFencedOff(t *testing.T) {
	r := newRig(t, nil)
	id := attemptNo(3, 5)
	r.cross(protocol.BorderRenew{Number: 70, Attempts: []grid.AttemptID{id}})
	if f := wantSaid[protocol.BorderFence](t, r); f.Below[0] != attemptNo(3, 6) {
		t.Errorf("fenced %+v", f)
	}
	r, id = taken(t)
	r.tell(protocol.Cancel{Job: jobID})
	if f := wantSaid[protocol.BorderFence](t, r); f.Below[0].Task != id.Task {
		t.Errorf("fenced %+v", f)
	}
	if there, _ := r.m.Orders(); len(there) != 0 {
		t.Errorf("still has %+v", there)
	}
}

// An end crosses once its outputs are here, and is receipted once the submitter has them.
func TestAnEndIsReceiptedOnce(t *testing.T) {
	r, id := taken(t)
	lease := protocol.Lease{Attempts: []grid.AttemptID{id}, Duration: time.Minute}
	r.cross(protocol.BorderRenew{Number: 71, Attempts: lease.Attempts})
	lease.Renewal = wantSaid[protocol.Renew](t, r).Renewal
	r.tell(lease)
	r.now = r.now.Add(10 * time.Second)
	end := protocol.BorderEnd{
		Attempt: id, UsedCoreMS: 1 << 40,
		Exit: grid.Exit{
			Cause: grid.CauseExited, Wall: 10 * time.Second,
			Stdout: grid.Produced{Path: "/o", CID: "c"},
		},
	}
	r.cross(end)
	if c := wantSaid[step.Collect](t, r); c.From != other || said[protocol.Exited](r) != nil {
		t.Fatalf("collects %+v, and says %v", c, r.out)
	}
	r.do(step.Collected{Attempt: id})
	wantSaid[protocol.Exited](t, r)
	r.restart()
	r.do(step.Collected{Attempt: id}) // it is fetched again
	r.tell(protocol.ExitAck{Attempts: []grid.AttemptID{id}})
	sign := wantSaid[step.Sign](t, r)
	r.do(step.Signed{ID: sign.ID, Signature: ed25519.Sign(keyOf(own), sign.Text)})
	receipt := wantSaid[protocol.BorderReceipt](t, r)
	if used := int64(2 * 10 * 1000); receipt.UsedCoreMS != used {
		t.Errorf("receipted %d core-ms, want %d at most: two cores for ten seconds",
			receipt.UsedCoreMS, used)
	}
	r.restart()
	r.cross(end) // it was lost
	if again := wantSaid[protocol.BorderReceipt](t, r); again.UsedCoreMS != receipt.UsedCoreMS {
		t.Errorf("receipted %+v, then %+v", receipt, again)
	}
	if l := r.m.Links()[0]; l.Taken != 20 || l.There != 0 {
		t.Errorf("%+v, want 20 core-seconds taken", l)
	}
}

// hosted is a border that runs an order of the neighbour, with the lease asked for.
func hosted(t *testing.T) (r *rig, id grid.AttemptID, asked uint64) {
	t.Helper()
	r, id = newRig(t, nil), attemptNo(0, 1)
	r.cross(order(id, 9))
	asked = wantSaid[protocol.BorderRenew](t, r).Number
	s := wantSaid[step.Submit](t, r)
	if s.Ordered.Domain != other || s.Ordered.Hops != 0 || !s.NoWait ||
		!strings.HasPrefix(s.Job.Spec.Name, "other: ") {
		t.Fatalf("submitted %+v", s)
	}
	r.do(step.Replied{Command: s.Command, Job: "aaaaaaaaaaaaaaaa"})
	return r, id, asked
}

func TestTheSameOrderAgainIsNoOtherOne(t *testing.T) {
	r, id, _ := hosted(t)
	r.cross(order(id, 9))
	if s := said[step.Submit](r); s != nil {
		t.Errorf("submitted again: %+v", s)
	}
	wantSaid[protocol.BorderRenew](t, r)
	r.restart()
	r.cross(order(id, 9))
	if s := said[step.Submit](r); s != nil {
		t.Errorf("submitted again after a restart: %+v", s)
	}
	later := order(attemptNo(0, 2), 10)
	r.cross(later)
	if c := wantSaid[step.CancelJob](t, r); c.Job != "aaaaaaaaaaaaaaaa" {
		t.Errorf("called off %+v", c)
	}
	r.cross(order(id, 9))
	if d := wantSaid[protocol.BorderDeclined](t, r); d.Refusal.Reason != grid.ReasonStale {
		t.Errorf("declined %+v", d)
	}
}

// A crash between the order and the broker's reply makes no second job: the key is the same.
func TestAnOrderHasOneKey(t *testing.T) {
	r := newRig(t, nil)
	r.cross(order(attemptNo(0, 1), 9))
	first := wantSaid[step.Submit](t, r)
	m, err := New(r.cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Restore(r.facts.Encode()); err != nil {
		t.Fatal(err)
	}
	r.m = m
	r.do(step.Boot{Incarnation: 2})
	if again := wantSaid[step.Submit](t, r); again.Key != first.Key || first.Key == "" ||
		len(first.Key) > step.MaxKey {
		t.Errorf("keys %q and %q", first.Key, again.Key)
	}
}

func TestACeilingCountsFromTheRequest(t *testing.T) {
	r, id, asked := hosted(t)
	sent := r.now
	r.now = r.now.Add(2 * time.Second)
	r.cross(protocol.BorderLease{
		Number: asked, Attempts: []grid.AttemptID{id}, Duration: 3 * time.Second,
	})
	if c := wantSaid[step.Ceiling](t, r); !c.Until.Equal(sent.Add(3 * time.Second)) {
		t.Errorf("ceiling %+v, want 3 s from %s", c, sent)
	}
	r.restart()
	r.cross(protocol.BorderLease{
		Number: asked, Attempts: []grid.AttemptID{id}, Duration: time.Hour,
	})
	if c := said[step.Ceiling](r); c != nil {
		t.Errorf("ceiling %+v of a lease that an earlier run asked for", c)
	}
}

// ended is a border with an order that has ended after ten seconds.
func ended(t *testing.T) (*rig, grid.AttemptID) {
	t.Helper()
	r, id, _ := hosted(t)
	r.do(step.OrderNews{
		Ref: guestName(other, id), Job: "aaaaaaaaaaaaaaaa", Phase: grid.PhaseDone,
		Exit: &grid.Exit{Cause: grid.CauseExited, Wall: 10 * time.Second},
	})
	if e := wantSaid[protocol.BorderEnd](t, r); e.UsedCoreMS != 20_000 {
		t.Fatalf("ended %+v", e)
	}
	return r, id
}

func TestOnlyTheTakersReceiptCounts(t *testing.T) {
	good := func(id grid.AttemptID) protocol.BorderReceipt {
		return protocol.BorderReceipt{Attempt: id, Giver: own, Taker: other, UsedCoreMS: 20_000}
	}
	for name, c := range map[string]struct {
		change func(*protocol.BorderReceipt)
		by     grid.SiteID
		given  float64
	}{
		"good":          {func(*protocol.BorderReceipt) {}, other, 20},
		"less":          {func(m *protocol.BorderReceipt) { m.UsedCoreMS = 0 }, other, 0},
		"more":          {func(m *protocol.BorderReceipt) { m.UsedCoreMS++ }, other, -1},
		"another key":   {func(*protocol.BorderReceipt) {}, third, -1},
		"another giver": {func(m *protocol.BorderReceipt) { m.Giver = third }, other, -1},
		"another taker": {func(m *protocol.BorderReceipt) { m.Taker = third }, other, -1},
		"another order": {func(m *protocol.BorderReceipt) { m.Attempt.Token++ }, other, -1},
	} {
		t.Run(name, func(t *testing.T) {
			r, id := ended(t)
			receipt := good(id)
			c.change(&receipt)
			receipt.Signature = ed25519.Sign(keyOf(c.by), receipt.SignedBytes())
			r.cross(receipt)
			forged := slices.ContainsFunc(r.out, func(e step.Effect) bool {
				said, is := e.(step.Report)
				return is && said.Event == eventForged && said.Site == other && said.Text != ""
			})
			if want := c.given < 0 && name != "another order"; forged != want {
				t.Errorf("it is said that the receipt is forged: %v, want %v", forged, want)
			}
			l := r.m.Links()[0]
			_, here := r.m.Orders()
			if l.Given != max(c.given, 0) || (len(here) == 0) != (c.given >= 0) {
				t.Errorf("given %v with %d orders left, want %v", l.Given, len(here), c.given)
			}
			r.cross(receipt)
			if again := r.m.Links()[0].Given; again != l.Given {
				t.Errorf("counted again: %v, then %v", l.Given, again)
			}
		})
	}
}

func TestWhatIsRefusedAtABorder(t *testing.T) {
	query := protocol.BorderQuery{
		Passage: way(5), Job: jobID, Seq: 1, Count: 1, TTL: time.Second,
		Req: grid.Requirement{
			Kind: grid.KindCommand, Need: grid.Resources{MilliCPUs: 2000}, Runtime: time.Minute,
		},
	}
	for name, c := range map[string]struct {
		query func(*protocol.BorderQuery)
		link  func(*step.Link)
		want  grid.Reason
	}{
		"itself": {func(m *protocol.BorderQuery) {
			m.Passage.Path = []grid.SiteID{own, other}
		}, nil, grid.ReasonPassedOn},
		"not its own way": {func(m *protocol.BorderQuery) {
			m.Passage.Path = []grid.SiteID{third}
		}, nil, grid.ReasonInvalid},
		"another kind": {func(m *protocol.BorderQuery) {
			m.Req.Kind = grid.KindWasm
		}, nil, grid.ReasonKind},
		"a promise": {func(m *protocol.BorderQuery) {
			m.Req.Window.Deadline = time.Unix(2_000_000_000, 0)
		}, nil, grid.ReasonStays},
		"closed":  {nil, func(l *step.Link) { l.Closed = true }, grid.ReasonLinkClosed},
		"a share": {nil, func(l *step.Link) { l.Give = 10 }, grid.ReasonShare},
	} {
		t.Run(name, func(t *testing.T) {
			r, q := newRig(t, nil), query
			if c.query != nil {
				c.query(&q)
			}
			if c.link != nil {
				c.link(&r.links[0])
				r.do(step.LinksChanged{Links: r.links})
			}
			r.cross(q)
			if a := wantSaid[protocol.BorderAnswer](t, r); a.Refusal.Reason != c.want {
				t.Errorf("%v, want %v", a.Refusal.Reason, c.want)
			}
			if p := said[step.Probe](r); p != nil {
				t.Errorf("the broker was asked: %+v", p)
			}
		})
	}
}

// A gateway may be connected before the machine has heard of the link: what it has is asked for all
// the same. One that is gone by then is none.
func TestAGatewayIsConnectedBeforeItsLinkIsTold(t *testing.T) {
	r, id, _ := hosted(t)
	r.early = true
	r.restart()
	r.now = r.now.Add(r.cfg.Renew)
	r.do(step.TimerFired{Key: step.TimerKey{Name: timerRenew, ID: string(other)}})
	asked := wantSaid[protocol.BorderRenew](t, r)
	if !slices.Contains(asked.Attempts, id) {
		t.Errorf("asks for the leases of %v, want %s", asked.Attempts, id)
	}
	r.do(step.NeighbourGone{Domain: other})
	r.do(step.LinksChanged{})
	r.do(step.NeighbourSeen{Domain: other, Name: "other"})
	r.do(step.NeighbourGone{Domain: other})
	r.do(step.LinksChanged{Links: r.links})
	if l := r.m.Links()[0]; l.Link.Domain != other || l.Connected {
		t.Errorf("%+v, want it not connected", l)
	}
}

// A stranger's orders are stopped, and nothing more of it is taken.
func TestAStrangerHasNothingHere(t *testing.T) {
	r, id, _ := hosted(t)
	r.do(step.LinksChanged{Links: r.links[1:]})
	wantSaid[step.CancelJob](t, r)
	r.links = r.links[1:]
	r.cross(order(id, 9))
	if _, here := r.m.Orders(); len(here) != 0 || said[step.Submit](r) != nil {
		t.Errorf("%+v, %v", here, r.out)
	}
}

// Nothing of a domain's inside crosses: neither amounts nor which data it is and who holds it.
func TestNothingOfTheInsideCrosses(t *testing.T) {
	r := newRig(t, nil)
	r.tell(protocol.Announce{
		Job: jobID, Seq: 1, Submitter: user, Count: 1, TTL: time.Second, Sample: 1,
		Req: grid.Requirement{
			Kind: grid.KindCommand, Need: grid.Resources{MilliCPUs: 1}, Runtime: time.Minute,
			Project: "secret", Sources: []grid.DataSource{
				{
					Digest: grid.CID("c").Digest("home"), Bytes: 5,
					Holders: []grid.SiteID{user}, UploadBps: 7,
				},
			},
		},
	})
	q := wantSaid[protocol.BorderQuery](t, r)
	bare := []grid.DataSource{{Bytes: 5}}
	if diff := cmp.Diff(bare, q.Req.Sources); diff != "" || q.Req.Project != "" {
		t.Errorf("asked for %+v", q.Req)
	}
	r.cross(protocol.BorderAnswer{Job: jobID, Seq: 1, Refusal: grid.Refusal{
		Reason: grid.ReasonMemory, Want: 5, Have: 3,
	}})
	if f := wantSaid[protocol.Refuse](t, r); f.Refusal.Have != 0 {
		t.Errorf("refused with %+v", f.Refusal)
	}
}

// An answer that comes after its time is passed on for a while: what waits takes late offers.
func TestALateAnswerIsPassedOn(t *testing.T) {
	for _, c := range []struct {
		after  time.Duration
		passes bool
	}{{time.Second + lateAnswer, true}, {time.Second + lateAnswer + 1, false}} {
		r := newRig(t, nil)
		r.tell(protocol.Announce{
			Job: jobID, Seq: 1, Submitter: user, Count: 1, TTL: time.Second, Sample: 1,
			Req: grid.Requirement{
				Kind: grid.KindCommand, Need: grid.Resources{MilliCPUs: 1}, Runtime: time.Minute,
			},
		})
		r.wait(c.after)
		r.cross(protocol.BorderAnswer{Job: jobID, Seq: 1, Refusal: grid.Refusal{
			Reason: grid.ReasonFull,
		}})
		if got := said[protocol.Refuse](r) != nil; got != c.passes {
			t.Errorf("after %s it is passed on: %v", c.after, got)
		}
	}
}

func TestConfigurations(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"hops": func(c *Config) { c.MaxHops = protocol.MaxHops + 1 },
		"none": func(c *Config) { c.MaxHops = 0 }, "again": func(c *Config) { c.Again = 0 },
		"credit": func(c *Config) { c.Credit = -1 }, "here": func(c *Config) { c.Here = "" },
		"ttl": func(c *Config) { c.TTL = 0 }, "domain": func(c *Config) { c.Domain = "" },
		"name": func(c *Config) { c.Name = "A b" }, "orders": func(c *Config) { c.MaxOrders = 0 },
	} {
		cfg := Default(here, own, "own")
		change(&cfg)
		if _, err := New(cfg); !errors.Is(err, grid.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
