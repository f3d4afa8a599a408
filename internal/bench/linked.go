package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/config"
	"github.com/mrsmesh/mrsmesh/internal/localmesh"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

const (
	nextDoor    = 32   // members of the neighbouring domain besides its gateway
	linkedHomes = 3    // agents of each domain that submits
	overMiB     = 4096 // of memory that nobody has
	homeMiB     = 1024 // that an agent gives
	nextMiB     = 2048 // ... of the neighbouring domain
	fullMiB     = 1536 // that only those give
)

// household is a domain of agents in processes, and what its user sees.
type household struct {
	*localmesh.Mesh

	board *board
	job   grid.Job
	seen  []sample // how long jobs took to be placed, by round
}

// measureLinked runs the same jobs in a domain that is linked with another one and in one that is
// not, in turns, and then searches the neighbour for what nobody has.
func (b *bench) measureLinked(ctx context.Context) (err error) {
	if !slices.Contains(b.only, "linked") {
		return nil // forty agents are many for a machine that measures something else, too
	}
	if err = b.build(ctx); err != nil {
		return err
	}
	place, err := localmesh.MakePlace("mrs-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, place.Remove()) }()
	var homes []*household
	for _, name := range []string{"linked", "alone"} {
		h, wrong := b.newHousehold(ctx, place, name, linkedHomes, homeMiB)
		defer func() { err = errors.Join(err, h.Stop(ctx)) }()
		if wrong != nil {
			return h.Explain(wrong)
		}
		homes = append(homes, h)
	}
	next, err := b.newHousehold(ctx, place, "next", nextDoor+1, nextMiB)
	defer func() { err = errors.Join(err, next.Stop(ctx)) }()
	if err != nil {
		return next.Explain(err)
	}
	if err = homes[0].linkWith(ctx, next); err != nil {
		return next.Explain(err)
	}
	if err = b.compareHomes(ctx, homes[0], homes[1]); err != nil {
		return err
	}
	return b.searchNextDoor(ctx, homes[0], next)
}

// newHousehold starts a domain with a key of its own and uploads its job to the first agent, which
// runs nothing itself.
func (b *bench) newHousehold(
	ctx context.Context, place *localmesh.Place, domain string, agents int, memory int64,
) (*household, error) {
	gifts := []localmesh.Gift{{Name: domain + "0", Cores: 1, GFLOPS: 1, Memory: 16}}
	for i := 1; i < agents; i++ {
		gifts = append(gifts, localmesh.Gift{
			Name: domain + strconv.Itoa(i), Cores: 2, GFLOPS: 8, Memory: memory,
		})
	}
	h := &household{board: newBoard(), Mesh: localmesh.New(
		place, filepath.Join(b.dir, "siteagent"), domain, gifts,
		func(c *config.Agent) { c.Log.Level = "warn" },
	)}
	h.Founded = true
	if err := h.Start(ctx, localmesh.NewScreen(io.Discard, false)); err != nil {
		return h, err
	}
	b.say("domain %s: %d agents see each other", domain, agents)
	api := h.Submitter().API
	go func() { _ = api.Events(ctx, 0, time.Minute, h.board.note) }() // until the agent ends
	ref, err := api.PutData(ctx, false, bytes.NewReader(localmesh.Program{}.Module()))
	h.job = grid.Job{
		Spec: grid.Spec{
			Kind: grid.KindWasm, Runtime: time.Second, Weights: grid.DefaultWeights(),
			Need: grid.Resources{
				MilliCPUs: 100, MemoryBytes: 64 << 20, DiskBytes: 1 << 20, MFLOPS: 1,
			},
			Module: grid.Input{Path: "/module.wasm", CID: ref.CID, Bytes: ref.Bytes},
		},
		Count: 1, TTL: time.Second,
	}
	return h, err
}

// linkWith links two domains, the other of which gives all that it has.
func (h *household) linkWith(ctx context.Context, other *household) error {
	own, its := h.Submitter(), other.Submitter()
	invitation, err := own.API.InviteDomain(ctx, its.Config.Domain, time.Hour)
	if err != nil {
		return err
	}
	if _, err = its.API.JoinDomain(ctx, invitation.Token); err != nil {
		return err
	}
	all := 100
	_, err = its.API.SetLinkPolicy(ctx, own.Config.Domain, view.PolicyChange{Give: &all})
	if err != nil {
		return err
	}
	return localmesh.Await(ctx, time.Minute, "the domains to be linked",
		func(ctx context.Context) (bool, error) {
			near, err := own.API.Neighbours(ctx)
			return err == nil && len(near) == 1 && near[0].Reachable, nil
		})
}

// serve submits a job and waits for its end.
func (h *household) serve(ctx context.Context, job grid.Job) (*news, time.Duration, error) {
	began := time.Now()
	id, err := h.Submitter().API.Submit(ctx, job)
	if err != nil {
		return nil, 0, err
	}
	n := h.board.job(id)
	select {
	case <-n.ended:
		return n, n.placed.Sub(began), nil
	case <-time.After(time.Minute):
		return nil, 0, fmt.Errorf("job %s has not ended within a minute", id)
	case <-ctx.Done():
		return nil, 0, ctx.Err()
	}
}

// compareHomes tells how long jobs take to be placed in both domains, and how much longer in the
// linked one: by the median of each round.
func (b *bench) compareHomes(ctx context.Context, linked, alone *household) error {
	const perRound, later = 20, .3
	homes := []*household{linked, alone}
	for round := range b.rounds(besideRounds) {
		for turn := range homes {
			h := homes[(turn+round)%len(homes)]
			var placed sample
			for range perRound {
				n, took, err := h.serve(ctx, h.job)
				if err != nil {
					return err
				}
				if !n.good {
					return errors.New("a job of a member's own domain has failed")
				}
				placed = append(placed, took)
			}
			h.seen = append(h.seen, placed)
		}
	}
	var more []float64
	for i, s := range linked.seen {
		more = append(more, s.in(time.Millisecond).P50-alone.seen[i].in(time.Millisecond).P50)
	}
	at := fmt.Sprintf("%d sites, in a linked domain", linkedHomes)
	b.add(spanned("placed, "+at, slices.Concat(linked.seen...), time.Millisecond)).
		against("in one without links", slices.Concat(alone.seen...).in(time.Millisecond).P50)
	b.add(figure{
		Figure: "placed later than in a domain without links, " + at,
		Value:  middle(more), Unit: "ms",
		summary: summary{
			Min: slices.Min(more), P50: middle(more), P95: slices.Max(more), N: len(more),
		},
	}).atMost(later)
	return nil
}

// quest is a question to the domain next door, asked again and again.
type quest struct {
	name  string
	times int
	pause time.Duration // after each
	finds bool          // an offer
	job   func(number int) grid.Job
}

// searchNextDoor tells what a search costs the gateway next door: for what no member can ever take,
// for what all have a place for, and, once all members are full, for something else each time, with
// and without a pause, and for the same again and again.
func (b *bench) searchNextDoor(ctx context.Context, home, next *household) error {
	never, large := home.job, home.job
	never.Spec.Need.MemoryBytes, large.Spec.Need.MemoryBytes = overMiB<<20, fullMiB<<20
	lessOf := func(job grid.Job) func(int) grid.Job {
		return func(number int) grid.Job { return less(job, number) }
	}
	many, few := b.rounds(200), b.rounds(40)
	for _, q := range []quest{
		{name: "nobody can ever", times: many, job: lessOf(never)},
		{name: "all are free", times: many, finds: true, job: lessOf(large)},
		{name: "all are full", times: many, job: lessOf(large)},
		{name: "all are full, one a second", times: few, pause: time.Second, job: lessOf(large)},
		{
			name: "all are full, the same again", times: many,
			job: func(int) grid.Job { return large },
		},
	} {
		if q.name == "all are full" {
			if err := next.fill(ctx); err != nil {
				return err
			}
		}
		if err := b.search(ctx, home, next, q); err != nil {
			return fmt.Errorf("%s: %w", q.name, err)
		}
	}
	return nil
}

// less is a job that needs less than the same with a smaller number, and so may have a place where
// that has none.
func less(job grid.Job, number int) grid.Job {
	job.Spec.Runtime -= time.Duration(number) * time.Millisecond
	return job
}

// fill gives each member of a domain a task that takes all its cores and outlasts the searches.
func (h *household) fill(ctx context.Context) error {
	api := h.Submitter().API
	module := localmesh.Program{Sleep: time.Hour}.Module()
	ref, err := api.PutData(ctx, false, bytes.NewReader(module))
	if err != nil {
		return err
	}
	long := h.job
	long.Count, long.Spec.Need.MilliCPUs, long.Spec.Runtime = nextDoor, 2000, time.Hour
	long.Spec.Module = grid.Input{Path: "/module.wasm", CID: ref.CID, Bytes: ref.Bytes}
	id, err := api.Submit(ctx, long)
	if err != nil {
		return err
	}
	return localmesh.Await(ctx, time.Minute, "the members to be full",
		func(ctx context.Context) (bool, error) {
			tasks, err := api.AllTasks(ctx, id)
			waits := func(t view.TaskView) bool { return t.Phase != view.PhaseRunning }
			return err == nil && !slices.ContainsFunc(tasks, waits), nil
		})
}

// search tells what searches for offers cost the gateway next door: its processor time, that in
// which it only waits left out. Nobody at home can take the job.
func (b *bench) search(ctx context.Context, home, next *household, q quest) error {
	const goal = 2 // ms
	// The link may be new: what it makes late is not measured.
	if err := home.seekAbroad(ctx, q, -1); err != nil {
		return err
	}
	pid := strconv.Itoa(next.Submitter().Process.Pid)
	used := func(do func() error) (seconds float64, took time.Duration, err error) {
		before, wrong := readStat(pid)
		began := time.Now()
		err = errors.Join(wrong, do())
		took = time.Since(began)
		after, wrong := readStat(pid)
		return after.own - before.own, took, errors.Join(err, wrong)
	}
	busy, took, err := used(func() error {
		for i := range q.times {
			if err := home.seekAbroad(ctx, q, i); err != nil {
				return err
			}
			wait(ctx, q.pause)
		}
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	idle, span, err := used(func() error { wait(ctx, max(took, 10*time.Second)); return ctx.Err() })
	if err != nil {
		return err
	}
	each := (busy - idle*took.Seconds()/span.Seconds()) / float64(q.times)
	b.add(figure{
		Figure: fmt.Sprintf("CPU of a search at a gateway with %d members, %s", nextDoor, q.name),
		Value:  each * 1000, Unit: "ms", summary: summary{N: q.times},
	}).atMost(goal)
	mean := took/time.Duration(q.times) - q.pause
	b.say("a search took %s, %s", mean.Round(100*time.Microsecond), q.name)
	return nil
}

// seekAbroad asks for offers until the neighbour was asked, too: it is not while the link is new,
// or after a busy machine has made it late.
func (h *household) seekAbroad(ctx context.Context, q quest, number int) error {
	isOffer := func(r view.OfferRow) bool { return r.Rank > 0 }
	return localmesh.Await(ctx, time.Minute, "the domain next door to be asked",
		func(ctx context.Context) (bool, error) {
			found, err := h.Submitter().API.Plan(ctx, q.job(number))
			offered := slices.ContainsFunc(found.Rows, isOffer)
			if err == nil && offered && !q.finds {
				err = errors.New("somebody has what nobody should have")
			}
			return len(found.Domains) > 0 && offered == q.finds, err
		})
}
