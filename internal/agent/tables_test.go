package agent_test

import (
	"bytes"
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/agent"
)

// A table that is far larger than what may wait for a site goes over in parts: new standbys get it
// whole, and the owner's agent leads all the while.
func TestALargeTableReachesNewStandbys(t *testing.T) {
	const rows, rowBytes, batch = 40_000, 1_000, 4_000
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
