package broker

import (
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// No lease of an ordered job ends after its ceiling, margin included, and without a ceiling there
// is none.
func TestLeasesStayUnderTheCeiling(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	cfg := Default("a")
	least := cfg.LeaseMargin + grid.FreezeGrace
	for name, c := range map[string]struct {
		of      foreign
		most    time.Duration
		granted bool
	}{
		"of its own":  {foreign{}, cfg.Lease, true},
		"none yet":    {foreign{ordered: step.Ordered{Domain: "b"}}, 0, false},
		"over":        {ceilingAt(now.Add(-time.Hour)), 0, false},
		"too near":    {ceilingAt(now.Add(least - 1)), 0, false},
		"near":        {ceilingAt(now.Add(least)), grid.FreezeGrace, true},
		"far":         {ceilingAt(now.Add(time.Hour)), cfg.Lease, true},
		"just enough": {ceilingAt(now.Add(cfg.Lease + cfg.LeaseMargin)), cfg.Lease, true},
	} {
		got := c.of.under(&cfg, now, cfg.Lease)
		if got != c.most || (got > 0) != c.granted {
			t.Errorf("%s: %s, want %s", name, got, c.most)
		}
		if end := now.Add(got + cfg.margin(got)); got > 0 && c.of.ordered.Foreign() &&
			end.After(c.of.ceiling) {
			t.Errorf("%s: it ends %s after the ceiling", name, end.Sub(c.of.ceiling))
		}
	}
}

func ceilingAt(at time.Time) foreign {
	return foreign{ordered: step.Ordered{Domain: "b"}, ceiling: at}
}
