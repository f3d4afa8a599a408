package agent_test

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/agent"
	"github.com/mrsmesh/mrsmesh/internal/p2p"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// silentMember joins with a host of its own, hears all, answers nothing, and connects anew each
// second. The rest ends it.
func silentMember(t *testing.T, c agent.Config, others ...*node) {
	t.Helper()
	cfg := c.P2P
	cfg.Name, cfg.Incarnation = c.Name, 1
	cfg.Capability = func() grid.Capability { return c.Capability }
	for _, o := range others {
		cfg.Bootstrap = append(cfg.Bootstrap, o.Addrs()...)
	}
	mesh, err := p2p.New(t.Context(), cfg, p2p.Handlers{
		OnMessage:  func(grid.SiteID, protocol.Message) {},
		OnPeerSeen: func(grid.SiteID, p2p.Facts) {}, OnPeerGone: func(grid.SiteID, bool) {},
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		again := time.NewTicker(time.Second)
		defer again.Stop()
		for {
			select {
			case <-end:
				return
			case <-again.C:
				for _, id := range mesh.Host().Network().Peers() {
					_ = mesh.Host().Network().ClosePeer(id) // one that is gone is as good
				}
			}
		}
	}()
	t.Cleanup(func() {
		close(end)
		<-ended
		if err := mesh.Close(); err != nil {
			t.Error(err)
		}
	})
}

// rounds submits a job every so often, and says how long each waited for its site, in ascending
// order.
func (n *node) rounds(t *testing.T, jobs int) []time.Duration {
	t.Helper()
	var all []time.Duration
	next := time.NewTicker(150 * time.Millisecond)
	defer next.Stop()
	for range jobs {
		<-next.C
		id := n.submit(t, n.job(t))
		task := n.await(t, id, view.PhaseDone)
		job, err := n.Job(t.Context(), id.Job)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, task.Attempts[0].Awarded.Sub(job.Status.Submitted.Time))
	}
	slices.Sort(all)
	return all
}

// A member that answers nothing and connects anew each second delays the first round and one
// after it was forgiven, and then no other. The mesh without it is the measure.
func TestRoundsDoNotWaitForASilentMember(t *testing.T) {
	c := agent.Plans(t, 4)
	submitter := start(t, c[0])
	one := start(t, c[1], submitter)
	two := start(t, c[2], submitter, one)
	submitter.awaitPeers(t, 2)
	two.awaitPeers(t, 2)
	const jobs, forgiving = 30, 10
	p95 := func(all []time.Duration) time.Duration { return all[len(all)*95/100] }
	without := submitter.rounds(t, jobs)
	silentMember(t, c[3], submitter, one, two)
	submitter.awaitPeers(t, 3)
	submitter.rounds(t, forgiving)
	with := submitter.rounds(t, jobs)
	t.Logf("p95 of %d rounds: %s without the silent member, %s with it (median %s and %s)",
		jobs, p95(without), p95(with), without[jobs/2], with[jobs/2])
	if most := 4 * max(p95(without), 25*time.Millisecond); p95(with) >= most {
		t.Errorf("p95 of the rounds is %s, want less than %s", p95(with), most)
	}
}
