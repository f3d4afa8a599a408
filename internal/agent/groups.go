package agent

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/store"
	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/standby"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// groups are those that this agent is a member of, by their owners. It is safe for concurrent
// use.
type groups struct {
	turn sync.Mutex // held by who makes or ends one

	mu  sync.Mutex
	all map[grid.SiteID]*group // guarded by mu
}

func (s *groups) of(owner grid.SiteID) *group {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[owner]
}

func (s *groups) add(g *group) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = make(map[grid.SiteID]*group)
	}
	s.all[g.owner] = g
}

func (s *groups) remove(g *group) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all[g.owner] == g {
		delete(s.all, g.owner)
	}
}

// runs reports whether the loop of another owner's group was begun.
func (s *groups) runs(g *group) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return g.end != nil
}

// list has them by owner, ascending.
func (s *groups) list() []*group {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]*group, 0, len(s.all))
	for _, owner := range slices.Sorted(maps.Keys(s.all)) {
		list = append(list, s.all[owner])
	}
	return list
}

// foreign counts the owners of jobs other than this site.
func (s *groups) foreign(self grid.SiteID) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for owner, g := range s.all {
		if _, is := g.duty.(*jobs); is && owner != self {
			n++
		}
	}
	return n
}

// openGroups makes the groups that the store has, and the agent's own if it has none. The own one
// is of this agent alone at first: its table has what the broker has kept. The border comes last.
func (a *Agent) openGroups() error {
	members, err := a.store.Members()
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(members, func(m store.Member) bool { return m.Name == brokerName }) {
		own, wrong := a.foundGroup()
		if wrong != nil {
			return wrong
		}
		members = append(members, own)
	}
	for _, m := range members {
		if strings.HasPrefix(m.Name, controlPrefix) && m.Owner != a.domainSite() {
			if err = a.store.Dismiss(m.Name, false); err != nil { // it is in another domain now
				return err
			}
			continue
		}
		if m, err = a.afterRestore(m); err != nil {
			return err
		}
		g, err := a.newGroup(m)
		if err != nil {
			return err
		}
		a.groups.add(g)
		if g.own() {
			a.broker = g.loop
		} else if j := a.groups.jobsOf(g.owner); j != nil {
			j.pinTable() // before what nobody owns is swept
		}
	}
	return a.openBorder()
}

// foundGroup puts the group of the own jobs on the disk. Facts in which others are certified have
// lost their log, as when they were made anew from the journals: others may act, so that this
// agent joins them, or waits for its owner's word (Recover).
func (a *Agent) foundGroup() (store.Member, error) {
	facts, err := a.store.Load(brokerName)
	if err != nil {
		return store.Member{}, err
	}
	id := newMemberID()
	m := store.Member{
		Name: brokerName, ID: id, Owner: a.mesh.Self(),
		Stored: standby.Founded(a.store.Incarnation()-1, facts, id),
	}
	if c, certified := certificateIn(facts); certified && len(c.Sites()) > 1 {
		a.log.Warn("the log of the own jobs is lost: this agent acts when a standby has told it all")
		m.Stored = standby.Joining()
	}
	return m, a.store.Enlist(m)
}

// certificateIn finds the certificate among facts.
func certificateIn(facts []step.Fact) (protocol.Certificate, bool) {
	var encoded []byte
	for _, f := range facts {
		if f.Kind == broker.FactGroup && f.Key == keyCertificate {
			_ = json.Unmarshal(f.Value, &encoded) // as an acting submitter has written it
		}
	}
	c, err := protocol.DecodeCertificate(encoded)
	return c, err == nil
}

// afterRestore makes a member anew whose log is older than what it has said: the directory was
// restored, or copied. A log of this agent alone goes on: nobody else has heard of it.
func (a *Agent) afterRestore(m store.Member) (store.Member, error) {
	alone := len(m.Stored.Conf.Voters) == 1 && len(m.Stored.Conf.Outgoing) == 0
	if !a.store.Restored() || alone {
		return m, nil
	}
	a.log.Warn("this state was restored: the part in a group of standbys begins anew",
		"owner", string(m.Owner))
	m.ID, m.Stored = newMemberID(), standby.Joining()
	return m, a.store.Enlist(m)
}

// runGroups lets the groups of other owners live, as far as they do not yet.
func (a *Agent) runGroups() {
	a.groups.turn.Lock()
	defer a.groups.turn.Unlock()
	for _, g := range a.groups.list() {
		if !g.own() && !a.groups.runs(g) {
			a.runGroup(g)
		}
	}
}

// flushGroups brings to the disk what could wait, when no loop runs any more.
func (a *Agent) flushGroups() error {
	var errs []error
	for _, g := range a.groups.list() {
		if len(g.saves) > 0 {
			errs = append(errs, g.store.SaveMember(g.name, g.saves))
			g.saves = nil
		}
	}
	return errors.Join(errs...)
}

// runGroup lets a group of another owner live until it is dismissed, or the agent ends.
func (a *Agent) runGroup(g *group) {
	ctx, end := context.WithCancel(a.ctx)
	a.groups.mu.Lock()
	g.end = end
	a.groups.mu.Unlock()
	a.spawn(func() {
		defer end()
		if err := g.run(ctx); err != nil && !errors.Is(err, context.Canceled) {
			a.log.Error("a group has ended; it is taken up again at the next start",
				"owner", string(g.owner), "error", err)
			a.reports.count("group_ended")
		}
		a.groups.remove(g)
	})
}

// tickGroups is the pause between two looks of a group at what it may do.
const tickGroups = time.Second

// lookAfterGroups has each group look, until the agent ends.
func (a *Agent) lookAfterGroups() {
	beat := time.NewTicker(tickGroups)
	defer beat.Stop()
	for {
		select {
		case <-beat.C:
			for _, g := range a.groups.list() {
				g.soon(g.look)
			}
			a.endFormer()
			a.foundDomain()
			a.deputies.look()
			a.neighbours.expire(a, a.clock.shows())
			a.heeding.review()
		case <-a.ctx.Done():
			return
		}
	}
}

// tellMachines tells the site's machine, and the machine of each owner that acts here.
func (a *Agent) tellMachines(in step.Input) {
	a.site.tell(in)
	a.tellBrokers(in)
}

// tellBrokers tells the machine of each owner that acts here what all of them hear.
func (a *Agent) tellBrokers(in step.Input) {
	a.around.note(in)
	a.broker.tell(in)
	if forBorder(in) {
		a.border.tell(in)
	}
	for _, g := range a.groups.list() {
		if g.loop != a.broker {
			g.tell(in)
		}
	}
}
