package agent_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/agent"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// A table that is far larger than what may wait for a site goes over in parts: new standbys get it
// whole, and the owner's agent leads all the while.
func TestALargeTableReachesNewStandbys(t *testing.T) {
	const rowBytes, batch = 1_000, 4_000
	rows := 40_000
	if raceDetector { // with which the standbys read a table for half a minute
		rows = 12_000
	}
	configs := agent.Plans(t, 3)
	alone := start(t, configs[0])
	for from := 0; from < rows; from += batch {
		if err := alone.Fill(t.Context(), from, batch, rowBytes); err != nil {
			t.Fatal(err)
		}
	}
	alone.close(t)
	configs[0].Standbys.Count = 2
	owner := start(t, configs[0])
	nodes := []*node{owner}
	for i := range configs[1:] {
		configs[i+1].Standbys.Accept = true
		nodes = append(nodes, start(t, configs[i+1], nodes...))
	}
	before := owner.standing(t, owner.Self())
	agent.Eventually(t, "the group is of three", func() bool {
		own := owner.standing(t, owner.Self())
		return len(own.Members) == 3 && !own.Changing
	})
	after := owner.standing(t, owner.Self())
	if after.Term != before.Term || !after.Here {
		t.Errorf("before the group was %+v, then it is %+v", before, after)
	}
	want := owner.Table(t.Context(), owner.Self())
	if len(want) < rows*rowBytes {
		t.Errorf("the table has %d bytes", len(want))
	}
	for _, n := range nodes[1:] {
		agent.Eventually(t, "the table is the same", func() bool {
			return bytes.Equal(n.Table(t.Context(), owner.Self()), want)
		})
	}
}

// standbyLimits starts agents of which the first has two standbys. The i-th keeps so many MiB of
// facts for an owner, and change may change it.
func standbyLimits(t *testing.T, change func(*agent.Config), mib ...int64) []*node {
	t.Helper()
	configs := agent.Plans(t, len(mib))
	configs[0].Standbys.Count = 2
	var nodes []*node
	for i := range configs {
		configs[i].Standbys.Accept, configs[i].Standbys.Bytes = true, mib[i]<<20
		if change != nil {
			change(&configs[i])
		}
		nodes = append(nodes, start(t, configs[i], nodes...))
		if i == 2 { // later ones are spare
			awaitStandbys(t, nodes[0])
		}
	}
	return nodes
}

func awaitStandbys(t *testing.T, owner *node) {
	t.Helper()
	agent.Eventually(t, "the owner's agent has two standbys", func() bool {
		own := owner.standing(t, owner.Self())
		return own.Here && len(own.Members) == 3 && !own.Changing
	})
}

// An owner's facts grow beyond what a standby keeps: it is replaced by a site that keeps more.
func TestAStandbyWithTooMuchIsReplaced(t *testing.T) {
	t.Parallel()
	nodes := standbyLimits(t, nil, 64, 1, 64, 64)
	owner, small, spare := nodes[0], nodes[1], nodes[3]
	spare.awaitPeers(t, 3)
	if err := owner.Fill(t.Context(), 0, 1100, 1000); err != nil {
		t.Fatal(err)
	}
	agent.Eventually(t, "the spare site stands by", func() bool {
		return spare.standing(t, owner.Self()).Owner != "" &&
			small.standing(t, owner.Self()).Owner == ""
	})
	awaitStandbys(t, owner)
	id := owner.submit(t, owner.job(t, "exit=0"))
	owner.await(t, id, view.PhaseDone)
}

// Nobody keeps as much: the owner's agent goes on alone, with all that it had.
func TestWithTooMuchForAllTheOwnerGoesOnAlone(t *testing.T) {
	t.Parallel()
	nodes := standbyLimits(t, nil, 64, 1, 1)
	owner := nodes[0]
	id := owner.submit(t, owner.job(t, "run=2s", "exit=0"))
	owner.await(t, id, view.PhaseRunning)
	before := owner.standing(t, owner.Self())
	if err := owner.Fill(t.Context(), 0, 1100, 1000); err != nil {
		t.Fatal(err)
	}
	agent.Eventually(t, "nobody stands by", func() bool {
		own := owner.standing(t, owner.Self())
		return own.Here && len(own.Members) == 1 && !own.Changing &&
			nodes[1].standing(t, owner.Self()).Owner == "" &&
			nodes[2].standing(t, owner.Self()).Owner == ""
	})
	// On a busy machine another one may have led in between.
	if after := owner.standing(t, owner.Self()); after.Facts < 1_100_000 {
		t.Errorf("before it was %+v, then %+v", before, after)
	}
	owner.await(t, id, view.PhaseDone)
	again := owner.submit(t, owner.job(t, "exit=0"))
	owner.await(t, again, view.PhaseDone)
}

// An owner does not heed what its standbys say of their limits, which it does not hear here. They
// hold no more than they must.
func TestAnOwnerThatDoesNotHeedALimitIsStopped(t *testing.T) {
	mute := func(c *agent.Config) {
		c.Taps.Sending = func(_ grid.SiteID, m protocol.Message) bool {
			answer, is := m.(protocol.StandbyAnswer)
			return !is || answer.Accept
		}
		c.Taps.LogBytes = 6 << 20
	}
	nodes := standbyLimits(t, mute, 64, 1, 1)
	owner := nodes[0]
	// Batches of a quarter of a MB: larger ones hold a slow machine up until another site leads.
	const rows, rowBytes, least, most = 250, 1_000, 3 << 20, 10 << 20
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for from := 0; owner.Fill(ctx, from, rows, rowBytes) == nil; from += rows {
		}
	}()
	agent.Eventually(t, "the owner's facts are not taken any more", func() bool {
		return !owner.standing(t, owner.Self()).Here &&
			nodes[1].standing(t, owner.Self()).Facts >= least
	})
	for _, n := range nodes[1:] {
		if held := n.standing(t, owner.Self()).Facts; held > most || held < least {
			t.Errorf("a standby that keeps 1 MiB holds %d bytes", held)
		}
	}
}
