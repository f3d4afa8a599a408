package eval

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/scenario"
	"github.com/mrsmesh/mrsmesh/pkg/avail"
	"github.com/mrsmesh/mrsmesh/pkg/metrics"
	"github.com/mrsmesh/mrsmesh/pkg/sim/baseline"
	"github.com/mrsmesh/mrsmesh/pkg/workload"
)

// pastCycles is for how many mean times up and down sites have been there before the first job:
// schedulers and sites know some of their past.
const pastCycles = 12

// played is a strategy in a setting.
type played struct {
	scenario.Strategy
	setting *scenario.FailureSetting // nil: nothing fails
	label   string                   // the strategy's name, with the setting's
}

// inSettings puts each strategy into each setting.
func inSettings(strategies []scenario.Strategy, settings []scenario.FailureSetting) []played {
	var all []played
	if len(settings) == 0 {
		for _, s := range strategies {
			all = append(all, played{Strategy: s, label: s.Name})
		}
	}
	for i := range settings {
		for _, s := range strategies {
			all = append(all, played{
				Strategy: s, setting: &settings[i], label: InSetting(s.Name, settings[i].Name),
			})
		}
	}
	return all
}

// InSetting is the name of a strategy's results in a setting; of a single one it has no name.
func InSetting(strategy, setting string) string {
	if setting == "" {
		return strategy
	}
	return strategy + "@" + setting
}

// ratioTo is the name of a ratio of two strategies in the same setting.
func (p played) ratioTo(o played) string {
	if p.setting == nil {
		return p.Name + "/" + o.Name
	}
	return InSetting(p.Name+"/"+o.Name, p.setting.Name)
}

// claims says which expectations came true, each in every setting for which it is made.
func claims(e scenario.Experiment, r CompareResult) (results []ClaimResult) {
	settings := e.Settings
	if len(settings) == 0 {
		settings = []scenario.FailureSetting{{}} // the one in which nothing fails
	}
	for _, claim := range e.Claims {
		for _, s := range settings {
			name, from := claim.Strategy+"/"+claim.Beside, r.Ratios
			if claim.Beside == "" {
				name, from = claim.Strategy, r.Strategies
			}
			x, known := from[InSetting(name, s.Name)][claim.Measure]
			if !known || !claim.In(s) {
				continue
			}
			results = append(results, ClaimResult{
				Ratio: name, Measure: claim.Measure, Setting: s.Name, From: claim.From, To: claim.To,
				Paper: claim.Paper, Interval: x, Holds: claim.From <= x.Mean && x.Mean <= claim.To,
			})
		}
	}
	return results
}

// siteLife tells for how long a site is up and down, and its spells from a time before the first
// job on, which comes at 0.
type siteLife struct {
	turns  workload.Turns
	spells []workload.Spell
}

// drawLives draws how the sites live in a setting. The same law, with other means, gives times up
// and times down, as in the thesis (section 4.1).
func drawLives(s scenario.FailureSetting, sites int, seed uint64) ([]siteLife, error) {
	factors := make([]float64, sites)
	sum := 0.0
	spread := workload.Stream(seed, "mean times up")
	for i := range factors {
		factors[i] = factor(spread, s.Spread)
		sum += factors[i]
	}
	lives := make([]siteLife, sites)
	for i := range lives {
		law := workload.Law{Name: s.Law, Scale: 1, Shape: usualShape(s.Law)}
		if err := law.Validate(); err != nil {
			return nil, err
		}
		up := s.Up.Seconds() * factors[i] * float64(sites) / sum
		turns := workload.Turns{
			Up: law.WithMean(up), Down: law.WithMean(up * (1 - s.Availability) / s.Availability),
		}
		past := pastCycles * up / s.Availability
		chance := workload.Stream(seed, fmt.Sprintf("failures of site %d", i))
		spells := turns.Spells(chance, past+horizon(s))
		for k := range spells {
			spells[k].From -= past
			spells[k].To -= past
		}
		lives[i] = siteLife{turns, spells}
	}
	return lives, nil
}

// horizon is for how long sites are watched after the first job, in seconds.
func horizon(s scenario.FailureSetting) float64 { return 4 * s.End.Seconds() }

// outages lists when a site is down from the first job on.
func (l siteLife) outages() []baseline.Outage {
	var all []baseline.Outage
	last := time.Duration(-1)
	for _, s := range l.spells {
		from, to := max(asDuration(s.From), last+1), asDuration(s.To)
		if s.Up || to <= 0 || to <= from {
			continue
		}
		all = append(all, baseline.Outage{From: from, To: to})
		last = to
	}
	return all
}

func asDuration(seconds float64) time.Duration {
	return time.Duration(math.Round(seconds * float64(time.Second)))
}

// blink is added to an instant before it is asked in which spell it is: durations are whole
// nanoseconds, so that the one at which a spell begins may lie before it.
const blink = 1e-6

