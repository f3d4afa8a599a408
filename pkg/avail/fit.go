package avail

import (
	"fmt"
	"math"

	"github.com/mrsmesh/mrsmesh/pkg/argument"
)

// The range of shapes that are considered, and how far from 1 they are expected: a
// normal distribution of the logarithm.
const (
	minShape    = 0.2
	maxShape    = 5
	shapeSpread = 0.5
	shapeSteps  = 16 // of the range, for the evidence
	refinements = 20 // of the best shape, each to .618
)

// surer is the logarithm of how many times likelier a model must make the history before
// it is believed instead of a simpler one.
const surer = 1.0

// surerOfWeek is the same for a profile of the week, which has more ways to fit what was
// chance.
const surerOfWeek = 2.0

// fewestForWeek is the number of ends needed before a profile of the week is looked for.
const fewestForWeek = 3

// detail is up to what length a life is followed through the week; over what it lasts
// beyond, all its quarters count alike.
const detail = WeekSeconds

// life is one span as one cause sees it.
type life struct {
	week   float64 // negative = unknown
	age    float64 // at its start
	length float64
	weight float64 // how much it counts, 0 to 1
	ended  bool    // by this cause
}

// fitHazard finds what the lives say of one cause. It chooses between an exponential
// lifetime, a Weibull one, and an exponential one with a profile of the week, by how
// likely each makes what happened, lambda being integrated out. Age and the week are not
// combined: on a machine that is switched on at nine they are two names of one thing,
// and one that was restarted at three would be expected to stay into the night.
func fitHazard(prior Prior, lives []life) Hazard {
	flat := Hazard{
		Shape: 1, Unit: prior.Exposure / prior.Failures, Failures: prior.Failures,
		Exposure: prior.Exposure,
	}
	best := flat.given(lives)
	plain := flat.evidence(lives)
	aged := prior.atLifetime(best)
	sum, likeliest := aged.shapes(lives)
	chosen := plain
	if sum > chosen+surer {
		aged.Shape = likeliest()
		best, chosen = aged.given(lives), sum
	}
	if best.Failures-prior.Failures < fewestForWeek {
		return best
	}
	if weekly, gain := flat.profiled(lives); plain+gain > chosen+surerOfWeek {
		return weekly
	}
	return best
}

// atLifetime is the prior of a Weibull lifetime: worth as many failures, but at the mean
// lifetime of an exponential that was fitted. At the prior's own unit, a week, a rising
// rate would count a prior's day for more than all the ages that occur.
func (p Prior) atLifetime(fitted Hazard) Hazard {
	unit := min(max(1/fitted.rate(), resolution), maxSeconds)
	return Hazard{Shape: 1, Unit: unit, Failures: p.Failures, Exposure: p.Failures * unit}
}

// given is the belief after the lives, which the receiver is before them.
func (h *Hazard) given(lives []life) Hazard {
	after := *h
	for _, l := range lives {
		after.Exposure += l.weight * h.exposure(l)
		if l.ended {
			after.Failures += l.weight
		}
	}
	return after
}

// evidence is the logarithm of the probability density of the lives, up to a term that
// does not depend on the shape.
func (h *Hazard) evidence(lives []life) float64 {
	after := h.given(lives)
	sum := gammaLog(after.Failures) - gammaLog(h.Failures) +
		h.Failures*math.Log(h.Exposure) - after.Failures*math.Log(after.Exposure)
	if h.Shape == 1 {
		return sum
	}
	for _, l := range lives {
		if l.ended {
			sum += l.weight * (math.Log(h.Shape) +
				(h.Shape-1)*math.Log(max(l.age+l.length, resolution)/h.Unit))
		}
	}
	return sum
}

func gammaLog(x float64) float64 {
	v, _ := math.Lgamma(x)
	return v
}

// shapes is the evidence for a Weibull lifetime, over all shapes, and a way to the
// likeliest shape, by golden section around the best of the steps.
func (h *Hazard) shapes(lives []life) (evidence float64, likeliest func() float64) {
	low, high := math.Log(minShape), math.Log(maxShape)
	width := (high - low) / shapeSteps
	score := func(log float64) float64 {
		shaped := *h
		shaped.Shape = math.Exp(log)
		return shaped.evidence(lives) - log*log/(2*shapeSpread*shapeSpread)
	}
	scores := make([]float64, 0, shapeSteps+1)
	best, at := math.Inf(-1), 0.0
	for i := range shapeSteps + 1 {
		log := low + float64(i)*width
		s := score(log)
		if scores = append(scores, s); s > best {
			best, at = s, log
		}
	}
	sum := 0.0
	for _, s := range scores {
		sum += math.Exp(s - best)
	}
	evidence = best + math.Log(sum*width/(shapeSpread*math.Sqrt(2*math.Pi)))
	return evidence, func() float64 {
		return min(max(math.Exp(goldenSection(score, max(at-width, low), min(at+width, high))), minShape),
			maxShape)
	}
}

// goldenSection finds where a function with one maximum between low and high has it.
func goldenSection(f func(float64) float64, low, high float64) float64 {
	ratio := (math.Sqrt(5) - 1) / 2
	a, b := high-ratio*(high-low), low+ratio*(high-low)
	fa, fb := f(a), f(b)
	for range refinements {
		if fa < fb {
			low, a, fa = a, b, fb
			b = low + ratio*(high-low)
			fb = f(b)
		} else {
			high, b, fb = b, a, fa
			a = high - ratio*(high-low)
			fa = f(a)
		}
	}
	return (low + high) / 2
}

