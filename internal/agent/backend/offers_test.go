package backend

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/internal/agent"
	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/index"
)

// asked is a job whose only answer is to that announcement; 0: it has none.
func asked(seq uint32) broker.JobState {
	job := broker.JobState{ID: "j"}
	if seq > 0 {
		job.Answers = []broker.Answer{{Site: "s", Seq: seq, Offer: &grid.Offer{Site: "s"}}}
		job.Ranks, job.Behind = []int{1}, make([]index.Lag, 1)
	}
	return job
}

// TestRoundsAreShown has the present round last, once, and after those that are remembered.
func TestRoundsAreShown(t *testing.T) {
	t.Parallel()
	kept := func(numbers ...uint32) (all []agent.Round) {
		for _, n := range numbers {
			all = append(all, agent.Round{
				State: asked(n), Number: n, Hosted: map[grid.SiteID]uint32{"s": n},
			})
		}
		return all
	}
	var many []uint32
	for n := range uint32(agent.KeptRounds) {
		many = append(many, n+1)
	}
	for _, c := range []struct {
		what   string
		now    uint32 // the round that was answered last; 0: none
		before []uint32
		want   []uint32
	}{
		{"no round", 0, nil, nil},
		{"a first round", 1, nil, []uint32{1}},
		{"rounds before", 5, []uint32{1, 3}, []uint32{1, 3, 5}},
		{"the present round was kept, too", 3, []uint32{1, 3}, []uint32{1, 3}},
		{"more were kept than there were", 2, []uint32{1, 3}, []uint32{1, 2}},
		{"none has answered the present one", 0, []uint32{1, 3}, []uint32{1, 3}},
		{"one more than are kept", 20, many, append(many[1:agent.KeptRounds:agent.KeptRounds], 20)},
	} {
		var got []uint32
		for _, table := range roundTables(asked(c.now), kept(c.before...), nil, nil, at(100)) {
			got = append(got, table.Round)
			was := uint32(0)
			if table.Round != c.now {
				was = table.Round // as many tasks as its round has in this test
			}
			if len(table.Rows) != 1 || table.Rows[0].Awarded != was || table.Job != "j" {
				t.Errorf("%s: round %d is %+v", c.what, table.Round, table)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.what, diff)
		}
	}
}
