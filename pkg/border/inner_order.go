package border

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// guest is an order of a neighbour. It is a fact from the start.
type guest struct {
	name    string // see guestName
	domain  grid.SiteID
	attempt grid.AttemptID // of the domain that ordered it
	passage protocol.Passage
	spec    grid.Spec
	here    bool // all that it needs is at the neighbour's gateway
	staged  bool // ... and at this one
	command uint64
	job     grid.JobID // as which job it runs here; empty: it does not yet
	known   bool       // the broker has spoken of it in this run
	asks    asks
	until   time.Time // the end of its lease
	long    time.Duration
	heard   time.Time
	news    step.OrderNews // the last
	ending
	pause time.Duration
}

// guestName names an order: the attempt, and the neighbour that it is of.
func guestName(domain grid.SiteID, id grid.AttemptID) string {
	return id.String() + " " + string(domain)
}

// onOrder takes an order of a neighbour, if the terms of the link allow it. The same again is no
// other one.
func (m *Machine) onOrder(domain grid.SiteID, msg protocol.BorderOrder) {
	name := guestName(domain, msg.Attempt)
	if m.cfg.NoRequestIDs {
		name += " " + strconv.FormatUint(m.number(), 10)
	}
	if g := m.guest(name); g != nil {
		m.orderedAgain(g, msg)
		return
	}
	why, never := m.admits(domain, msg.Passage, msg.Spec.Kind, msg.Spec.Need.MilliCPUs, name)
	switch {
	case why != grid.ReasonNone:
	case !staysOut(msg.Spec):
		why = grid.ReasonStays
	case m.isStrange(domain, msg.Attempt):
		why = grid.ReasonInvalid
	case len(m.guests) >= m.cfg.MaxOrders || len(m.commands) >= m.cfg.MaxOrders:
		why = grid.ReasonTooMany
	case m.isOvertaken(domain, msg.Attempt):
		why = grid.ReasonStale
	}
	if why != grid.ReasonNone {
		m.out.Report(step.LevelInfo, eventRefused, step.Report{
			Attempt: msg.Attempt, Site: domain, Reason: why,
		})
		m.sendBorder(domain, protocol.BorderDeclined{
			Attempts: []grid.AttemptID{msg.Attempt},
			Refusal:  grid.Refusal{Reason: why, Never: never},
		})
		return
	}
	m.evictBelow(domain, msg.Attempt, "a later attempt was ordered")
	g := &guest{
		name: name, domain: domain, attempt: msg.Attempt, passage: msg.Passage, spec: msg.Spec,
		here: msg.Here, heard: m.now, pause: m.cfg.Again,
	}
	m.guests.put(g)
	m.saveGuest(g)
	m.out.Report(step.LevelInfo, eventGuest, step.Report{Attempt: g.attempt, Site: domain})
	m.askFor([]*guest{g})
	m.renewSoon(m.near.links[domain])
	m.advance(g)
	m.rouseGuest(g, m.cfg.Forget)
}

// isOvertaken reports whether a later attempt of a task is here.
func (m *Machine) isOvertaken(domain grid.SiteID, id grid.AttemptID) bool {
	return len(m.guests.where(func(g *guest) bool {
		return g.domain == domain && g.attempt.Task == id.Task && g.attempt.Token > id.Token
	})) > 0
}

// orderedAgain takes an order that is here: its inputs may have come to the neighbour's gateway, or
// what was said of it was lost.
func (m *Machine) orderedAgain(g *guest, msg protocol.BorderOrder) {
	g.heard = m.now
	if msg.Here && !g.here {
		g.here = true
		m.saveGuest(g)
		m.advance(g)
	}
	if g.exit != nil {
		m.sendEnd(g)
		return
	}
	m.askFor([]*guest{g})
	if g.here {
		m.sendState(g)
	}
}

// advance does the next of what an order needs: its inputs, then a job.
func (m *Machine) advance(g *guest) {
	switch {
	case !g.here || g.exit != nil || g.job != "" || g.command != 0:
	case g.staged || g.spec.Module.CID == "" && len(g.spec.Inputs) == 0:
		g.staged = true
		m.submit(g)
	default:
		m.out.Emit(step.Stage{
			Attempt: g.attempt, Module: g.spec.Module, Inputs: g.spec.Inputs, From: g.domain,
		})
	}
}

// submit makes the order a job of this site's broker. Its key makes sure that it is one only.
func (m *Machine) submit(g *guest) {
	spec := g.spec
	spec.Name = m.nameFor(g.domain, spec.Name)
	spec.Priority = max(-1-m.rank(g.domain), -grid.MaxPriority)
	// When this gateway is lost, the neighbour places it again, and nobody here knows of it.
	spec.Unattended = grid.UnattendedStop
	g.command = m.number()
	m.commands[g.command] = g.name
	in := step.Submit{
		Command: g.command, NoWait: true, Ordered: m.ordered(g.domain, g.passage, g.name),
		Job: grid.Job{Spec: spec, Count: 1, TTL: m.cfg.TTL},
	}
	if !m.cfg.NoRequestIDs {
		sum := sha256.Sum256([]byte("border " + g.name))
		in.Key = hex.EncodeToString(sum[:])
	}
	m.out.Emit(step.Order{Command: g.command, Input: in})
}

