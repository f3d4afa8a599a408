package agent_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/agent"
	"github.com/mrsmesh/mrsmesh/internal/hostinfo"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/yield"
)

// What the owner changes counts immediately: here, at the other site, and for offers.
func TestTermsChangeWhileItRuns(t *testing.T) {
	a, b := pair(t)
	was := b.cfg.Capability
	if b.Terms().MaxRuntime != b.cfg.MaxRuntime {
		t.Errorf("the terms at the start: %+v", b.Terms())
	}
	terms := b.Terms()
	terms.Capability = func(hostinfo.Measured) grid.Capability {
		less := was
		less.Total.MilliCPUs = 500
		return less
	}
	terms.Policy, terms.Backfill, terms.MaxRuntime, terms.UploadBps = "edf", "easy", time.Minute, 1e6
	terms.Ahead, terms.Longest, terms.Owner.Patience = time.Hour, time.Hour, time.Minute
	if err := b.Change(t.Context(), terms); err != nil {
		t.Fatal(err)
	}
	s := statusOf(t, b)
	if s.Ceilings.MilliCPUs != 500 ||
		s.Plan.Planning != (view.Planning{Policy: "edf", Backfill: "easy"}) {
		t.Errorf("after the change: %+v, %+v", s.Ceilings, s.Plan.Planning)
	}
	agent.Eventually(t, "the other site knows", func() bool {
		rows, err := a.Sites(t.Context())
		return err == nil && len(rows) == 2 && rows[1].Total.MilliCPUs == 500
	})

	day := strings.ToLower(time.Now().Add(-48 * time.Hour).Format("Mon"))
	hours, err := yield.ParseHours(day + " 01:00-01:01")
	if err != nil {
		t.Fatal(err)
	}
	terms.Owner.Hours = hours
	if err = b.Change(t.Context(), terms); err != nil {
		t.Fatal(err)
	}
	agent.Eventually(t, "the site keeps its hours", func() bool {
		s := statusOf(t, b)
		return s.Owner.Busy && s.Owner.Hours == hours.String()
	})
	terms.Owner.Hours = yield.Hours{}
	if err = b.Change(t.Context(), terms); err != nil {
		t.Fatal(err)
	}
	agent.Eventually(t, "the site shares at any hour", func() bool {
		return !statusOf(t, b).Owner.Busy
	})

	terms.Capability = func(hostinfo.Measured) grid.Capability {
		nonsense := was
		nonsense.Total.MilliCPUs = -1
		return nonsense
	}
	terms.MaxRuntime = time.Hour
	if err = b.Change(t.Context(), terms); !errors.Is(err, grid.ErrInvalid) {
		t.Errorf("a negative ceiling: %v, want %v", err, grid.ErrInvalid)
	}
	if b.Terms().MaxRuntime != time.Minute || statusOf(t, b).Ceilings.MilliCPUs != 500 {
		t.Error("what was refused is in force")
	}
}
