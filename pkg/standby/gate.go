package standby

import (
	"encoding/binary"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// gate holds back what the machine wants done until it may be done.
//
// Rule 2: an effect leaves when the facts of its Step, and of all Steps before, are committed.
//
// Rule 6, called R: an answer to a site leaves only when, besides, a majority has confirmed
// after the Step that this machine's term is still theirs. Why that is enough: the site asked
// at s, and counts its lease from there. At some later moment p a voter of every later leader
// was in this term still. So the successor boots after s, and presumes every lease as granted
// at its boot: until boot + lease + margin, which is after s + lease. No clock of this machine
// is in it.
//
// An entry that is proposed after the Step and committed confirms as well: then a majority has
// taken it in this term.
//
// Announcements go ahead of the facts of their own Step, and of nothing else: they only ask. If
// the facts are lost with the lead, nobody awards what was offered, and as a job's name depends
// on the term no other job ever has it (ADR 0075). So sites make their offers while the group
// agrees that there is a job.
type gate struct {
	queue []held
	open  []step.Fact // of the next entry
	size  int         // of open, in bytes

	proposed  uint64         // entries of this machine so far
	committed uint64         // of these
	bytes     map[uint64]int // of the entries under way, by their numbers

	asked     uint64 // questions so far; at most one is under way
	confirmed uint64 // of these
}

// held has the effects of one Step.
type held struct {
	effects  []step.Effect
	entry    uint64 // leaves when the entry of this number is committed
	question uint64 // and this question is confirmed; 0: none needed
	instead  uint64 // or, in the place of the question, this entry is committed
}

// onStepped takes what a machine wants. Effects leave in the order in which they came.
func (g *Group) onStepped(in Stepped) {
	if in.Term == 0 || in.Term != g.lead.acting {
		return // the machine was thrown away
	}
	facts, now, later := part(in.Effects, g.gate.isEmpty())
	if len(facts) > 0 {
		g.gate.open = append(g.gate.open, facts...)
		g.gate.size += sizeOf(facts)
		g.stir()
	}
	if len(now) > 0 {
		g.emit(Release{Term: in.Term, Effects: now})
	}
	if len(later) > 0 {
		g.gate.queue = append(g.gate.queue, g.gate.hold(later))
	}
	g.propose()
	g.ask()
	g.release()
}

// isEmpty reports whether nothing waits.
func (q *gate) isEmpty() bool {
	return len(q.queue) == 0 && len(q.open) == 0 && q.proposed == q.committed
}

// part divides what a Step wants: facts, what is done now, and what waits for its time. With ahead
// announcements do not wait, unless they would overtake what another site, or another machine of
// this one, is told.
func part(effects []step.Effect, ahead bool) (facts []step.Fact, now, later []step.Effect) {
	for _, e := range effects {
		switch e := e.(type) {
		case step.Persist:
			facts = append(facts, e.Fact)
			continue
		case step.SetTimer, step.StopTimer: // they matter to the machine alone
			now = append(now, e)
			continue
		case step.Report, step.Reply, step.Hold: // an announcement may overtake them
		default:
			if ahead = ahead && onlyAsks(e); ahead {
				now = append(now, e)
				continue
			}
		}
		later = append(later, e)
	}
	return facts, now, later
}

// onlyAsks reports whether an effect asks sites for offers.
func onlyAsks(e step.Effect) bool {
	var message protocol.Message
	switch e := e.(type) {
	case step.Send:
		message = e.Message
	case step.Broadcast:
		message = e.Message
	}
	switch message.(type) {
	case protocol.Announce, protocol.Reannounce:
		return true
	}
	return false
}

// hold says what effects wait for.
func (q *gate) hold(effects []step.Effect) held {
	h := held{effects: effects, entry: q.proposed}
	if len(q.open) > 0 {
		h.entry++ // it is proposed after the Step, so it confirms as well
		return h
	}
	if hasAnswer(effects) {
		h.question, h.instead = q.asked+1, q.proposed+1
	}
	return h
}

// hasAnswer reports whether an effect tells a site what it may do or forget. Awards, clears and
// cancels do not: their worst is an attempt without a lease, or one that asks again.
func hasAnswer(effects []step.Effect) bool {
	for _, e := range effects {
		if send, is := e.(step.Send); is {
			switch send.Message.(type) {
			case protocol.Lease, protocol.Fence, protocol.ExitAck:
				return true
			}
		}
	}
	return false
}

// propose puts the open facts into the log, unless an entry is under way: then Steps share the
// next one. An error counts as a lost lead: the machine believes what the log will never have.
func (g *Group) propose() {
	q := &g.gate
	if len(q.open) == 0 || q.proposed > q.committed && q.size < g.cfg.BatchBytes {
		return
	}
	b := batch{term: g.lead.acting, number: q.proposed + 1, facts: q.open}
	if err := g.node.Propose(b.encode()); err != nil {
		g.stepDown("an entry was refused: " + err.Error())
		return
	}
	if q.bytes == nil {
		q.bytes = map[uint64]int{}
	}
	q.proposed++
	q.bytes[q.proposed] = q.size
	q.open, q.size = nil, 0
	g.watch()
}

// onCommitted notes which entries of the machine are committed.
func (g *Group) onCommitted(applied []*pb.Entry) {
	for _, e := range applied {
		isOwn := g.lead.acting != 0 && e.GetTerm() == g.lead.acting
		if !isOwn || e.GetType() != pb.EntryNormal || len(e.GetData()) == 0 {
			continue
		}
		b, _, err := decodeHead(e.GetData())
		if err != nil || b.term != g.lead.acting {
			continue // only with a safeguard off
		}
		delete(g.gate.bytes, b.number)
		g.gate.committed = b.number
	}
	g.propose()
}

// ask puts one question to the majority on behalf of all that wait for one.
func (g *Group) ask() {
	q := &g.gate
	if g.lead.acting == 0 || q.asked > q.confirmed {
		return
	}
	for _, h := range q.queue {
		if h.question > q.asked && !q.passes(h, g.cfg.off) {
			q.asked++
			g.node.ReadIndex(questionOf(g.lead.acting, q.asked))
			return
		}
	}
}

// questionOf names a question. Raft may answer one of an earlier term in a later one.
func questionOf(term, number uint64) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, term), number)
}

// onConfirmed notes the answer to a question.
func (g *Group) onConfirmed(question []byte) {
	const length = 16
	if len(question) != length {
		return
	}
	term, number := binary.BigEndian.Uint64(question[:8]), binary.BigEndian.Uint64(question[8:])
	if g.lead.acting == 0 || term != g.lead.acting || number > g.gate.asked {
		return
	}
	g.gate.confirmed = max(g.gate.confirmed, number)
}

// passes reports whether effects may leave.
func (q *gate) passes(h held, off safeguards) bool {
	committed := q.committed >= h.entry || off.commit
	confirmed := h.question <= q.confirmed || q.committed >= h.instead || off.confirm
	return committed && confirmed
}

// release lets go what need not wait any longer, in order, and asks for the rest.
func (g *Group) release() {
	q := &g.gate
	var free []step.Effect
	for len(q.queue) > 0 && q.passes(q.queue[0], g.cfg.off) {
		free = append(free, q.queue[0].effects...)
		q.queue[0] = held{}
		q.queue = q.queue[1:]
	}
	if len(free) > 0 {
		g.emit(Release{Term: g.lead.acting, Effects: free})
	}
	g.ask()
}
