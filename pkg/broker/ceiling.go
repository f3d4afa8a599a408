package broker

import (
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// foreign holds what is known of a job that another domain has ordered.
type foreign struct {
	ordered step.Ordered // zero: it is this site's own
	// ceiling is when the domain that ordered it takes its lease for over, on this machine's clock.
	// It is no fact: a run grants nothing before it was told.
	ceiling time.Time
}

// under shortens a lease so that it is over before the job's ceiling, margin included; 0: there is
// no time now for one that could be prolonged.
func (f *foreign) under(cfg *Config, now time.Time, lease time.Duration) time.Duration {
	if !f.ordered.Foreign() || cfg.NoCeiling {
		return lease
	}
	left := max(f.ceiling.Sub(now), 0) // without one it is more than a time span can be
	if lease = min(lease, left-cfg.margin(left)); lease < grid.FreezeGrace {
		return 0
	}
	return lease
}