// counts holds how many ends were expected in each part of the week, and how many came.
type counts struct {
	expected, seen []float64
}

func (c counts) group(l level) counts {
	g := counts{expected: make([]float64, l.parts), seen: make([]float64, l.parts)}
	for i := range c.expected {
		g.expected[l.of(i)] += c.expected[i]
		g.seen[l.of(i)] += c.seen[i]
	}
	return g
}

// levels are the parts of the week that are alike, from coarse to fine: the hours of a
// working day and of a day of the weekend, their quarters, and those of each day.
func levels() []level {
	const perHour = 4
	return []level{
		{parts: classes / perHour, of: func(slot int) int { return classOf(slot) / perHour }},
		{parts: classes, of: classOf},
		{parts: slots, of: func(slot int) int { return slot }},
	}
}

type level struct {
	parts int
	of    func(slot int) int
}

// profiled is the belief after the lives with a profile of the week, and by how much
// likelier that makes them. Each quarter of an hour of the week is drawn towards the
// same of all working days, or of the weekend, these towards their hour, and that
// towards the mean: how strongly, the lives say themselves.
func (h *Hazard) profiled(lives []life) (Hazard, float64) {
	after := h.given(lives)
	week := after.expect(lives)
	p := &Profile{Times: make([]float64, slots), Worth: make([]float64, slots)}
	for i := range p.Times {
		p.Times[i], p.Worth[i] = 1, unknownWorth
	}
	all := 0.0
	for _, l := range levels() {
		parts := week.group(l)
		worth, gain := strength(parts)
		if gain == 0 {
			continue
		}
		all += gain
		for i := range p.Times {
			part := l.of(i)
			times := (worth + parts.seen[part]) / (worth + parts.expected[part])
			p.Times[i] *= times
			week.expected[i] *= times
			p.Worth[i] = min(p.Worth[i], worth+parts.seen[part])
		}
	}
	if all == 0 {
		return after, 0
	}
	// The time at risk, each quarter counting as often as its factor says.
	weighted := total(week.expected) / after.rate()
	for _, l := range lives {
		if l.week < 0 {
			weighted += l.weight * h.exposure(l)
		}
	}
	after.Exposure = h.Exposure + weighted
	for i := range p.Times {
		p.Times[i], p.Worth[i] = rounded(within(p.Times[i], after.rate())), rounded(p.Worth[i])
		p.Factor += p.Times[i] / float64(slots)
	}
	after.Profile = p
	return after, all
}

// within turns how many ends a quarter of an hour has for its time at risk, by the
// actuary's count, into the factor that gives as many: a machine that is switched off
// by the clock has one end for half a quarter, always, and its chance is none.
func within(times, rate float64) float64 {
	const most = 1.98 // ends in a quarter; 2 would be certain
	if rate <= 0 {
		return times
	}
	half := min(times*rate*slotSeconds, most) / 2
	return 2 * math.Atanh(half) / (rate * slotSeconds)
}

// unknownWorth is the number of ends that a factor is worth about which nothing was
// learned: so many that it counts as certain.
const unknownWorth = 1e6

// rounded keeps four digits: more are not known, and they cost space.
func rounded(v float64) float64 {
	if v == 0 {
		return 0
	}
	scale := math.Pow(10, 3-math.Floor(math.Log10(v)))
	return math.Round(v*scale) / scale
}

// expect counts the ends in each quarter of the week against what the rate expects.
func (h *Hazard) expect(lives []life) counts {
	c := counts{expected: make([]float64, slots), seen: make([]float64, slots)}
	rate := h.rate()
	for _, l := range lives {
		if l.week < 0 {
			continue
		}
		share, before := l.weight*rate, h.operational(l.age)
		last, spent := slotOf(math.Mod(l.week+l.length, WeekSeconds)), 0.0
		walk(l.week, min(l.length, detail), func(slot int, from, to float64) {
			after := h.operational(l.age + to)
			c.expected[slot] += share * (after - before)
			if before = after; slot == last {
				spent = to - from
			}
		})
		if l.length > detail {
			rest := share * (h.operational(l.age+l.length) - before) / float64(slots)
			for i := range c.expected {
				c.expected[i] += rest
			}
		}
		if l.ended {
			// The actuary's count: who ends was at risk for half of the time.
			c.seen[last] += l.weight
			c.expected[last] += share * (slotSeconds/2 - spent)
		}
	}
	return c
}

// strength returns how many ends a factor of 1 is worth against what was seen, and by how
// much that makes the counts likelier than a factor of 1 everywhere, 0 if it does not:
// the counts being Poisson, the factors Gamma distributed.
func strength(c counts) (worth, gain float64) {
	for _, w := range []float64{0.03, 0.1, 0.3, 1, 3, 10, 30, 100} {
		sum := 0.0
		for i, e := range c.expected {
			sum += e - w*math.Log1p(e/w)
			n := c.seen[i]
			if n > 0 {
				sum += gammaLog(w+n) - gammaLog(w) - n*math.Log(w+e)
			}
		}
		if sum > gain {
			worth, gain = w, sum
		}
	}
	return worth, gain
}

// checkHistory reports a span that makes no sense.
func checkHistory(h History) error {
	for i, s := range h.Spans {
		if err := s.Validate(); err != nil {
			return fmt.Errorf("span %d: %w", i, err)
		}
	}
	for i, d := range h.Downs {
		if err := argument.Amount("time down", d); err != nil {
			return fmt.Errorf("time down %d: %w", i, err)
		}
	}
	return nil
}
