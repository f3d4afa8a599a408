//go:build e2e

package e2e_test

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/agent"
	"github.com/mrsmesh/mrsmesh/internal/play"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/metrics"
	"github.com/mrsmesh/mrsmesh/pkg/workload"
)

var besides = flag.Int("besides", 1,
	"how many live meshes TestTheSimulatorBesideTheLiveMesh compares with the simulator")

// What is submitted to a live mesh: bursts of jobs of a place each at a load of the mesh.
const (
	bursts       = 10
	jobsOfABurst = 20
	offeredLoad  = .8
	meanRun      = 2500 * time.Millisecond
	placeMilli   = 250
)

// apart is by how much the simulator may be beside the live mesh, in mean completion.
const apart = .1

// besideSites are the sites: how many jobs each runs at the same time, what it computes in all, in
// MFLOP/s, and its memory, in MiB. No two compute the same.
func besideSites() []struct{ places, mflops, memory int64 } {
	return []struct{ places, mflops, memory int64 }{
		{2, 1010, 1024},
		{3, 3330, 512},
		{2, 2020, 1024},
		{1, 510, 256},
		{1, 620, 2048},
		{1, 730, 256},
		{1, 840, 512},
		{1, 950, 4096},
		{1, 1160, 256},
		{1, 1270, 512},
		{1, 1480, 2048},
		{1, 1690, 1024},
	}
}

// A dozen real agents, and the simulator with their configurations, the jobs that they got and the
// times that their journals tell of programs, messages and sandboxes: jobs whose nearest site
// does not depend on time go to the same sites, and bursts of jobs take as long, within a tenth
// in the mean. It is not parallel, because the journals are to tell of this mesh and not of others.
func TestTheSimulatorBesideTheLiveMesh(t *testing.T) {
	var ratios, waits []float64
	for n := range *besides {
		t.Run(fmt.Sprintf("mesh%d", n+1), func(t *testing.T) {
			ratio, wait := besideMesh(t, uint64(n+1))
			ratios, waits = append(ratios, ratio), append(waits, wait)
		})
	}
	t.Logf("simulated beside live, %d meshes: mean completion %s, what of it is not running %s",
		len(ratios), plusMinus(metrics.IntervalOf(ratios)), plusMinus(metrics.IntervalOf(waits)))
}

// besideMesh plays one mesh, and gives the ratios of the simulated to the live mean completion,
// and to what of it is not running.
func besideMesh(t *testing.T, seed uint64) (ratio, wait float64) {
	t.Helper()
	b := &beside{mesh: startBeside(t), modules: make(map[time.Duration]grid.Input)}
	b.determined(t)
	b.bursts(t, workload.Stream(seed, "beside"))
	var states []string
	for _, s := range b.sites {
		s.terminate(t)
		states = append(states, s.state)
	}
	b.audit(t)
	live, err := play.Observe(states, agent.NewMachine)
	must(t, err)
	for _, note := range live.Notes {
		t.Log(note)
	}
	t.Logf("by the journals:\n%s", live.Lags)
	return compareWithSimulator(t, live)
}

// startBeside starts the agents. They share one measurement of this machine.
func startBeside(t *testing.T) *mesh {
	t.Helper()
	var settings []string
	for _, s := range besideSites() {
		settings = append(settings, fmt.Sprintf(
			"ceilings: {cpus: %s, memory: %dMiB, disk: 1GiB, gflops: %s}\n",
			decimal(s.places*placeMilli), s.memory, decimal(s.mflops)))
	}
	m := prepareMeshWith(t, func(s *site) { s.lease = longLease }, settings...)
	for _, s := range m.sites {
		s.launch(t)
	}
	for _, s := range m.sites {
		eventually(t, patience, "the agent "+s.name+" answers", func() bool {
			_, err := s.client.Status(t.Context())
			return err == nil
		})
	}
	m.awaitWhole(t)
	return m
}

// beside is a mesh and what its user submits at the first site.
type beside struct {
	*mesh

	modules map[time.Duration]grid.Input // that sleep so long
}

// job is a job that sleeps.
func (b *beside) job(t *testing.T, name string, run time.Duration) grid.Job {
	t.Helper()
	module, known := b.modules[run]
	if !known {
		content := sleeper(run.String(), run, 4096)
		ref, err := b.sites[0].client.PutData(t.Context(), false, bytes.NewReader(content))
		must(t, err)
		module = grid.Input{Path: "/module.wasm", CID: ref.CID, Bytes: ref.Bytes}
		b.modules[run] = module
	}
	return grid.Job{
		Spec: grid.Spec{
			Name: name, Kind: grid.KindWasm, Module: module,
			Need: grid.Resources{
				MilliCPUs: placeMilli, MFLOPS: 200, MemoryBytes: 16 << 20, DiskBytes: 1 << 20,
			},
			Runtime: run, Weights: grid.DefaultWeights(), Map: grid.MapThesis,
		},
		Count: 1, TTL: 2 * time.Second,
	}
}

func (b *beside) submitJob(t *testing.T, job grid.Job) grid.JobID {
	t.Helper()
	id, err := b.sites[0].client.Submit(t.Context(), job)
	must(t, err)
	return id
}

