package apitest

import (
	"context"
	"fmt"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Fleet implements api.Fleet: this site, one that allows to be steered, and one that does not.
func (a *Agent) Fleet(ctx context.Context, q view.PageQuery) ([]view.FleetRow, error) {
	own, err := a.Status(ctx)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	other := a.fleetSite()
	rows := []view.FleetRow{
		{
			Site: own.Site, Name: own.Name, Self: true, Connected: true, Status: &own,
			Running: len(own.Running),
		},
		{Site: other.Site, Name: other.Name, Connected: true, Status: &other, Running: 1},
		{Site: "12D3KooWshut", Name: "shut", Connected: true, Trouble: errShut.Error()},
	}
	return view.Page(rows, q, func(row view.FleetRow) grid.SiteID { return row.Site })
}

var errShut = fmt.Errorf("%w: its owner does not allow it; there: "+
	"siteagent config set owner.remote 12D3KooWself", view.ErrDenied)

// fleetSite is the state of the site that allows to be steered, which is called open.
func (a *Agent) fleetSite() view.AgentStatus {
	return view.AgentStatus{
		Site: "12D3KooWopen", Name: "open", Version: "1.0.0", Kinds: []string{"wasm"}, Peers: 2,
		Ceilings: view.Resources{MilliCPUs: 4000, MemoryBytes: 8 << 30},
		InUse:    view.Resources{MilliCPUs: 1000, MemoryBytes: 1 << 30},
		Reach:    view.Reach{Reachability: "private"}, Paused: a.steered,
	}
}

// StatusAt implements api.Fleet.
func (a *Agent) StatusAt(_ context.Context, site string) (view.AgentStatus, error) {
	if site != "open" {
		return view.AgentStatus{}, errShut
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.fleetSite(), nil
}

// PauseAt implements api.Fleet.
func (a *Agent) PauseAt(
	ctx context.Context, site string, _ view.PauseOrder,
) (view.AgentStatus, error) {
	return a.steer(ctx, site, true)
}

// ResumeAt implements api.Fleet.
func (a *Agent) ResumeAt(ctx context.Context, site string) (view.AgentStatus, error) {
	return a.steer(ctx, site, false)
}

func (a *Agent) steer(
	ctx context.Context, site string, paused bool,
) (view.AgentStatus, error) {
	if site == "open" {
		a.mu.Lock()
		a.steered = paused
		a.mu.Unlock()
	}
	return a.StatusAt(ctx, site)
}
