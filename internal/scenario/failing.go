package scenario

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Failing is an experiment about jobs that save their state on resources that fail: rules for
// checkpoints, and for the resource on which a job goes on. Its text has the lines
//
//	resources name=4h n=128 mtbf=4h spread=1 shape=1 repair=30m
//	tasks     n=3000 run=1h..10h load=.5 checkpoint=2m restart=1m deadline=2
//	strategy  name=optimum save=known
//	strategy  name=auto save=learned place=random
//	strategy  name=LFCA save=lfca interval=5m,20m omit=3
//	strategy  name=MFCA save=mfca interval=5m,20m least=4m limit=.25 step=.5
//	expect    ratio=auto/optimum of=waste to=1.15 at=4h
//	expect    more=MFCA/LFCA of=met from=.9 shortest=20m
//	seeds     n=30
//
// Each line resources is a case, in which all strategies are played. A strategy with several
// intervals is one for each, named LFCA-5m and so on. A ratio is expected in all cases, or that
// of at; where it names a strategy with several intervals, the best of them is meant. more and
// less say in which part of all cells, which are the intervals in the cases, the one strategy
// has more, or less, than the other; cells in which both have the same do not count.
type Failing struct {
	Cases  []FailingCase
	Tasks  TaskModel
	Rules  []Rule
	Claims []RuleClaim
}

// FailingCase says how resources fail.
type FailingCase struct {
	Name      string
	Resources int
	MTBF      time.Duration // mean time up, of the resource in the middle
	Spread    float64       // resources have MTBF e^(Spread N), with N standard normal
	Shape     float64       // of the Weibull law of times up; 1: exponential
	Repair    time.Duration // the mean; exponential
}

// TaskModel says what jobs there are. Each takes one resource.
type TaskModel struct {
	Count             int
	Shortest, Longest time.Duration // run times, evenly between
	Load              float64       // work, by what the resources could do without failures
	Checkpoint        time.Duration // what one takes
	Restart           time.Duration // before a job goes on after a failure
	Deadline          float64       // after submission, as a multiple of the run time
}

// Rule is a strategy in an experiment about resources that fail, with one interval.
type Rule struct {
	Name     string // unique; with the interval if its line has several
	Line     string // the name in its line
	Save     string // see SaveWords
	Place    string // see PlaceWords
	Interval time.Duration
	Omit     int64
	Least    time.Duration
	Limit    float64
	Step     float64
}

// RuleClaim says what is expected of two strategies' means.
type RuleClaim struct {
	Line         int
	Kind         string // ratio, more, less; of Remapping also lowest, without Below
	Above, Below string // Rule.Name or Rule.Line
	Measure      string
	Case         string        // of a ratio; empty: all
	Shortest     time.Duration // interval that counts; of more and less
	From, To     float64       // of the ratio, the part of the cells, or the threshold
	Paper        float64       // what the paper says; 0: nothing
}

// SaveWords lists the rules for checkpoints: the best equal segments for the learned failure
// rate and for the true one, Daly's interval for the true rate, one interval, LFCA, MFCA.
func SaveWords() []string { return []string{"learned", "known", "daly", "every", "lfca", "mfca"} }

// PlaceWords lists the rules for the resource on which a job starts or goes on: any, the one with
// the lowest fault index, with the lowest learned failure rate, that stays up most probably by
// its age and its own past, the same with a shape learned from all, and with the lowest risk by age
// and fault index.
func PlaceWords() []string { return []string{"random", "fibr", "rate", "age", "shape", "risk"} }

// FailingMeasures lists what such strategies are compared by, means over jobs.
//
//	waste        time on resources that was no work, seconds
//	met          part of the jobs that met their deadlines
//	completion   from submission to the end, seconds
//	checkpoints  taken
//	failures     of resources while the job ran there
func FailingMeasures() []string {
	return []string{"waste", "met", "completion", "checkpoints", "failures"}
}

// failingWords are the lines of such an experiment.
func (p *experimentParser) failingWords() (map[string]func(*line), []string) {
	return map[string]func(*line){
		"resources": p.resources, "tasks": p.tasks, "strategy": p.rule, "expect": p.ruleClaim,
		"seeds": p.seeds,
	}, []string{"resources", "tasks", "strategy", "expect", "seeds"}
}

