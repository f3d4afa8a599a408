package main

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/api/client"
	"github.com/mrsmesh/mrsmesh/internal/localmesh"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

const (
	tasks    = 12 // of the job that fills the first domain, which has three places
	nap      = 4 * time.Second
	estimate = 6 * time.Second
	ttl      = 400 * time.Millisecond
	limit    = 2 * time.Minute // for anything to happen
)

// story holds the two domains and what came of them.
type story struct {
	out         *localmesh.Screen
	place       *localmesh.Place
	lab, campus *localmesh.Mesh
	nextDoor    int // tasks that ran in the other domain
	done        int
}

// tell lets it all happen.
func (s *story) tell(ctx context.Context) error {
	for _, m := range []*localmesh.Mesh{s.lab, s.campus} {
		if err := found(ctx, m, s.out); err != nil {
			return err
		}
	}
	if err := s.link(ctx); err != nil {
		return err
	}
	id, err := s.fill(ctx)
	if err != nil {
		return err
	}
	return s.watch(ctx, id)
}

// found starts a domain whose first agent has its key.
func found(ctx context.Context, m *localmesh.Mesh, out *localmesh.Screen) error {
	m.Founded = true
	return m.Start(ctx, out)
}

// link links the domains as their administrators would.
func (s *story) link(ctx context.Context) error {
	lab, campus := s.lab.Submitter().API, s.campus.Submitter().API
	invitation, err := lab.InviteDomain(ctx, "campus", time.Hour)
	if err != nil {
		return fmt.Errorf("invite the other domain: %w", err)
	}
	if _, err := campus.JoinDomain(ctx, invitation.Token); err != nil {
		return fmt.Errorf("link with the other domain: %w", err)
	}
	half := 100
	if _, err := campus.SetLinkPolicy(ctx, "lab", view.PolicyChange{Give: &half}); err != nil {
		return fmt.Errorf("set the terms: %w", err)
	}
	return localmesh.Await(ctx, limit, "the domains to be connected",
		func(ctx context.Context) (bool, error) {
			links, err := lab.Links(ctx)
			return err == nil && len(links.Links) == 1 && links.Links[0].Connected, nil
		})
}

// fill submits more tasks than the first domain has places.
func (s *story) fill(ctx context.Context) (grid.JobID, error) {
	api := s.lab.Submitter().API
	module := localmesh.Program{Sleep: nap, Stdout: "done\n"}.Module()
	ref, err := api.PutData(ctx, false, bytes.NewReader(module))
	if err != nil {
		return "", fmt.Errorf("upload the program: %w", err)
	}
	id, err := api.Submit(ctx, grid.Job{
		Spec: grid.Spec{
			Name: "overflow", Kind: grid.KindWasm, Module: grid.Input{CID: ref.CID, Bytes: ref.Bytes},
			Need: grid.Resources{
				MilliCPUs: 1000, MemoryBytes: 128 << 20, DiskBytes: 1 << 20, MFLOPS: 1000,
			},
			Runtime: estimate, Weights: grid.DefaultWeights(),
		},
		Count: tasks, TTL: ttl,
	})
	if err != nil {
		return "", fmt.Errorf("submit: %w", err)
	}
	return id, nil
}

// watch waits for the end of the job, and counts what ran where.
func (s *story) watch(ctx context.Context, id grid.JobID) error {
	api := s.lab.Submitter().API
	var all []view.TaskView
	err := localmesh.Await(ctx, limit, "the job to end", func(ctx context.Context) (bool, error) {
		var err error
		if all, err = api.AllTasks(ctx, id); err != nil {
			return false, nil //nolint:nilerr // it is asked again
		}
		s.done, s.nextDoor = 0, 0
		ended := 0
		for _, t := range all {
			if t.Phase.Ended() {
				ended++
			}
			if t.Phase == view.PhaseDone {
				s.done++
			}
			if t.SiteName == "campus" {
				s.nextDoor++
			}
		}
		s.out.Progress("%d of %d tasks done, %d at the other domain", s.done, tasks, s.nextDoor)
		return ended == tasks, nil
	})
	if err != nil {
		return err
	}
	return s.showFavours(ctx, api)
}

func (s *story) showFavours(ctx context.Context, api *client.Client) error {
	links, err := api.Links(ctx)
	if err != nil {
		return err
	}
	for _, l := range links.Links {
		s.out.Say("%s: given %.1f, taken %.1f core-seconds", l.Name, l.Given, l.Taken)
	}
	return nil
}

func (s *story) verdict() error {
	s.out.Final(fmt.Sprintf("twodomains: %d done, %d next door", s.done, s.nextDoor))
	return nil
}
