package domain

import (
	"errors"
	"fmt"
)

// Check implements step.Machine.
func (m *Machine) Check() error {
	if len(m.sites) > m.cfg.MaxSites {
		return fmt.Errorf("%d sites, the limit is %d", len(m.sites), m.cfg.MaxSites)
	}
	if len(m.accounts) > maxGateways {
		return fmt.Errorf("%d gateways, the limit is %d", len(m.accounts), maxGateways)
	}
	rows := len(m.accounts)
	for _, s := range m.sites.all() {
		if err := m.checkSite(s); err != nil {
			return fmt.Errorf("site %s: %w", s.id, err)
		}
		if rows += len(s.bookings); s.said {
			rows++
		}
	}
	if have := len(m.out.Facts().All()); have != rows {
		return fmt.Errorf("%d facts, want %d", have, rows)
	}
	return nil
}

func (m *Machine) checkSite(s *site) error {
	switch {
	case len(s.bookings) > m.cfg.MaxBookings:
		return fmt.Errorf("%d bookings, the limit is %d", len(s.bookings), m.cfg.MaxBookings)
	case len(s.bookings) > 0 && !s.said:
		return fmt.Errorf("%d bookings, and it has said nothing", len(s.bookings))
	case s.here && !s.failed.IsZero():
		return fmt.Errorf("it is there, and has failed since %s", s.failed)
	case s.here && !s.gone.IsZero():
		return fmt.Errorf("it is there, and gone since %s", s.gone)
	}
	for _, b := range s.sorted() {
		if !b.start.Before(b.end) {
			return fmt.Errorf("booking %s ends before it begins", b.attempt)
		}
		if m.out.Facts().Get(factBooking, bookingKey(s.id, b.attempt)) == nil {
			return fmt.Errorf("booking %s is no fact", b.attempt)
		}
	}
	if !s.said {
		return nil
	}
	if m.out.Facts().Get(factSite, string(s.id)) == nil {
		return errors.New("it is no fact")
	}
	return nil
}
