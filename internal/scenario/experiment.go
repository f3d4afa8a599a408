package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Experiment is a scenario whose grid and jobs are drawn anew for each seed, and in which
// several strategies are compared. Its text has the lines
//
//	grid     n=16 nodes=128 spread=1.2 largest=64 mem=1GiB memspread=.4 rate=80Mbps ratespread=.7
//	jobs     procs=64 time=.3 longest=4h load=.8 for=130000s data=38MiB dataspread=1.5
//	strategy name=MRS on=mesh split=greedy
//	strategy name=BACKFILL on=queue
//	expect   ratio=MRS/BACKFILL of=wait from=.4 to=.6 paper=.491
//	seeds    n=30
//
// and, if sites fail, those of FailureSetting.
type Experiment struct {
	Grid       GridModel
	Jobs       JobModel
	Settings   []FailureSetting // how sites fail; none: they do not
	Strategies []Strategy
	Claims     []Claim
	Seeds      int // replications, unless told otherwise

	// Instead of all above, with cases of their own:

	Failing   *Failing   // jobs on resources that fail; or nil
	Remapping *Remapping // reservations on machines that fail; or nil
}

// InCases reports whether all strategies are played in several cases, and place nothing on sites.
func (e Experiment) InCases() bool { return e.Failing != nil || e.Remapping != nil }

// GridModel says how the sites of a grid are drawn. Factors e^(s N) have s as their spread,
// with N standard normal.
type GridModel struct {
	Sites      int
	Nodes      float64 // of all sites together; a node is a core of 1 GFLOP/s
	Spread     float64 // of a site's part of them
	Largest    float64 // nodes of the first site, which is the largest; 0: as drawn
	Memory     int64   // of a node, bytes
	MemSpread  float64
	Rate       float64 // from a site to another, bit/s, for each ordered pair
	RateSpread float64
	Disk       float64       // bit/s
	Latency    time.Duration // of a message, one way
	LatSpread  float64       // of that between two sites
	Cores      Range         // of a site, if its cores are drawn and not its part of Nodes; or zero
	Speed      float64       // spread of a core's speed, a factor of 1 GFLOP/s; with Cores
	Ways       string        // what transfers on one way do: turns, fair, or apart
}

// JobModel says how the jobs are drawn: by the model of Lublin and Feitelson, changed; or which
// part of a log they are, where only what the log does not say is drawn.
type JobModel struct {
	Procs      int           // nodes of the widest job
	Time       float64       // run times are so many times as long
	Longest    time.Duration // longer ones are cut to 0.6 to 1 of it
	Load       float64       // work of all jobs, as a part of what the grid has within For
	For        time.Duration // the jobs arrive within it; 0: as Load says of Count jobs
	Count      int           // jobs; 0: as many as have the work that Load says
	Burst      int           // so many arrive at one time, of one submitter, for one input
	MemLow     float64       // memory of a node of a job, as a part of GridModel.Memory, from
	MemHigh    float64       // to
	Data       int64         // input, the median, bytes
	DataSpread float64
	Out        float64 // output, as a part of the input
	Local      float64 // probability that a job is submitted where its input is
	EstLow     float64 // estimate, as a multiple of the run time, from
	EstHigh    float64 // to
	LogPart
}

// Strategy is a way to place jobs.
type Strategy struct {
	Name     string
	Queue    bool    // one queue for the whole grid that knows everything; false: the mesh
	Copies   int     // of each job; of Queue
	Split    bool    // jobs may be cut over several sites
	Random   bool    // sites are tried in random order; of Queue
	Best     bool    // the site that a job fills most is tried first; of Queue
	Near     bool    // the site to which its data move fastest is; of Queue
	First    bool    // all jobs that fit go, and none is promised a place; of Queue
	Each     bool    // each job is submitted where its input is, not all at one site; of the mesh
	Grain    float64 // nodes of a part of a job; of the mesh
	Mesh     MeshRules
	Guard    // against failures
	Forecast // if it places nothing
}

// Claim says between which bounds a ratio of two strategies' measures is expected.
type Claim struct {
	Line     int
	Strategy string // above
	Beside   string // below; empty: the claim is about the strategy's own measure
	Measure  string
	From, To float64
	Paper    float64 // what the paper says; 0: nothing
	Where            // in which settings
}

// maxNodes bounds a grid's nodes, and a job's.
const maxNodes = 1 << 20

// IsExperiment reports whether a text is that of an experiment: it has a grid, resources, or
// machines.
func IsExperiment(text string) bool {
	return hasLine(text, "grid") || hasLine(text, "resources") || hasLine(text, "machines")
}

func hasLine(text, word string) bool {
	for raw := range strings.Lines(text) {
		if words := strings.Fields(raw); len(words) > 0 && words[0] == word {
			return true
		}
	}
	return false
}

