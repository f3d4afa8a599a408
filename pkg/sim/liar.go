package sim

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// Lie is a way in which a site lies to others. What its own user wants of it is done honestly.
type Lie string

// The lies. All but the last offer distance 0 for whatever is announced, accept all awards,
// and ignore what they are told afterwards.
const (
	lieIdle   Lie = "idle"   // renews forever, and never says that it runs; to neighbours as well
	lieHold   Lie = "hold"   // renews forever, and says that it runs
	lieEmpty  Lie = "empty"  // says that all has ended well, and leaves no output
	lieForge  Lie = "forge"  // the same, and names outputs that nobody has
	lieSilent Lie = "silent" // hears all, answers nothing, and connects anew each second
)

// Err lets a site give wrong results from now on: of the tasks of others, that part, chosen by
// chance. It does everything else honestly. Sites with the same accomplice give the same wrong
// result; 0: it has none. A part of 0 ends it.
func (w *World) Err(id grid.SiteID, part float64, accomplice uint64) {
	w.hosts[id].errs, w.hosts[id].accomplice = part, accomplice
}

// outputOf is the result of a task at a host: the right one, unless the host errs.
func (h *host) outputOf(task grid.Task) grid.CID {
	of, w := task.Original(), h.world
	name := fmt.Sprintf("err/%s/%d/%s", of, h.accomplice, h.spec.ID)
	if h.accomplice > 0 {
		name = fmt.Sprintf("err/%s/%d", of, h.accomplice)
	}
	if h.errs == 0 || w.submitters[of.Job] == h.spec.ID ||
		step.NewRand(w.cfg.Seed, name, 0).Float64() >= h.errs {
		return outputCID(of)
	}
	if h.accomplice > 0 {
		return outputCID(of) + grid.CID(fmt.Sprintf("wrong%d", h.accomplice))
	}
	return outputCID(of) + grid.CID(fmt.Sprintf("wrongat%d", h.place))
}

// liar answers other submitters in the place of its host's site machine.
type liar struct {
	*host
	how     Lie
	offers  uint64
	renewal uint64
	held    map[grid.SiteID][]grid.AttemptID // by submitter; what it has once it keeps
	outputs map[grid.AttemptID][]grid.Produced
}

// lieEvery passes before a liar again renews what it holds, or connects anew.
const lieEvery = time.Second

// Lie lets a site lie from now on. What it was given before goes on.
func (w *World) Lie(id grid.SiteID, how Lie) {
	h := w.hosts[id]
	h.liar = &liar{
		host: h, how: how, held: make(map[grid.SiteID][]grid.AttemptID),
		outputs: make(map[grid.AttemptID][]grid.Produced),
	}
	h.silent = how == lieSilent
	h.liar.goOn()
	if how == lieIdle && h.border != nil {
		h.defraud()
	}
}

// Repent ends that: the site forgets what it has accepted meanwhile.
func (w *World) Repent(id grid.SiteID) {
	h := w.hosts[id]
	h.liar, h.fraud, h.silent = nil, nil, false
}

// goOn does each second what a liar does without being asked.
func (l *liar) goOn() {
	h := l.host
	h.world.schedule(lieEvery, func() {
		if h.liar != l {
			return
		}
		l.goOn()
		switch {
		case !h.up:
		case l.how == lieSilent:
			l.reconnect()
		case l.how == lieIdle || l.how == lieHold:
			for _, to := range slices.Sorted(maps.Keys(l.held)) {
				l.renew(to)
			}
		}
	})
}

// reconnect lets all others see that the site goes and comes again.
func (l *liar) reconnect() {
	for _, other := range l.world.all() {
		if other != l.host && other.group == l.group {
			l.world.part(other, l.host, false)
		}
	}
	l.world.meet(l.host)
}

// hears takes a message of another site, and reports whether that is the end of it.
func (l *liar) hears(from grid.SiteID, msg protocol.Message) bool {
	if from == l.spec.ID || roleFor(msg) == roleBroker || l.how == lieSilent || l.isOld(from, msg) {
		return false
	}
	switch msg := msg.(type) {
	case protocol.Announce:
		l.offer(from, msg.Job, msg.Seq, false)
	case protocol.Reannounce:
		l.offer(from, msg.Job, msg.Seq, false)
	case protocol.HoldOffer:
		l.offer(from, msg.Job, msg.Seq, true)
	case protocol.Award:
		l.accept(from, msg)
	case protocol.Lease:
		l.use(from, msg)
	}
	return true
}

// isOld reports whether a message is about attempts from before the lies: they go on honestly.
// Nobody could keep another one apart from an attempt whose own site says that it has ended.
func (l *liar) isOld(from grid.SiteID, msg protocol.Message) bool {
	var ids []grid.AttemptID
	switch msg := msg.(type) {
	case protocol.Lease:
		ids = msg.Attempts
	case protocol.ExitAck:
		ids = msg.Attempts
	}
	return slices.ContainsFunc(ids, func(id grid.AttemptID) bool {
		return !slices.Contains(l.held[from], id)
	})
}

// offer bids 0.
func (l *liar) offer(to grid.SiteID, job grid.JobID, seq uint32, firm bool) {
	l.offers++
	l.send(to, protocol.Bid{Job: job, Seq: seq, Offer: grid.Offer{
		ID: l.offers, Firm: firm, Validity: time.Hour, TasksNow: grid.MaxTasks, CoreMFLOPS: 1e6,
		LatestStart: time.Hour,
	}})
}

// accept takes all that it is awarded.
func (l *liar) accept(from grid.SiteID, msg protocol.Award) {
	var ids []grid.AttemptID
	for _, t := range msg.Tasks {
		id := grid.AttemptID{Task: grid.TaskID{Job: msg.Job, Index: t.Index}, Token: t.Token}
		ids = append(ids, id)
		if l.how != lieForge {
			continue
		}
		for _, out := range msg.Spec.Expand(msg.Job, t.Index, t.Item).Outputs {
			forged := grid.Produced{Path: out.Path, CID: "bforged", Bytes: 1}
			l.outputs[id] = append(l.outputs[id], forged)
		}
	}
	l.held[from] = append(l.held[from], ids...)
	slices.SortFunc(l.held[from], grid.AttemptID.Compare)
	l.renewal++
	l.send(from, protocol.Accepted{Attempts: ids, Renewal: l.renewal})
	if msg.AskFirst {
		l.renewal++
		l.send(from, protocol.MayStart{Attempts: ids, Renewal: l.renewal})
	}
}

// use says what became of attempts that have a lease now.
func (l *liar) use(from grid.SiteID, msg protocol.Lease) {
	for _, id := range msg.Attempts {
		switch l.how {
		case lieHold:
			l.send(from, protocol.Progress{Attempt: id, Phase: grid.PhaseRunning})
		case lieEmpty, lieForge:
			l.send(from, protocol.Exited{Attempt: id, Exit: grid.Exit{
				Cause: grid.CauseExited, Outputs: l.outputs[id],
			}})
		case lieIdle, lieSilent: // nothing is said
		}
	}
}

// renew asks for leases of all that it has ever accepted, and says that it has had them.
func (l *liar) renew(to grid.SiteID) {
	const most = 256 // in one message
	for ids := range slices.Chunk(l.held[to], most) {
		l.renewal++
		left := slices.Repeat([]time.Duration{lieEvery}, len(ids))
		l.send(to, protocol.Renew{Renewal: l.renewal, Attempts: ids, Left: left})
	}
}