// awaitAll waits until all jobs are done.
func (b *beside) awaitAll(t *testing.T, ids []grid.JobID) {
	t.Helper()
	for _, id := range ids {
		b.awaitPhase(t, id, view.PhaseDone)
	}
}

const determinedName = "determined"

// determined submits jobs whose nearest sites do not depend on time. The first ones want more
// computation than any site has, so that each free site is at another distance; none ends before
// the last one is placed, so that each takes the nearest of those that are left. The others go to
// the fastest of the sites with enough memory, in the map in seconds, each when the one before has
// ended. Between two there is so much time that the simulator is ready for the second, too.
func (b *beside) determined(t *testing.T) {
	t.Helper()
	var ids []grid.JobID
	next := time.Now()
	for i := range besideSites() {
		must(t, until(t.Context(), next))
		job := b.job(t, fmt.Sprintf("%s-%d", determinedName, i), 6*time.Second)
		job.Spec.Need.MFLOPS = 5000
		ids = append(ids, b.submitJob(t, job))
		b.awaitPhase(t, ids[i], view.PhaseRunning)
		next = time.Now().Add(250 * time.Millisecond)
	}
	b.awaitAll(t, ids)
	for i, mib := range []int64{16, 800, 1600, 3000} {
		must(t, until(t.Context(), time.Now().Add(250*time.Millisecond)))
		job := b.job(t, fmt.Sprintf("%s-map-%d", determinedName, i), 500*time.Millisecond)
		job.Spec.Need.MFLOPS, job.Spec.Need.MemoryBytes = 500, mib<<20
		job.Spec.Map = grid.MapSeconds
		b.awaitAll(t, []grid.JobID{b.submitJob(t, job)})
	}
}

// bursts submits jobs at the offered load, and waits for them.
func (b *beside) bursts(t *testing.T, draw *rand.Rand) {
	t.Helper()
	places := int64(0)
	for _, s := range besideSites() {
		places += s.places
	}
	pause := time.Duration(jobsOfABurst * float64(meanRun) / (offeredLoad * float64(places)))
	var ids []grid.JobID
	next := time.Now().Add(250 * time.Millisecond)
	for burst := range bursts {
		must(t, until(t.Context(), next))
		for i := range jobsOfABurst {
			run := meanRun + time.Duration(draw.IntN(5)-2)*500*time.Millisecond
			ids = append(ids, b.submitJob(t, b.job(t, fmt.Sprintf("burst-%d-%d", burst, i), run)))
		}
		next = next.Add(time.Duration((.5 + draw.Float64()) * float64(pause)))
	}
	b.awaitAll(t, ids)
}

// compareWithSimulator simulates with some seeds what was observed.
func compareWithSimulator(t *testing.T, live *play.Observed) (ratio, wait float64) {
	t.Helper()
	const seeds = 5
	was, wasIdle, n := means(t, live.Courses)
	var completions, idle []float64
	for seed := range uint64(seeds) {
		simulated, err := live.Simulate(t.Context(), seed+1)
		must(t, err)
		for i, c := range simulated {
			if isDetermined(c) && !slices.Equal(c.Sites, live.Courses[i].Sites) {
				t.Errorf("%s went to %s, and with seed %d in the simulator to %s",
					c.Name, live.Courses[i].Sites, seed+1, c.Sites)
			}
		}
		mean, waited, _ := means(t, simulated)
		completions, idle = append(completions, mean), append(idle, waited)
	}
	all, waited := metrics.IntervalOf(completions), metrics.IntervalOf(idle)
	ratio, wait = all.Mean/was, waited.Mean/wasIdle
	t.Logf("%d jobs in bursts: mean completion live %.3f s, simulated %s s: %.3f of it; "+
		"not running live %.3f s, simulated %s s: %.3f of it; machine: %s",
		n, was, plusMinus(all), ratio, wasIdle, plusMinus(waited), wait, machineLoad())
	if ratio < 1-apart || ratio > 1+apart {
		t.Errorf("the simulated mean completion is %.3f of the live one, want 1 within %g",
			ratio, apart)
	}
	return ratio, wait
}

func isDetermined(c play.Course) bool { return strings.HasPrefix(c.Name, determinedName) }

// means are of the jobs in bursts: from submission to end, and what of that is not running, in
// seconds.
func means(t *testing.T, courses []play.Course) (completion, idle float64, n int) {
	t.Helper()
	for _, c := range courses {
		if c.Took < 0 {
			t.Fatalf("%s has not ended", c.Name)
		}
		if !isDetermined(c) {
			completion += c.Took.Seconds()
			idle += (c.Took - c.Ran).Seconds()
			n++
		}
	}
	if n != bursts*jobsOfABurst {
		t.Fatalf("%d jobs in bursts, want %d", n, bursts*jobsOfABurst)
	}
	return completion / float64(n), idle / float64(n), n
}

func plusMinus(i metrics.Interval) string { return fmt.Sprintf("%.3f ± %.3f", i.Mean, i.CI95) }

// machineLoad is the mean length of the queue for the processors in the last minute.
func machineLoad() string {
	text, err := os.ReadFile(filepath.Join("/proc", "loadavg"))
	if err != nil {
		return "load not known"
	}
	load, _, _ := strings.Cut(string(text), " ")
	return "load " + load
}