// ParseExperiment reads an experiment. Its errors are all *Error, joined.
func ParseExperiment(text string) (Experiment, error) {
	if len(text) > maxText {
		return Experiment{}, &Error{Word: "experiment", Want: "at most 1 MiB of text"}
	}
	p := &experimentParser{seen: make(map[string]bool)}
	switch {
	case hasLine(text, "resources"):
		p.e.Failing = new(Failing)
	case hasLine(text, "machines"):
		p.e.Remapping = new(Remapping)
	}
	number := 0
	for raw := range strings.Lines(text) {
		number++
		if l := newLine(number, raw); l != nil {
			p.read(l)
		}
	}
	p.whole()
	slices.SortStableFunc(p.errs, func(a, b error) int { return lineOf(a) - lineOf(b) })
	if err := errors.Join(p.errs...); err != nil {
		return Experiment{}, err
	}
	return p.e, nil
}

type experimentParser struct {
	e    Experiment
	seen map[string]bool // the words of lines that there is one of
	errs []error
}

func (p *experimentParser) read(l *line) {
	words := map[string]func(*line){
		"grid": p.grid, "jobs": p.jobs, "strategy": p.strategy, "expect": p.claim, "seeds": p.seeds,
		"failures": p.failures, "forecast": p.forecast,
	}
	names := []string{"grid", "jobs", "strategy", "expect", "seeds", "failures", "forecast"}
	switch {
	case p.e.Failing != nil:
		words, names = p.failingWords()
	case p.e.Remapping != nil:
		words, names = p.remappingWords()
	}
	do, known := words[l.word]
	switch {
	case !known:
		l.errs = nil
		l.fail("", "", "one of "+strings.Join(names, " ")+" at its beginning",
			"did you mean "+nearest(l.word, names)+"?")
	case p.seen[l.word] && slices.Contains(onlyOnce(), l.word):
		l.errs = nil
		l.fail("", "", "one such line", "remove one of the two")
	default:
		p.seen[l.word] = true
		do(l)
		l.finish()
	}
	p.errs = append(p.errs, l.errs...)
}

// onlyOnce are the words of lines that there is one of.
func onlyOnce() []string { return []string{"grid", "jobs", "tasks", "requests", "seeds"} }

func (p *experimentParser) grid(l *line) {
	ways := []string{"turns", "fair", "apart"}
	p.e.Grid = GridModel{
		Sites: int(l.whole("n", 1, mostSites)), Nodes: l.real("nodes", 64, .001, maxNodes),
		Spread: l.real("spread", 0, 0, maxSpread), Largest: l.real("largest", 0, 0, maxNodes),
		Memory: l.amount("mem", 1<<30, byteUnits()), MemSpread: l.real("memspread", 0, 0, maxSpread),
		Rate:       float64(l.amount("rate", 80e6, rateUnits())),
		RateSpread: l.real("ratespread", 0, 0, maxSpread),
		Disk:       float64(l.amount("disk", 800e6, rateUnits())),
		Latency:    l.duration("latency", 30*time.Millisecond, false),
		LatSpread:  l.real("latencyspread", 0, 0, maxSpread),
		Ways:       ways[l.oneOf("ways", ways...)],
	}
	p.drawnCores(l)
	g := p.e.Grid
	if g.Largest > 0 && (g.Largest >= g.Nodes || g.Sites == 1) {
		l.fail("largest", fmt.Sprint(g.Largest), "less than all nodes, of several sites", "")
	}
	if g.Memory == 0 || g.Rate == 0 || g.Disk == 0 {
		l.fail("", "", "mem, rate and disk above 0", "")
	}
}

// maxSpread bounds the spread of a factor: e^(4 N) goes from millionths to millions.
const maxSpread = 4

func (p *experimentParser) jobs(l *line) {
	j := JobModel{
		Procs: int(l.whole("procs", 1, 4096)), Time: l.real("time", 1, .000001, 1000),
		Longest: l.lasting("longest", 24*time.Hour), Load: l.real("load", .8, .00001, 100),
		Data:       l.amount("data", 0, byteUnits()),
		DataSpread: l.real("dataspread", 0, 0, maxSpread), Out: l.real("out", 0, 0, 1000),
		Local: l.real("local", 0, 0, 1),
	}
	p.bursts(l, &j)
	memory, estimate := l.spread("mem", .5, nil), l.spread("estimate", 1, nil)
	j.MemLow, j.MemHigh, j.EstLow, j.EstHigh = memory.from, memory.to, estimate.from, estimate.to
	if j.EstLow < 1 || j.EstHigh < j.EstLow || j.EstHigh > 100 {
		l.fail("estimate", "", "a range a..b from 1 on, at most 100", "")
	}
	if j.MemHigh < j.MemLow || j.MemHigh > 1000 {
		l.fail("mem", "", "a range a..b, at most 1000", "")
	}
	j.readLog(l)
	p.e.Jobs = j
}

