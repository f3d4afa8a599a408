package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/crypt"
	"github.com/mrsmesh/mrsmesh/internal/data"
	"github.com/mrsmesh/mrsmesh/internal/p2p"
	"github.com/mrsmesh/mrsmesh/internal/store"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// The names of the machines in the store.
const (
	siteName   = "site"
	brokerName = "broker"
)

// join opens the network and the data that is exchanged over it.
func (a *Agent) join() error {
	config := a.cfg.P2P
	if config.Now == nil {
		config.Now = a.clock.real
	}
	config.Incarnation, config.Nonce = a.store.Incarnation(), a.store.Nonce()
	config.Line = a.store.Line()
	config.Capability = a.host.ceilings
	config.Name, config.Members, config.Links = a.cfg.Name, a.members, a.links
	handlers := p2p.Handlers{
		OnMessage: a.heard,
		OnPeerSeen: func(id grid.SiteID, f p2p.Facts) {
			seen := step.PeerSeen{
				Site: id, Name: f.Name, Capability: f.Capability, Skew: f.Skew, RoundTrip: f.RoundTrip,
				Line: f.Run.Line, Owner: f.Owner,
			}
			a.tellBoth(seen)
			a.tellGroups(seen)
			if !a.awake() {
				return
			}
			a.border.meet(id)
			a.deputies.forget(id)
			if l := a.data.Link(id); l != (data.Link{}) { // from before, or while it was away
				a.linkMeasured(id, l)
			}
		},
		OnPeerGone: func(id grid.SiteID, refusing bool) {
			gone := step.PeerGone{Site: id, Refusing: refusing}
			a.tellBoth(gone)
			a.tellGroups(gone)
			a.neighbours.lost(a, id)
		},
		OnAttemptsDied: func(id grid.SiteID, attempts []grid.AttemptID) {
			if a.awake() {
				a.tellBrokers(step.AttemptsDied{Site: id, Attempts: attempts})
			}
		},
		OnNewerRun: a.giveWay,
		OnMembers:  a.tellBans,
	}
	a.hearBorder(&handlers)
	var err error
	if a.mesh, err = p2p.New(a.ctx, config, handlers, a.log); err != nil {
		return fmt.Errorf("join the mesh: %w", err)
	}
	held := a.cfg.Data
	held.Dir = filepath.Join(a.cfg.StateDir, "data")
	held.Allow, held.Trades, held.Serves = a.mesh.Allowed, a.mesh.Trades, a.serves
	held.OnChange = func(added, removed []grid.CID) {
		if a.awake() {
			a.site.tell(step.HeldChanged{Added: added, Removed: removed})
		}
	}
	held.OnLink = a.linkMeasured
	if a.data, err = data.Open(held, a.mesh.Host()); err != nil {
		return fmt.Errorf("open the data: %w", err)
	}
	a.pins = newPins(a.data, a.archive.history.Holds, a.log)
	a.mesh.HandleLog(a.serveLog)
	a.mesh.HandleSteering(a.serveSteering)
	return nil
}

// giveWay ends this agent because another one was started later with its site's identity. Its
// jobs end with it. The next start is refused until the owner has decided.
func (a *Agent) giveWay(newer protocol.Run) {
	n := store.Newer{Incarnation: newer.Number, Since: newer.Since()}
	if err := a.store.Supersede(n); err != nil {
		a.log.Warn("the next start does not know that the site runs on another machine", "error", err)
	}
	a.leave(n.Explain(a.cfg.StateDir))
}

// linkMeasured tells the machines the rates of a link, if any is known.
func (a *Agent) linkMeasured(id grid.SiteID, l data.Link) {
	a.tellBoth(step.BandwidthMeasured{Peer: id, DownBps: l.DownBps, UpBps: l.UpBps})
}

// awake waits until the loops exist, and reports whether they ever will.
func (a *Agent) awake() bool {
	<-a.ready
	return a.site != nil && a.broker != nil
}

func (a *Agent) tellBoth(in step.Input) {
	if a.awake() {
		a.tellSite(in)
		a.tellBrokers(in)
	}
}

// heard takes a message from the mesh.
func (a *Agent) heard(from grid.SiteID, m protocol.Message) {
	if tap := a.cfg.Taps.Received; tap != nil {
		tap(from, m)
	}
	a.received(from, m)
}

// received hands a message to the machine that it is for.
func (a *Agent) received(from grid.SiteID, m protocol.Message) {
	if !a.awake() || a.aboutChecks(from, m) {
		return
	}
	a.noteCertificate(from, m)
	if !a.aboutNeighbours(from, m) && !a.aboutGroups(from, m) {
		a.deliver(from, m)
	}
}

