package workload

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

// longestRun is the longest run time, e^12 seconds.
const longestRun = 162_754

// runTheory holds the law of whole seconds that one Gamma law gives, at instants that are a
// thousandth apart; between them every second is as likely.
type runTheory struct {
	atLeast            []float64 // probability of instants()[i] seconds or more
	mean, ln, lnSquare float64
}

// instants are whole seconds from 1 to one more than the longest run time.
func instants() []float64 {
	var all []float64
	for s := 1; s <= longestRun; s += 1 + s/1000 {
		all = append(all, float64(s))
	}
	return append(all, longestRun+1)
}

func runsOf(g gamma) runTheory {
	law := g.law(nil)
	var t runTheory
	all := instants()
	for _, s := range all {
		t.atLeast = append(t.atLeast, max(1-law.CDF(math.Log(s))/law.CDF(longestLn), 0))
	}
	for i, s := range all[:len(all)-1] {
		middle := (s + all[i+1] - 1) / 2
		ln, between := math.Log(middle), t.atLeast[i]-t.atLeast[i+1]
		t.mean += middle * between
		t.ln += ln * between
		t.lnSquare += ln * ln * between
	}
	return t
}

// sizesOf is the exact law of sizes, by size.
func sizesOf(l sizeLaw, procs int) []float64 {
	uniform := func(x, from, to float64) float64 { return min(max((x-from)/(to-from), 0), 1) }
	below := func(x float64) float64 {
		return l.first*uniform(x, l.low, l.medium) + (1-l.first)*uniform(x, l.medium, l.high)
	}
	law := make([]float64, procs+1)
	law[1] = l.serial
	for size := 1; size <= procs; size++ {
		n := float64(size)
		law[size] += (1 - l.serial - l.power) * (below(math.Log2(n+0.5)) - below(math.Log2(n-0.5)))
	}
	for i := 0; 1<<i <= procs; i++ {
		law[1<<i] += l.power * (below(float64(i)+0.5) - below(float64(i)-0.5))
	}
	return law
}

// theory holds a class of jobs in the long run: each figure is a mean over all jobs.
type theory struct {
	rate float64 // jobs in a second

	jobs, serial, parallel, powers, batch, size, logSize, run, area, ln, lnSquare float64

	lnOfSize, jobsOfSize [5]float64
	atLeast              []float64
}

// theoryOf has 1 job.
func theoryOf(c jobClass, procs int) theory {
	short, long := runsOf(c.runs.short), runsOf(c.runs.long)
	t := theory{jobs: 1, rate: 1 / meanGap(c.gaps.law(nil)), atLeast: make([]float64, len(instants()))}
	if c.queue == queueBatch {
		t.batch = 1
	}
	shorts := 0.0
	for size, share := range sizesOf(c.sizes.adapted(procs), procs) {
		if size == 0 {
			continue
		}
		n := float64(size)
		p := min(max(c.runs.offset+c.runs.slope*n, 0), 1)
		run := p*short.mean + (1-p)*long.mean
		ln := p*short.ln + (1-p)*long.ln
		shorts += share * p
		t.size, t.run, t.area = t.size+share*n, t.run+share*run, t.area+share*n*run
		t.ln, t.lnSquare = t.ln+share*ln, t.lnSquare+share*(p*short.lnSquare+(1-p)*long.lnSquare)
		class := sizeClass(int64(size))
		t.lnOfSize[class] += share * ln
		t.jobsOfSize[class] += share
		if size == 1 {
			t.serial += share
			continue
		}
		t.parallel += share
		t.logSize += share * math.Log2(n)
		if size&(size-1) == 0 {
			t.powers += share
		}
	}
	for s := range t.atLeast {
		t.atLeast[s] = shorts*short.atLeast[s] + (1-shorts)*long.atLeast[s]
	}
	return t
}

// meanGap is the mean of e^g, in seconds.
func meanGap(g distuv.Gamma) float64 {
	const steps = 20_000
	mean, last := 0.0, 0.0
	for i := 1; i <= steps; i++ {
		to := longestGapLn * float64(i) / steps
		cdf := g.CDF(to)
		mean += math.Exp(to-longestGapLn/2.0/steps) * (cdf - last)
		last = cdf
	}
	return mean / last
}

// with adds another class in proportion to its rate.
func (t theory) with(o theory) theory {
	a, b := t.rate/(t.rate+o.rate), o.rate/(t.rate+o.rate)
	sum := theory{rate: t.rate + o.rate, atLeast: make([]float64, len(instants()))}
	sum.jobs, sum.serial, sum.parallel = 1, a*t.serial+b*o.serial, a*t.parallel+b*o.parallel
	sum.powers, sum.batch, sum.size = a*t.powers+b*o.powers, a*t.batch+b*o.batch, a*t.size+b*o.size
	sum.logSize, sum.run, sum.area = a*t.logSize+b*o.logSize, a*t.run+b*o.run, a*t.area+b*o.area
	sum.ln, sum.lnSquare = a*t.ln+b*o.ln, a*t.lnSquare+b*o.lnSquare
	for i := range sum.lnOfSize {
		sum.lnOfSize[i] = a*t.lnOfSize[i] + b*o.lnOfSize[i]
		sum.jobsOfSize[i] = a*t.jobsOfSize[i] + b*o.jobsOfSize[i]
	}
	for s := range sum.atLeast {
		sum.atLeast[s] = a*t.atLeast[s] + b*o.atLeast[s]
	}
	return sum
}

