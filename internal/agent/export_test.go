package agent

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// What the tests of whole agents, which are seen through internal/agent/backend, need
// of this package's own.

const Patience = patience

var (
	Eventually = eventually
	Plans      = plans
)

// NoteOwner says that the owner came or went.
func (a *Agent) NoteOwner(busy bool) { a.noteOwner(busy) }

// AskForLog asks another site for the log of anything that is called an attempt.
func (a *Agent) AskForLog(
	ctx context.Context, site grid.SiteID, attempt string,
) (io.ReadCloser, error) {
	return a.remoteLog(ctx, site, logRequest{Attempt: attempt, Stream: "stdout"})
}

// Certificate is the newest of the group of the own jobs.
func (a *Agent) Certificate(ctx context.Context) (encoded []byte) {
	g := a.groups.of(a.Self())
	_ = g.ask(ctx, func() { encoded = g.assembly.encoded })
	return encoded
}

// Fill writes rows of the agent's own, of so many bytes each, into the table of the own jobs, and
// waits until the group has agreed on them. What is lost with the leadership is written again: a
// busy machine may change that at any time.
func (a *Agent) Fill(ctx context.Context, from, rows, bytes int) error {
	facts := make([]step.Fact, 0, rows)
	value := strings.Repeat("x", bytes)
	for i := range rows {
		facts = append(facts, groupFact(fmt.Sprint("filler ", from+i), value))
	}
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	g := a.groups.of(a.Self())
	filled := make(chan struct{})
	once := sync.OnceFunc(func() { close(filled) })
	var written uint64 // the term in which
	for {
		if err := g.ask(ctx, func() {
			if g.acts() && g.term != written {
				written = g.term
				g.persist(once, facts...)
			}
		}); err != nil {
			return err
		}
		select {
		case <-filled:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// Table is an owner's table as this agent has it, nil if it has none.
func (a *Agent) Table(ctx context.Context, owner grid.SiteID) (facts []byte) {
	if g := a.groups.of(owner); g != nil {
		_ = g.ask(ctx, func() { facts, _ = g.member.Table() })
	}
	return facts
}

// HearNews is a certificate that another site shows.
func (a *Agent) HearNews(from grid.SiteID, certificate []byte) {
	a.heard(from, protocol.StandbyNews{Certificate: certificate})
}

// LeaderOfOwn is the site whose member leads the group of the own jobs, as far as an agent knows
// whose Run has returned.
func (a *Agent) LeaderOfOwn() grid.SiteID {
	g := a.groups.of(a.Self())
	leader, _ := g.member.Leader()
	return g.siteOf(leader)
}

// LostForLong has the founder of the domain's group take it that nobody has led it for long, if
// nobody does.
func (a *Agent) LostForLong(ctx context.Context) {
	c := a.groups.controlOf(a.domainSite())
	_ = c.ask(ctx, func() {
		if !c.lostSince.IsZero() {
			c.lostSince = c.lostSince.Add(-renewAfter)
		}
	})
}
