package agent

import (
	"context"
	"io"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
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