func (p *experimentParser) strategy(l *line) {
	s := Strategy{Name: l.required("name", "a name"), Copies: 1}
	p.checkName(l, s.Name)
	s.Queue = l.oneOf("on", "mesh", "queue") == 1
	s.Split = l.oneOf("split", "never", "greedy") == 1
	s.Each = l.oneOf("by", "one", "each") == 1
	order := l.oneOf("order", "listed", "random", "best", "near")
	s.Random, s.Best, s.Near = order == 1, order == 2, order == 3
	s.First = l.oneOf("fill", "easy", "first") == 1
	if s.Copies = int(l.whole("copies", 1, maxSites)); s.Copies > 1 && !s.Queue {
		l.fail("copies", strconv.Itoa(s.Copies), "1 on the mesh", "")
	}
	if s.Guard = l.guard(s.Queue); s.Orders && (s.Best || s.Near) {
		l.fail("order", "", "another one: policy=naa and policy=nsa have an order of their own", "")
	}
	if s.Copies > 1 && s.Retry != "" {
		l.fail("retry", s.Retry, "never where jobs have several copies", "")
	}
	s.Grain = l.real("grain", 1, .01, maxNodes)
	if s.Queue && s.Each || !s.Queue && (order > 0 || s.First) {
		l.fail("", "", "order=... and fill=... with on=queue, by=... with on=mesh", "")
	}
	s.Mesh = meshRules(l, s.Queue)
	p.e.Strategies = append(p.e.Strategies, s)
}

func (p *experimentParser) claim(l *line) {
	c := Claim{
		Line: l.number, Measure: l.required("of", "a measure"), From: l.real("from", 0, 0, 1e9),
		To: l.real("to", 0, 0, 1e9), Paper: l.real("paper", 0, 0, 1e9), Where: l.where(),
	}
	c.Strategy, c.Beside = l.sides()
	if !slices.Contains(AllMeasures(), c.Measure) {
		l.fail("of", c.Measure, "one of "+strings.Join(AllMeasures(), " "), "")
	}
	if c.To < c.From || c.To == 0 {
		l.fail("to", "", "a number above from", "add to=...")
	}
	p.e.Claims = append(p.e.Claims, c)
}

// ExperimentMeasures lists what strategies are compared by.
//
//	wait         AWT: from submission to execution, the mean, seconds
//	makespan     QCT: from the first submission to the last end, seconds
//	utilization  AGU: the part of the grid's nodes that was held, 0 to 1
//	done         JPR: jobs done per second
//	rejected     JRR: jobs rejected per second: they never began
//	failed       JFR: jobs that their sites failed, per second
//	failures     runs that their sites failed, per second
//	completion   from submission to the end, the mean, seconds
//	completion50 completion95   the same, medians and 95th percentiles
//	slowdown     bounded slowdown: completion by run time, of at least 10 s, the mean
//	decision     from submission to the first award, the median, seconds; of the mesh
//	messages     sent for each job; 0 of a queue that knows everything
//	replies      of them, offers and refusals; of the mesh
func ExperimentMeasures() []string {
	return []string{
		"wait", "makespan", "utilization", "done", "rejected", "failed", "failures",
		"completion", "completion50", "completion95", "slowdown", "decision", "messages", "replies",
	}
}

func (p *experimentParser) seeds(l *line) { p.e.Seeds = int(l.whole("n", 1, 100_000)) }

func (p *experimentParser) whole() {
	add := func(word, want, remedy string) {
		p.errs = append(p.errs, &Error{Word: word, Want: want, Remedy: remedy})
	}
	if p.e.Seeds == 0 {
		p.e.Seeds = 30
	}
	switch {
	case p.e.Failing != nil:
		p.wholeFailing()
		return
	case p.e.Remapping != nil:
		p.wholeRemapping()
		return
	}
	if !p.seen["grid"] {
		add("grid", "a line that says what the grid is drawn from", "add grid n=16 nodes=128")
	}
	if !p.seen["jobs"] {
		add("jobs", "a line that says what the jobs are drawn from", "add jobs procs=64 load=.8 for=24h")
	}
	if len(p.e.Strategies) == 0 {
		add("strategy", "a line for each strategy", "add strategy name=MRS on=mesh split=greedy")
	}
	p.settle()
	for _, c := range p.e.Claims {
		for _, name := range []string{c.Strategy, c.Beside} {
			unknown := !slices.ContainsFunc(p.e.Strategies, func(s Strategy) bool { return s.Name == name })
			if unknown && (name != "" || name == c.Strategy) {
				p.errs = append(p.errs, &Error{
					Line: c.Line, Word: "expect", Key: "ratio", Have: name, Want: "the name of a strategy",
				})
			}
		}
	}
	p.fits(add)
	most := p.e.Grid.mostNodes()
	if float64(p.e.Jobs.Procs) > most && p.seen["grid"] && p.seen["jobs"] {
		add("jobs", fmt.Sprintf("procs of at most the grid's %v nodes", most), "")
	}
}
