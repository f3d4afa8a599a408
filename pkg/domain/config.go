package domain

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// Config holds what a controller is told when it is made. Start from Default.
type Config struct {
	Here grid.SiteID // the site that it runs at, required

	// Weight is zeta, by which the load of failed sites counts more, 1 to maxWeight; Share is eta,
	// the share of full load from which on the domain counts as busy, 0 to 1: tasks leave a failed
	// site up to the last slot in which it is. VRM, section 4.6.
	Weight, Share float64
	// Slot is the unit in which load is looked at, and the shortest time that tasks leave ahead of
	// their start, minSlot to maxSlot. While a site has failed all is computed anew in each.
	Slot time.Duration
	// AllNodes takes the capacity of all sites for full load, the failed ones included, as VRM
	// does. Else the capacity that works is.
	AllNodes bool
	// Grace is for how long a site may be gone, or say nothing, before it counts as failed.
	Grace time.Duration
	// Fines weighs whom to move: those of submitters to whom a broken promise costs the
	// owner more, in any unit, are moved before others.
	// nil: first come, first served.
	Fines map[grid.SiteID]float64 `json:",omitempty"`
	// Prices sends what leaves to the cheapest site that has space for it, by what its owner asks
	// for a core and an hour, and of equal ones to the one that it fits best. One that names no
	// price is neither cheap nor dear: it counts as the mean of the others.
	Prices bool `json:",omitempty"`

	MaxSites    int // that bookings are kept of
	MaxBookings int // of one site

	Reports step.Level `json:",omitempty"` // what is below that level is not reported
}

// Limits on a configuration.
const (
	maxWeight = 1000.
	minSlot   = time.Second
	maxSlot   = time.Hour
)

// Default has the weight and the share with which the experiment vrm does best.
func Default(here grid.SiteID) Config {
	return Config{
		Here: here, Weight: 2, Share: .775, Slot: time.Minute, Grace: 5 * time.Second,
		MaxSites: 1024, MaxBookings: 4096,
	}
}

// Validate reports the first field that is out of its range.
func (c Config) Validate() error {
	switch {
	case !(c.Weight >= 1 && c.Weight <= maxWeight):
		return invalidf("weight of a failed site's load (zeta): want 1 to %v, have %v",
			maxWeight, c.Weight)
	case !(c.Share >= 0 && c.Share <= 1):
		return invalidf("share of full load that is busy (eta): want 0 to 1, have %v", c.Share)
	case c.Slot < minSlot || c.Slot > maxSlot:
		return invalidf("slot: want %s to %s, have %s", minSlot, maxSlot, c.Slot)
	case c.Grace < 0 || c.MaxSites < 1 || c.MaxBookings < 1:
		return invalidf("grace, sites or bookings: want at least 0, 1 and 1, have %s, %d and %d",
			c.Grace, c.MaxSites, c.MaxBookings)
	}
	for _, fine := range slices.Sorted(maps.Values(c.Fines)) {
		if !(fine >= 0 && fine <= 1e9) {
			return invalidf("fine: want 0 to 1e9, have %v", fine)
		}
	}
	return c.Here.Validate()
}

func invalidf(format string, args ...any) error {
	return fmt.Errorf("%w: controller: %s", grid.ErrInvalid, fmt.Sprintf(format, args...))
}
