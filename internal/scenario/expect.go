package scenario

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Expectation is one thing that must be true at the end.
type Expectation struct {
	Line    int    // where it is written
	Job     string // the submission it is about; empty: all
	Measure string // see Measures
	Op      string // = != < <= > >=
	Value   float64
	Of      int    // heard: out of how many
	Site    string // site, first: the name
}

// Measures lists what can be expected.
//
//	lost       tasks that have not ended
//	done failed refused cancelled   tasks that ended so
//	moves      attempts that were given up for another one
//	within     time from submission to end, of the slowest job; = means at most
//	answers    answers to the announcements, of all jobs
//	site first where every task ended, where it was awarded first
//	earliest latest  when the first and the last task began to run, since the scenario's beginning
//	spread     the time between these two
//	doubled    pairs of attempts of one task that ran at the same time
//	heard      announcements that reached the site that was reached least: n/of
//	peers      connections of the running site that has least at the end
//	frozen resumed           attempts that a site froze, or let run again
//	cache_hits cache_misses  re-announcements by id that met a warm or cold cache
//	messages   sent in all
//	flaws      what the simulation's oracle finds, two hours later at best
//
// Any report can be expected by its event too, as site.EVENT or broker.EVENT.
func Measures() []string {
	return []string{
		"lost", "done", "failed", "refused", "cancelled", "moves", "within", "answers", "site", "first",
		"earliest", "latest", "spread", "doubled", "heard", "peers", "frozen", "resumed",
		"cache_hits", "cache_misses", "messages", "flaws",
	}
}

// ofJob lists the measures that may be limited to one submission.
func ofJob() []string { return Measures()[:13] }

// isTime reports whether a measure is a time.
func isTime(measure string) bool {
	return slices.Contains([]string{"within", "earliest", "latest", "spread"}, measure)
}

// isAbout reports whether an expectation is about a job: one of its submission, if
// it names one.
func (e Expectation) isAbout(j JobOutcome) bool {
	return e.Job == "" || j.Name == e.Job || strings.HasPrefix(j.Name, e.Job+"#")
}

// expect reads the expectations of one line.
func (p *parser) expect(l *line) {
	job, _ := l.text("job")
	if len(l.pairs) == 0 || job != "" && len(l.pairs) == 1 {
		l.fail("", "", "something to be true, such as lost=0", "")
	}
	for i := range l.pairs {
		q := &l.pairs[i]
		if q.taken {
			continue
		}
		q.taken = true
		e := Expectation{Line: l.number, Job: job, Measure: q.key, Op: q.op}
		if p.readMeasure(l, *q, &e) {
			p.s.Expect = append(p.s.Expect, e)
		}
	}
}

func (p *parser) readMeasure(l *line, q pair, e *Expectation) bool {
	switch {
	case !isEvent(q.key) && !slices.Contains(Measures(), q.key):
		l.fail(q.key, "", "one of "+strings.Join(Measures(), " ")+" site.EVENT broker.EVENT",
			"did you mean "+nearest(q.key, Measures())+"?")
		return false
	case e.Job != "" && !slices.Contains(ofJob(), q.key):
		l.fail(q.key, "", "one of "+strings.Join(ofJob(), " ")+" in a line with job",
			"move it to a line without job")
		return false
	case q.key == "site" || q.key == "first":
		return p.readSite(l, q, e)
	case isTime(q.key):
		return readTime(l, q, e)
	default:
		return readNumber(l, q, e)
	}
}

// isEvent reports whether a measure is a report: site.EVENT or broker.EVENT.
func isEvent(measure string) bool {
	machine, event, has := strings.Cut(measure, ".")
	return has && event != "" && (machine == "site" || machine == "broker")
}

func (p *parser) readSite(l *line, q pair, e *Expectation) bool {
	known := slices.ContainsFunc(p.s.Sites, func(s Site) bool { return s.Name == q.value })
	if !known || q.op != "=" && q.op != "!=" {
		l.fail(q.key, q.value, "= or != and the name of a site", "")
		return false
	}
	e.Site = q.value
	return true
}