// spellAt is the spell that an instant is in.
func (l siteLife) spellAt(at float64) workload.Spell {
	k, _ := slices.BinarySearchFunc(l.spells, at+blink, func(s workload.Spell, at float64) int {
		if s.To <= at {
			return -1
		}
		return 1
	})
	return l.spells[min(k, len(l.spells)-1)]
}

// since is when the site came up, or went down, to be as it is at an instant.
func (l siteLife) since(at float64) float64 { return l.spellAt(at).From }

// isUp reports whether it is up at an instant.
func (l siteLife) isUp(at float64) bool { return l.spellAt(at).Up }

// stays is the probability that the site, which is up, stays so for a time, by its own law and the
// time that it has been up: S(age + ahead) / S(age).
func (l siteLife) stays(at, ahead time.Duration) float64 {
	age := max(at.Seconds()-l.since(at.Seconds()), 0)
	now := l.turns.Up.Survival(age)
	if now <= 0 {
		return 0
	}
	return min(l.turns.Up.Survival(age+ahead.Seconds())/now, 1)
}

// thesisSteps counts the steps of the thesis' equations in a mean time up: their sums stand for
// integrals, and are off by less than a hundred thousandth with so many.
const thesisSteps = 100

// staysThesis is the same by the thesis' equation (9) as printed, with P = 0: it counts the site's
// whole age.
func (l siteLife) staysThesis(at, ahead time.Duration) (float64, error) {
	age := max(at.Seconds()-l.since(at.Seconds()), 0)
	step := l.turns.Up.Mean() / thesisSteps
	paper, _, err := avail.NodeUp(1./thesisSteps, 0, int64(age/step), int64(ahead.Seconds()/step))
	return min(max(paper, 0), 1), err
}

// queuePolicy is a queue's policy: with SAA jobs are refused that ask for more nodes than are up
// in the long run, with NAA the likeliest sites are tried first. The queue knows how sites live.
func queuePolicy(s played, d drawn, seed uint64) baseline.Policy {
	p := baseline.Policy{
		Copies: s.Copies, Split: s.Split, FirstFit: s.First, Random: s.Random, BestFit: s.Best,
		Near: s.Near, Seed: seed,
	}
	switch s.Retry {
	case "last":
		p.Retry = baseline.RetryLast
	case "first":
		p.Retry = baseline.RetryFirst
	}
	if s.setting == nil {
		return p
	}
	if total := allNodes(d.grid); s.Admits {
		p.Admit = func(j baseline.Job) bool {
			ok, err := avail.SAA(float64(j.Need.MilliCPUs)/1000, total, s.setting.Availability)
			return err == nil && ok
		}
	}
	if s.Orders {
		p.Likely = func(site int, at, ahead time.Duration) float64 {
			if !s.Thesis {
				return d.lives[site].stays(at, ahead)
			}
			p, err := d.lives[site].staysThesis(at, ahead)
			if err != nil { // the rate is above 0, times are not below
				return 0
			}
			return p
		}
	}
	return p
}

func allNodes(g baseline.Grid) float64 {
	nodes := 0.0
	for _, s := range g.Sites {
		nodes += float64(s.MilliCPUs) / 1000
	}
	return nodes
}

// fail notes what became of jobs whose runs failed: a job has failed if one of its copies has, and
// none was brought to its end. A failure is one run, however many shares it had.
func noteFailures(ends []ending, runs []baseline.Run) {
	type try struct {
		job, copy int
		begin     time.Duration
	}
	seen := make(map[try]bool)
	good := make([]bool, len(ends))
	for _, r := range runs {
		e, this := &ends[r.Job], try{r.Job, r.Copy, r.Begin}
		if !r.Failed {
			good[r.Job] = true
			continue
		}
		if !seen[this] {
			e.failures++
			seen[this] = true
		}
	}
	for i := range ends {
		ends[i].failed = ends[i].failures > 0 && !good[i]
	}
}

// rare lists the measures of which a seed may have none at all: their ratio is that of the means.
func rare(measure string) bool {
	return slices.Contains([]string{"failed", "failures", "rejected"}, measure)
}

// ratioOfMeans compares two strategies of which both have a value for each seed. The interval is by
// the jackknife: B. Efron and C. Stein, "The Jackknife Estimate of Variance", Annals of Statistics
// 9(3), 1981. It is not known if the one below has nothing at all.
func ratioOfMeans(above, below []float64) (metrics.Interval, bool) {
	var a, b float64
	for i := range above {
		a, b = a+above[i], b+below[i]
	}
	n := float64(len(above))
	if b <= 0 {
		return metrics.Interval{}, false
	}
	pseudo := make([]float64, 0, len(above))
	for i := range above {
		if rest := b - below[i]; rest > 0 {
			pseudo = append(pseudo, n*a/b-(n-1)*(a-above[i])/rest)
		}
	}
	spread := math.Inf(1) // one seed has all there is
	if len(pseudo) == len(above) {
		spread = metrics.IntervalOf(pseudo).CI95
	}
	if math.IsInf(spread, 1) {
		spread = a / b
	}
	return metrics.Interval{Mean: a / b, CI95: spread}, true
}
