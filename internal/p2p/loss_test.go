package p2p

import (
	"fmt"
	"net"
	"testing"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

func TestAConnectionThatComesBackSoonWasNeverLost(t *testing.T) {
	// However busy this machine is, it is back sooner than that.
	nodes := cluster(t, 2, func(_ int, cfg *Config) { cfg.Timing.Debounce = patience })
	a, b := nodes[0], nodes[1]
	for round := 1; round <= 3; round++ {
		if err := a.Host().Network().ClosePeer(b.Host().ID()); err != nil {
			t.Fatal(err)
		}
		for _, n := range nodes {
			before := n.count()
			eventually(t, "messages go through again", func() bool {
				_ = a.Send(b.Self(), protocol.Cancel{Job: jobID(round)})
				_ = b.Send(a.Self(), protocol.Cancel{Job: jobID(round)})
				return n.count() > before
			})
		}
	}
	for i, n := range nodes {
		if got := n.losses(); len(got) != 0 {
			t.Errorf("site %d was told of losses: %+v", i, got)
		}
	}
}

func TestMessagesToASiteThatCannotBeReachedAreDropped(t *testing.T) {
	nodes := cluster(t, 2, nil)
	a, b := nodes[0], nodes[1]
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the loss is told", func() bool { return len(a.losses()) == 1 })
	before := a.Count(wire.CountDropped, queueSend)
	for i := range 10 {
		if err := a.Send(b.Self(), protocol.Cancel{Job: jobID(i)}); err != nil {
			t.Fatalf("Send = %v, want it queued while the site is dialled", err)
		}
	}
	eventually(t, "all are dropped and counted", func() bool {
		return a.Count(wire.CountDropped, queueSend) == before+10
	})
	if a.Count(wire.CountDials, "failed") == 0 {
		t.Error("no failed dial is counted")
	}
}

func TestHearsayThatLeadsNowhereIsForgotten(t *testing.T) {
	n := startSite(t, testConfig(t))
	ghost := newForge(t)
	listed := func() bool {
		n.Mesh.mu.Lock()
		defer n.Mesh.mu.Unlock()
		return n.remotes[ghost.site] != nil
	}
	n.learn(newForge(t).peer(), []string{
		"rubbish", n.Addrs()[0], closedPort(t) + "/p2p/" + string(ghost.site),
	})
	if !listed() {
		t.Fatal("the peer is not dialled")
	}
	eventually(t, "the peer is forgotten", func() bool { return !listed() })
	if got := n.Count(wire.CountDials, "failed"); got != hearsayTries {
		t.Errorf("%d attempts, want %d", got, hearsayTries)
	}
}

func TestHearsayOfStrangersIsNotFollowed(t *testing.T) {
	cfg := testConfig(t)
	cfg.AcceptAnyone, cfg.Allow = false, []grid.SiteID{newForge(t).site}
	n := startSite(t, cfg)
	ghost := newForge(t)
	n.learn(newForge(t).peer(), []string{closedPort(t) + "/p2p/" + string(ghost.site)})
	n.Mesh.mu.Lock()
	defer n.Mesh.mu.Unlock()
	if n.remotes[ghost.site] != nil ||
		n.host.Network().Connectedness(ghost.peer()) == network.Connected {
		t.Error("a stranger is dialled on hearsay")
	}
}

// closedPort is an address of this machine where nobody listens.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return fmt.Sprintf("/ip4/127.0.0.1/tcp/%d", l.Addr().(*net.TCPAddr).Port)
}
