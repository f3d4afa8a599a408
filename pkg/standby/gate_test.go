package standby

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// Rule 6: only what tells a site that it may run, stop or forget is an answer.
func TestWhatIsAnAnswer(t *testing.T) {
	for _, c := range []struct {
		message protocol.Message
		want    bool
	}{
		{protocol.Lease{}, true},
		{protocol.Fence{}, true},
		{protocol.ExitAck{}, true},
		{protocol.Award{}, false},
		{protocol.Clear{}, false},
		{protocol.Cancel{}, false},
		{protocol.Announce{}, false},
	} {
		got := hasAnswer([]step.Effect{report("a"), step.Send{Message: c.message}})
		if got != c.want {
			t.Errorf("%T: %t, want %t", c.message, got, c.want)
		}
	}
}

// Rules 2 and 6 in small: what the gate asks for, against the rules as they are written.
func TestTheGateAsksForWhatTheRulesSay(t *testing.T) {
	lease := step.Send{Message: protocol.Lease{}}
	for _, c := range []struct {
		name string
		gate gate
		step []step.Effect
		want held
	}{
		{"nothing before", gate{}, []step.Effect{report("")}, held{}},
		{
			"an entry under way",
			gate{proposed: 3, committed: 2},
			[]step.Effect{report("")},
			held{entry: 3},
		},
		{
			"own facts",
			gate{proposed: 3, open: make([]step.Fact, 1)},
			[]step.Effect{lease},
			held{entry: 4},
		},
		{
			"an answer",
			gate{proposed: 3, committed: 3, asked: 5, confirmed: 5},
			[]step.Effect{lease},
			held{entry: 3, question: 6, instead: 4},
		},
		{
			"an answer, a question under way",
			gate{proposed: 3, committed: 3, asked: 5, confirmed: 4},
			[]step.Effect{lease},
			held{entry: 3, question: 6, instead: 4},
		},
	} {
		c.want.effects = c.step
		if diff := cmp.Diff(c.want, c.gate.hold(c.step), cmp.AllowUnexported(held{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// Rule 6: a question that was asked before the answer's Step, or in another term, does not
// confirm it.
func TestOnlyALaterQuestionConfirms(t *testing.T) {
	s := newSolo(t)
	s.gate = gate{asked: 5, confirmed: 4, queue: []held{{question: 6, instead: 1}}}
	for _, question := range [][]byte{
		questionOf(2, 5), questionOf(1, 6), questionOf(3, 6), questionOf(2, 7), nil,
		make([]byte, 3),
	} {
		s.onConfirmed(question)
		if s.gate.passes(s.gate.queue[0], safeguards{}) {
			t.Errorf("%x confirms", question)
		}
	}
	s.gate.asked = 6
	s.onConfirmed(questionOf(2, 6))
	if !s.gate.passes(s.gate.queue[0], safeguards{}) {
		t.Error("the question that was asked after the Step does not confirm")
	}
}

// ADR 0075: sites may make offers for a job that the group does not know yet. What only asks
// overtakes the facts of its own Step, and neither what other Steps want nor what others are told.
func TestAnnouncementsGoAhead(t *testing.T) {
	first := step.Send{To: "a", Message: protocol.Announce{Job: "a"}}
	second := step.Broadcast{Message: protocol.Reannounce{Job: "b"}}
	for _, c := range []struct {
		name       string
		now, later []step.Effect
	}{
		{
			"a new job",
			[]step.Effect{first, second},
			[]step.Effect{step.Reply{Job: "a"}, report("a")},
		},
		{"its data", []step.Effect{first}, []step.Effect{step.Hold{Job: "a"}}},
		{"a clear before it", nil, []step.Effect{
			step.Send{To: "a", Message: protocol.Clear{Job: "a"}}, first,
		}},
		{"a border that is to know", nil, []step.Effect{step.TellBorder{}, first}},
		{"no announcement", nil, []step.Effect{
			step.Send{To: "a", Message: protocol.Award{}},
			step.Broadcast{Message: protocol.Clear{}},
		}},
	} {
		s := newSolo(t)
		s.stuck, s.seen = true, nil
		wanted := append([]step.Effect{fact("a")}, append(c.later, c.now...)...)
		again := append([]step.Effect{fact("b")}, c.now...)
		s.give(Stepped{Term: s.Acting(), Effects: wanted})
		s.give(Stepped{Term: s.Acting(), Effects: again})
		if diff := cmp.Diff(c.now, s.left()); diff != "" {
			t.Errorf("%s, before the disk has the facts (-want +got):\n%s", c.name, diff)
		}
		for range 2 {
			s.give(Saved{Number: s.saves})
		}
		all := slices.Concat(c.now, c.later, c.now)
		if diff := cmp.Diff(all, s.left()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// left lists all that was let go.
func (s *solo) left() (effects []step.Effect) {
	for _, e := range s.seen {
		if r, is := e.(Release); is {
			effects = append(effects, r.Effects...)
		}
	}
	return effects
}

// The facts of a Step may be more than those that wait. The machine keeps the lead: what raft
// counts as not committed is not what is held back here.
func TestALargeStepDoesNotCostTheLead(t *testing.T) {
	s := newSolo(t)
	term := s.Acting()
	s.stuck = true
	for _, mib := range []int{1, 5, 12, 25} {
		s.give(Stepped{Term: term, Effects: []step.Effect{step.Persist{
			Fact: step.NewFact("x/1", "row", strings.Repeat("x", mib<<20)),
		}}})
	}
	s.stuck = false
	s.give(Saved{Number: s.saves})
	if s.Acting() != term {
		t.Errorf("it acts in term %d, before in %d", s.Acting(), term)
	}
	if got := len(s.Row("x/1", "row")); got < 25<<20 {
		t.Errorf("the row has %d bytes", got)
	}
}
