package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/localmesh"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

const (
	reservations = 4                // as many as two sites have space for
	ahead        = 45 * time.Second // they begin so much later
	length       = 6 * time.Second
	ttl          = 2 * time.Second // answers to an announcement are awaited for so long
)

// need holds the needs of a task or a reservation: a core of a site that runs work.
func need() grid.Resources {
	return grid.Resources{MilliCPUs: 1000, MemoryBytes: 128 << 20, DiskBytes: 1 << 20, MFLOPS: 1000}
}

// reserve makes reservations that begin together, each when the one before is held.
func (s *story) reserve(ctx context.Context) error {
	s.opens = time.Now().Add(ahead).Round(time.Second)
	for i := range reservations {
		id, err := s.owner().Submit(ctx, grid.Job{
			Spec: grid.Spec{
				Name: fmt.Sprintf("reserved-%d", i+1), Kind: grid.KindReservation, Need: need(),
				Runtime: length, Weights: grid.DefaultWeights(), Window: grid.Window{At: s.opens},
			},
			Count: 1, TTL: ttl,
		})
		if err != nil {
			return fmt.Errorf("reserve: %w", err)
		}
		s.reserved = append(s.reserved, id)
		err = localmesh.Await(ctx, limit, "a reservation to be held",
			func(ctx context.Context) (bool, error) {
				t, wrong := s.reservation(ctx, id)
				return t.Phase == view.PhaseHeld, wrong
			})
		if err != nil {
			return err
		}
	}
	if err := s.awaitBooked(ctx); err != nil {
		return err
	}
	s.out.Say("reserved %d places in domain %s, for %s from %s on", reservations, labName, length,
		s.opens.Format(time.TimeOnly))
	return nil
}

// awaitBooked waits until the domain's controller knows of all reservations.
func (s *story) awaitBooked(ctx context.Context) error {
	return localmesh.Await(ctx, limit, "the controller to know of the reservations",
		func(ctx context.Context) (bool, error) {
			for _, a := range s.lab.Agents {
				status, err := a.API.Status(ctx)
				if err != nil {
					return false, fmt.Errorf("ask %s: %w", a.Name, err)
				}
				if c := status.Controller; c != nil && c.Here && c.Bookings == reservations {
					return true, nil
				}
			}
			return false, nil
		})
}

// reservation is the one task of a reservation; one that has ended before its time is an error.
func (s *story) reservation(ctx context.Context, id grid.JobID) (view.TaskView, error) {
	tasks, err := s.owner().AllTasks(ctx, id)
	if err != nil || len(tasks) != 1 {
		return view.TaskView{}, fmt.Errorf("ask for reservation %s: %d tasks, %w",
			id, len(tasks), err)
	}
	if t := tasks[0]; t.Phase.Ended() && t.Phase != view.PhaseOver {
		return t, fmt.Errorf("reservation %s is %s: %s", id, t.Phase, t.Text)
	}
	return tasks[0], nil
}

// killHolder kills the site that holds most of the reservations, the gateway left out, and waits
// until their owner knows where they are to go.
func (s *story) killHolder(ctx context.Context) error {
	held := make(map[*localmesh.Agent][]grid.JobID)
	for _, id := range s.reserved {
		t, err := s.reservation(ctx, id)
		if err != nil {
			return err
		}
		holder := s.agent(t.Site)
		if holder == nil {
			return fmt.Errorf("reservation %s is held by %s, which is none of domain %s",
				id, t.SiteName, labName)
		}
		held[holder] = append(held[holder], id)
		if holder != s.lab.Submitter() && len(held[holder]) > len(s.there) {
			s.victim, s.there = holder, held[holder]
		}
	}
	if s.victim == nil {
		return errors.New("no site but the gateway holds a reservation")
	}
	if err := s.victim.Process.Kill(); err != nil {
		return fmt.Errorf("kill %s: %w", s.victim.Name, err)
	}
	<-s.victim.Exited
	s.out.Say("killed %s (SIGKILL), which holds %d of them", s.victim.Name, len(s.there))
	began, said := time.Now(), ""
	err := localmesh.Await(ctx, limit, "the owner to be told",
		func(ctx context.Context) (bool, error) {
			for _, id := range s.there {
				t, err := s.reservation(ctx, id)
				if err != nil {
					return false, err
				}
				if said = t.Promise.Doubt(); said == "" && t.Site == s.victim.ID {
					return false, nil
				}
			}
			return true, nil
		})
	if err != nil {
		return err
	}
	s.out.Say("told %s after the kill: %s", time.Since(began).Round(100*time.Millisecond), said)
	return nil
}

// awaitRemapped waits until another site holds what the killed one has held.
func (s *story) awaitRemapped(ctx context.Context) error {
	err := localmesh.Await(ctx, limit, "another site to hold the reservations",
		func(ctx context.Context) (bool, error) {
			s.result.remapped = 0
			for _, id := range s.there {
				t, err := s.reservation(ctx, id)
				if err != nil {
					return false, err
				}
				if t.Phase == view.PhaseHeld && t.Site != s.victim.ID {
					s.result.remapped++
				}
			}
			s.out.Progress("%d of %d reservations are at another site", s.result.remapped,
				len(s.there))
			if s.result.remapped < len(s.there) && time.Now().After(s.opens) {
				return false, fmt.Errorf("%d of %d reservations had another site at their start",
					s.result.remapped, len(s.there))
			}
			return s.result.remapped == len(s.there), nil
		})
	if err == nil {
		s.out.Say("another site holds them, %s before their start",
			time.Until(s.opens).Round(time.Second))
	}
	return err
}

// awaitKept waits until the reserved time is over, and counts what was kept.
func (s *story) awaitKept(ctx context.Context) error {
	return localmesh.Await(ctx, limit, "the reserved time to be over",
		func(ctx context.Context) (bool, error) {
			s.out.Progress("the reserved time begins at %s", s.opens.Format(time.TimeOnly))
			s.result.reserved, s.result.kept = len(s.reserved), 0
			over := 0
			for _, id := range s.reserved {
				t, err := s.reservation(ctx, id)
				if err != nil {
					return false, err
				}
				if t.Phase == view.PhaseOver {
					over++
					if t.Promise != nil && t.Promise.State == grid.PromiseKept.String() {
						s.result.kept++
					}
				}
			}
			return over == len(s.reserved), nil
		})
}
