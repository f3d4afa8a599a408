package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/audit"
	"github.com/mrsmesh/mrsmesh/internal/localmesh"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

func TestVerdict(t *testing.T) {
	good := func() result {
		return result{
			reserved: 3, kept: 3, held: 2, remapped: 2, done: tasks, nextDoor: 7,
			receipts: receipts{labTook: 28.5, campusGave: 28.5},
		}
	}
	for _, c := range []struct {
		name  string
		spoil func(*result)
		ok    bool
	}{
		{"all well", func(*result) {}, true},
		{"nothing was reserved", func(r *result) { r.reserved, r.kept = 0, 0 }, false},
		{"not kept", func(r *result) { r.kept = 2 }, false},
		{"not remapped", func(r *result) { r.remapped = 1 }, false},
		{"nothing to remap", func(r *result) { r.held, r.remapped = 0, 0 }, false},
		{"not done", func(r *result) { r.done-- }, false},
		{"all at home", func(r *result) { r.nextDoor = 0 }, false},
		{"receipts differ", func(r *result) { r.receipts.campusGave++ }, false},
		{"no receipts", func(r *result) { r.receipts = receipts{} }, false},
		{"lost", func(r *result) { r.audit.Lost = make([]grid.TaskID, 1) }, false},
		{"doubled", func(r *result) { r.audit.Doubled = make([]audit.Double, 1) }, false},
		{"in both", func(r *result) { r.twice = make([]grid.TaskID, 1) }, false},
		{"blind", func(r *result) { r.unseen = []string{"a name"} }, false},
		{"leaked", func(r *result) { r.leaks = []leak{{"a name", "a file"}} }, false},
	} {
		var said bytes.Buffer
		r := good()
		c.spoil(&r)
		err := r.verdict(localmesh.NewScreen(&said, false))
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
		const want = "twodomains: 3 reservations kept, 2 of them remapped before their start, " +
			"7 tasks ran next door, 0 lost, 0 doubled, 0 names leaked\n"
		if c.ok && said.String() != want {
			t.Errorf("%s: said %q, want %q", c.name, said.String(), want)
		}
	}
}

// A task that ran here while it ran next door ran twice; before or after that it did not.
func TestTwice(t *testing.T) {
	id, err := grid.ParseAttemptID("aaaaaaaaaaaaaaaa.0#1")
	if err != nil {
		t.Fatal(err)
	}
	at := func(s int) time.Time { return time.Unix(1000, 0).Add(time.Duration(s) * time.Second) }
	all := []view.TaskView{{ID: id.Task.String(), Attempts: []view.AttemptView{{
		SiteName: "domain " + campusName, Started: view.At(at(10)), Ended: view.At(at(20)),
	}}}}
	for _, c := range []struct{ from, to, want int }{
		{0, 10, 0}, {20, 30, 0}, {5, 11, 1}, {12, 13, 1}, {19, 40, 1},
	} {
		runs := []audit.Run{{Attempt: id, Began: at(c.from), Ended: at(c.to)}}
		if got := len(twice(all, runs)); got != c.want {
			t.Errorf("from %d to %d: %d doubled, want %d", c.from, c.to, got, c.want)
		}
	}
}

// When a site that runs work is gone the others have space for all reservations, and one that may
// be killed holds some of them.
func TestTheRestHasSpaceForAll(t *testing.T) {
	space := 0
	for i, g := range gifts(labSites()) {
		if able := g.Memory<<20 >= need().MemoryBytes; able != (i != 1) {
			t.Errorf("%s runs work: %t", g.Name, able)
		} else if able {
			space += int(g.Cores)
		}
	}
	if space-cores != places || reservations > places || reservations <= cores || tasks <= places {
		t.Errorf("%d cores, %d places for %d reservations and %d tasks", space, places,
			reservations, tasks)
	}
}
