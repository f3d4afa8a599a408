package workload

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

const event = "0\t0\t1\t3\tNODE\tUP\tFROM\tTO\t1\n"

func eventLine(node, up, from, to string) string {
	return strings.NewReplacer("NODE", node, "UP", up, "FROM", from, "TO", to).Replace(event)
}

// Spells of a kind that touch or overlap are one, in any order; ones of no length are none,
// but show how long a node was watched.
func TestReadEvents(t *testing.T) {
	text := "# a comment\n\nevent_id\tand so on\n" +
		eventLine("b", "1", "50", "90.5") +
		eventLine("a", "1", "200", "300") +
		eventLine("a", "0", "300", "400") +
		eventLine("a", "1", "100", "200") +
		eventLine("a", "1", "120", "130") +
		eventLine("a", "1", "400", "500") +
		eventLine("b", "1", "95", "95") +
		strings.Replace(eventLine("a", "1", "700", "800"), "\t1\t3\t", "\t0\t3\t", 1) +
		eventLine("c", "7", "1", "3") +
		eventLine("c", "0", "2", "4") +
		strings.TrimSuffix(eventLine("a", "0", "20", "100"), "\n") + "\r\n"
	nodes, err := ReadEvents(lines(text))
	if err != nil {
		t.Fatal(err)
	}
	want := []Node{
		{Name: "a", Until: 800, Spells: []Spell{{700, 800, true}}}, // another node of that name
		{Name: "a", Until: 500, Spells: []Spell{
			{20, 100, false}, {100, 300, true}, {300, 400, false}, {400, 500, true},
		}},
		{Name: "b", Until: 95, Spells: []Spell{{50, 90.5, true}}},
		{Name: "c", Until: 4, Spells: []Spell{{1, 4, false}}},
	}
	if diff := cmp.Diff(want, nodes); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
	if up := nodes[1].Durations(true); !slices.Equal(up, []float64{200, 100}) {
		t.Errorf("times up %v", up)
	}
	if down := nodes[1].Durations(false); !slices.Equal(down, []float64{80, 100}) {
		t.Errorf("times down %v", down)
	}
}

func TestReadEventsRefuses(t *testing.T) {
	good := eventLine("a", "1", "1", "2")
	for text, want := range map[string]string{
		"x\n": "line 1: not an event_trace of the Failure Trace Archive: " +
			"want 9 columns separated by tabs, have 1",
		"#\n" + strings.Replace(good, "\t1\n", "\t1\t2\n", 1): "line 2: ",
		good + eventLine("a", "1", "x", "2"):                  "columns 7 and 8 are seconds: strconv.",
		good + eventLine("a", "1", "1", "y"):                  "line 2: ",
		eventLine("a", "1", "2", "1"):                         "an event from 2 to 1",
		eventLine("a", "1", "NaN", "1"):                       "an event from NaN to 1",
		eventLine("a", "1", "1", "Inf"):                       "an event from 1 to +Inf",
	} {
		nodes, err := ReadEvents(lines(text))
		var line *lineError
		if nodes != nil || !errors.Is(err, errEvents) || !errors.As(err, &line) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: error = %v, want %q", text, err, want)
		}
	}
	if nodes, err := ReadEvents(lines("")); err != nil || len(nodes) != 0 {
		t.Errorf("of nothing: %v, %v", nodes, err)
	}
}

func eventText(nodes []Node) string {
	var text strings.Builder
	for line := range EventLines(slices.Values(nodes)) {
		text.Write(line)
		text.WriteByte('\n')
	}
	return text.String()
}

func TestEventsAreWritten(t *testing.T) {
	nodes := []Node{
		{Name: "a", Spells: []Spell{{0, 1.5, true}, {1.5, 2.0006, false}}},
		{Name: "b"},
		{Name: "c", Spells: []Spell{{1735516800.1234, 1735516801, true}}},
	}
	want := "event_id\tcomponent_id\tnode_id\tplatform_id\tnode_name\tevent_type\t" +
		"event_start_time\tevent_stop_time\tevent_end_reason\n" +
		"0\t0\t0\t0\ta\t1\t0\t1.5\t0\n1\t0\t0\t0\ta\t0\t1.5\t2.001\t8000\n" +
		"2\t0\t2\t0\tc\t1\t1735516800.123\t1735516801\t0\n"
	if diff := cmp.Diff(want, eventText(nodes)); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	for stop := 1; stop <= 4; stop++ {
		n := 0
		for range EventLines(slices.Values(nodes)) {
			if n++; n == stop {
				break
			}
		}
		if n != stop {
			t.Errorf("stopped after %d lines, want %d", n, stop)
		}
	}
}

// Events that are written are read again, to the millisecond.
func TestEventsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var nodes []Node
		for i := range rapid.IntRange(0, 4).Draw(t, "nodes") {
			node := Node{Name: string(rune('a' + i))}
			at, up := rapid.IntRange(0, 1e12).Draw(t, "from"), rapid.Bool().Draw(t, "up")
			for range rapid.IntRange(1, 5).Draw(t, "spells") {
				length := rapid.IntRange(1, 1e9).Draw(t, "ms")
				node.Until = float64(at+length) / 1000
				node.Spells = append(node.Spells, Spell{float64(at) / 1000, node.Until, up})
				at, up = at+length, !up
			}
			nodes = append(nodes, node)
		}
		got, err := ReadEvents(lines(eventText(nodes)))
		if diff := cmp.Diff(nodes, got, cmpopts.EquateEmpty()); err != nil || diff != "" {
			t.Fatalf("%v, read back (-want +got):\n%s", err, diff)
		}
	})
}

// FuzzReadEvents: whatever the bytes, nodes have spells in order that do not overlap their
// kind, or there is an error that names a line.
func FuzzReadEvents(f *testing.F) {
	f.Add(eventLine("a", "1", "1", "2") + eventLine("a", "0", "2", "5e3"))
	f.Add("event_id\n#\n" + eventLine("", "1", "-1e308", "1e308"))
	f.Fuzz(func(t *testing.T, text string) {
		nodes, err := ReadEvents(lines(text))
		var line *lineError
		if err != nil && (!errors.As(err, &line) || line.Line < 1 ||
			line.Line > strings.Count(text, "\n")+1) {
			t.Fatalf("error %v names no line", err)
		}
		for _, node := range nodes {
			last := map[bool]float64{true: math.Inf(-1), false: math.Inf(-1)}
			for i, s := range node.Spells {
				if !(s.From < s.To) || s.From <= last[s.Up] || s.To > node.Until ||
					i > 0 && s.From < node.Spells[i-1].From {
					t.Fatalf("node %+v", node)
				}
				last[s.Up] = s.To
			}
		}
	})
}
