package agent

import (
	"maps"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/standby"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// Entries and tables can be many MiB, more than the queue to a site takes, and leases of tasks that
// run there go through the same queue. So they wait here, in their order, and are put into it part
// by part as the site takes them; heartbeats, votes and answers, which are short, overtake them.

// How bulk messages to members wait.
const (
	sendAhead = 256 << 10            // bytes that may wait in the queue to a site before a part
	sendAgain = 5 * time.Millisecond // until that is looked at again
	// A site may take nothing for so long before what waits for its member is dropped; raft
	// sends it again when it answers.
	takesNothing = 10 * time.Second
)

// sendKey is the timer of what waits to be sent, among those of the machine.
func sendKey() step.TimerKey { return step.TimerKey{Name: "group send"} }

// outgoing are the bulk messages that wait for a member.
type outgoing struct {
	waiting []bulk
	took    time.Time // when its site last took a part
}

// bulk is a long message, from the part on that is next.
type bulk struct {
	number uint64
	data   []byte
	parts  int
	part   int
}

// sendMember sends a message to another member, in parts if it is long.
func (g *group) sendMember(e standby.Send) {
	site := g.siteOf(e.To)
	if site == "" {
		g.step(standby.Unreachable{Member: e.To})
		return
	}
	g.parcels.sent++
	l := bulk{number: g.parcels.sent, data: e.Data}
	l.parts = (len(e.Data) + protocol.GroupPartBytes - 1) / protocol.GroupPartBytes
	if !e.Bulk {
		for l.part < l.parts && g.sendPart(site, e.To, &l) {
		}
		return
	}
	out := g.parcels.out[e.To]
	if out == nil {
		out = &outgoing{took: g.clock.now()}
		if g.parcels.out == nil {
			g.parcels.out = map[standby.MemberID]*outgoing{}
		}
		g.parcels.out[e.To] = out
	}
	out.waiting = append(out.waiting, l)
	g.sendWaiting(e.To)
}

// sendPart sends the next part of a message, and reports whether that was possible.
func (g *group) sendPart(site grid.SiteID, to standby.MemberID, l *bulk) bool {
	from := l.part * protocol.GroupPartBytes
	err := g.a.sendPlain(site, protocol.Group{
		Owner: g.owner, From: uint64(g.id), To: uint64(to), Message: l.number,
		Part: uint32(l.part), Parts: uint32(l.parts),
		Data: l.data[from:min(from+protocol.GroupPartBytes, len(l.data))],
	})
	if err != nil {
		g.unreachable(to)
		return false
	}
	l.part++
	return true
}

// unreachable drops what waits for a member.
func (g *group) unreachable(id standby.MemberID) {
	delete(g.parcels.out, id)
	g.step(standby.Unreachable{Member: id})
}

// sendWaiting sends what waits for a member, as far as its site takes it, and reports whether it
// took any.
func (g *group) sendWaiting(id standby.MemberID) (took bool) {
	site, out, now := g.siteOf(id), g.parcels.out[id], g.clock.now()
	for len(out.waiting) > 0 {
		if g.a.mesh.Waiting(site) > sendAhead {
			if now.Sub(out.took) > takesNothing {
				g.unreachable(id)
				return false
			}
			g.setTimer(sendKey(), now.Add(sendAgain))
			g.dropped[sendKey()] = struct{}{}
			return took
		}
		first := &out.waiting[0]
		if !g.sendPart(site, id, first) {
			return false
		}
		out.took, took = now, true
		if first.part == first.parts {
			out.waiting = out.waiting[1:]
		}
	}
	delete(g.parcels.out, id)
	return took
}

// sendOn sends to all members what waits for them.
func (g *group) sendOn() {
	for _, id := range slices.Sorted(maps.Keys(g.parcels.out)) {
		if g.parcels.out[id] != nil && g.sendWaiting(id) {
			g.step(standby.Delivering{Member: id})
		}
	}
}

// dropFor drops what waits for members at a site that is gone.
func (g *group) dropFor(site grid.SiteID) {
	for _, id := range slices.Sorted(maps.Keys(g.parcels.out)) {
		if g.siteOf(id) == site {
			g.unreachable(id)
		}
	}
}
