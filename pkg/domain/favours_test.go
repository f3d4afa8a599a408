package domain

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// tells lets a gateway tell its favours, and returns what it is answered; nil: nothing.
func (r *rig) tells(gateway grid.SiteID, all ...protocol.Account) *protocol.FavoursNoted {
	for _, e := range r.do(step.MessageReceived{
		From: gateway, Message: protocol.Favours{Term: r.term, Accounts: all},
	}) {
		if send, is := e.(step.Send); is && send.To == gateway {
			if noted, is := send.Message.(protocol.FavoursNoted); is {
				return &noted
			}
		}
	}
	return nil
}

func given(domain grid.SiteID, given, taken int64) protocol.Account {
	return protocol.Account{Domain: domain, GivenCoreMS: given, TakenCoreMS: taken}
}

// What gateways have told outlives the controller, and the gateway: another one hears the sums of
// the others, and a gateway on a new disk what it had told itself.
func TestFavoursOutliveTheGateway(t *testing.T) {
	r := newRig(t, nil)
	r.tells(big, given("north", 5, 7), given("west", 1, 0))
	r.tells(mid, given("east", 0, 3), given("north", 10, 1))
	r.takeOver()
	noted := r.tells("d")
	want := []protocol.Account{
		given("east", 0, 3), given("north", 15, 8), given("west", 1, 0),
	}
	if noted == nil || len(noted.Own) > 0 || !slices.Equal(noted.Others, want) {
		t.Fatalf("a new gateway hears %+v, want %+v of the others", noted, want)
	}
	noted = r.tells(big, given("north", 2, 0))
	want = []protocol.Account{given("north", 5, 7), given("west", 1, 0)}
	if noted == nil || !slices.Equal(noted.Own, want) {
		t.Errorf("on its new disk the first one hears %+v, want %+v as its own", noted, want)
	}
}

// A controller whose term is over is not answered for.
func TestFavoursForAnotherController(t *testing.T) {
	r := newRig(t, nil)
	r.tells(big, given("north", 5, 7))
	r.do(step.MessageReceived{From: big, Message: protocol.Favours{
		Term: r.term + 1, Accounts: []protocol.Account{given("north", 50, 70)},
	}})
	if len(r.out) > 0 {
		t.Errorf("it is answered with %v", r.out)
	}
	if noted := r.tells(big); noted.Own[0] != given("north", 5, 7) {
		t.Errorf("it has counted: %+v", noted)
	}
}

func TestFavoursAreBounded(t *testing.T) {
	r := newRig(t, nil)
	for i := range maxGateways {
		gateway := grid.SiteID(fmt.Sprintf("g%d", i))
		if r.tells(gateway, given("north", protocol.MaxFavour, 0)) == nil {
			t.Fatalf("gateway %d is not heard", i)
		}
	}
	if r.tells("g0").Others[0].GivenCoreMS != protocol.MaxFavour {
		t.Error("the sum is beyond its limit")
	}
	if noted := r.tells("one too many"); noted != nil {
		t.Errorf("one gateway too many hears %+v", noted)
	}
	for i := range protocol.MaxAccounts + 9 {
		r.tells("g1", given(grid.SiteID(fmt.Sprintf("domain-%d", i)), 1, 1))
	}
	if n := len(r.tells("g1").Own); n != protocol.MaxAccounts {
		t.Errorf("%d accounts are kept of a gateway, want %d", n, protocol.MaxAccounts)
	}
}

// Whatever comes late, twice or in another order: an account is the highest that was told.
func TestFavoursInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newRig(t, nil)
		high := map[grid.SiteID]map[grid.SiteID]protocol.Account{big: {}, mid: {}}
		for range rapid.IntRange(1, 30).Draw(t, "messages") {
			from := rapid.SampledFrom([]grid.SiteID{big, mid}).Draw(t, "gateway")
			domain := rapid.SampledFrom([]grid.SiteID{"north", "west"}).Draw(t, "domain")
			a := given(domain, int64(rapid.IntRange(0, 9).Draw(t, "given")),
				int64(rapid.IntRange(0, 9).Draw(t, "taken")))
			r.tells(from, a)
			old := high[from][domain]
			high[from][domain] = given(domain, max(old.GivenCoreMS, a.GivenCoreMS),
				max(old.TakenCoreMS, a.TakenCoreMS))
			if rapid.IntRange(0, 4).Draw(t, "takes over") == 0 {
				r.takeOver()
			}
		}
		for from, want := range high {
			noted := r.tells(from)
			for _, a := range noted.Own {
				if a != want[a.Domain] {
					t.Fatalf("%s has %+v, want %+v", from, a, want[a.Domain])
				}
			}
			if len(noted.Own) != len(want) {
				t.Fatalf("%s has %d accounts, want %d", from, len(noted.Own), len(want))
			}
		}
	})
}
