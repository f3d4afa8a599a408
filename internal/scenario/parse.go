package scenario

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Limits on what a scenario may hold.
const (
	maxSites  = 1_000
	maxEvents = 10_000
	maxJobs   = 100_000
	maxText   = 1 << 20 // bytes
)

// parser collects what the lines say.
type parser struct {
	s    Scenario
	errs []error
	ran  int // line of run; 0 = none yet
	net  int // line of net
}

// Parse reads a scenario. Its errors are all *Error, joined, one for each thing
// that is wrong.
func Parse(text string) (Scenario, error) {
	p := &parser{}
	if len(text) > maxText {
		return Scenario{}, &Error{Word: "scenario", Want: "at most 1 MiB of text"}
	}
	var lines []*line
	for i, raw := range strings.Split(text, "\n") {
		if l := newLine(i+1, raw); l != nil {
			lines = append(lines, l)
		}
	}
	// Sites come first: the other lines name them, whatever their order.
	for _, sitesFirst := range []bool{true, false} {
		for _, l := range lines {
			if (l.word == "sites") == sitesFirst {
				p.read(l)
			}
		}
	}
	p.whole()
	slices.SortStableFunc(p.errs, func(a, b error) int { return lineOf(a) - lineOf(b) })
	if err := errors.Join(p.errs...); err != nil {
		return Scenario{}, err
	}
	return p.s, nil
}

func lineOf(err error) int {
	var e *Error
	if errors.As(err, &e) && e.Line > 0 {
		return e.Line
	}
	return math.MaxInt32
}

// words are the statements.
var words = map[string]func(*parser, *line){ //nolint:gochecknoglobals // a constant table
	"sites": (*parser).sites, "link": (*parser).link,
	"net": (*parser).network, "clock": (*parser).clock, "submit": (*parser).submit,
	"crash": (*parser).trouble, "isolate": (*parser).trouble, "silent": (*parser).trouble,
	"pause":  (*parser).trouble,
	"busy":   (*parser).trouble,
	"cancel": (*parser).toJob, "migrate": (*parser).toJob, "run": (*parser).run, "expect": (*parser).expect,
}

func (p *parser) read(l *line) {
	do, known := words[l.word]
	if _, is := Troubles()[l.word]; is {
		do, known = (*parser).upset, true
	}
	if !known {
		names := []string{
			"sites", "link", "net", "clock", "submit", "crash", "isolate", "silent", "pause",
			"busy", "cancel", "migrate", "run", "expect",
		}
		names = slices.Concat(names, slices.Sorted(maps.Keys(Troubles())))
		l.errs = nil
		l.fail("", "", "one of "+strings.Join(names, " ")+" at its beginning",
			"did you mean "+nearest(l.word, names)+"?")
	} else {
		do(p, l)
		l.finish()
	}
	p.errs = append(p.errs, l.errs...)
}

// whole checks what no single line can.
func (p *parser) whole() {
	if len(p.s.Sites) == 0 {
		p.errs = append(p.errs, &Error{
			Word: "sites", Want: "a line that says which sites there are",
			Remedy: "add sites n=5 cores=4 gflops=16",
		})
	}
	if p.ran == 0 {
		p.errs = append(p.errs,
			&Error{Word: "run", Want: "a line that says how long", Remedy: "add run for=10m seed=1"})
	}
	for _, e := range p.s.Expect {
		if e.Job != "" && !p.submitted(e.Job) {
			p.errs = append(p.errs,
				&Error{Line: e.Line, Word: "expect", Key: "job", Have: e.Job, Want: "the name of a submission"})
		}
	}
	for _, e := range p.s.Events {
		if e.Kind.OfJob() && e.Kind != Submit && !p.submitted(e.Job) {
			p.errs = append(p.errs, &Error{
				Word: e.Kind.String(), Key: "job", Have: e.Job, Want: "the name of a submission",
			})
		}
		if e.Kind == Submit {
			p.errs = append(p.errs, p.checkNeeds(e)...)
		}
	}
}

func (p *parser) submitted(name string) bool {
	return slices.ContainsFunc(p.s.Events, func(e Event) bool {
		return e.Kind == Submit && e.Submit.Name == name
	})
}

