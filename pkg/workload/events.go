package workload

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"
)

// Node is a machine of the Failure Trace Archive.
type Node struct {
	Name   string
	Spells []Spell // in their order; seconds since 1970
	Until  float64 // when watching it ended
}

// Durations are the lengths of its spells up, or down, in seconds. The first and the last
// spell count like the others, though watching may have cut them off.
func (n Node) Durations(up bool) []float64 {
	var lengths []float64
	for _, s := range n.Spells {
		if s.Up == up {
			lengths = append(lengths, s.To-s.From)
		}
	}
	return lengths
}

// Columns of a line of the archive's event_trace, which are separated by tabs.
const (
	eventColumns = 9
	columnID     = 2
	columnNode   = 4
	columnType   = 5
	columnStart  = 6
	columnStop   = 7
	eventUp      = "1"

	eventHead = "event_id\tcomponent_id\tnode_id\tplatform_id\tnode_name\tevent_type\t" +
		"event_start_time\tevent_stop_time\tevent_end_reason"
)

// errEvents refuses a line that is no event.
var errEvents = errors.New("not an event_trace of the Failure Trace Archive")

// nodeKey tells nodes apart: in the archive there are different ones of the same name.
type nodeKey struct{ name, id string }

func compareKeys(a, b nodeKey) int {
	return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.id, b.id))
}

// ReadEvents reads an event_trace: the nodes in the order of their names, and of their
// numbers where several have the same name. Spells of a kind that touch or overlap are one,
// and one of no length is none. A line may be overwritten as soon as the next one is asked
// for. The first wrong line ends it, with its number.
func ReadEvents(lines iter.Seq[[]byte]) ([]Node, error) {
	nodes := make(map[nodeKey]*Node)
	number := 0
	for line := range lines {
		number++
		line = bytes.TrimRight(line, "\r")
		if len(line) == 0 || bytes.HasPrefix(line, []byte("#")) ||
			bytes.HasPrefix(line, []byte("event_id")) {
			continue
		}
		key, spell, err := parseEvent(line)
		if err != nil {
			return nil, &lineError{number, err}
		}
		node := nodes[key]
		if node == nil {
			node = &Node{Name: key.name, Until: spell.To}
			nodes[key] = node
		}
		node.Until = max(node.Until, spell.To)
		if spell.From < spell.To {
			node.Spells = append(node.Spells, spell)
		}
	}
	sorted := make([]Node, 0, len(nodes))
	for _, key := range slices.SortedFunc(maps.Keys(nodes), compareKeys) {
		node := *nodes[key]
		node.Spells = joined(node.Spells)
		sorted = append(sorted, node)
	}
	return sorted, nil
}

func parseEvent(line []byte) (key nodeKey, s Spell, err error) {
	columns := bytes.Split(line, []byte("\t"))
	if len(columns) != eventColumns {
		return key, s, fmt.Errorf("%w: want %d columns separated by tabs, have %d",
			errEvents, eventColumns, len(columns))
	}
	from, errFrom := strconv.ParseFloat(string(columns[columnStart]), 64)
	to, errTo := strconv.ParseFloat(string(columns[columnStop]), 64)
	if wrong := errors.Join(errFrom, errTo); wrong != nil {
		return key, s, fmt.Errorf("%w: columns %d and %d are seconds: %w",
			errEvents, columnStart+1, columnStop+1, wrong)
	}
	if !(to >= from) || math.IsInf(to-from, 0) {
		return key, s, fmt.Errorf("%w: an event from %v to %v", errEvents, from, to)
	}
	key = nodeKey{name: string(columns[columnNode]), id: string(columns[columnID])}
	return key, Spell{From: from, To: to, Up: string(columns[columnType]) == eventUp}, nil
}

// joined sorts the spells and makes one of those of a kind that touch or overlap.
func joined(spells []Spell) []Spell {
	byStart := func(a, b Spell) int { return cmp.Compare(a.From, b.From) }
	slices.SortStableFunc(spells, byStart)
	var all []Spell
	for _, up := range []bool{true, false} {
		first := len(all)
		for _, s := range spells {
			switch {
			case s.Up != up:
			case len(all) > first && s.From <= all[len(all)-1].To:
				all[len(all)-1].To = max(all[len(all)-1].To, s.To)
			default:
				all = append(all, s)
			}
		}
	}
	slices.SortStableFunc(all, byStart)
	return all
}

// Reasons with which events end: the archive's own for the end of an outage, and one of a
// failure of which nothing is known.
const (
	endOfOutage  = 8000
	endOfWorking = 0
)

// EventLines returns the lines of an event_trace with the nodes' spells, without their ends,
// to the millisecond. A line is overwritten when the next one is asked for.
func EventLines(nodes iter.Seq[Node]) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		line := []byte(eventHead)
		if !yield(line) {
			return
		}
		event, number := 0, 0
		for node := range nodes {
			for _, s := range node.Spells {
				line = s.appendTo(line[:0], event, number, node.Name)
				if !yield(line) {
					return
				}
				event++
			}
			number++
		}
	}
}

func (s Spell) appendTo(line []byte, event, node int, name string) []byte {
	kind, reason := 0, endOfOutage
	if s.Up {
		kind, reason = 1, endOfWorking
	}
	return fmt.Appendf(line, "%d\t0\t%d\t0\t%s\t%d\t%s\t%s\t%d",
		event, node, name, kind, instant(s.From), instant(s.To), reason)
}

// instant writes seconds with at most three decimals.
func instant(seconds float64) string {
	return strconv.FormatFloat(math.Round(seconds*1000)/1000, 'f', -1, 64)
}
