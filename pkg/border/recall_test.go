package border

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// asking is a query of a neighbour, as which job so ever.
func asking(job grid.JobID, change func(*protocol.BorderQuery)) protocol.BorderQuery {
	q := protocol.BorderQuery{
		Passage: way(5), Job: job, Seq: 1, Count: 1, TTL: time.Second,
		Req: grid.Requirement{
			Kind: grid.KindCommand, Need: grid.Resources{MilliCPUs: 2000}, Runtime: time.Minute,
		},
	}
	if change != nil {
		change(&q)
	}
	return q
}

// refuses lets the broker answer the probe that the last input has ordered.
func (r *rig) refuses(t *testing.T, why grid.Refusal) {
	t.Helper()
	p := wantSaid[step.Probe](t, r)
	r.do(step.OrderNews{Ref: p.Ordered.Ref, Probed: true, Refusal: &why})
	if a := wantSaid[protocol.BorderAnswer](t, r); a.Refusal != plainRefusal(why) {
		t.Fatalf("answered %+v, want %+v", a, why)
	}
}

// The members are asked once for what many jobs need, or more of it. What needs less, or something
// else, or may go on to a further domain, is asked for.
func TestWhatWasJustRefusedIsNotAskedForAgain(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*protocol.BorderQuery)
		asks   bool
	}{
		"the same":       {nil, false},
		"for more tasks": {func(q *protocol.BorderQuery) { q.Count = 9 }, false},
		"more cores":     {func(q *protocol.BorderQuery) { q.Req.Need.MilliCPUs++ }, true},
		"more memory":    {func(q *protocol.BorderQuery) { q.Req.Need.MemoryBytes++ }, false},
		"longer":         {func(q *protocol.BorderQuery) { q.Req.Runtime++ }, false},
		"of a platform":  {func(q *protocol.BorderQuery) { q.Req.OS = "linux" }, false},
		"with data": {func(q *protocol.BorderQuery) {
			q.Req.Sources = []grid.DataSource{{Bytes: 9}}
		}, false},
		"fewer cores": {func(q *protocol.BorderQuery) { q.Req.Need.MilliCPUs-- }, true},
		"more and less": {func(q *protocol.BorderQuery) {
			q.Req.Need.MemoryBytes++
			q.Req.Runtime--
		}, true},
		"in the seconds map": {func(q *protocol.BorderQuery) { q.Req.Map = grid.MapSeconds }, true},
		"onward": {func(q *protocol.BorderQuery) {
			q.Passage.Hops = 1
		}, true},
	} {
		r := newRig(t, nil)
		r.cross(asking(jobID, nil))
		r.refuses(t, grid.Refusal{Reason: grid.ReasonCPUs})
		r.now = r.now.Add(r.cfg.Recall - 1)
		r.cross(asking("aaaaaaaaaaaaaaaa", c.change))
		if asks := said[step.Probe](r) != nil; asks != c.asks {
			t.Errorf("%s: the members are asked: %t, want %t", name, asks, c.asks)
			continue
		}
		if !c.asks {
			a := wantSaid[protocol.BorderAnswer](t, r)
			want := grid.Refusal{Reason: grid.ReasonCPUs}
			if a.Job != "aaaaaaaaaaaaaaaa" || a.Seq != 1 || a.Refusal != want {
				t.Errorf("%s: answered %+v, want %+v", name, a, want)
			}
		}
	}
}

// A job that waits, and is asked for twice, hears the second time what the members were asked after
// the first time, however many others ask for the same meanwhile: a place that was free then is
// found.
func TestAPlaceThatIsFreedIsFoundInTheSecondRound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newRig(t, nil)
		pause := func() time.Duration { // of a job that waits, half a second at least
			return time.Duration(rapid.IntRange(500, 1500).Draw(t, "pause")) * time.Millisecond
		}
		asked, first, next := r.now, time.Time{}, r.now
		for range 40 {
			waits := rapid.Bool().Draw(t, "waits")
			job := grid.JobID("aaaaaaaaaaaaaaaa")
			if waits {
				job = jobID
				r.wait(max(next.Sub(r.now), 0))
			} else {
				r.wait(time.Duration(rapid.IntRange(0, 200).Draw(t, "between")) * time.Millisecond)
			}
			r.cross(asking(job, nil))
			probe, at := said[step.Probe](r), r.now
			if probe != nil {
				asked = r.now
				r.wait(time.Duration(rapid.IntRange(0, 100).Draw(t, "round")) * time.Millisecond)
				why := grid.Refusal{Reason: grid.ReasonCPUs}
				r.do(step.OrderNews{Ref: probe.Ordered.Ref, Probed: true, Refusal: &why})
			}
			if !waits {
				continue
			}
			if asked.Before(first) {
				t.Fatalf("the members were asked %s before the first round", first.Sub(asked))
			}
			first = at
			next = r.now.Add(pause())
		}
	})
}

// An order that ends here, a member that comes and more of this site's own capacity may make space.
func TestAFreedPlaceIsAskedForImmediately(t *testing.T) {
	for name, frees := range map[string]func(*rig, string){
		"an order ends": func(r *rig, ref string) {
			exit := grid.Exit{Cause: grid.CauseExited}
			r.do(step.OrderNews{Ref: ref, Phase: grid.PhaseDone, Exit: &exit})
		},
		"a member comes": func(r *rig, _ string) {
			r.do(step.PeerSeen{Site: "new", Capability: grid.Capability{
				Total: grid.Resources{MilliCPUs: 1},
			}})
		},
		"this site gives more": func(r *rig, _ string) { r.do(step.CapacityChanged{}) },
	} {
		r, _, _ := hosted(t)
		ref := r.m.guests[0].name
		r.cross(asking("bbbbbbbbbbbbbbbb", func(q *protocol.BorderQuery) { q.Passage = way(77) }))
		r.refuses(t, grid.Refusal{Reason: grid.ReasonCPUs})
		frees(r, ref)
		r.cross(asking("cccccccccccccccc", func(q *protocol.BorderQuery) { q.Passage = way(78) }))
		if said[step.Probe](r) == nil {
			t.Errorf("%s, and the members are not asked: %v", name, r.out)
		}
	}
}

// What is remembered is bounded, and the oldest gives way.
func TestRefusalsThatAreRememberedAreBounded(t *testing.T) {
	r := newRig(t, func(c *Config) { c.MaxQueries = 4 })
	less := func(n int) func(*protocol.BorderQuery) {
		return func(q *protocol.BorderQuery) {
			q.Passage = way(uint64(100 + n))
			q.Req.Runtime = time.Hour - time.Duration(n)
		}
	}
	for n := range 9 {
		r.cross(asking(jobID, less(n)))
		r.refuses(t, grid.Refusal{Reason: grid.ReasonCPUs})
	}
	if n := len(r.m.refused); n != 4 {
		t.Errorf("%d are remembered, want 4", n)
	}
	r.cross(asking(jobID, less(8)))
	if p := said[step.Probe](r); p != nil {
		t.Error("the last one is forgotten")
	}
}
