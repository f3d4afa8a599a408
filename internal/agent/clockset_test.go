package agent_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/agent"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/site"
)

// The clock of a running submitter is set: the times that its users name are times on it from
// then on, and what is reserved moves with it. The site's clock is wrong by some minutes, which
// does not matter.
func TestARunningAgentFollowsItsClock(t *testing.T) {
	t.Parallel()
	const skew = 5 * time.Minute
	var set atomic.Int64
	c := agent.Plans(t, 2)
	c[0].WallNow = func() time.Time { return time.Now().Add(time.Duration(set.Load())) }
	c[1].WallNow = func() time.Time { return time.Now().Add(skew) }
	a := start(t, c[0])
	b := start(t, c[1], a)
	a.awaitPeers(t, 1)
	b.awaitPeers(t, 1)

	const ahead = 3 * time.Hour
	job := a.job(t, "exit=0")
	job.Spec.Window = grid.Window{At: a.Now().Add(ahead).Round(time.Second)}
	id := a.submit(t, job)
	places := func(want time.Time) (there bool) {
		err := b.AskSite(t.Context(), func(m *site.Machine) {
			for _, attempt := range m.Status().Attempts {
				there = there || attempt.ID.Task == id &&
					attempt.Start.Sub(want.Add(skew)).Abs() < time.Minute // as the site's clock shows
			}
		})
		return err == nil && there
	}
	agent.Eventually(t, "the place is at the submitter's time", func() bool {
		return places(job.Spec.Window.At)
	})

	const by = 2 * time.Hour
	set.Store(int64(by))
	agent.Eventually(t, "the agent's clock is followed", func() bool {
		return time.Until(a.Now()) > by-time.Minute
	})
	agent.Eventually(t, "the place has moved", func() bool {
		return places(job.Spec.Window.At.Add(-by))
	})
}
