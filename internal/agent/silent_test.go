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

// silentTTL is far longer than a round takes on a busy machine that waits for nobody.
const silentTTL = 4 * time.Second

// rounds submits a job every so often, and says how long each waited for its site, in ascending
// order.
func (n *node) rounds(t *testing.T, jobs int) []time.Duration {
	t.Helper()
	var all []time.Duration
	next := time.NewTicker(150 * time.Millisecond)
	defer next.Stop()
	for range jobs {
		<-next.C
		job := n.job(t)
		job.TTL = silentTTL
		id := n.submit(t, job)
		task := n.await(t, id, view.PhaseDone)
		record, err := n.Job(t.Context(), id.Job)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, task.Attempts[0].Awarded.Sub(record.Status.Submitted.Time))
	}
	slices.Sort(all)
	return all
}

// A member that answers nothing and connects anew each second delays the first rounds, and then
// no other: a round that waits for it lasts as long as its TTL. How long rounds take on an idle
// machine is printed, and no machine is expected to be idle.
func TestRoundsDoNotWaitForASilentMember(t *testing.T) {
	t.Parallel()
	c := agent.Plans(t, 4)
	submitter := start(t, c[0])
	one := start(t, c[1], submitter)
	two := start(t, c[2], submitter, one)
	submitter.awaitPeers(t, 2)
	two.awaitPeers(t, 2)
	const jobs, forgiving = 30, 10
	without := submitter.rounds(t, jobs)
	silentMember(t, c[3], submitter, one, two)
	submitter.awaitPeers(t, 3)
	submitter.rounds(t, forgiving)
	with := submitter.rounds(t, jobs)
	p95 := with[jobs*95/100]
	t.Logf("p95 of %d rounds: %s without the silent member, %s with it (median %s and %s)",
		jobs, without[jobs*95/100], p95, without[jobs/2], with[jobs/2])
	if most := silentTTL / 2; p95 >= most {
		t.Errorf("p95 of the rounds is %s, want less than %s", p95, most)
	}
}
