package eval

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/scenario"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/sim/baseline"
	"github.com/mrsmesh/mrsmesh/pkg/workload"
)

// factor draws e^(s N).
func factor(chance *rand.Rand, s float64) float64 { return math.Exp(s * chance.NormFloat64()) }

// drawGrid draws the sites of a grid and the ways between them.
func drawGrid(m scenario.GridModel, seed uint64) baseline.Grid {
	var g baseline.Grid
	memory := workload.Stream(seed, "memory of sites")
	for _, nodes := range drawNodes(m, workload.Stream(seed, "nodes of sites")) {
		bytes := nodes * float64(m.Memory) * factor(memory, m.MemSpread)
		g.Sites = append(g.Sites, grid.Resources{
			MilliCPUs: int64(1000 * nodes), MemoryBytes: int64(bytes),
		})
	}
	if m.RateSpread == 0 && m.Sites > fewSites {
		return g
	}
	rates := workload.Law{Name: workload.LogNormal, Scale: m.Rate, Shape: m.RateSpread}
	g.Bps = workload.Rates(workload.Stream(seed, "ways between sites"), m.Sites, rates, m.Disk)
	return g
}

// fewSites bounds the sites of a grid that know each other, and whose rates are drawn if they are
// all alike. In a larger one sites know the submitter alone.
const fewSites = 200

// drawNodes draws how many nodes each site has: parts of all that are drawn. If the largest one is
// to have so many, it is the first site, and the others are scaled to the rest.
func drawNodes(m scenario.GridModel, chance *rand.Rand) []float64 {
	nodes := make([]float64, m.Sites)
	if m.Cores.High > 0 {
		for i := range nodes {
			nodes[i] = float64(m.Cores.Low + chance.IntN(m.Cores.High-m.Cores.Low+1))
		}
		return nodes
	}
	sum, largest := 0.0, 0
	for i := range nodes {
		nodes[i] = factor(chance, m.Spread)
		sum += nodes[i]
		if nodes[i] > nodes[largest] {
			largest = i
		}
	}
	rest := m.Nodes
	if m.Largest > 0 {
		sum, rest = sum-nodes[largest], m.Nodes-m.Largest
	}
	for i := range nodes {
		nodes[i] *= rest / sum
	}
	if m.Largest > 0 {
		nodes[largest], nodes[0] = nodes[0], m.Largest
	}
	return nodes
}

// drawSpeeds draws the speed of a core of each site, GFLOP/s.
func drawSpeeds(m scenario.GridModel, seed uint64) []float64 {
	chance := workload.Stream(seed, "speeds of sites")
	speeds := make([]float64, m.Sites)
	for i := range speeds {
		speeds[i] = 1
		if m.Speed > 0 {
			speeds[i] = factor(chance, m.Speed)
		}
	}
	return speeds
}

// capacity is the computation that a grid has, GFLOP/s.
func capacity(m scenario.GridModel, g baseline.Grid, speeds []float64) float64 {
	if m.Cores.High == 0 {
		return m.Nodes
	}
	sum := 0.0
	for i, s := range g.Sites {
		sum += float64(s.MilliCPUs) / 1000 * speeds[i]
	}
	return sum
}

// drawJobs draws jobs until they have the work that is asked for, or so many of them. Inputs are
// at sites by Zipf's law, those of a burst at one site.
func drawJobs(
	m scenario.JobModel, g scenario.GridModel, power float64, seed uint64,
) []baseline.Job {
	chance := workload.Stream(seed, "jobs")
	var jobs []baseline.Job
	var arrivals []float64
	work, wanted := 0.0, m.Load*power*m.For.Seconds()
	for r := range (workload.Lublin{Procs: m.Procs}).Records(seed) {
		j := drawJob(m, g, r, chance)
		if at := len(jobs) - len(jobs)%m.Burst; at < len(jobs) {
			j.Source, j.Home = jobs[at].Source, jobs[at].Home
		}
		jobs, arrivals = append(jobs, j), append(arrivals, float64(r.Submit))
		work += float64(j.Need.MilliCPUs) / 1000 * j.Run.Seconds()
		if m.Count > 0 && len(jobs) == m.Count || m.Count == 0 && work >= wanted {
			break
		}
	}
	span := m.For.Seconds()
	if m.Count > 0 {
		span = work / (m.Load * power)
	}
	if m.Burst > 1 {
		arrivals = drawBursts(len(jobs), m.Burst, workload.Stream(seed, "bursts"))
	}
	arrive(jobs, arrivals, span)
	return jobs
}

// drawBursts draws when jobs come that come so many at a time: bursts as of a Poisson process.
func drawBursts(jobs, burst int, chance *rand.Rand) []float64 {
	at := 0.0
	arrivals := make([]float64, jobs)
	for i := range arrivals {
		if i%burst == 0 {
			at += chance.ExpFloat64()
		}
		arrivals[i] = at
	}
	return arrivals
}

// arrive stretches or presses arrivals, of whatever unit, into so many seconds.
func arrive(jobs []baseline.Job, arrivals []float64, seconds float64) {
	first, last := arrivals[0], arrivals[len(arrivals)-1]
	for i, at := range arrivals {
		part := 0.0
		if last > first {
			part = (at - first) / (last - first)
		}
		jobs[i].Submit = time.Duration(part * seconds * float64(time.Second))
	}
}

// drawJob draws one job of a record's size and run time.
func drawJob(
	m scenario.JobModel, g scenario.GridModel, r workload.Record, chance *rand.Rand,
) baseline.Job {
	run := max(time.Duration(float64(r.Run)*m.Time*float64(time.Second)), time.Second)
	if run > m.Longest {
		run = time.Duration((.6 + .4*chance.Float64()) * float64(m.Longest))
	}
	between := func(low, high float64) float64 { return low + (high-low)*chance.Float64() }
	bytes := float64(r.UsedProcs) * float64(g.Memory) * between(m.MemLow, m.MemHigh)
	j := baseline.Job{
		Need: grid.Resources{MilliCPUs: 1000 * r.UsedProcs, MemoryBytes: int64(bytes)},
		Run:  run, Estimate: time.Duration(between(m.EstLow, m.EstHigh) * float64(run)),
		Source: zipf(chance, g.Sites),
	}
	j.Home = j.Source
	if chance.Float64() >= m.Local {
		j.Home = chance.IntN(g.Sites)
	}
	data := float64(m.Data) * factor(chance, m.DataSpread)
	j.In, j.Out = int64(data), int64(data*m.Out)
	return j
}

// zipf draws one of n by Zipf's law with exponent 1.
func zipf(chance *rand.Rand, n int) int {
	sums := make([]float64, n)
	sum := 0.0
	for i := range sums {
		sum += 1 / float64(i+1)
		sums[i] = sum
	}
	at, _ := slices.BinarySearchFunc(sums, chance.Float64()*sum, cmp.Compare[float64])
	return min(at, n-1)
}
