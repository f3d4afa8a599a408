package workload

import (
	"iter"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat/distuv"
)

// Lublin is the model of rigid jobs of U. Lublin and D. G. Feitelson ("The Workload on
// Parallel Supercomputers: Modeling the Characteristics of Rigid Jobs", JPDC 63(11), 2003),
// with the constants of their program m_lublin99. That program cuts its clock down to a
// whole second at each arrival, so that its day drifts by days in a long log; here the
// clock keeps its fractions.
type Lublin struct {
	Procs int  // processors of the machine, at least 1
	Typed bool // batch and interactive jobs from two streams, instead of one for both
}

// Queues of typed jobs, as the format has them by convention; untyped ones have none.
const (
	queueInteractive = 0
	queueBatch       = 1
	unknown          = -1
)

// Records returns the jobs in the order of their arrival, from midnight on, without end:
// the same for the same seed. They use the processors and the time that they ask for, and
// nobody has estimated their run times.
func (m Lublin) Records(seed uint64) iter.Seq[Record] {
	return func(yield func(Record) bool) {
		sources := m.sources(seed)
		for id := int64(1); ; id++ {
			next := sources[0]
			for _, s := range sources[1:] {
				if s.arrivals.at < next.arrivals.at {
					next = s
				}
			}
			record := next.record()
			record.ID = id
			if !yield(record) {
				return
			}
			next.arrivals.advance()
		}
	}
}

func (m Lublin) sources(seed uint64) []*jobSource {
	classes := []jobClass{untypedJobs()}
	if m.Typed {
		classes = []jobClass{batchJobs(), interactiveJobs()}
	}
	var sources []*jobSource
	for _, c := range classes {
		s := &jobSource{
			queue: c.queue,
			sizes: sizes{c.sizes.adapted(m.Procs), Stream(seed, "lublin size "+c.name)},
			runs:  runs{c.runs, Stream(seed, "lublin run "+c.name)},
			arrivals: newArrivals(
				c.gaps.law(Stream(seed, "lublin arrival "+c.name)), c.day.law(nil),
			),
		}
		s.arrivals.advance()
		sources = append(sources, s)
	}
	return sources
}

// jobSource makes the jobs of one class.
type jobSource struct {
	queue    int64
	sizes    sizes
	runs     runs
	arrivals *arrivals // of the next job
}

func (s *jobSource) record() Record {
	size := s.sizes.draw()
	run := s.runs.draw(size)
	return Record{
		Submit: Seconds(s.arrivals.at), Wait: unknown, Run: run, UsedProcs: size, UsedCPU: unknown,
		UsedKB: unknown, RequestedProcs: size, RequestedTime: unknown, RequestedKB: unknown, Status: 1,
		User: unknown, Group: unknown, Application: unknown, Queue: s.queue, Partition: unknown,
		Preceding: unknown, Think: unknown,
	}
}

// jobClass holds the constants of one kind of jobs.
type jobClass struct {
	name  string
	queue int64
	sizes sizeLaw
	runs  runLaw
	gaps  gamma // ln of seconds between arrivals in a mean half hour
	day   gamma // when of the day, in half hours, from five in the morning on
}

func untypedJobs() jobClass {
	return jobClass{
		name: "untyped", queue: unknown,
		sizes: sizeLaw{serial: 0.244, power: 0.576, low: 0.8, medium: 4.5, high: 7, first: 0.86},
		runs: runLaw{
			short: gamma{4.2, 0.94}, long: gamma{312, 0.03}, slope: -0.0054, offset: 0.78,
		},
		gaps: gamma{10.2303 * 1.0225, 0.4871}, day: gamma{8.1737, 3.9631},
	}
}

func batchJobs() jobClass {
	return jobClass{
		name: "batch", queue: queueBatch,
		sizes: sizeLaw{serial: 0.2927, power: 0.6686, low: 1.2, medium: 5, high: 7, first: 0.875},
		runs: runLaw{
			short: gamma{6.57, 0.823}, long: gamma{639.1, 0.0156}, slope: -0.003, offset: 0.6986,
		},
		gaps: gamma{6.0415 * 1.0519, 0.8531}, day: gamma{6.1271, 5.2740},
	}
}

func interactiveJobs() jobClass {
	return jobClass{
		name: "interactive", queue: queueInteractive,
		sizes: sizeLaw{serial: 0.1541, power: 0.625, low: 1, medium: 3, high: 5.5, first: 0.705},
		runs: runLaw{
			short: gamma{3.8351, 0.6605}, long: gamma{7.073, 0.6856}, slope: -0.0118, offset: 0.9156,
		},
		gaps: gamma{6.5510 * 0.9797, 0.6621}, day: gamma{8.9186, 3.6680},
	}
}

// gamma is the Gamma law with mean shape * scale and variance shape * scale^2.
type gamma struct{ shape, scale float64 }

func (g gamma) law(source rand.Source) distuv.Gamma {
	return distuv.Gamma{Alpha: g.shape, Beta: 1 / g.scale, Src: source}
}

// drawAtMost draws again while the number is above the bound.
func drawAtMost(law distuv.Rander, bound float64) float64 {
	x := law.Rand()
	for x > bound {
		x = law.Rand()
	}
	return x
}

// sizeLaw is the law of the number of processors: serial with one probability, a power of
// two with another; log2 of the others is uniform in two stages.
type sizeLaw struct {
	serial, power     float64
	low, medium, high float64 // log2 of sizes
	first             float64 // probability of the stage from low to medium
	widest            float64 // log2 of the machine
}

// constantsFor is the size of the machine, as log2, for which the constants are.
const constantsFor = 7

// adapted moves the upper two bounds with the size of the machine, so that for untyped jobs
// high is the machine and medium 2.5 below it. On small machines the stages shrink, and a
// job that is not serial has two processors where there are two.
func (l sizeLaw) adapted(procs int) sizeLaw {
	l.widest = math.Log2(float64(max(procs, 1)))
	l.high = max(l.high+l.widest-constantsFor, min(1, l.widest))
	l.low = min(l.low, l.high)
	l.medium = max(l.medium+l.widest-constantsFor, l.low)
	return l
}

type sizes struct {
	law sizeLaw
	rng *rand.Rand
}

func (s sizes) draw() int64 {
	l, u := s.law, s.rng.Float64()
	if u <= l.serial {
		return 1
	}
	from, to := l.low, l.medium
	if s.rng.Float64() > l.first {
		from, to = l.medium, l.high
	}
	x := from + (to-from)*s.rng.Float64()
	if u <= l.serial+l.power {
		x = min(math.Round(x), math.Floor(l.widest))
	}
	return int64(math.Round(math.Exp2(x)))
}

// runLaw is the law of run times: ln of seconds is of one Gamma law or of another, the
// longer one the more likely the wider the job is.
type runLaw struct {
	short, long   gamma
	slope, offset float64 // of the probability of the short one, by processors
}

type runs struct {
	law runLaw
	rng *rand.Rand
}

// longestLn is ln of the longest run time: 45 hours.
const longestLn = 12

func (r runs) draw(size int64) Seconds {
	law := r.law.long
	if r.rng.Float64() <= r.law.offset+r.law.slope*float64(size) {
		law = r.law.short
	}
	return Seconds(math.Exp(drawAtMost(law.law(r.rng), longestLn)))
}