func (p *experimentParser) resources(l *line) {
	c := FailingCase{
		Name: l.required("name", "a name"), Resources: int(l.whole("n", 1, 4096)),
		MTBF:   l.within("mtbf", 24*time.Hour, time.Minute),
		Spread: l.real("spread", 0, 0, maxSpread), Shape: l.real("shape", 1, .2, 10),
		Repair: l.within("repair", 30*time.Minute, time.Second),
	}
	f := p.e.Failing
	if strings.ContainsAny(c.Name, "/@") || slices.ContainsFunc(f.Cases, func(o FailingCase) bool {
		return o.Name == c.Name
	}) {
		l.fail("name", c.Name, "a name without / and @ that no other line resources has", "")
	}
	f.Cases = append(f.Cases, c)
}

func (p *experimentParser) tasks(l *line) {
	t := TaskModel{
		Count: int(l.whole("n", 1, 100_000)), Load: l.real("load", .5, .001, 2),
		Checkpoint: l.within("checkpoint", time.Minute, time.Millisecond),
		Restart:    l.duration("restart", 0, false), Deadline: l.real("deadline", 2, 1, 1000),
	}
	times := []time.Duration{time.Hour}
	if value, has := l.text("run"); has {
		times = l.times("run", value, "..")
	}
	t.Shortest, t.Longest = times[0], times[len(times)-1]
	if len(times) > 2 || t.Shortest > t.Longest {
		l.fail("run", "", "a time or a range of times, the shorter one first, such as 1h..10h", "")
	}
	p.e.Failing.Tasks = t
}

// within is a duration of at least some time.
func (l *line) within(key string, fallback, least time.Duration) time.Duration {
	d := l.duration(key, fallback, false)
	if d < least {
		l.fail(key, d.String(), "a time of at least "+least.String(), "")
		return fallback
	}
	return d
}

// times reads times with something between them, each at least a second.
func (l *line) times(key, value, between string) []time.Duration {
	var times []time.Duration
	for one := range strings.SplitSeq(value, between) {
		d, err := time.ParseDuration(one)
		if err != nil || d < time.Second || d > longest {
			l.fail(key, value,
				"times from 1s to 366 days such as 20m, with "+between+" between them", "")
			return []time.Duration{time.Hour}
		}
		times = append(times, d)
	}
	return times
}

func (p *experimentParser) rule(l *line) {
	r := Rule{
		Line: l.required("name", "a name"), Save: SaveWords()[l.oneOf("save", SaveWords()...)],
		Place: PlaceWords()[l.oneOf("place", PlaceWords()...)], Omit: 3, Limit: .25, Step: .5,
	}
	if omit := l.whole("omit", 0, 1_000_000); l.has("omit") {
		r.Omit = omit
	}
	r.Least = l.within("least", 4*time.Minute, time.Millisecond)
	r.Limit, r.Step = l.real("limit", .25, .001, .999), l.real("step", .5, .001, 100)
	value, has := l.text("interval")
	switch wants := slices.Contains([]string{"every", "lfca", "mfca"}, r.Save); {
	case wants && !has:
		l.fail("interval", "", "a time, or several with commas between them",
			"add interval=5m,20m,80m")
	case !wants && has:
		l.fail("interval", value, "none with save="+r.Save, "")
	}
	if !has {
		r.Name = r.Line
		p.addRule(l, r)
		return
	}
	names := strings.Split(value, ",")
	for i, interval := range l.times("interval", value, ",") {
		r.Name, r.Interval = r.Line, interval
		if len(names) > 1 {
			r.Name += "-" + names[i]
		}
		p.addRule(l, r)
	}
}

// ruleName refuses the name of a strategy that another one has, or that no ratio could name.
func (l *line) ruleName(name string, isTaken bool) {
	if isTaken || strings.ContainsAny(name, "/@") {
		l.fail("name", name, "a name without / and @ that no other strategy has", "")
	}
}

func (p *experimentParser) addRule(l *line, r Rule) {
	f := p.e.Failing
	isTaken := slices.ContainsFunc(f.Rules, func(o Rule) bool {
		return o.Name == r.Name || o.Name == r.Line || o.Line == r.Name
	})
	l.ruleName(r.Name, isTaken)
	f.Rules = append(f.Rules, r)
}

