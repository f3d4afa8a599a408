package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/config"
	"github.com/mrsmesh/mrsmesh/internal/localmesh"
	"github.com/mrsmesh/mrsmesh/internal/view"
)

// besideRounds are how often each load is measured on both sides, in turns.
const besideRounds = 12

// side is a farm of one version, and what its submitters saw.
type side struct {
	farm *farm
	work work
	seen map[int][]served // by the number of submitters, one for each round
	rate map[int][]float64
}

// measureBeside runs the same jobs among three agents of this version and three of the one whose
// checkout BENCH_BESIDE names, in turns: whatever else the machine does meets both alike.
func (b *bench) measureBeside(ctx context.Context) error {
	other := os.Getenv("BENCH_BESIDE")
	if other == "" {
		return nil // nothing to compare with
	}
	var sides []*side
	for _, checkout := range []string{".", other} {
		standbys := 0
		if len(sides) == 0 && os.Getenv("BENCH_STANDBYS") != "" {
			standbys = 2
		}
		s, err := b.newSide(ctx, checkout, fmt.Sprintf("side%d", len(sides)), standbys)
		if s != nil {
			defer s.farm.close()
		}
		if err != nil {
			return err
		}
		sides = append(sides, s)
	}
	for round := range b.rounds(besideRounds) {
		for _, submitters := range []int{1, 4} {
			for turn := range sides { // the one that is first is another in each round
				if err := sides[(turn+round)%len(sides)].measure(ctx, submitters); err != nil {
					return err
				}
			}
		}
		b.say("beside: round %d", round+1)
	}
	for _, submitters := range []int{1, 4} {
		b.tellBeside(sides[0], sides[1], submitters)
	}
	return nil
}

// newSide builds the agent of a checkout and starts three of it; the first one, to which jobs are
// submitted, has so many standbys.
func (b *bench) newSide(
	ctx context.Context, checkout, name string, standbys int,
) (*side, error) {
	dir := filepath.Join(b.dir, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := os.Chmod(b.dir, 0o711); err != nil { //nolint:gosec // G302: the owner's user passes it
		return nil, err
	}
	build := exec.CommandContext( //nolint:gosec // G204: our own words
		ctx, "go", "build", "-ldflags=-s -w", "-o", dir+"/", "./cmd/siteagent",
	)
	build.Dir, build.Env = checkout, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the agent of %s: %w: %s", checkout, err, out)
	}
	f, err := newFarm(dir, filepath.Join(dir, "siteagent"), 3)
	if err != nil {
		return nil, err
	}
	f.low, f.standbys = true, standbys
	s := &side{farm: f, seen: make(map[int][]served), rate: make(map[int][]float64)}
	if err = f.grow(ctx, 3); err == nil && standbys > 0 {
		err = f.awaitStandbys(ctx)
	}
	if err != nil {
		return s, err
	}
	s.work = b.chooseWork(ctx, f)
	if err = s.work.store(ctx, f); err != nil {
		return s, err
	}
	_, err = f.once(ctx, f.sites[0], s.work.job) // warm
	return s, err
}

// awaitStandbys waits until the first site has its standbys.
func (f *farm) awaitStandbys(ctx context.Context) error {
	return localmesh.Await(ctx, time.Minute, "the first site to have standbys",
		func(ctx context.Context) (bool, error) {
			status, err := f.sites[0].api.Status(ctx)
			whole := func(g view.Group) bool {
				return g.Owner == status.Site && g.Here && !g.Changing &&
					len(g.Members) == f.standbys+1
			}
			return err == nil && slices.ContainsFunc(status.Standbys, whole), err
		})
}

// measure lets submitters at the first agent submit one job after the other for a while.
func (s *side) measure(ctx context.Context, submitters int) error {
	const span = 2 * time.Second
	var group sync.WaitGroup
	results := make([]served, submitters)
	began := time.Now()
	for k := range submitters {
		group.Go(func() {
			results[k] = s.farm.serve(ctx, s.farm.sites[0], s.work.job, began.Add(span))
		})
	}
	group.Wait()
	took := time.Since(began)
	var all served
	for _, r := range results {
		if r.err != nil {
			return r.err
		}
		all.placed, all.finished = append(all.placed, r.placed...), append(all.finished, r.finished...)
	}
	s.seen[submitters] = append(s.seen[submitters], all)
	s.rate[submitters] = append(s.rate[submitters], float64(len(all.finished))/took.Seconds())
	return nil
}

// tellBeside makes the rows of one load: medians of all rounds, and the median of what each round
// gives for new beside old.
func (b *bench) tellBeside(now, old *side, submitters int) {
	at := fmt.Sprintf("%s, 3 sites, %s", now.work.name, count(submitters, "submitter"))
	var more, times []float64
	var placed, before sample
	for i, s := range now.seen[submitters] {
		o := old.seen[submitters][i]
		placed, before = append(placed, s.placed...), append(before, o.placed...)
		more = append(more, s.placed.in(time.Millisecond).P50-o.placed.in(time.Millisecond).P50)
		times = append(times, now.rate[submitters][i]/old.rate[submitters][i])
	}
	b.add(spanned("placed, "+at, placed, time.Millisecond)).
		against("the other version", before.in(time.Millisecond).P50)
	d := b.add(figure{
		Figure: "placed later than by the other version, " + at, Value: middle(more), Unit: "ms",
		summary: summary{Min: slices.Min(more), P50: middle(more), P95: slices.Max(more), N: len(more)},
	})
	b.add(figure{
		Figure: "jobs per second, " + at, Value: middle(now.rate[submitters]), Unit: "jobs/s",
		summary: summary{N: len(times)},
	}).against("the other version", middle(old.rate[submitters]))
	r := b.add(figure{
		Figure: "jobs per second, as a part of the other version's, " + at, Value: middle(times),
		summary: summary{
			Min: slices.Min(times), P50: middle(times), P95: slices.Max(times), N: len(times),
		},
	})
	later, least := .3, .95
	if now.farm.standbys > 0 { // each fact is on two more disks first
		later, least = 2, .8
	}
	if submitters == 1 {
		d = b.find(d.Figure) // the rows may have moved
		d.atMost(later)
	}
	r.atLeast(least)
}

func middle(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// chosen is a configuration file with what differs from the preset, so that an earlier version
// knows all of it.
func chosen(c config.Agent) []byte {
	all := strings.Split(string(c.File()), "\n")
	preset := config.Default(c.Preset, noEnvironment)
	preset.Owner.Yield = !c.Owner.Yield // the default depends on the user, and that is another
	usual := strings.Split(string(preset.File()), "\n")
	var kept []string
	for i, line := range all {
		if i >= len(usual) || line != usual[i] || strings.HasSuffix(line, ":") {
			kept = append(kept, line)
		}
	}
	return []byte(strings.TrimSuffix(strings.Join(kept, "\n"), "advanced:") + "\n")
}

func noEnvironment(string) (string, bool) { return "", false }
