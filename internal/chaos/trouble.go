package main

import (
	"context"
	"errors"
	"syscall"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/localmesh"
	"github.com/mrsmesh/mrsmesh/internal/netlab"
	"github.com/mrsmesh/mrsmesh/internal/view"
)

// trouble is one kind of what goes wrong in real life.
type trouble struct {
	name      string
	from, to  time.Duration // how long it lasts
	disk      bool          // it wants a site with a small disk
	submitter bool          // it wants a site that submits
	begin     func(context.Context, *scene) error
	end       func(context.Context, *scene) error
}

// scene is one trouble at its time.
type scene struct {
	story         *story
	victim, other *site
	length        time.Duration
	side          []*site // those cut off from all others, or killed together
	busy          []*busyDisk
}

// troubles are all kinds.
func troubles() []trouble {
	second := time.Second
	return []trouble{
		{name: "kill", from: second, to: 8 * second, begin: kill, end: restart},
		{
			name: "submitter gone", from: 6 * second, to: 15 * second, submitter: true,
			begin: kill, end: restart,
		},
		{
			name: "submitter away", from: 20 * second, to: 40 * second, submitter: true,
			begin: kill, end: restart,
		},
		{
			name: "group killed", from: second, to: 8 * second, submitter: true,
			begin: killGroup, end: restartSide,
		},
		{
			name: "standby's disk lost", from: second, to: 8 * second, submitter: true,
			begin: loseDisk, end: restartSide,
		},
		{
			name: "members changed", from: 5 * second, to: 15 * second, submitter: true,
			begin: standAlone, end: standTogether,
		},
		{name: "orderly stop", from: second, to: 4 * second, begin: terminate, end: restart},
		{name: "restart storm", from: 6 * second, to: 8 * second, begin: kill, end: storm},
		{name: "stopped process", from: second, to: 10 * second, begin: suspend, end: resume},
		{name: "isolated", from: second, to: 12 * second, begin: isolate, end: rejoin},
		{name: "mute", from: second, to: 10 * second, begin: mute, end: unmute},
		{name: "deaf", from: second, to: 10 * second, begin: deafen, end: undeafen},
		{name: "one-way cut", from: second, to: 12 * second, begin: cut, end: mend},
		{name: "bipartition", from: 3 * second, to: 10 * second, begin: divide, end: unite},
		{name: "bad links", from: 3 * second, to: 10 * second, begin: worsen, end: improve},
		{name: "full disk", from: 3 * second, to: 12 * second, disk: true, begin: fill, end: relieve},
		{name: "busy disk", from: 3 * second, to: 10 * second, begin: hamper, end: unhamper},
		{name: "owner's pause", from: second, to: 6 * second, begin: pause, end: unpause},
		{name: "owner leaves", from: 2 * second, to: 6 * second, begin: leave, end: unpause},
		{
			name: "jobs moved", from: second, to: 2 * second, submitter: true,
			begin: moveAll, end: nothing,
		},
	}
}

func kill(_ context.Context, s *scene) error { return s.story.kill(s.victim) }

func restart(ctx context.Context, s *scene) error { return s.story.restart(ctx, s.victim) }

func terminate(_ context.Context, s *scene) error {
	if !s.victim.Running() {
		return nil
	}
	s.story.killed[s.victim] = true
	return s.victim.Process.Signal(syscall.SIGTERM)
}

// storm starts an agent three times, each time to kill it before it has found its feet.
func storm(ctx context.Context, s *scene) error {
	for range 3 {
		if err := s.story.restart(ctx, s.victim); err != nil {
			return err
		}
		if err := waitUntil(ctx, time.Now().Add(s.length/10)); err != nil {
			return err
		}
		if err := s.story.kill(s.victim); err != nil {
			return err
		}
	}
	return s.story.restart(ctx, s.victim)
}

func suspend(_ context.Context, s *scene) error {
	if !s.victim.Running() {
		return nil
	}
	return localmesh.Suspend(s.victim.Process)
}

func resume(_ context.Context, s *scene) error {
	if !s.victim.Running() {
		return nil
	}
	return localmesh.Resume(s.victim.Process)
}

func isolate(ctx context.Context, s *scene) error { return s.victim.host.Isolate(ctx) }

func rejoin(ctx context.Context, s *scene) error { return s.victim.host.Rejoin(ctx) }