func (p *experimentParser) ruleClaim(l *line) {
	claim := l.ruleClaim(FailingMeasures(), "ratio", "more", "less")
	if claim.Kind != "ratio" {
		claim.Shortest = l.duration("shortest", 0, false)
	}
	p.e.Failing.Claims = append(p.e.Failing.Claims, claim)
}

// ruleClaim reads what is expected of strategies' means in cases.
func (l *line) ruleClaim(measures []string, kinds ...string) RuleClaim {
	c := RuleClaim{
		Line: l.number, Measure: l.required("of", "a measure"), From: l.real("from", 0, 0, 1e9),
		Paper: l.real("paper", 0, 0, 1e9),
	}
	names := ""
	for _, kind := range kinds {
		if value, has := l.text(kind); has {
			if c.Kind != "" {
				l.fail(kind, value, "one of "+inWords(kinds, "and"), "write a line for each")
			}
			c.Kind, names = kind, value
		}
	}
	var two bool
	switch c.Above, c.Below, two = strings.Cut(names, "/"); {
	case c.Kind == "lowest" && two:
		l.fail(c.Kind, names, "the name of one strategy that has several thresholds", "")
	case c.Kind != "lowest" && !two:
		l.fail(c.Kind, names,
			inWords(withEqual(kinds), "or")+" with the names of two strategies, NAME/NAME", "")
	}
	if !slices.Contains(measures, c.Measure) {
		l.fail("of", c.Measure, "one of "+strings.Join(measures, " "), "")
	}
	if c.Kind == "ratio" || c.Kind == "lowest" {
		c.To = l.real("to", 0, 0, 1e9)
		c.Case, _ = l.text("at")
	} else {
		c.To = l.real("to", 1, 0, 1)
	}
	if c.To < c.From || c.To == 0 {
		l.fail("to", "", "a number above from", "add to=...")
	}
	return c
}

// inWords is "a, b and c".
func inWords(words []string, and string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " " + and + " " + words[last]
}

// withEqual writes keys as a line has them.
func withEqual(keys []string) []string {
	var all []string
	for _, key := range keys {
		all = append(all, key+"=")
	}
	return all
}

// wholeFailing looks at the text as a whole.
func (p *experimentParser) wholeFailing() {
	f := p.e.Failing
	add := func(line int, word, key, have, want, remedy string) {
		p.errs = append(p.errs,
			&Error{Line: line, Word: word, Key: key, Have: have, Want: want, Remedy: remedy})
	}
	if !p.seen["tasks"] {
		add(0, "tasks", "", "", "a line that says what jobs there are",
			"add tasks n=3000 run=1h..10h load=.5")
	}
	if len(f.Rules) == 0 {
		add(0, "strategy", "", "", "a line for each strategy",
			"add strategy name=auto save=learned")
	}
	for _, r := range f.Rules {
		if r.Save == "mfca" && r.Least <= f.Tasks.Checkpoint {
			add(0, "strategy "+r.Name, "least", r.Least.String(),
				fmt.Sprintf("more than a checkpoint takes, %s", f.Tasks.Checkpoint), "")
		}
	}
	var names, cases []string
	for _, r := range f.Rules {
		names = append(names, r.Name, r.Line)
	}
	for _, c := range f.Cases {
		cases = append(cases, c.Name)
	}
	p.knownNames(f.Claims, names, cases, "resources")
}

// knownNames wants the strategies and cases that claims name to be there; word is of the lines that
// are cases.
func (p *experimentParser) knownNames(claims []RuleClaim, names, cases []string, word string) {
	for _, c := range claims {
		about := []string{c.Above, c.Below}
		if c.Kind == "lowest" {
			about = about[:1]
		}
		for _, name := range about {
			if !slices.Contains(names, name) {
				p.errs = append(p.errs, &Error{
					Line: c.Line, Word: "expect", Key: c.Kind, Have: name,
					Want: "the name of a strategy",
				})
			}
		}
		if c.Case != "" && !slices.Contains(cases, c.Case) {
			p.errs = append(p.errs, &Error{
				Line: c.Line, Word: "expect", Key: "at", Have: c.Case,
				Want: "the name of a line " + word,
			})
		}
	}
}
