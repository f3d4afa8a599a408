package play

import (
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/scenario"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/sim"
)

// Record is all that happened in a mesh: in a simulated one, as its observer saw it.
//
// It has to tell the same as long as the mesh behaves the same: its texts hold no sentence of
// the product, only events, phases, numbers and words of their own.
type Record struct {
	sites    []string              // in their order
	end      time.Duration         // how long it goes on
	troubles []trouble             // in the order of the scenario
	jobs     map[string]int        // of each submission
	names    map[grid.JobID]string // of jobs
	sights   []sim.Sight           // in their order
	lost     map[int]bool          // numbers of messages that did not arrive
}

func newRecord(s scenario.Scenario) *Record {
	rec := &Record{
		end: s.Run.For, jobs: make(map[string]int), names: make(map[grid.JobID]string),
		lost: make(map[int]bool),
	}
	for _, site := range s.Sites {
		rec.sites = append(rec.sites, site.Name)
	}
	for _, sub := range s.Submissions() {
		rec.jobs[sub.Name] = sub.Jobs
	}
	for _, e := range s.Events {
		if e.Site == "" || e.Kind == scenario.Crash { // that the agent is dead is seen
			continue
		}
		t := trouble{
			span: span{e.At, e.At + e.For}, site: e.Site, kind: e.Kind, what: strings.TrimSpace(e.String()),
		}
		if e.For == 0 {
			t.to = rec.end
		}
		rec.troubles = append(rec.troubles, t)
	}
	return rec
}

// watch is a sim.Config.Watch.
func (rec *Record) watch(s sim.Sight) {
	if s.Kind == sim.SightLost {
		rec.lost[s.Number] = true
		return
	}
	rec.sights = append(rec.sights, s)
}
