package scenario

import (
	"slices"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// submit reads one submission. Its keys have the job file's words where there are
// such.
func (p *parser) submit(l *line) {
	e := Event{Kind: Submit, At: l.duration("at", 0, false)}
	s := Submission{
		Name: l.required("job", "a name"), Jobs: int(l.whole("jobs", 1, maxJobs)),
		Count: uint32(l.whole("count", 1, grid.MaxTasks)),
		Need: grid.Resources{
			MilliCPUs: l.amount("cpus", 1, nil) * 1000, MemoryBytes: l.amount("mem", 256<<20, byteUnits()),
			DiskBytes: l.amount("disk", 1<<20, byteUnits()),
			MFLOPS:    thousandths(l.spread("gflops", 1, nil).from), NetBps: l.amount("net", 0, rateUnits()),
		},
		Run: l.lasting("run", 10*time.Second), Data: l.amount("data", 0, byteUnits()),
		TTL: l.lasting("ttl", time.Second),
	}
	if at, ok := p.site(l, "by"); ok {
		s.By = p.s.Sites[at].Name
	}
	s.Unattended = grid.Unattended(l.oneOf("unattended", "freeze", "finish", "stop"))
	if wait, has := l.text("wait"); has && wait != "no" {
		l.fail("wait", wait, "no", "leave it out for a job that waits")
	} else {
		s.NoWait = has
	}
	s.Takes, s.Limit = l.duration("takes", 0, false), l.duration("limit", 0, false)
	s.Output = l.oneOf("output", "no", "yes") == 1
	s = withWindow(l, s, e.At)
	s.Reservation, _ = l.text("reservation")
	if after, has := l.text("after"); has {
		s.After = strings.Split(after, ",")
	}
	s.Split = grid.Split(l.oneOf("split", "", "never", "if-needed", "greedy"))
	s.Flood = l.oneOf("placing", "once", "flood") == 1
	s.Map = grid.MapKind(l.oneOf("map", "thesis", "seconds"))
	p.checkJob(l, s)
	e.Submit = s
	p.add(l, e)
}

// withWindow reads when a submission of a time may run.
func withWindow(l *line, s Submission, at time.Duration) Submission {
	s.Start, s.NotBefore = l.duration("start", 0, false), l.duration("notbefore", 0, false)
	s.Deadline = l.duration("deadline", 0, false)
	for _, k := range []struct {
		key  string
		time time.Duration
	}{{"start", s.Start}, {"deadline", s.Deadline}} {
		if k.time != 0 && k.time <= at {
			l.fail(k.key, k.time.String(), "a time after at="+at.String(),
				"times count from the scenario's beginning")
		}
	}
	if length := l.duration("reserve", 0, false); length > 0 {
		s.Reserve, s.Run = true, length
	}
	return s
}

// oneOf takes one of some words and gives its place, 0 without the key or for
// another word. An empty word stands for a key that is left out.
func (l *line) oneOf(key string, words ...string) int {
	value, has := l.text(key)
	if !has {
		return 0
	}
	at := slices.Index(words, value)
	if at < 0 || value == "" {
		words = slices.DeleteFunc(words, func(w string) bool { return w == "" })
		l.fail(key, value, strings.Join(words, " or "), "")
		return 0
	}
	return at
}

// checkJob wants a name of letters and digits that no other submission has, and
// a job that is valid.
func (p *parser) checkJob(l *line, s Submission) {
	for _, r := range s.Name {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') {
			l.fail("job", s.Name, "letters a-z and digits", "")
			return
		}
	}
	if p.submitted(s.Name) {
		l.fail("job", s.Name, "a name of its own", "another submission has this name")
	}
	ids := make(map[string]grid.JobID)
	for _, name := range s.Needs() {
		ids[name] = "aaaaaaaaaaaaaaaa"
	}
	if err := s.Job(time.Unix(0, 0), ids).Validate(); err != nil && s.Name != "" {
		l.fail("", "", "a job that some site could run", err.Error())
	}
}

// checkNeeds wants every submission that another one names to be one job, submitted
// before it at the same site.
func (p *parser) checkNeeds(e Event) []error {
	var errs []error
	for _, name := range e.Submit.Needs() {
		ok := slices.ContainsFunc(p.s.Events, func(o Event) bool {
			s := o.Submit
			return o.Kind == Submit && s.Name == name && s.Jobs == 1 && s.By == e.Submit.By &&
				o.At < e.At && (name != e.Submit.Reservation || s.Reserve)
		})
		if !ok {
			errs = append(errs, &Error{
				Word: "submit", Key: "job", Have: e.Submit.Name,
				Want:   "what it needs to be one job, submitted before it by the same site",
				Remedy: "look at " + name + "; reservation= names one with reserve=",
			})
		}
	}
	return errs
}
