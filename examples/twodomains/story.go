package main

import (
	"context"
	"fmt"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/api/client"
	"github.com/mrsmesh/mrsmesh/internal/localmesh"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// What the domains are called, also by each other.
const (
	labName    = "lab"
	campusName = "campus"
)

// limit is that for anything to happen.
const limit = time.Minute

// story holds the two domains and what came of them.
type story struct {
	out         *localmesh.Screen
	place       *localmesh.Place
	lab, campus *localmesh.Mesh

	reserved []grid.JobID
	opens    time.Time        // the time that is reserved
	victim   *localmesh.Agent // the site that is killed
	there    []grid.JobID     // the reservations that it held
	overflow []view.TaskView  // the tasks of the job that fills the domain, when all had ended

	result result
}

func newStory(place *localmesh.Place, siteagent string, out *localmesh.Screen) *story {
	s := &story{out: out, place: place}
	s.lab = localmesh.New(place, siteagent, labName, gifts(labSites()), tune)
	s.campus = localmesh.New(place, siteagent, campusName, gifts(campusSites()), tune)
	s.lab.Founded, s.campus.Founded = true, true
	return s
}

// tell lets it all happen.
func (s *story) tell(ctx context.Context) error {
	for _, part := range []func(context.Context) error{
		s.start, s.link, s.reserve, s.killHolder, s.fill, s.awaitRemapped, s.awaitKept, s.receipts,
	} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

// owner is the API of the agent whose user submits: a plain member of the first domain.
func (s *story) owner() *client.Client { return s.lab.Agents[1].API }

// agent is the one of the first domain with that ID, nil if none is.
func (s *story) agent(id grid.SiteID) *localmesh.Agent {
	for _, a := range s.lab.Agents {
		if a.ID == id {
			return a
		}
	}
	return nil
}

// start starts both domains. The first agent of each has its domain's key.
func (s *story) start(ctx context.Context) error {
	for _, m := range []*localmesh.Mesh{s.lab, s.campus} {
		if err := m.Start(ctx, s.out); err != nil {
			return err
		}
		s.out.Say("domain %s: 4 agents see each other", m.Agents[0].Config.Domain)
	}
	return localmesh.Await(ctx, limit, "the first domain to have a controller",
		func(ctx context.Context) (bool, error) {
			status, err := s.owner().Status(ctx)
			return err == nil && status.Controller != nil && status.Controller.Acting != "", nil
		})
}

// link links the domains as their administrators would.
func (s *story) link(ctx context.Context) error {
	lab, campus := s.lab.Submitter().API, s.campus.Submitter().API
	invitation, err := lab.InviteDomain(ctx, campusName, time.Hour)
	if err != nil {
		return fmt.Errorf("invite the other domain: %w", err)
	}
	if _, err = campus.JoinDomain(ctx, invitation.Token); err != nil {
		return fmt.Errorf("link with the other domain: %w", err)
	}
	all := 100
	if _, err = campus.SetLinkPolicy(ctx, labName, view.PolicyChange{Give: &all}); err != nil {
		return fmt.Errorf("set the terms: %w", err)
	}
	err = localmesh.Await(ctx, limit, "the members to hear of the other domain",
		func(ctx context.Context) (bool, error) {
			near, wrong := s.owner().Neighbours(ctx)
			return wrong == nil && len(near) == 1 && near[0].Reachable, nil
		})
	if err == nil {
		s.out.Say("domain %s gives %d %% of what it has to domain %s", campusName, all, labName)
	}
	return err
}