// onReplied takes the broker's answer to an order. One that is not wanted any more is called off.
func (m *Machine) onReplied(in step.Replied) {
	name, known := m.commands[in.Command]
	delete(m.commands, in.Command)
	switch {
	case !known:
	case m.guest(name) != nil:
		m.submitted(m.guest(name), in)
	case m.probes[name] != nil:
		if in.Err != "" {
			p := m.probes[name]
			m.dropProbe(name)
			m.refuseQuery(p.domain, p.asked, p.seq, grid.Refusal{Reason: grid.ReasonTooMany})
		}
	case in.Job != "" && in.Err == "":
		m.callOff(in.Job)
	}
}

func (m *Machine) submitted(g *guest, in step.Replied) {
	g.command = 0
	if in.Err != "" {
		m.endGuest(g, grid.Exit{Cause: grid.CauseSandbox, Text: cut("its gateway says: " + in.Err)})
		return
	}
	g.job, g.known = in.Job, true
	m.foreign[g.job] = g.passage
	m.saveGuest(g)
	m.setCeiling(g)
}

// onNews follows a job that the broker runs for a neighbour, or a probe.
func (m *Machine) onNews(in step.OrderNews) {
	g, p := m.guest(in.Ref), m.probes[in.Ref]
	switch {
	case p != nil && in.Probed:
		if p.job == "" || p.job == in.Job {
			m.probed(in.Ref, in)
		}
	case p != nil:
		delete(m.foreign, p.job) // the neighbour has asked anew since
		p.job = in.Job
		m.foreign[in.Job] = p.passage
	case g != nil && g.exit == nil && !in.Probed:
		m.followed(g, in)
	case g == nil && !in.Probed && !in.Phase.Ended():
		m.disown(in.Job)
		m.callOff(in.Job) // it was called off while the broker did not know of it
	default:
	}
}

// followed passes on how an order goes.
func (m *Machine) followed(g *guest, in step.OrderNews) {
	before := g.news
	g.known, g.news = true, in
	if g.job == "" {
		g.job = in.Job
		m.foreign[g.job] = g.passage
		m.saveGuest(g)
		m.setCeiling(g)
	}
	if !in.Phase.Ended() {
		if in.Phase != before.Phase || in.Done != before.Done || in.Reason != before.Reason {
			m.sendState(g)
		}
		return
	}
	exit := grid.Exit{Cause: grid.CauseStopped, Text: "no site of that domain could take it"}
	if in.Exit != nil && in.Phase != grid.PhaseRefused {
		exit = *in.Exit
	}
	g.started = m.since(in.StartedAgo)
	g.ended = m.now.Add(-in.EndedAgo)
	m.endGuest(g, exit)
}

// endGuest keeps how an order ended until it is receipted.
func (m *Machine) endGuest(g *guest, exit grid.Exit) {
	if exit.Validate() != nil {
		exit = grid.Exit{Cause: grid.CauseSandbox, Text: "its end could not be told"}
	}
	g.exit = &exit
	m.forgetRefused()
	g.used = g.spec.Need.MilliCPUs * exit.Wall.Milliseconds() / 1000
	if g.ended.IsZero() {
		g.ended = m.now
	}
	g.heard, g.pause = m.now, m.cfg.Again
	m.saveGuest(g)
	m.out.Report(step.LevelInfo, eventGuestDone, step.Report{
		Attempt: g.attempt, Site: g.domain, Text: exit.Cause.String(),
	})
	m.sendEnd(g)
	m.rouseGuest(g, g.pause)
}

func (m *Machine) rouseGuest(g *guest, pause time.Duration) {
	m.out.SetTimer(timerGuest, g.name, m.now.Add(pause))
}

// wakeGuest repeats what an order waits for, and gives up what nobody speaks of any more.
func (m *Machine) wakeGuest(g *guest) {
	switch quiet := m.now.Sub(g.heard); {
	case quiet >= m.cfg.Forget:
		m.evict(g, "nothing was heard of it")
	case g.exit != nil:
		m.sendEnd(g)
		g.pause = min(2*g.pause, maxPause)
		m.rouseGuest(g, g.pause)
	case g.job != "" && !g.known && m.now.Sub(m.bootedAt) >= bootGrace:
		m.lose(g)
	case g.job != "" && !g.known:
		m.rouseGuest(g, bootGrace)
	default:
		m.rouseGuest(g, m.cfg.Forget-quiet)
	}
}

// bootGrace is the time, from its boot, in which the broker says which orders it has.
const bootGrace = time.Minute

// lose forgets an order of which the broker knows nothing. Nothing is said of it: it may still run
// until its lease there is over, and then it is over where it was ordered, too.
func (m *Machine) lose(g *guest) {
	m.out.Report(step.LevelWarn, eventLost, step.Report{Attempt: g.attempt, Site: g.domain})
	m.forgetGuest(g)
}

// onStaged takes it that what an order needs is here, or cannot be had; or the same of an errand.
func (m *Machine) onStaged(in step.Staged) {
	if e := m.errands.get(in.Attempt, ""); e != nil {
		if !e.here {
			m.stagedErrand(e, in)
		}
		return
	}
	for _, g := range m.guests.where(func(g *guest) bool {
		return g.attempt == in.Attempt && g.here && !g.staged && g.exit == nil
	}) {
		if in.Problem != "" {
			m.endGuest(g, grid.Exit{
				Cause: grid.CauseData,
				Text:  cut("its inputs did not cross the border: " + in.Problem),
			})
			continue
		}
		g.staged = true
		m.advance(g)
	}
}

// isStrange reports whether an attempt is here already, as another domain's or as this one's own.
func (m *Machine) isStrange(domain grid.SiteID, id grid.AttemptID) bool {
	return m.errands.get(id, "") != nil || len(m.guests.where(func(g *guest) bool {
		return g.attempt == id && g.domain != domain
	})) > 0
}
