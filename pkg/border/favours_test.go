package border

import (
	"slices"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

const controller = grid.SiteID("controller")

// accounts are those that the controller was told by the last input; nil: it was told nothing.
func (r *rig) accounts() *protocol.Favours {
	for _, e := range r.out {
		if send, is := e.(step.Send); is && send.To == controller {
			if f, is := send.Message.(protocol.Favours); is {
				return &f
			}
		}
	}
	return nil
}

// after lets time pass, and has what the controller was told in it last.
func (r *rig) after(d time.Duration) *protocol.Favours {
	r.out = nil
	r.wait(d)
	return r.accounts()
}

func (r *rig) noted(term uint64, own, others []protocol.Account) {
	r.do(step.MessageReceived{
		From: controller, Message: protocol.FavoursNoted{Term: term, Own: own, Others: others},
	})
}

func oneAccount(domain grid.SiteID, given, taken int64) []protocol.Account {
	return []protocol.Account{{Domain: domain, GivenCoreMS: given, TakenCoreMS: taken}}
}

// What a deputy has given counts at the gateway for which it stood in: the debtor is served last.
func TestFavoursOfAnotherGatewayCount(t *testing.T) {
	r := newRig(t, nil)
	r.m.add(other, 2000, 0)
	r.m.out.Take()
	r.facts.Apply(step.NewFact(factFavour, string(other), favour{Given: 2000}))
	r.do(step.Controller{Site: controller, Term: 7})
	told := r.accounts()
	if told == nil || told.Term != 7 || !slices.Equal(told.Accounts, oneAccount(other, 2000, 0)) {
		t.Fatalf("the controller is told %+v", told)
	}
	credit := int64(r.cfg.Credit) * 1000
	r.noted(7, told.Accounts, oneAccount(other, credit, 500))
	l := r.m.Links()[0]
	if l.Given != r.cfg.Credit+2 || l.Taken != .5 || !l.Owes {
		t.Errorf("given %v, taken %v, owes %t", l.Given, l.Taken, l.Owes)
	}
	if before := r.m.rank(other); before != 1 {
		t.Errorf("%d are served before the debtor, want the one that owes nothing", before)
	}
	r.noted(7, told.Accounts, nil)
	if l := r.m.Links()[0]; l.Given != 2 || l.Owes {
		t.Errorf("others are said to have given nothing, and %+v is left", l)
	}
}

// It is told again and again while there are links, and not by who is no controller, or was one.
func TestTheControllerIsToldOfFavours(t *testing.T) {
	r := newRig(t, nil)
	r.do(step.Controller{Site: controller, Term: 7})
	told := 0
	for range 4 {
		if r.after(favoursEvery-1) != nil {
			t.Error("it is told before its time")
		}
		if r.after(1) != nil {
			told++
		}
	}
	if told != 4 {
		t.Errorf("told %d times, want 4", told)
	}
	r.noted(6, nil, oneAccount(other, 9000, 0))
	r.do(step.MessageReceived{From: user, Message: protocol.FavoursNoted{
		Term: 7, Others: oneAccount(other, 9000, 0),
	}})
	if l := r.m.Links()[0]; l.Given != 0 {
		t.Errorf("somebody else was believed: %+v", l)
	}
	r.do(step.LinksChanged{})
	r.do(step.Controller{})
	if r.after(time.Hour) != nil {
		t.Error("without a controller somebody is told")
	}
}

// A gateway without links, as a deputy is that has ended, is silent when all it has is noted.
func TestFavoursAreToldToTheEnd(t *testing.T) {
	r := newRig(t, nil)
	r.do(step.Controller{Site: controller, Term: 7})
	r.m.account(other, favour{Given: 3})
	r.m.out.Take()
	r.facts.Apply(step.NewFact(factFavour, string(other), favour{Given: 3}))
	r.do(step.LinksChanged{})
	if r.accounts() == nil {
		t.Fatal("the end is not told")
	}
	if r.after(favoursEvery) == nil {
		t.Error("it is not told again until it is noted")
	}
	more := protocol.Account{Domain: "forgotten", GivenCoreMS: 1}
	r.noted(7, append(oneAccount(other, 3, 0), more), nil)
	r.wait(favoursEvery)
	if r.after(time.Hour) != nil {
		t.Error("it goes on")
	}
}

// On a new disk a gateway takes back what it had told, of domains that are linked still, for good.
func TestAGatewayOnANewDiskHasItsFavoursBack(t *testing.T) {
	r := newRig(t, nil)
	r.do(step.Controller{Site: controller, Term: 7})
	r.noted(7, slices.Concat(oneAccount(other, 4000, 1000), oneAccount("domain-zzz", 1, 1)), nil)
	for range 2 {
		if l := r.m.Links()[0]; l.Given != 4 || l.Taken != 1 {
			t.Fatalf("given %v, taken %v, want 4 and 1", l.Given, l.Taken)
		}
		r.restart()
	}
	if n := len(r.m.favours.own); n != 1 {
		t.Errorf("%d accounts, want that of the link", n)
	}
}
