package standby

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// oracle looks on in true time: no two attempts of a task run together, none runs after its
// end was acknowledged, nothing that was accepted is lost.
type oracle struct {
	world   *world
	running map[int]map[int]grid.Token // by task and site
	over    map[int]bool
	doubled []string // what was seen
	begun   int
}

func (o *oracle) starts(task, site int, token grid.Token) {
	o.world.note("task %d runs at %d, attempt %d", task, site, token)
	o.begun++
	if o.running == nil {
		o.running, o.over = map[int]map[int]grid.Token{}, map[int]bool{}
	}
	if o.running[task] == nil {
		o.running[task] = map[int]grid.Token{}
	}
	o.running[task][site] = token
	if len(o.running[task]) > 1 {
		o.doubled = append(o.doubled,
			fmt.Sprintf("%s: task %d runs at %v", o.world.now, task, o.running[task]))
	}
	if o.over[task] {
		o.doubled = append(o.doubled, fmt.Sprintf("%s: task %d runs again", o.world.now, task))
	}
}

func (o *oracle) stops(task, site int) {
	o.world.note("task %d stops at %d", task, site)
	delete(o.running[task], site)
}

func (o *oracle) acknowledged(task int) {
	o.world.note("task %d has ended", task)
	o.over[task] = true
}

// acting is the table of the member that acts in the highest term, nil if none does.
func (w *world) acting() *member {
	var found *member
	for _, m := range w.members {
		if m.up && m.machine != nil && (found == nil || m.term > found.term) {
			found = m
		}
	}
	return found
}

// allDone reports whether every task was accepted, has run to its end, and stands so in the
// committed table of the member that acts.
func (w *world) allDone() bool {
	m := w.acting()
	if m == nil || len(w.user.accepted) < w.user.tasks {
		return false
	}
	for task := range w.user.tasks {
		r := new(row)
		value := m.group.stored.Table.Get(factRow, strconv.Itoa(task))
		if value == nil || json.Unmarshal(value, r) != nil || !r.Done {
			return false
		}
	}
	return true
}

// lost lists tasks that were accepted and that the member that acts does not know.
func (w *world) lost() (tasks []int) {
	m := w.acting()
	for task := range w.user.tasks {
		if m != nil && w.user.accepted[task] && m.machine.rows[task] == nil {
			tasks = append(tasks, task)
		}
	}
	return tasks
}

// broken lists what was doubled or lost in a run; empty if the promise was kept.
func (w *world) broken() []string {
	found := slices.Clone(w.oracle.doubled)
	if lost := w.lost(); len(lost) > 0 {
		found = append(found, fmt.Sprintf("tasks %v are lost", lost))
	}
	return found
}

// verdict is broken, and the invariants of members that did not hold.
func (w *world) verdict() []string {
	found := w.broken()
	for _, m := range w.members {
		if m.problem != nil {
			found = append(found, fmt.Sprintf("%s: %v", m.name, m.problem))
		}
	}
	return found
}
