package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/localmesh"
)

// story is the timeline of troubles: each has a beginning and an end.
type story struct {
	mesh    *mesh
	r       *rand.Rand
	actions []action
	applied map[string]int // how many of each trouble
	skipped map[string]int // troubles that found nobody to meet
	orphans []string       // processes that outlived their agent for too long
	ended   []string       // agents that ended by themselves
	killed  map[*site]bool // agents that are dead because of the story
}

// action is one moment of the timeline.
type action struct {
	at   time.Duration // since the beginning
	name string
	do   func(context.Context) error
}

func newStory(m *mesh, p plan) *story {
	s := &story{
		mesh: m, r: rand.New(rand.NewPCG(p.seed, 1)), //nolint:gosec // the same story again
		applied: make(map[string]int), skipped: make(map[string]int), killed: make(map[*site]bool),
	}
	deck := []trouble(nil)
	for at := p.pace; at < p.story-p.pace; at += p.pace {
		if len(deck) == 0 { // every kind comes as often as every other
			deck = troubles()
			s.r.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
		}
		s.plot(deck[0], at+s.upTo(p.pace), p.story)
		deck = deck[1:]
	}
	slices.SortStableFunc(s.actions, func(a, b action) int { return int(a.at - b.at) })
	return s
}

// upTo draws a time.
func (s *story) upTo(limit time.Duration) time.Duration {
	return time.Duration(s.r.Int64N(int64(limit)))
}

// plot puts a trouble onto the timeline, its end not behind the story's.
func (s *story) plot(t trouble, at, latest time.Duration) {
	length := t.from + s.upTo(t.to-t.from)
	if at+length > latest {
		length = max(0, latest-at)
	}
	victim, other := s.victim(t)
	if victim == nil {
		s.skipped[t.name]++
		return
	}
	at0 := scene{story: s, victim: victim, other: other, length: length}
	s.applied[t.name]++
	name := t.name + " " + victim.Name
	s.actions = append(s.actions,
		action{at, name, func(ctx context.Context) error { return t.begin(ctx, &at0) }},
		action{
			at + length, "end of " + name,
			func(ctx context.Context) error { return t.end(ctx, &at0) },
		})
}

// victim draws whom a trouble meets, and another one.
func (s *story) victim(t trouble) (victim, other *site) {
	var able []*site
	for i, c := range s.mesh.sites {
		if (!t.disk || c.disk != "") && (!t.submitter || i < submitters) {
			able = append(able, c)
		}
	}
	if len(able) == 0 {
		return nil, nil
	}
	victim = able[s.r.IntN(len(able))]
	for other == nil || other == victim {
		other = s.mesh.sites[s.r.IntN(len(s.mesh.sites))]
	}
	return victim, other
}

// play lets it all happen, and starts at its end what is dead.
func (s *story) play(ctx context.Context, out *localmesh.Screen) error {
	begin := time.Now()
	for i, a := range s.actions {
		if err := waitUntil(ctx, begin.Add(a.at)); err != nil {
			return err
		}
		out.Progress("%d of %d: %s", i+1, len(s.actions), a.name)
		out.Detail("%s", a.name)
		if err := a.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
		s.notice(out)
	}
	return s.heal(ctx)
}

// notice looks for agents that ended by themselves, and starts them again later, as their
// owner would.
func (s *story) notice(out *localmesh.Screen) {
	for _, c := range s.mesh.sites {
		if !c.Running() && !s.killed[c] {
			s.killed[c] = true
			s.ended = append(s.ended, c.Name)
			out.Detail("%s ended by itself", c.Name)
		}
	}
}

// heal starts every agent that is dead and waits until each answers.
func (s *story) heal(ctx context.Context) error {
	var errs []error
	for _, c := range s.mesh.sites {
		errs = append(errs, s.restart(ctx, c))
	}
	for _, c := range s.mesh.sites {
		errs = append(errs, c.AwaitReady(ctx))
	}
	return errors.Join(errs...)
}

// leaveLimit is the time that an agent has to end when it was told to.
const leaveLimit = 30 * time.Second

// restart starts an agent that is dead, or is about to end since it was told to: a story that is
// late does one thing right after the other.
func (s *story) restart(ctx context.Context, c *site) error {
	if c.Running() && !s.killed[c] {
		return nil
	}
	if c.Running() {
		select {
		case <-c.Exited:
		case <-time.After(leaveLimit):
			return fmt.Errorf("%s was told to end, and has not within %s", c.Name, leaveLimit)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	delete(s.killed, c)
	return s.mesh.Launch(ctx, c.Agent)
}

// kill ends an agent and wants what it ran to end soon after.
func (s *story) kill(c *site) error {
	s.killed[c] = true
	return c.kill()
}

func waitUntil(ctx context.Context, moment time.Time) error {
	timer := time.NewTimer(time.Until(moment))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