func (p *parser) sites(l *line) {
	n := int(l.whole("n", 1, maxSites))
	cores := l.spread("cores", 4, nil)
	gflops := l.spread("gflops", 16, nil)
	memory := l.spread("mem", 4<<30, byteUnits())
	disk := l.spread("disk", 64<<30, byteUnits())
	up := l.spread("uplink", 20e6, rateUnits())
	down := l.spread("downlink", 100e6, rateUnits())
	domain, has := l.text("domain")
	if !has {
		domain = "a"
	}
	if err := grid.DomainID(domain).Validate(); err != nil {
		l.fail("domain", domain, "letters a-z, digits and inner dashes", "")
	}
	if len(p.s.Sites)+n > maxSites {
		l.fail("n", strconv.Itoa(n), fmt.Sprintf("at most %d sites in all", maxSites), "")
		return
	}
	for i := range n {
		site := Site{Name: fmt.Sprintf("s%d", len(p.s.Sites)), Domain: grid.DomainID(domain)}
		total := grid.Resources{
			MilliCPUs: thousandths(cores.at(i, n)), MFLOPS: thousandths(gflops.at(i, n)),
			MemoryBytes: int64(memory.at(i, n)), DiskBytes: int64(disk.at(i, n)),
		}
		total.NetBps = int64(min(up.at(i, n), down.at(i, n)))
		site.Capability = grid.Capability{
			Total: total, UpBps: int64(up.at(i, n)), DownBps: int64(down.at(i, n)),
			CoreMFLOPS: total.MFLOPS * 1000 / max(total.MilliCPUs, 1000),
			OS:         "linux", Arch: "amd64", Kinds: []grid.WorkKind{grid.KindWasm},
		}
		if err := site.Capability.Validate(); err != nil {
			l.fail("", "", "a machine that can exist", err.Error())
			return
		}
		p.s.Sites = append(p.s.Sites, site)
	}
}

// thousandths turns cores into thousandths of a core and GFLOP/s into MFLOP/s.
func thousandths(v float64) int64 { return int64(math.Round(v * 1000)) }

func (p *parser) network(l *line) {
	if p.net > 0 {
		l.fail("", "", "one such line", fmt.Sprintf("put it together with line %d", p.net))
	}
	p.net = l.number
	p.s.Net = Net{
		Latency: l.duration("latency", 0, false), Jitter: l.duration("jitter", 0, false),
		Loss:      l.probability("loss"),
		Duplicate: l.probability("duplicate"), Reorder: l.probability("reorder"),
	}
}

// site takes the name of a site.
func (p *parser) site(l *line, key string) (int, bool) {
	name := l.required(key, "the name of a site, s0 and up")
	at := slices.IndexFunc(p.s.Sites, func(s Site) bool { return s.Name == name })
	if at < 0 && name != "" {
		l.fail(key, name, fmt.Sprintf("the name of a site, s0 to s%d", len(p.s.Sites)-1),
			"sites are named in the order of their lines")
	}
	return at, at >= 0
}

func (p *parser) clock(l *line) {
	at, ok := p.site(l, "site")
	skew := l.duration("skew", 0, true)
	if ok {
		p.s.Sites[at].Skew = skew
	}
}

func (p *parser) trouble(l *line) {
	e := Event{At: l.duration("at", 0, false), For: l.duration("for", 0, false)}
	if at, ok := p.site(l, "site"); ok {
		e.Site = p.s.Sites[at].Name
	}
	switch l.word {
	case "crash":
		e.Kind = Crash
		if amid, has := l.text("amid"); has && amid != "step" {
			l.fail("amid", amid, "step", "leave it out for a crash between two steps")
		} else {
			e.Amid = has
		}
	case "isolate":
		e.Kind = Isolate
	case "silent":
		e.Kind = Silent
	case "busy":
		e.Kind = Busy
	default:
		e.Kind = Pause
	}
	p.add(l, e)
}

func (p *parser) add(l *line, e Event) {
	if len(p.s.Events) >= maxEvents {
		l.fail("", "", fmt.Sprintf("at most %d events", maxEvents), "")
		return
	}
	p.s.Events = append(p.s.Events, e)
}

// toJob reads what is done to a job.
func (p *parser) toJob(l *line) {
	kind := Cancel
	if l.word == Migrate.String() {
		kind = Migrate
	}
	p.add(l, Event{
		Kind: kind, At: l.duration("at", 0, false), Job: l.required("job", "the name of a submission"),
	})
}

func (p *parser) run(l *line) {
	if p.ran > 0 {
		l.fail("", "", "one such line", fmt.Sprintf("remove this one or line %d", p.ran))
	}
	p.ran = l.number
	p.s.Run.For = l.duration("for", 0, false)
	if p.s.Run.For == 0 {
		l.fail("for", "", "a time above 0", "add for=10m")
	}
	p.s.Run.Seed = uint64(l.whole("seed", 0, math.MaxInt64))
}
