package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/data"
	"github.com/mrsmesh/mrsmesh/internal/given"
	"github.com/mrsmesh/mrsmesh/internal/history"
	"github.com/mrsmesh/mrsmesh/internal/hostinfo"
	"github.com/mrsmesh/mrsmesh/internal/member"
	"github.com/mrsmesh/mrsmesh/internal/owner"
	"github.com/mrsmesh/mrsmesh/internal/p2p"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/site"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// AskSite runs a question on the goroutine of the site's machine, between two steps,
// and waits for it. When it returns an error the question did not run and never will.
// What the question reads it copies: the machine goes on when it returns.
func (a *Agent) AskSite(ctx context.Context, question func(*site.Machine)) error {
	return a.site.ask(ctx, func() { question(a.siteMachine) })
}

// AskBroker is AskSite for the submitter's machine. The two have a goroutine each, so
// no question sees both at one moment.
func (a *Agent) AskBroker(ctx context.Context, question func(*broker.Machine)) error {
	return a.broker.ask(ctx, func() { question(a.seenBroker()) })
}

// Alive returns nil when the goroutines of both machines have answered, also while they wait for a
// disk, and an error when they have not before ctx ended.
func (a *Agent) Alive(ctx context.Context) error {
	return errors.Join(a.site.answers(ctx), a.broker.answers(ctx))
}

// seenBroker is the submitter's machine as it is, or, while another agent acts for this site's
// owner, as the group's table has it.
func (a *Agent) seenBroker() *broker.Machine {
	if a.mesh == nil {
		return a.brokerMachine // a test's own
	}
	if j := a.groups.jobsOf(a.mesh.Self()); j != nil {
		if m := j.seen(); m != nil {
			return m
		}
	}
	return a.brokerMachine
}

// Order gives the site machine an owner's order and waits until it has it.
func (a *Agent) Order(ctx context.Context, in step.Input) error {
	a.site.tell(in)
	return a.site.ask(ctx, func() {})
}

// Command tells the submitter's machine what a user wants, and waits for its
// reply; input gives the input the number that it is told.
func (a *Agent) Command(ctx context.Context, input func(n uint64) step.Input) (grid.JobID, error) {
	n, answer := a.commands.open()
	defer a.commands.close(n)
	if err := a.broker.offer(input(n)); err != nil {
		return "", err
	}
	select {
	case r := <-answer:
		return r.Job, r.Err
	case <-ctx.Done():
		return "", fmt.Errorf("wait for the agent: %w", ctx.Err())
	case <-a.broker.ended:
		return "", errEnded
	}
}

// commands matches the machines' replies with who waits for them.
type commands struct {
	mu      sync.Mutex
	last    uint64                      // guarded by mu
	waiting map[uint64]chan step.Reply  // guarded by mu
	follows map[uint64]func(step.Reply) // guarded by mu; who is told instead of waiting
}

// follow gives a number whose reply is handed to a function, which must not block.
func (c *commands) follow(answered func(step.Reply)) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.follows == nil {
		c.follows = make(map[uint64]func(step.Reply))
	}
	c.last++
	c.follows[c.last] = answered
	return c.last
}

func (c *commands) open() (uint64, chan step.Reply) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting == nil {
		c.waiting = make(map[uint64]chan step.Reply)
	}
	c.last++
	answer := make(chan step.Reply, 1)
	c.waiting[c.last] = answer
	return c.last, answer
}

func (c *commands) close(n uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, n)
}

func (c *commands) answer(r step.Reply) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if answer, ok := c.waiting[r.Command]; ok {
		answer <- r // buffered for the one reply
		delete(c.waiting, r.Command)
	}
	if answered, ok := c.follows[r.Command]; ok {
		answered(r)
		delete(c.follows, r.Command)
	}
}

// fail answers all who wait.
func (c *commands) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for n, answer := range c.waiting {
		answer <- step.Reply{Command: n, Err: err}
		delete(c.waiting, n)
	}
	for n, answered := range c.follows {
		answered(step.Reply{Command: n, Err: err})
		delete(c.follows, n)
	}
}

// Config returns the agent's configuration, with the notices that its start added.
func (a *Agent) Config() Config { return a.cfg }

// Now is the time on the wall clock, as far as the machines know: what they show is by it.
func (a *Agent) Now() time.Time { return a.clock.shows() }

// Stores are the parts of an agent that look after themselves: each is safe for
// concurrent use and lives as long as the agent.
type Stores struct {
	Mesh    *p2p.Mesh
	Data    *data.Store
	Members *member.Registry
	Links   *member.Links
	Events  *view.EventLog
}

// Stores returns them, for the packages that show the agent.
func (a *Agent) Stores() Stores {
	return Stores{Mesh: a.mesh, Data: a.data, Members: a.members, Links: a.links, Events: a.events}
}

// KeepUpload keeps data that a user has just stored until a job needs it, or for an
// hour.
func (a *Agent) KeepUpload(cid grid.CID) error {
	return a.pins.upload(cid, time.Now().Add(uploadKept))
}

// Decided carries out a decision on who takes part: others hear of it, if it has a
// record, connections are closed or allowed, and the machines know who is banned.
func (a *Agent) Decided(record *protocol.MemberRecord) {
	if record != nil {
		a.mesh.Share([]protocol.MemberRecord{*record})
	} else {
		a.mesh.Review()
	}
	a.tellBans()
}

// Rotated tells the others that the domain has a new key.
func (a *Agent) Rotated() {
	a.mesh.ShareRoster()
	a.tellBans()
}

// Known holds what an agent knows beside its machines: of itself, its host and its past.
type Known struct {
	Started  time.Time
	Counters map[string]int64 // of what the machines and the driver report, by event
	Walls    []view.Wall      // how the ceilings are enforced, as far as it was tried by now
	Owner    owner.Report     // what the watcher of the owner's work saw last
	Past     history.Known    // when this site was up, until now
	Given    []given.Day      // what it gave, ascending
	Nominal  grid.Capability  // what other sites are told
	Left     grid.Capability  // what others leave of it
	Room     hostinfo.Room    // in memory and on the disk
	Pending  string           // why something is not measured yet; empty = it is
}

// Known collects that, as it is now.
func (a *Agent) Known() Known {
	k := Known{
		Started: a.started, Counters: a.reports.counters(), Walls: a.walls(),
		Owner: a.owner.Report(), Past: a.past.Known(a.reading()), Given: a.account.Days(),
	}
	a.host.mu.Lock()
	defer a.host.mu.Unlock()
	k.Nominal, k.Left, k.Room, k.Pending = a.host.nominal, a.host.left, a.host.room, a.host.pending
	return k
}