// makeLoop makes the loop of a machine, with the facts of the earlier runs.
func (a *Agent) makeLoop(name string, m step.Machine, config any) (*loop, error) {
	text, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("configuration of the %s machine: %w", name, err)
	}
	recorder, err := a.store.Begin(store.Header{
		Build: a.cfg.Version, Machine: name, Seed: a.cfg.Seed, Config: text,
	})
	if err != nil {
		return nil, fmt.Errorf("journal of the %s machine: %w", name, err)
	}
	facts, err := a.store.Load(name)
	if err != nil {
		return nil, fmt.Errorf("facts of the %s machine: %w", name, err)
	}
	if err := m.Restore(step.EncodeFacts(facts)); err != nil {
		return nil, fmt.Errorf("facts of the %s machine: %w", name, err)
	}
	l := newLoop(name, m, machineJournal{recorder, a.store, name}, a.clock, a.log, a.perform)
	l.starved = a.disk.starved
	return l, nil
}

// machineJournal is one machine's part of the store.
type machineJournal struct {
	*store.Journal
	store   *store.Store
	machine string
}

// Apply makes facts durable.
func (j machineJournal) Apply(facts []step.Fact) error { return j.store.Apply(j.machine, facts) }

// perform carries out an effect that is neither a timer nor a fact.
func (a *Agent) perform(e step.Effect) {
	switch e := e.(type) {
	case step.Send:
		if protocol.ForBroker(e.Message) {
			a.sendOwner(e.To, e.Message)
		} else if m, ok := a.address(e); ok {
			a.send(e.To, m)
		}
	case step.Broadcast:
		a.broadcast(e.Message)
	case step.Report:
		a.reports.report(e)
	case step.Reply:
		a.commands.answer(e)
	case step.TellBorder:
		a.border.tell(e.News)
	case step.LetGo:
		a.letGo(e)
	case step.Archive:
		a.archive.soon(func() { a.archive.add(e.Jobs) })
	default:
		a.performWork(e)
	}
}

func (a *Agent) performWork(e step.Effect) {
	switch e := e.(type) {
	case step.Stage:
		a.work.stage(e)
	case step.Verify:
		a.work.verify(e)
	case step.StartAttempt:
		a.work.start(e)
	case step.Save:
		a.work.save(e)
	case step.ExtendLease:
		a.work.extend(e)
	case step.SuspendAttempt:
		a.work.suspend(e.Attempt, true)
	case step.ContinueAttempt:
		a.work.suspend(e.Attempt, false)
	case step.StopAttempt:
		a.work.stop(e)
	case step.Discard:
		a.work.discard(e)
	}
}

func (a *Agent) broadcast(m protocol.Message) {
	if !a.cfg.Taps.pass("", m) {
		a.received(a.mesh.Self(), m) // no network can lose that
		return
	}
	if err := a.mesh.Broadcast(m); err != nil {
		a.reports.count("broadcast_failed")
		a.log.Warn("a message could not be broadcast", "error", err)
	}
}

// sendPlain sends a message to another site.
func (a *Agent) sendPlain(to grid.SiteID, m protocol.Message) error {
	if !a.cfg.Taps.pass(to, m) {
		return nil
	}
	return a.mesh.Send(to, m)
}

// sendQuietly is sendPlain for what is said again if it is lost.
func (a *Agent) sendQuietly(to grid.SiteID, m protocol.Message) {
	if err := a.sendPlain(to, m); err != nil {
		a.reports.count("send_failed")
		a.log.Debug("a message could not be sent",
			"site", string(to), "type", fmt.Sprintf("%T", m), "error", err)
	}
}

func (a *Agent) send(to grid.SiteID, m protocol.Message) {
	if !a.cfg.Taps.pass(to, m) {
		return
	}
	if way := a.neighbours.way(to); way != "" {
		to, m = way, protocol.ByGateway{Domain: to, Message: m}
	}
	if to == a.mesh.Self() {
		a.received(to, m)
		return
	}
	if err := a.mesh.Send(to, m); err != nil {
		a.reports.count("send_failed")
		a.log.Debug("a message could not be sent",
			"site", string(to), "type", fmt.Sprintf("%T", m), "error", err)
	}
}

// collectTimeout bounds one attempt to fetch outputs; it is tried again.
const collectTimeout = 5 * time.Minute

// collect fetches outputs for a submission.
func (a *Agent) collect(e step.Collect) step.Collected {
	ctx, cancel := context.WithTimeout(a.ctx, collectTimeout)
	defer cancel()
	answer := step.Collected{Attempt: e.Attempt}
	from := cmp.Or(a.neighbours.way(e.From), e.From)
	ctx, bounded := newBound(ctx, e.MostBytes)
	defer bounded.stop()
	for _, cid := range e.Outputs {
		_, err := a.data.Fetch(ctx, cid, []grid.SiteID{from}, bounded.progress())
		if err = bounded.verdict(err); err != nil {
			answer.Problem, answer.Local = err.Error(), a.disk.lacked(err)
			break
		}
		if err = a.checkContent(ctx, e.Key, cid); err != nil {
			answer.Problem, answer.Forged = err.Error(), errors.Is(err, crypt.ErrDamaged)
			answer.Local = a.disk.lacked(err)
			break
		}
		a.pins.hold(jobOwner(e.Attempt.Task.Job), cid)
	}
	return answer
}

// heldNow lists the data that is here.
func (a *Agent) heldNow() []grid.CID {
	var cids []grid.CID
	for _, r := range a.data.Roots() {
		cids = append(cids, r.CID)
	}
	return cids
}
