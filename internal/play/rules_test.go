package play

import (
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/scenario"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

func TestNamesOfSites(t *testing.T) {
	rec := &Record{sites: []string{"s0", "s1", "s2", "anna", "ben", "cleo", "dora"}}
	for want, names := range map[string][]string{
		"s0": {"s0"}, "s0-2": {"s0", "s1", "s2"}, "s0,2": {"s0", "s2"},
		"all": rec.sites, "anna,ben,cleo": {"cleo", "ben", "anna"},
		"anna,ben,cleo +1": {"dora", "cleo", "ben", "anna"}, "anna,s1": {"s1", "anna"},
	} {
		set := make(map[string]bool)
		for _, name := range names {
			set[name] = true
		}
		if got := rec.sitesOf(set); got != want {
			t.Errorf("%q are %q, want %q", names, got, want)
		}
	}
	alone := &Record{sites: []string{"s0"}}
	if got := alone.sitesOf(map[string]bool{"s0": true}); got != "s0" {
		t.Errorf("the only site is %q", got)
	}
}

// Of a submission of many jobs the first few are told.
func TestTheCrowd(t *testing.T) {
	rec := &Record{
		names: map[grid.JobID]string{"a": "few#9", "b": "many#1", "c": "many#9", "d": "many"},
		jobs:  map[string]int{"few": crowded, "many": crowded + 1},
	}
	for id, want := range map[grid.JobID]bool{
		"a": false, "b": false, "c": true, "d": false, "e": false,
	} {
		if rec.inCrowd(id) != want {
			t.Errorf("%s is told: %v", rec.names[id], want)
		}
	}
}

// All is well from the end of the last trouble on; a liar, and an agent that stays dead, are one
// until the end.
func TestWhenAllIsWell(t *testing.T) {
	const end = time.Hour
	event := func(k scenario.Kind, word string, lasts time.Duration) scenario.Event {
		e := scenario.Event{At: time.Minute, For: lasts, Kind: k}
		e.Trouble.Word = word
		return e
	}
	for name, c := range map[string]struct {
		event scenario.Event
		want  time.Duration
	}{
		"busy":          {event(scenario.Busy, "", time.Minute), 2 * time.Minute},
		"crash":         {event(scenario.Crash, "", time.Minute), 2 * time.Minute},
		"dead":          {event(scenario.Crash, "", 0), end},
		"liar":          {event(scenario.Away, "liar", 0), end},
		"liar for once": {event(scenario.Away, "liar", time.Minute), 2 * time.Minute},
		"lost disk":     {event(scenario.Away, "lose", 0), time.Minute},
	} {
		s := scenario.Scenario{Events: []scenario.Event{c.event}}
		s.Run.For = end
		if got := wellFrom(s); got != c.want {
			t.Errorf("%s: well from %v, want %v", name, got, c.want)
		}
	}
}

func TestResultOfJobs(t *testing.T) {
	r := ResultOf("x", scenario.Outcome{
		Jobs: []scenario.JobOutcome{{Name: "immediate", Took: 0}, {Name: "open", Took: -1}},
	}, nil)
	if !r.Met || r.Jobs[0].TookS == nil || *r.Jobs[0].TookS != 0 || r.Jobs[1].TookS != nil {
		t.Errorf("%+v", r)
	}
}
