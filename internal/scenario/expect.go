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
	Of      int      // heard: out of how many
	Site    string   // site, first: the name
	At      string   // awards, faults: the site that has them
	Order   []string // order: the submissions
}

// Measures lists what can be expected.
//
//	lost       tasks that have not ended
//	done failed refused cancelled   tasks that ended so
//	moves      attempts that were given up for another one
//	within     time from submission to end, of the slowest job; = means at most
//	placed     time from submission to the first award, of the slowest job
//	token      how many attempts the task with the most of them had, declined awards included
//	awards     attempts that the site of at= was awarded
//	answers    answers to the announcements, of all jobs
//	site first where every task ended, where it was awarded first
//	earliest latest  when the first and the last task began to run, since the scenario's beginning
//	spread     the time between these two
//	order      submissions, the first task of each of which began in this order
//	faults     the fault index of the site of at=, where it is highest
//	doubled    pairs of attempts of one task that ran at the same time
//	heard      announcements that reached the site that was reached least: n/of
//	peers      connections of the running site that has least at the end
//	frozen resumed           attempts that a site froze, or let run again
//	cache_hits cache_misses  re-announcements by id that met a warm or cold cache
//	messages   sent in all
//	flaws      what the simulation's oracle finds, two hours later at best
//
// Only the simulation knows placed, awards and faults; other drivers do not judge them. Any
// report can be expected by its event too, as site.EVENT or broker.EVENT.
func Measures() []string {
	return []string{
		"lost", "done", "failed", "refused", "cancelled", "moves", "within", "answers", "site", "first",
		"earliest", "latest", "spread", "placed", "token", "awards",
		"order", "faults", "doubled", "heard", "peers", "frozen", "resumed",
		"cache_hits", "cache_misses", "messages", "flaws",
	}
}

// ofJob lists the measures that may be limited to one submission.
func ofJob() []string { return Measures()[:16] }

// ofSite lists the measures of the site that at= names.
func ofSite() []string { return []string{"awards", "faults"} }

// onlySimulated lists the measures that other drivers do not have.
func onlySimulated() []string { return append(ofSite(), "placed") }

// isTime reports whether a measure is a time.
func isTime(measure string) bool {
	return slices.Contains([]string{"within", "earliest", "latest", "spread", "placed"}, measure)
}

// isAbout reports whether an expectation is about a job: one of its submission, if
// it names one.
func (e Expectation) isAbout(j JobOutcome) bool {
	return e.Job == "" || j.Name == e.Job || strings.HasPrefix(j.Name, e.Job+"#")
}

// expect reads the expectations of one line.
func (p *parser) expect(l *line) {
	job, _ := l.text("job")
	at := ""
	if slices.ContainsFunc(l.pairs, func(q pair) bool { return q.key == "at" }) {
		if i, ok := p.site(l, "at"); ok {
			at = p.s.Sites[i].Name
		}
	}
	if !slices.ContainsFunc(l.pairs, func(q pair) bool { return !q.taken }) {
		l.fail("", "", "something to be true, such as lost=0", "")
	}
	for i := range l.pairs {
		q := &l.pairs[i]
		if q.taken {
			continue
		}
		q.taken = true
		e := Expectation{Line: l.number, Job: job, At: at, Measure: q.key, Op: q.op}
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
	case (e.At != "") != slices.Contains(ofSite(), q.key):
		l.fail(q.key, "", strings.Join(ofSite(), " ")+" in a line with at, and nowhere else", "")
		return false
	case q.key == "order":
		return p.readOrder(l, q, e)
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

// readOrder reads the names of submissions, which stand before it.
func (p *parser) readOrder(l *line, q pair, e *Expectation) bool {
	e.Order = strings.Split(q.value, ",")
	unknown := slices.ContainsFunc(e.Order, func(name string) bool { return !p.submitted(name) })
	if unknown || q.op != "=" || len(e.Order) < 2 {
		l.fail(q.key, q.value, "= and the names of two or more submissions above", "")
		return false
	}
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
	case len(e.Order) > 0:
		text += strings.Join(e.Order, ",")
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
	if e.At != "" {
		text = "at=" + e.At + " " + text
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
	switch {
	case e.Site != "":
		return e.checkSite(o)
	case len(e.Order) > 0:
		return e.checkOrder(o)
	case o.Hash == 0 && slices.Contains(onlySimulated(), e.Measure):
		return nil
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

func (e Expectation) checkOrder(o Outcome) error {
	last, before := -1.0, ""
	for _, name := range e.Order {
		at, began := o.measureStarts(Expectation{Job: name, Measure: "earliest"})
		if !began || at <= last {
			return fmt.Errorf("%s began at %s, %s at %s", before, seconds(last), name, seconds(at))
		}
		last, before = at, name
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