func mute(ctx context.Context, s *scene) error { return s.victim.host.Mute(ctx) }

func unmute(ctx context.Context, s *scene) error { return s.victim.host.Unmute(ctx) }

func deafen(ctx context.Context, s *scene) error { return s.victim.host.Deafen(ctx) }

func undeafen(ctx context.Context, s *scene) error { return s.victim.host.Undeafen(ctx) }

func cut(ctx context.Context, s *scene) error {
	return s.story.mesh.lab.Cut(ctx, s.victim.host, s.other.host)
}

func mend(ctx context.Context, s *scene) error {
	return s.story.mesh.lab.Mend(ctx, s.victim.host, s.other.host)
}

// divide cuts the mesh into two halves that each hold together.
func divide(ctx context.Context, s *scene) error {
	sites := s.story.mesh.sites
	for _, i := range s.story.r.Perm(len(sites))[:len(sites)/3] {
		s.side = append(s.side, sites[i])
	}
	return s.between(ctx, s.story.mesh.lab.Cut)
}

func unite(ctx context.Context, s *scene) error { return s.between(ctx, s.story.mesh.lab.Mend) }

// between does something with both directions of each pair of the two sides.
func (s *scene) between(
	ctx context.Context, do func(context.Context, *netlab.Host, *netlab.Host) error,
) error {
	var errs []error
	inside := make(map[*site]bool)
	for _, a := range s.side {
		inside[a] = true
	}
	for _, a := range s.side {
		for _, b := range s.story.mesh.sites {
			if !inside[b] {
				errs = append(errs, do(ctx, a.host, b.host), do(ctx, b.host, a.host))
			}
		}
	}
	return errors.Join(errs...)
}

// worsen makes all links slow; packets are lost, doubled and overtaken.
func worsen(ctx context.Context, s *scene) error {
	return s.story.mesh.lab.Impair(ctx, s.story.r.Uint64(), netlab.Impairment{
		Latency: 40 * time.Millisecond, Jitter: 60 * time.Millisecond,
		Loss: .03, Duplicate: .03, Reorder: .03,
	})
}

func improve(ctx context.Context, s *scene) error {
	return s.story.mesh.lab.Impair(ctx, 0, netlab.Impairment{})
}

func fill(_ context.Context, s *scene) error { return fillDisk(s.victim.disk) }

func relieve(_ context.Context, s *scene) error { return relieveDisk(s.victim.disk) }

// hampers counts the programs that keep the disk busy. Beside four of them, on a disk where a
// write is synced within a millisecond else, that takes up to 90 ms.
const hampers = 4

// hamper makes the disk slow that all agents share but those with a disk of their own.
func hamper(_ context.Context, s *scene) error {
	for range hampers {
		b, err := makeBusy(s.story.mesh.place.Dir)
		if err != nil {
			return err
		}
		s.busy = append(s.busy, b)
	}
	return nil
}

func unhamper(_ context.Context, s *scene) error {
	var errs []error
	for _, b := range s.busy {
		errs = append(errs, b.end())
	}
	return errors.Join(errs...)
}

// askLimit bounds a request to an agent that may be stopped.
const askLimit = 500 * time.Millisecond

func pause(ctx context.Context, s *scene) error {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	_ = s.victim.API.Pause(ctx, s.length) // one that is dead or stopped is not asked again
	return nil
}

// leave pauses, and lets those jobs leave that can go on elsewhere.
func leave(ctx context.Context, s *scene) error {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	_ = s.victim.API.Leave(ctx, s.length, 0) // as pause
	return nil
}

// moveAll is a user who has all running jobs moved.
func moveAll(ctx context.Context, s *scene) error {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	jobs, err := s.victim.API.Jobs(ctx, view.JobQuery{Limit: 20})
	if err != nil {
		return nil // a user whose agent does not answer lets it be
	}
	for _, j := range jobs {
		if !j.Phase.Ended() {
			_ = s.victim.API.Migrate(ctx, j.ID, view.MoveRequest{Restart: true}) // may be refused
		}
	}
	return nil
}

func nothing(context.Context, *scene) error { return nil }

func unpause(ctx context.Context, s *scene) error {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	_ = s.victim.API.Resume(ctx) // the pause ends by itself as well
	return nil
}
