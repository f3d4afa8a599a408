package scenario

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// FailureSetting says how sites fail and come back in an experiment. An experiment with several is
// played in each of them. One line
//
//	failures availability=.9 factor=.1,.01 reading=over,times law=normal,weibull end=18h
//
// says as many settings as there are choices, here eight.
type FailureSetting struct {
	Name         string        // such as weibull-0.1-over, or weibull-0.9
	Availability float64       // of each site in the long run, above 0 and below 1
	Law          string        // of times up and of times down, see FailureLaws
	Factor       float64       // the run factor; 0: the mean time up is named
	Times        bool          // the other reading of the run factor, see Readings
	Up           time.Duration // mean time up of all sites
	Spread       float64       // a site's own mean is e^(s N) times that, scaled to a mean of 1
	End          time.Duration // nothing begins from then on
}

// FailureLaws lists the laws of lifetimes: the thesis' own, one without memory, and one whose
// shape, .5, is nearer to that of real desktops.
func FailureLaws() []string { return []string{"normal", "exponential", "weibull"} }

// Readings lists what a run factor RF may mean. The thesis calls it "the ratio of the maximum
// simulated runtime of a job to the mean MTTF values" (section 4.1): over is MTTF = longest / RF.
// But it also says that a factor of 1 made no job fail: times is MTTF = longest * RF.
func Readings() []string { return []string{"over", "times"} }

// Policies lists what availability does to placing: nothing, and SAA, NAA and NSA of the thesis,
// section 3.3.1.
func Policies() []string { return []string{"none", "saa", "naa", "nsa"} }

// Guard says what a strategy does about failures.
type Guard struct {
	Admits bool // jobs that ask for more than is up in the long run are refused: SAA, NSA
	// Orders prefers sites that are likely to stay up: NAA, NSA. The queue tries them first. For
	// the mesh it is the third axis of distance, as in 3D-MRS.
	Orders bool
	// Likeliest lets the mesh try the likeliest sites first as well, whatever their distance.
	Likeliest bool
	Thesis    bool // likely is by the thesis' equation (9), not by conditional survival; of Queue
	// Retry says what becomes of a job that failed: last and first put it there in the queue,
	// failover leaves it to the mesh; empty: it has failed.
	Retry string
}

// guard reads what a strategy does about failures.
func (l *line) guard(queue bool) Guard {
	var g Guard
	policy := l.oneOf("policy", Policies()...)
	g.Admits, g.Orders = policy == 1 || policy == 3, policy >= 2
	g.Thesis = l.oneOf("z", "conditional", "thesis") == 1
	g.Likeliest = l.oneOf("likeliest", "near", "first") == 1
	retries := []string{"never", "last", "first", "failover"}
	if chosen := l.oneOf("retry", retries...); chosen > 0 {
		g.Retry = retries[chosen]
	}
	switch {
	case g.Thesis && !queue:
		l.fail("z", "thesis", "conditional on the mesh: its sites learn how long they stay up", "")
	case g.Likeliest && (queue || !g.Orders):
		l.fail("likeliest", "first", "near, but with policy=naa or policy=nsa on the mesh", "")
	case queue && g.Retry == "failover", !queue && (g.Retry == "last" || g.Retry == "first"):
		l.fail("retry", g.Retry,
			"never, or failover on the mesh, or last or first with on=queue", "")
	}
	return g
}

// maxSettings bounds the settings of an experiment.
const maxSettings = 200

func (p *experimentParser) failures(l *line) {
	laws := l.list("law", FailureLaws(), "normal")
	readings := l.list("reading", Readings(), "over")
	base := FailureSetting{
		Availability: l.real("availability", 0, 0, 1), Spread: l.real("spread", 0, 0, maxSpread),
		End: l.duration("end", 0, false), Up: l.duration("mttf", 0, false),
	}
	factors := l.numbers("factor")
	if !(base.Availability > 0 && base.Availability < 1) {
		l.fail("availability", fmt.Sprint(base.Availability), "a number above 0 and below 1",
			"add availability=.9")
	}
	if (base.Up > 0) == (len(factors) > 0) {
		l.fail("factor", "", "either factor=... or mttf=...", "")
	}
	if base.Up > 0 {
		factors, readings = []float64{0}, readings[:1]
	}
	for _, law := range laws {
		for _, reading := range readings {
			for _, factor := range factors {
				s := base
				s.Law, s.Factor, s.Times = law, factor, reading == "times"
				if s.Name = fmt.Sprintf("%s-%v", law, s.Availability); factor > 0 {
					s.Name = fmt.Sprintf("%s-%v-%s", law, factor, reading)
				}
				p.e.Settings = append(p.e.Settings, s)
			}
		}
	}
	if len(p.e.Settings) > maxSettings {
		l.fail("", "", fmt.Sprintf("at most %d settings in all", maxSettings), "")
		p.e.Settings = p.e.Settings[:maxSettings]
	}
}

