package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/agent"
	"github.com/mrsmesh/mrsmesh/internal/agent/backend"
	"github.com/mrsmesh/mrsmesh/internal/data"
	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/internal/lrm/fake"
	"github.com/mrsmesh/mrsmesh/internal/p2p"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// measurePlacing times announcements among real agents in this process.
func (b *bench) measurePlacing(ctx context.Context) error {
	sizes := []int{8, 32, 64}
	if b.quick {
		sizes = []int{8, 32}
	}
	for _, n := range sizes {
		if err := b.placeAmong(ctx, n); err != nil { // a busy machine cannot start so many together
			b.lost(fmt.Sprintf("announcements among %d sites", n), err)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

func (b *bench) placeAmong(ctx context.Context, n int) error {
	c, err := b.newCrowd(ctx, n)
	if err != nil {
		return err
	}
	return errors.Join(b.placeIn(ctx, c), c.close())
}

func (b *bench) placeIn(ctx context.Context, c *crowd) error {
	if err := b.placeOne(ctx, c); err != nil {
		return err
	}
	if len(c.nodes)-1 != 32 {
		return nil
	}
	return b.placeArray(ctx, c)
}

// crowd is a mesh in this process: N sites and a submitter, which is a site, too.
// Four of them submit: by gossip and by unicast, with facts on the disk and in
// memory.
type crowd struct {
	nodes  []*node
	clears clears
	end    context.CancelFunc
}

// node is one agent of a crowd.
type node struct {
	*agent.Agent
	*backend.Backend
	watch watch
	gone  chan struct{} // closed when Run has returned
}

// submitters is the number of agents of a crowd that submit, the first ones.
const submitters = 4

func (c *crowd) disk(by path) *node { return c.nodes[map[path]int{byGossip: 0, byUnicast: 1}[by]] }

func (c *crowd) memory(by path) *node {
	return c.nodes[map[path]int{byGossip: 2, byUnicast: 3}[by]]
}

// newCrowd starts a mesh of n sites besides the one that submits.
func (b *bench) newCrowd(ctx context.Context, n int) (*crowd, error) {
	began := time.Now()
	live, end := context.WithCancel(ctx)
	c := &crowd{end: end, clears: clears{gone: make(map[grid.JobID]map[grid.SiteID]bool)}}
	var members []grid.SiteID
	configs := make([]agent.Config, n+1)
	for i := range configs {
		configs[i] = b.crowdConfig(n, i)
		identity, err := p2p.LoadIdentity(configs[i].P2P.KeyFile)
		if err != nil {
			return nil, errors.Join(err, c.close())
		}
		members = append(members, identity.Site())
	}
	for i := range configs {
		configs[i].P2P.Allow = members
		for _, earlier := range c.nodes {
			configs[i].P2P.Bootstrap = append(configs[i].P2P.Bootstrap, earlier.Addrs()...)
		}
		if err := c.start(live, configs[i], members[i]); err != nil {
			return nil, errors.Join(err, c.close())
		}
		if i%arrivals != 0 && i != n {
			continue
		}
		what := fmt.Sprintf("%d agents to meet", i+1)
		if err := await(ctx, time.Minute, what, func() bool { return c.whole(live) }); err != nil {
			return nil, errors.Join(err, c.close())
		}
	}
	b.say("%d agents met in %s", n+1, time.Since(began).Round(100*time.Millisecond))
	if err := c.warm(live); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// arrivals is the number of agents that start before all must have met. If many start
// together, two cores exceed the time limit of the handshakes and all are tried again.
const arrivals = 4

// whole reports whether all agents see each other.
func (c *crowd) whole(ctx context.Context) bool {
	for _, node := range c.nodes {
		if s, err := node.Status(ctx); err != nil || s.Peers < len(c.nodes)-1 {
			return false
		}
	}
	return true
}

func (b *bench) crowdConfig(n, i int) agent.Config {
	dir := b.light()
	if i < submitters/2 {
		dir = b.dir
	}
	dir = filepath.Join(dir, fmt.Sprintf("crowd%d-%d", n, i))
	return agent.Config{
		StateDir: dir, Version: "bench", Name: fmt.Sprintf("s%d", i), Seed: uint64(i + 1),
		P2P: p2p.Config{
			KeyFile: dir + ".key", Listen: []string{"/ip4/127.0.0.1/tcp/0"}, Domain: "bench",
			Preset: p2p.PresetLAN,
		},
		Data: data.Config{QuotaBytes: 64 << 20}, OutputBytes: 1 << 20,
		Capability: grid.Capability{
			Total: grid.Resources{
				MilliCPUs: 32_000, MemoryBytes: 64 << 30, DiskBytes: 64 << 30, MFLOPS: 128_000,
			},
			CoreMFLOPS: 4000, DownBps: 1e9, UpBps: 1e9, DiskBps: 1e9,
			Kinds: []grid.WorkKind{grid.KindCommand}, OS: "linux", Arch: "amd64",
		},
		Adapters: map[grid.WorkKind]lrm.Adapter{
			grid.KindCommand: fake.New(fake.Config{Kind: grid.KindCommand}),
		},
		Gossip: i%2 == 0,
	}
}

func (c *crowd) start(ctx context.Context, cfg agent.Config, self grid.SiteID) error {
	n := &node{gone: make(chan struct{})}
	if len(c.nodes) < submitters {
		cfg.Taps = n.watch.taps(func() grid.SiteID { return self })
	}
	watched := cfg.Taps.Received
	cfg.Taps.Received = func(from grid.SiteID, m protocol.Message) {
		c.clears.received(self, m)
		if watched != nil {
			watched(from, m)
		}
	}
	var err error
	if n.Agent, err = agent.New(ctx, cfg); err != nil {
		return err
	}
	n.Backend = backend.New(n.Agent)
	c.nodes = append(c.nodes, n)
	go func() {
		defer close(n.gone)
		_ = n.Run(ctx) // what fails shows in the figures
	}()
	return nil
}

// close ends all agents.
func (c *crowd) close() error {
	c.end()
	var errs []error
	for _, n := range c.nodes {
		<-n.gone
		if err := n.Close(); err != nil && !errors.Is(err, data.ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// warm makes every site a known bidder of all submitters, and goes on until
// gossip reaches all of them.
func (c *crowd) warm(ctx context.Context) error {
	for i, n := range c.nodes[:submitters] {
		good, by := 0, []path{byGossip, byEither}[i%2]
		for range 40 {
			s, err := c.round(ctx, n, by, 1)
			if err != nil {
				return err
			}
			if good++; !s.complete {
				good = 0
			}
			if good == 3 {
				break
			}
		}
		if good < 3 {
			return errors.New("gossip does not reach all sites")
		}
	}
	return nil
}

// emptyJob is a command that needs next to nothing.
func emptyJob(tasks int, ttl time.Duration) grid.Job {
	return grid.Job{
		Count: uint32(tasks), TTL: ttl,
		Spec: grid.Spec{
			Kind: grid.KindCommand, Args: []string{"true"},
			Need: grid.Resources{
				MilliCPUs: 1000, MemoryBytes: 64 << 20, DiskBytes: 16 << 20, MFLOPS: 1000,
			},
			Runtime: time.Second, Map: grid.MapThesis, Weights: grid.DefaultWeights(),
		},
	}
}

// round submits a job, waits for the offers and the awards, and withdraws it.
func (c *crowd) round(ctx context.Context, n *node, by path, tasks int) (spans, error) {
	const ttl = 2 * time.Second
	done := n.watch.begin(by, len(c.nodes)-1, tasks)
	id, err := n.Submit(ctx, emptyJob(tasks, ttl), "")
	if err != nil {
		return spans{}, err
	}
	late := time.NewTimer(ttl + time.Second)
	defer late.Stop()
	select {
	case <-done:
	case <-late.C:
	case <-ctx.Done():
		return spans{}, ctx.Err()
	}
	s := n.watch.end()
	if err := n.Cancel(ctx, id); err != nil {
		return s, err
	}
	return s, c.clears.await(ctx, id, len(c.nodes)-1)
}

// series are the rounds of one submitter by one path.
type series struct {
	offer, award sample
	lost         int    // rounds in which an offer or an award did not come
	last         string // what came in the last of them
}

// turn adds a round.
func (s *series) turn(ctx context.Context, c *crowd, n *node, by path, tasks int) error {
	got, err := c.round(ctx, n, by, tasks)
	switch {
	case err != nil:
		return err
	case !got.complete:
		s.lost++
		s.last = fmt.Sprintf("%d offers and %d awards", got.offers, got.awards)
	default:
		s.offer = append(s.offer, got.lastOffer)
		s.award = append(s.award, got.award)
	}
	return nil
}

func (s *series) note(f *figure) *figure {
	if s.lost > 0 {
		f.Note = fmt.Sprintf("%d rounds incomplete, the last with %s", s.lost, s.last)
	}
	return f
}

// placeOne times single jobs, in turns with the raw star.
func (b *bench) placeOne(ctx context.Context, c *crowd) error {
	sites := len(c.nodes) - 1
	raw, err := newStar(ctx, sites, c.disk(byUnicast).watch.ask, c.disk(byUnicast).watch.reply)
	if err != nil {
		return err
	}
	defer raw.close()
	var bare sample
	var onDisk, inMemory [2]series
	err = b.repeat(120, 20*time.Second, func() error {
		var errs []error
		for i, by := range []path{byGossip, byUnicast} {
			for range 3 {
				errs = append(errs, timed(&bare, raw.once))
			}
			errs = append(
				errs, onDisk[i].turn(ctx, c, c.disk(by), by, 1), inMemory[i].turn(ctx, c, c.memory(by), by, 1),
			)
		}
		return errors.Join(errs...)
	})
	if err != nil {
		return err
	}
	limit := b.add(spanned(fmt.Sprintf("raw TCP star, %d clients", sites), bare, time.Millisecond)).P50
	for i, by := range []path{byGossip, byUnicast} {
		times := map[path]float64{byGossip: 20, byUnicast: 4}[by]
		name := func(what string) string { return fmt.Sprintf("%s, %s, %d sites", what, by, sites) }
		f := spanned(name("announce to last offer"), inMemory[i].offer, time.Millisecond)
		b.add(*inMemory[i].note(&f)).against("star", limit).ratioAtMost(times)
		f = spanned(name("announce to award, facts on disk"), onDisk[i].award, time.Millisecond)
		b.add(*onDisk[i].note(&f)).against("star", limit)
		b.add(spanned(
			name("announce to award, facts in memory"), inMemory[i].award, time.Millisecond,
		)).against("star", limit)
	}
	return nil
}

// placeArray times the decision on a thousand tasks.
func (b *bench) placeArray(ctx context.Context, c *crowd) error {
	const tasks = 1000
	raw := b.find(fmt.Sprintf("raw TCP star, %d clients", len(c.nodes)-1))
	for _, by := range []path{byGossip, byUnicast} {
		var onDisk, inMemory series
		err := b.repeat(40, 15*time.Second, func() error {
			return errors.Join(
				onDisk.turn(ctx, c, c.disk(by), by, tasks), inMemory.turn(ctx, c, c.memory(by), by, tasks),
			)
		})
		if err != nil {
			return err
		}
		for _, one := range []struct {
			what   string
			series *series
		}{{"facts on disk", &onDisk}, {"facts in memory", &inMemory}} {
			sum := one.series.award.rates(tasks)
			f := figure{
				Figure: fmt.Sprintf("array of %d decided, %s, %d sites, %s",
					tasks, by, len(c.nodes)-1, one.what),
				Value: sum.P50, Unit: "tasks/s", summary: sum,
			}
			added := b.add(*one.series.note(&f))
			if raw != nil && raw.P50 > 0 {
				added.against("as many as one raw star decides", float64(tasks)/(raw.P50/1000))
			}
			if by == byGossip {
				added.atLeast(50_000)
			}
		}
	}
	return nil
}
