package protocol

import (
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol/wirepb"
)

// Favours tells the controller of the domain what the sender, as a gateway of the domain, has given
// to linked domains and taken from them, all receipts together. It is repeated; counts only grow.
type Favours struct {
	Term     uint64    // of the controller that it is for, from 1
	Accounts []Account // ascending by domain, at most MaxAccounts
}

// FavoursNoted answers Favours with what the domain's group has written down.
type FavoursNoted struct {
	Term   uint64    // of the controller, from 1
	Own    []Account // of who asked: a gateway on a new disk learns what it has forgotten
	Others []Account // what all other gateways of the domain have told, together
}

// Account counts the work that a domain has done for a linked one, and the other way round, in
// thousandths of a core-second, 0 to MaxFavour.
type Account struct {
	Domain      grid.SiteID // the linked one, as sites call it
	GivenCoreMS int64
	TakenCoreMS int64
}

// Limits on accounts.
const (
	MaxAccounts = 256 // linked domains of which a domain keeps accounts
	MaxFavour   = 1 << 53
)

// Validate reports the first field that is out of its range.
func (m Favours) Validate() error {
	if m.Term == 0 {
		return invalidf("favours: terms count from 1")
	}
	return checkAccounts(m.Accounts)
}

// Validate reports the first field that is out of its range.
func (m FavoursNoted) Validate() error {
	if m.Term == 0 {
		return invalidf("favours noted: terms count from 1")
	}
	return firstError(checkAccounts(m.Own), checkAccounts(m.Others))
}

func checkAccounts(all []Account) error {
	if len(all) > MaxAccounts {
		return invalidf("favours: want at most %d accounts, have %d", MaxAccounts, len(all))
	}
	for i, a := range all {
		switch {
		case i > 0 && a.Domain <= all[i-1].Domain:
			return invalidf("favours: account %d is out of order", i)
		case a.GivenCoreMS < 0 || a.GivenCoreMS > MaxFavour,
			a.TakenCoreMS < 0 || a.TakenCoreMS > MaxFavour:
			return invalidf("favours: given and taken: want 0 to %d, have %d and %d",
				int64(MaxFavour), a.GivenCoreMS, a.TakenCoreMS)
		}
		if err := a.Domain.Validate(); err != nil {
			return err
		}
	}
	return nil
}

func wireAccount(a Account) *wirepb.Account {
	return &wirepb.Account{
		Domain: string(a.Domain), GivenCoreMs: a.GivenCoreMS, TakenCoreMs: a.TakenCoreMS,
	}
}

func account(w *wirepb.Account) Account {
	return Account{
		Domain: grid.SiteID(w.GetDomain()), GivenCoreMS: w.GetGivenCoreMs(),
		TakenCoreMS: w.GetTakenCoreMs(),
	}
}