// readTime reads a time; within is written with =, and means at most.
func readTime(l *line, q pair, e *Expectation) bool {
	d, err := time.ParseDuration(q.value)
	bad := err != nil || d < 0 || d > longest
	switch {
	case q.key == "within" && (bad || q.op != "="):
		l.fail(q.key, q.value, "= and a time such as 2m", "")
		return false
	case bad:
		l.fail(q.key, q.value, "a time such as 2m", "")
		return false
	case q.key == "within":
		e.Op = "<="
	}
	e.Value = d.Seconds()
	return true
}

func readNumber(l *line, q pair, e *Expectation) bool {
	number, of, isPart := strings.Cut(q.value, "/")
	n, err := strconv.ParseInt(number, 10, 32)
	if isPart {
		all, errOf := strconv.ParseInt(of, 10, 32)
		err = errors.Join(err, errOf)
		e.Of = int(all)
	}
	if err != nil || n < 0 || isPart && (q.key != "heard" || e.Of < 1) {
		l.fail(q.key, q.value, "a whole number from 0 up", "only heard may be written n/of")
		return false
	}
	e.Value = float64(n)
	return true
}

// Expectations are all that must be true.
type Expectations []Expectation

// Check judges an outcome. The error joins one sentence for each expectation
// that was not met, with its line and what was found.
func (all Expectations) Check(o Outcome) error {
	var errs []error
	for _, e := range all {
		if err := e.check(o); err != nil {
			errs = append(errs, fmt.Errorf("line %d: expected %s: %w", e.Line, e, err))
		}
	}
	return errors.Join(errs...)
}

// String is the expectation as it is written.
func (e Expectation) String() string {
	text := e.Measure + e.Op
	switch {
	case e.Site != "":
		text += e.Site
	case e.Measure == "within":
		text = "within=" + seconds(e.Value)
	case isTime(e.Measure):
		text += seconds(e.Value)
	default:
		text += strconv.FormatFloat(e.Value, 'f', -1, 64)
	}
	if e.Of > 0 {
		text += "/" + strconv.Itoa(e.Of)
	}
	if e.Job != "" {
		text = "job=" + e.Job + " " + text
	}
	return text
}

// seconds is a number of seconds as a time.
func seconds(s float64) string {
	return time.Duration(math.Round(s * float64(time.Second))).String()
}

func (e Expectation) check(o Outcome) error {
	if e.Site != "" {
		return e.checkSite(o)
	}
	have, known := o.measure(e)
	switch {
	case !known:
		return errors.New("it was not measured")
	case e.Of > 0 && o.Announced != e.Of:
		return fmt.Errorf("%d were announced", o.Announced)
	case e.Measure == "within" && have >= longestTime.Seconds():
		return errors.New("it has not ended")
	case e.Measure == "within" && have > e.Value:
		return fmt.Errorf("it took %s", seconds(have))
	case isTime(e.Measure) && !compare(have, e.Op, e.Value):
		return fmt.Errorf("have %s", seconds(have))
	case !compare(have, e.Op, e.Value):
		return fmt.Errorf("have %s", strconv.FormatFloat(have, 'f', -1, 64))
	}
	return nil
}

func (e Expectation) checkSite(o Outcome) error {
	found := false
	for _, j := range o.Jobs {
		if !e.isAbout(j) {
			continue
		}
		for i, t := range j.Tasks {
			found = true
			at := t.Site
			if e.Measure == "first" {
				at = t.First
			}
			if (at == e.Site) != (e.Op == "=") {
				return fmt.Errorf("task %d of %s was at %q", i, j.Name, at)
			}
		}
	}
	if !found {
		return errors.New("there is no such task")
	}
	return nil
}

func compare(have float64, op string, want float64) bool {
	switch op {
	case "=":
		return have == want
	case "!=":
		return have != want
	case "<":
		return have < want
	case "<=":
		return have <= want
	case ">":
		return have > want
	default:
		return have >= want
	}
}