// runQuantile is the run time that so many jobs do not exceed.
func (t theory) runQuantile(p float64) float64 {
	all, i := instants(), 1
	for 1-t.atLeast[i] < p {
		i++
	}
	return all[i] - 1
}

// figures are those of the reference, but for the quantiles of gaps.
func (t theory) figures(procs int) map[string]float64 {
	f := map[string]float64{
		"serial": t.serial, "powers of two": t.powers / t.parallel, "size": t.size,
		"log2 size": t.logSize / t.parallel, "run": t.run, "ln run": t.ln,
		"sd of ln run": math.Sqrt(t.lnSquare - t.ln*t.ln), "gap": 1 / t.rate, "batch": t.batch,
		"load": t.area * t.rate / float64(procs),
	}
	for name, p := range runQuantiles() {
		f[name] = t.runQuantile(p)
	}
	for i, name := range sizeClasses() {
		f[name] = t.lnOfSize[i] / t.jobsOfSize[i]
	}
	return f
}

func runQuantiles() map[string]float64 {
	return map[string]float64{
		"p10": 0.1, "p25": 0.25, "p50": 0.5, "p75": 0.75, "p90": 0.9, "p99": 0.99,
	}
}

func sizeClasses() [5]string {
	return [5]string{"of 1", "of 2-4", "of 5-16", "of 17-64", "of 65-128"}
}

// TestLublinTheory compares the model in the long run with what the reference program gave
// for 400,000 jobs of three seeds: those figures are rounded, and vary between seeds by up to
// a tenth.
func TestLublinTheory(t *testing.T) {
	const beyond = 0.012
	for name, figures := range map[string]map[string]float64{
		"untyped": untypedTheory().figures(128), "typed": typedTheory().figures(128),
	} {
		for _, row := range reference() {
			got, has := figures[row.name]
			if !has {
				continue
			}
			b := row.untyped
			if name == "typed" {
				b = row.typed
			}
			verdict := "inside"
			if got < b[0] || got > b[1] {
				verdict = "beside"
			}
			if got < b[0]*(1-beyond) || got > b[1]*(1+beyond) {
				t.Errorf("%s: %s: %v, want %v", name, row.name, got, b)
			}
			t.Logf("%-8s %-14s %10.4f, reference %v: %s", name, row.name, got, b, verdict)
		}
	}
}

func untypedTheory() theory { return theoryOf(untypedJobs(), 128) }

func typedTheory() theory {
	return theoryOf(batchJobs(), 128).with(theoryOf(interactiveJobs(), 128))
}

// reference is the table of statistics of the reference program: from, to.
func reference() []struct {
	name           string
	untyped, typed [2]float64
} {
	return []struct {
		name           string
		untyped, typed [2]float64
	}{
		{"serial", [2]float64{0.243, 0.245}, [2]float64{0.174, 0.176}},
		{"powers of two", [2]float64{0.826, 0.828}, [2]float64{0.834, 0.835}},
		{"size", [2]float64{12.09, 12.12}, [2]float64{8.89, 8.93}},
		{"log2 size", [2]float64{3.066, 3.073}, [2]float64{2.754, 2.757}},
		{"run", [2]float64{4358, 4371}, [2]float64{1573, 1626}},
		{"p10", [2]float64{7, 7}, [2]float64{3, 3}},
		{"p25", [2]float64{19, 19}, [2]float64{6, 6}},
		{"p50", [2]float64{108, 108}, [2]float64{18, 18}},
		{"p75", [2]float64{7000, 7000}, [2]float64{85, 90}},
		{"p90", [2]float64{14630, 14630}, [2]float64{820, 908}},
		{"p99", [2]float64{34020, 34020}, [2]float64{32400, 32400}},
		{"ln run", [2]float64{5.458, 5.458}, [2]float64{3.46, 3.49}},
		{"sd of ln run", [2]float64{2.970, 2.970}, [2]float64{2.39, 2.39}},
		{"of 1", [2]float64{5.13, 5.13}, [2]float64{3.69, 3.69}},
		{"of 2-4", [2]float64{5.20, 5.20}, [2]float64{3.07, 3.07}},
		{"of 5-16", [2]float64{5.43, 5.43}, [2]float64{3.53, 3.53}},
		{"of 17-64", [2]float64{6.32, 6.32}, [2]float64{4.23, 4.23}},
		{"of 65-128", [2]float64{8.46, 8.46}, [2]float64{8.56, 8.56}},
		{"gap", [2]float64{908, 910}, [2]float64{517, 534}},
		{"gap p50", [2]float64{116, 116}, [2]float64{51, 51}},
		{"gap p90", [2]float64{1235, 1235}, [2]float64{663, 695}},
		{"batch", [2]float64{0, 0}, [2]float64{0.143, 0.151}},
		{"load", [2]float64{0.717, 0.720}, [2]float64{0.386, 0.403}},
	}
}
