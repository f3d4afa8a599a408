package scenario

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// MeshRules says how the machines of the mesh bid and award in a strategy. With Data 1 and all else
// zero they do as they do without being told, in the map of the thesis.
type MeshRules struct {
	Seconds bool          // the map of seconds, in which jobs wait at the sites; not the thesis'
	NoQuote bool          // sites may not decline an award that has become worse than the runner-up
	SoftMin bool          // by chance among the nearest offers
	HoldAll bool          // each offer holds its capacity until it is cleared or expires (thesis 4.1)
	Replies int           // about so many sites are asked to answer; 0: all
	TTL     time.Duration // of a round of answers
	Instant bool          // messages take no time, and each job is placed before the next one comes
	Rivals  bool          // several sites queue a job, the first that can runs it (Migol 6.2.2)
	// Data and Wait are the weights of these dimensions in the distance; without words of
	// theirs 1, and 0: the wait is in the distance of the map of seconds already.
	Data, Wait float64
}

// meshRules reads the words of a strategy that are about the mesh alone.
func meshRules(l *line, queue bool) MeshRules {
	words := []string{
		"map", "requote", "choice", "hold", "replies", "ttl", "delay", "rivals", "data", "wait",
	}
	if queue && l.has(words...) {
		l.fail("", "", strings.Join(words, ", ")+" with on=mesh", "")
	}
	r := MeshRules{
		Seconds: l.oneOf("map", "thesis", "seconds") == 1,
		NoQuote: l.oneOf("requote", "yes", "no") == 1,
		SoftMin: l.oneOf("choice", "nearest", "softmin") == 1,
		HoldAll: l.oneOf("hold", "none", "all") == 1,
		Instant: l.oneOf("delay", "grid", "none") == 1,
		Rivals:  l.oneOf("rivals", "no", "yes") == 1,

		TTL:  l.lasting("ttl", time.Second),
		Data: l.real("data", 1, 0, maxWeight), Wait: l.real("wait", 0, 0, maxWeight),
	}
	if l.has("replies") {
		r.Replies = int(l.whole("replies", 1, maxSites))
	}
	return r
}

// maxWeight bounds a dimension's weight.
const maxWeight = 1e6

// Range is numbers from Low to High; zero if none are given.
type Range struct{ Low, High int }

// maxCores bounds the cores of a site.
const maxCores = 4096

// drawnCores reads what draws the cores of sites one by one.
func (p *experimentParser) drawnCores(l *line) {
	g := &p.e.Grid
	g.Speed = l.real("speed", 0, 0, maxSpread)
	cores := l.spread("cores", 0, nil)
	g.Cores = Range{int(cores.from), int(cores.to)}
	drawn := g.Cores != Range{}
	switch {
	case drawn && (cores.from < 1 || cores.to < cores.from || cores.to > maxCores ||
		cores.from != math.Trunc(cores.from) || cores.to != math.Trunc(cores.to)):
		l.fail("cores", "", "a range a..b of whole numbers from 1 to 4096", "")
	case drawn && l.has("nodes", "spread", "largest"):
		l.fail("cores", "", "no nodes, spread and largest beside it", "the sites are drawn one by one")
	case !drawn && g.Speed > 0:
		l.fail("speed", "", "cores=... beside it", "add cores=2..32")
	}
}

// mostSites bounds the sites of an experiment, and beyond maxSites they must be all alike in what
// there is of pairs: the rates between them, of which there would be too many.
const mostSites = 100_000

// mostNodes is the most nodes that a grid may have.
func (g *GridModel) mostNodes() float64 {
	if g.Cores.High > 0 {
		return float64(g.Sites * g.Cores.High)
	}
	return g.Nodes
}

// bursts reads how many jobs there are, and how many of them come at one time.
func (p *experimentParser) bursts(l *line, j *JobModel) {
	j.Burst = int(l.whole("burst", 1, maxJobs))
	if !l.has("n") {
		j.For = l.lasting("for", 24*time.Hour)
		return
	}
	j.Count = int(l.whole("n", 1, maxJobs))
	if l.has("for") {
		l.lasting("for", time.Hour)
		l.fail("n", "", "no for beside it", "the time follows from load and the work of n jobs")
	}
}

// fits refuses strategies that the grid or the jobs do not go with.
func (p *experimentParser) fits(add func(word, want, remedy string)) {
	for _, s := range p.e.Strategies {
		if s.Mesh.Rivals && s.Grain < float64(p.e.Jobs.Procs) {
			add("strategy", fmt.Sprintf("a grain of at least %d nodes with rivals=yes", p.e.Jobs.Procs),
				"rivals queue whole jobs, not parts")
		}
	}
	queue := slices.ContainsFunc(p.e.Strategies, func(s Strategy) bool { return s.Queue })
	each := slices.ContainsFunc(p.e.Strategies, func(s Strategy) bool { return s.Each })
	if p.e.Grid.Sites > maxSites && (queue || each || p.e.Grid.RateSpread > 0) {
		add("grid", fmt.Sprintf("at most %d sites with on=queue, by=each or ratespread", maxSites),
			"each pair of sites would have to be known")
	}
	if queue && p.e.Grid.Speed > 0 {
		add("grid", "no speed where a strategy is on=queue", "queues count cores of one speed")
	}
}
