package domain

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// The kinds of facts, with the version of their format. A site that has failed says no more what it
// has promised: its successor has to know that from here. Whom it has told what is worked out anew.
const (
	factSite    = "site/1"    // key SiteID
	factBooking = "booking/1" // key as bookingKey
	factFavours = "favours/1" // key SiteID, a gateway
)

func kinds() []string { return []string{factSite, factBooking, factFavours} }

// FactGroup is a kind of fact that is not the machine's: the driver of the group that keeps the
// machine's facts has it in the same table. Restore passes it over.
const FactGroup = "group/1"

type siteFact struct {
	Capacity grid.Resources `json:"capacity"`
	Works    grid.Resources `json:"works"`
	FailedMS int64          `json:"failed_ms,omitempty"`
	Priced   bool           `json:"priced,omitempty"`
	Price    float64        `json:"price,omitempty"`
}

// bookingFact has times on the wall clock, in ms since 1970 UTC.
type bookingFact struct {
	Submitter grid.SiteID    `json:"submitter"`
	StartMS   int64          `json:"start_ms"`
	EndMS     int64          `json:"end_ms"`
	Need      grid.Resources `json:"need"`
	BookedMS  int64          `json:"booked_ms"`
	Scales    bool           `json:"scales,omitempty"`
	Data      int64          `json:"data,omitempty"`
}

// favourFact is one account of a gateway, in thousandths of a core-second.
type favourFact struct {
	Domain grid.SiteID `json:"domain"`
	Given  int64       `json:"given,omitempty"`
	Taken  int64       `json:"taken,omitempty"`
}

// bookingKey names an attempt and the site that says that it has it.
func bookingKey(s grid.SiteID, id grid.AttemptID) string { return id.String() + " " + string(s) }

func (m *Machine) saveSite(s *site) {
	m.out.Persist(step.NewFact(factSite, string(s.id), siteFact{
		Capacity: s.capacity, Works: s.works, FailedMS: m.wallMS(s.failed),
		Priced: s.priced, Price: s.price,
	}))
}

func (m *Machine) saveBooking(s grid.SiteID, b *booking) {
	m.out.Persist(step.NewFact(factBooking, bookingKey(s, b.attempt), bookingFact{
		Submitter: b.submitter, StartMS: m.wallMS(b.start), EndMS: m.wallMS(b.end), Need: b.need,
		BookedMS: m.wallMS(b.booked), Scales: b.scales, Data: b.data,
	}))
}

func (m *Machine) saveFavours(gateway grid.SiteID) {
	facts := []favourFact{}
	for _, a := range m.accounts[gateway] {
		facts = append(facts, favourFact{
			Domain: a.Domain, Given: a.GivenCoreMS, Taken: a.TakenCoreMS,
		})
	}
	m.out.Persist(step.NewFact(factFavours, string(gateway), facts))
}

// wallMS is a time of this machine on the wall clock.
func (m *Machine) wallMS(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return step.MS(t.Add(m.ahead))
}

// Snapshot implements step.Durable.
func (m *Machine) Snapshot() []byte { return m.out.Facts().Encode() }

// Restore implements step.Durable.
func (m *Machine) Restore(encoded []byte) error {
	facts, err := step.DecodeFacts(encoded)
	if err != nil {
		return err
	}
	for _, kind := range kinds() { // bookings come behind their sites
		for _, f := range facts {
			if f.Kind != kind {
				continue
			}
			if err := m.restore(f); err != nil {
				return fmt.Errorf("restore %s %s: %w", f.Kind, f.Key, err)
			}
			m.out.Facts().Apply(f)
		}
	}
	for _, f := range facts {
		if f.Kind != FactGroup && !slices.Contains(kinds(), f.Kind) {
			return fmt.Errorf("restore %s %s: %w: this version does not know the fact",
				f.Kind, f.Key, grid.ErrInvalid)
		}
	}
	return nil
}

func (m *Machine) restore(f step.Fact) error {
	switch f.Kind {
	case factSite:
		return m.restoreSite(f)
	case factBooking:
		return m.restoreBooking(f)
	default:
		return m.restoreFavours(f)
	}
}

func (m *Machine) restoreFavours(f step.Fact) error {
	var facts []favourFact
	if err := json.Unmarshal(f.Value, &facts); err != nil {
		return err
	}
	var all []protocol.Account
	for _, v := range facts {
		all = append(all, protocol.Account{
			Domain: v.Domain, GivenCoreMS: v.Given, TakenCoreMS: v.Taken,
		})
	}
	m.accounts[grid.SiteID(f.Key)] = all
	if err := grid.SiteID(f.Key).Validate(); err != nil {
		return err
	}
	return protocol.Favours{Term: 1, Accounts: all}.Validate()
}

func (m *Machine) restoreSite(f step.Fact) error {
	var v siteFact
	if err := json.Unmarshal(f.Value, &v); err != nil {
		return err
	}
	id := grid.SiteID(f.Key)
	if err := id.Validate(); err != nil {
		return err
	}
	if err := v.Capacity.Validate(); err != nil {
		return err
	}
	if !v.Capacity.Fits(v.Works) {
		return fmt.Errorf("%w: more works than there is", grid.ErrInvalid)
	}
	if !(v.Price >= 0 && v.Price <= protocol.MaxPrice) {
		return fmt.Errorf("%w: a price of %v", grid.ErrInvalid, v.Price)
	}
	m.sites[id] = &site{
		id: id, capacity: v.Capacity, works: v.Works, said: true, failed: step.FromMS(v.FailedMS),
		priced: v.Priced, price: v.Price,
		bookings: make(map[grid.AttemptID]*booking),
	}
	return v.Works.Validate()
}

func (m *Machine) restoreBooking(f step.Fact) error {
	attempt, at, _ := strings.Cut(f.Key, " ")
	id, err := grid.ParseAttemptID(attempt)
	if err != nil {
		return err
	}
	s := m.sites[grid.SiteID(at)]
	if s == nil {
		return fmt.Errorf("%w: its site is missing", grid.ErrInvalid)
	}
	var v bookingFact
	if err := json.Unmarshal(f.Value, &v); err != nil {
		return err
	}
	if v.StartMS >= v.EndMS || v.Data < 0 {
		return fmt.Errorf("%w: it ends before it begins, or has less than no data", grid.ErrInvalid)
	}
	if err := v.Submitter.Validate(); err != nil {
		return err
	}
	s.bookings[id] = &booking{
		attempt: id, submitter: v.Submitter, start: step.FromMS(v.StartMS),
		end: step.FromMS(v.EndMS), need: v.Need, booked: step.FromMS(v.BookedMS),
		scales: v.Scales, data: v.Data,
	}
	return v.Need.Validate()
}
