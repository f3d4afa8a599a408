package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/agent"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// path is the way of an announcement.
type path string

const (
	byGossip  path = "gossip"
	byUnicast path = "unicast"
	byEither  path = "either" // as a submitter that knows nobody yet
)

// watch follows one job of a submitter at a time, from its announcement to the
// awards, which it keeps back: what follows an award is measured elsewhere, and
// the sites stay free for the next round.
type watch struct {
	mu      sync.Mutex
	by      path
	tasks   int // to be awarded
	sites   int // that should offer
	began   time.Time
	offered time.Time // the last offer
	awarded time.Time // the last award
	offers  int
	awards  int           // of different tasks
	stood   time.Time     // when another agent was first asked to stand by
	ask     int           // bytes of the announcement
	reply   int           // bytes of an offer
	done    chan struct{} // closed when all offers and awards have come

	awarding map[grid.TaskID]bool // the tasks that were awarded
}

// begin expects the next round.
func (w *watch) begin(by path, sites, tasks int) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.by, w.sites, w.tasks, w.offers, w.awards = by, sites, tasks, 0, 0
	w.began, w.offered, w.awarded = time.Time{}, time.Time{}, time.Time{}
	w.done, w.awarding = make(chan struct{}), make(map[grid.TaskID]bool, tasks)
	return w.done
}

func (w *watch) taps(self func() grid.SiteID) agent.Taps {
	return agent.Taps{
		Sending:  w.sending,
		Received: func(from grid.SiteID, m protocol.Message) { w.received(from, m, self()) },
	}
}

func (w *watch) sending(to grid.SiteID, m protocol.Message) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch m := bare(m).(type) {
	case protocol.StandbyAsk:
		if w.stood.IsZero() {
			w.stood = time.Now()
		}
		return true
	case protocol.Announce:
		if w.began.IsZero() {
			w.began = time.Now()
			frame, _ := protocol.AppendFrame(nil, m) // it is sent in a moment
			w.ask = len(frame)
		}
		return w.by == byEither || (to == "") == (w.by == byGossip)
	case protocol.Award:
		for _, task := range m.Tasks { // one that has no answer is awarded again
			w.awarding[grid.TaskID{Job: m.Job, Index: task.Index}] = true
		}
		w.awards = len(w.awarding)
		w.awarded = time.Now()
		w.check()
		return false
	default:
		return true
	}
}

func (w *watch) received(from grid.SiteID, m protocol.Message, self grid.SiteID) {
	bid, ok := bare(m).(protocol.Bid)
	if !ok || from == self {
		return
	}
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.offers++
	w.offered = now
	if w.reply == 0 {
		frame, _ := protocol.AppendFrame(nil, bid) // it was just received
		w.reply = len(frame)
	}
	w.check()
}

// bare takes the behalf off a message.
func bare(m protocol.Message) protocol.Message {
	if behalf, is := m.(protocol.OnBehalf); is {
		return behalf.Message
	}
	return m
}

// check is called with w.mu held.
func (w *watch) check() {
	if w.offers >= w.sites && w.awards == w.tasks && w.done != nil {
		close(w.done)
		w.done = nil
	}
}

// spans are how long a round took.
type spans struct {
	lastOffer, award time.Duration
	complete         bool // all offers and awards came
	offers, awards   int
}

// end gives what came in time.
func (w *watch) end() spans {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done = nil
	return spans{
		lastOffer: w.offered.Sub(w.began), award: w.awarded.Sub(w.began), offers: w.offers,
		awards:   w.awards,
		complete: w.offers == w.sites && w.awards == w.tasks,
	}
}

// clears notes which sites have nothing of a job any more, so that a round begins when the one
// before has left no trace. Those with a task of it have nothing once they hear that it was
// withdrawn, the others once they hear that all its tasks are placed.
type clears struct {
	mu   sync.Mutex
	gone map[grid.JobID]map[grid.SiteID]bool
}

func (c *clears) received(by grid.SiteID, m protocol.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch m := bare(m).(type) {
	case protocol.Award:
		c.note(m.Job, by, false)
	case protocol.Clear:
		_, tasked := c.gone[m.Job][by]
		if m.Kind == protocol.ClearWithdrawn || !tasked {
			c.note(m.Job, by, true)
		}
	}
}

func (c *clears) note(job grid.JobID, by grid.SiteID, gone bool) {
	if c.gone[job] == nil {
		c.gone[job] = make(map[grid.SiteID]bool)
	}
	c.gone[job][by] = gone
}

func (c *clears) await(ctx context.Context, job grid.JobID, n int) error {
	return await(ctx, 5*time.Second, fmt.Sprintf("%d sites to forget a job", n), func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		sites := 0
		for _, gone := range c.gone[job] {
			if gone {
				sites++
			}
		}
		return sites >= n
	})
}
