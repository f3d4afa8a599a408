package border

import (
	"bytes"
	"crypto/ed25519"
	"reflect"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

const (
	here  = grid.SiteID("gateway")
	own   = grid.SiteID("domain-own")
	other = grid.SiteID("domain-other")
	third = grid.SiteID("domain-third")
	user  = grid.SiteID("user")
	jobID = grid.JobID("mfrggzdfmztwq2lk")
)

func keyOf(domain grid.SiteID) ed25519.PrivateKey {
	seed := make([]byte, ed25519.SeedSize)
	copy(seed, domain)
	return ed25519.NewKeyFromSeed(seed)
}

func linkWith(domain grid.SiteID, name grid.DomainID) step.Link {
	key := keyOf(domain)
	return step.Link{
		Domain: domain, Name: name, Key: grid.NewDomainKey(key[ed25519.SeedSize:]),
		Give: 100, Take: 100, Kinds: []grid.WorkKind{grid.KindCommand},
	}
}

// rig drives a border, and checks after each step what must always hold.
type rig struct {
	t     interface{ Fatalf(string, ...any) }
	cfg   Config
	m     *Machine
	now   time.Time
	runs  uint64
	facts *step.Facts
	times map[step.TimerKey]time.Time
	out   []step.Effect // of the last input
	links []step.Link
	early bool // neighbours are connected before their links are told of
}

func newRig(t interface{ Fatalf(string, ...any) }, tune func(*Config)) *rig {
	r := &rig{
		t: t, cfg: Default(here, own, "own"), facts: step.NewFacts(),
		now:   time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		links: []step.Link{linkWith(other, "other"), linkWith(third, "third")},
	}
	if tune != nil {
		tune(&r.cfg)
	}
	r.restart()
	return r
}

// restart makes the next run of the facts alone; all are there again.
func (r *rig) restart() {
	m, err := New(r.cfg)
	if err != nil {
		r.t.Fatalf("new: %v", err)
	}
	if err := m.Restore(r.facts.Encode()); err != nil {
		r.t.Fatalf("restore: %v", err)
	}
	r.m, r.times = m, make(map[step.TimerKey]time.Time)
	r.runs++
	r.do(step.Boot{Incarnation: r.runs})
	if !r.early {
		r.do(step.LinksChanged{Links: r.links})
	}
	r.do(step.CapacityChanged{
		Capability: grid.Capability{Total: grid.Resources{MilliCPUs: 8000}},
	})
	r.do(step.NeighbourSeen{Domain: other, Name: "other"})
	r.do(step.NeighbourSeen{Domain: third, Name: "third"})
	if r.early {
		r.do(step.LinksChanged{Links: r.links})
	}
}

func (r *rig) do(in step.Input) []step.Effect {
	r.out = r.m.Step(r.now, in)
	for _, e := range r.out {
		switch e := e.(type) {
		case step.Persist:
			r.facts.Apply(e.Fact)
		case step.SetTimer:
			r.times[e.Key] = e.At
		case step.StopTimer:
			delete(r.times, e.Key)
		case step.SendBorder:
			r.wantValid(e.Message)
			if !protocol.ForBorder(e.Message) {
				r.t.Fatalf("%T over the border", e.Message)
			}
		case step.SendAs:
			r.wantValid(e.Message)
		case step.Order:
			if s, is := e.Input.(step.Submit); is {
				if err := s.Job.Validate(); err != nil {
					r.t.Fatalf("submits: %v", err)
				}
			}
			if p, is := e.Input.(step.Probe); is {
				if err := p.Job.Validate(); err != nil {
					r.t.Fatalf("probes: %v", err)
				}
			}
		default:
		}
	}
	if err := r.m.Check(); err != nil {
		r.t.Fatalf("after %T: %v", in, err)
	}
	if !bytes.Equal(r.m.Snapshot(), r.facts.Encode()) {
		r.t.Fatalf("after %T: the facts are not the snapshot", in)
	}
	return r.out
}

func (r *rig) wantValid(msg protocol.Message) {
	if _, err := protocol.Encode(msg); err != nil {
		r.t.Fatalf("sends %T: %v", msg, err)
	}
}

// wait lets time pass, and the timers fire in it.
func (r *rig) wait(d time.Duration) {
	end := r.now.Add(d)
	for range 10_000 {
		var first step.TimerKey
		at := end.Add(1)
		for key, t := range r.times {
			if t.Before(at) || t.Equal(at) && key.ID < first.ID {
				first, at = key, t
			}
		}
		if at.After(end) {
			break
		}
		if at.After(r.now) {
			r.now = at
		}
		delete(r.times, first)
		r.do(step.TimerFired{Key: first})
	}
	r.now = end
}

// said finds what the last input has made the border say or do; nil: nothing of that kind.
func said[T any](r *rig) *T {
	for _, e := range r.out {
		if v, is := e.(T); is {
			return &v
		}
		var msg protocol.Message
		switch e := e.(type) {
		case step.SendBorder:
			msg = e.Message
		case step.SendAs:
			msg = e.Message
		case step.Order:
			if v, is := e.Input.(T); is {
				return &v
			}
		default:
		}
		if v, is := msg.(T); is {
			return &v
		}
	}
	return nil
}

// wantSaid is said, and fails the test if there is none.
func wantSaid[T any](t *testing.T, r *rig) T {
	t.Helper()
	v := said[T](r)
	if v == nil {
		t.Fatalf("no %s among %v", reflect.TypeFor[T](), r.out)
	}
	return *v
}

func attemptNo(index uint32, token grid.Token) grid.AttemptID {
	return grid.AttemptID{Task: grid.TaskID{Job: jobID, Index: index}, Token: token}
}

func spec() grid.Spec {
	return grid.Spec{
		Name: "work", Kind: grid.KindCommand, Args: []string{"do", "{{index}}"},
		Need: grid.Resources{MilliCPUs: 2000}, Runtime: time.Minute, Project: "secret",
	}
}

func award(tasks ...grid.AttemptID) protocol.Award {
	msg := protocol.Award{Job: jobID, OfferID: 1, Spec: spec()}
	for _, id := range tasks {
		msg.Tasks = append(msg.Tasks, protocol.AwardedTask{Index: id.Task.Index, Token: id.Token})
	}
	return msg
}

// tell brings a message of a member to a neighbour; cross one of a neighbour.
func (r *rig) tell(msg protocol.Message) {
	r.do(step.MessageReceived{From: user, To: other, Message: msg})
}

func (r *rig) cross(msg protocol.Message) {
	r.do(step.BorderReceived{Domain: other, Message: msg})
}

// way is that of a request that the neighbour has made.
func way(request uint64) protocol.Passage {
	return protocol.Passage{Request: request, Path: []grid.SiteID{other}}
}

// order is one of the neighbour's.
func order(id grid.AttemptID, request uint64) protocol.BorderOrder {
	s := spec()
	s.Args, s.Project = []string{"do"}, ""
	return protocol.BorderOrder{Passage: way(request), Attempt: id, Spec: s, Here: true}
}