// list takes some of the words there are, with commas between them.
func (l *line) list(key string, all []string, fallback string) []string {
	value, has := l.text(key)
	if !has {
		return []string{fallback}
	}
	words := strings.Split(value, ",")
	for i, w := range words {
		if !slices.Contains(all, w) || slices.Contains(words[:i], w) {
			l.fail(key, value, "some of "+strings.Join(all, ",")+", each once", "")
			return []string{fallback}
		}
	}
	return words
}

// numbers takes numbers above 0 with commas between them.
func (l *line) numbers(key string) []float64 {
	value, has := l.text(key)
	if !has {
		return nil
	}
	var all []float64
	for word := range strings.SplitSeq(value, ",") {
		n, err := strconv.ParseFloat(word, 64)
		if err != nil || !(n >= 1e-6 && n <= 1e6) || slices.Contains(all, n) {
			l.fail(key, value,
				"numbers from 1e-06 to 1e+06 with commas between them, each once", "")
			return []float64{1}
		}
		all = append(all, n)
	}
	return all
}

// settle checks the settings when all lines are read, and works out their times.
func (p *experimentParser) settle() {
	add := func(word, want, remedy string) {
		p.errs = append(p.errs, &Error{Word: word, Want: want, Remedy: remedy})
	}
	seen := make(map[string]bool)
	for i := range p.e.Settings {
		s := &p.e.Settings[i]
		if seen[s.Name] {
			add("failures", "each setting once: "+s.Name+" is there twice", "")
		}
		seen[s.Name] = true
		longestRun := float64(p.e.Jobs.Longest)
		switch {
		case s.Factor > 0 && s.Times:
			s.Up = time.Duration(longestRun * s.Factor)
		case s.Factor > 0:
			s.Up = time.Duration(longestRun / s.Factor)
		}
		if s.Up < time.Second || s.Up > longest {
			add("failures",
				fmt.Sprintf("a mean time up from 1s to 366 days: %s has %v", s.Name, s.Up), "")
		}
		if s.End == 0 {
			s.End = 2 * p.e.Jobs.For
		}
		if s.End == 0 {
			add("failures", "an end of the arrivals or of all", "add end=10h")
		}
	}
	p.settled(add)
}

// settled checks what needs settings: forecasts, and claims that are made in some of them.
func (p *experimentParser) settled(add func(word, want, remedy string)) {
	for _, s := range p.e.Strategies {
		if s.By != "" && len(p.e.Settings) == 0 {
			add("forecast", "a line that says how sites fail",
				"add failures availability=.9 mttf=10h")
		}
	}
	for _, c := range p.e.Claims {
		if c.filtered() && !slices.ContainsFunc(p.e.Settings, c.In) {
			p.errs = append(p.errs, &Error{
				Line: c.Line, Word: "expect", Want: "a law, factor and reading of a line failures",
			})
		}
	}
}

// Where says in which settings a claim is made; zero values are all.
type Where struct {
	Laws     []string
	Factors  []float64
	Readings []string
}

func (w Where) filtered() bool { return w.Laws != nil || w.Factors != nil || w.Readings != nil }

// In reports whether the claim is made in a setting.
func (w Where) In(s FailureSetting) bool {
	reading := Readings()[0]
	if s.Times {
		reading = Readings()[1]
	}
	return (w.Laws == nil || slices.Contains(w.Laws, s.Law)) &&
		(w.Factors == nil || slices.Contains(w.Factors, s.Factor)) &&
		(w.Readings == nil || slices.Contains(w.Readings, reading))
}

// where reads in which settings a claim is made.
func (l *line) where() Where {
	var w Where
	for _, of := range []struct {
		key  string
		all  []string
		into *[]string
	}{{"law", FailureLaws(), &w.Laws}, {"reading", Readings(), &w.Readings}} {
		if words := l.list(of.key, of.all, ""); words[0] != "" {
			*of.into = words
		}
	}
	w.Factors = l.numbers("factor")
	return w
}
