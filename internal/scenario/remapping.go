package scenario

import (
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// Remapping is an experiment about reservations on machines that fail: rules for which of them
// leave a failed machine, and when. Time goes in slots. Its text has the lines
//
//	machines name=300 nodes=512,256,128 lead=300 every=1500 down=500
//	requests slots=20000 load=2 run=250..750 widest=256
//	strategy name=paper remap=load full=all zeta=2 eta=.6,.775,.9
//	strategy name=optimal remap=until-end
//	strategy name=half remap=estimate factor=.5 after=again
//	expect   ratio=optimal/paper-0.775 of=termination from=1 to=1.1 at=300
//	expect   lowest=paper of=termination from=.7 to=.85
//	seeds    n=200
//
// Each line machines is a case, in which all strategies are played. A strategy with several
// thresholds eta is one for each, named paper-0.6 and so on. ratio, more and less are as in
// Failing; lowest says at which threshold of a line the mean is lowest.
type Remapping struct {
	Cases    []MachinesCase
	Requests RequestModel
	Rules    []RemapRule
	Claims   []RuleClaim
}

// MachinesCase says what machines there are, how they fail, and how early requests for them come.
type MachinesCase struct {
	Name  string
	Nodes []int64 // of each machine
	Lead  float64 // mean slots from a request to its start, exponential
	Every int64   // slots from one failure, of any machine, to the next
	Down  int64   // slots that it lasts, less than Every
}

// RequestModel says what reservations are asked for.
type RequestModel struct {
	Slots             int64   // that are played
	Load              float64 // nodes times slots that are asked for, by what there is
	Shortest, Longest int64   // slots of a request, evenly between
	Widest            int64   // nodes: 2, 4, 8, ... up to it, equally often
}

// RemapRule is a strategy in an experiment about reservations, with one threshold.
type RemapRule struct {
	Name      string  // unique; with the threshold if its line has several
	Line      string  // the name in its line
	Remap     string  // see RemapWords
	Zeta, Eta float64 // weight and threshold; of load
	Surviving bool    // full load: only the nodes of machines that work; of load
	Killed    bool    // jobs that the failure ended count as load; of load
	Booking   bool    // so does what will be booked; of load
	Factor    float64 // by which the length of a failure is misjudged; of estimate
	After     string  // see AfterWords; of estimate
	Migrate   bool    // jobs that run move, too
}

// RemapWords lists the rules for how far ahead reservations leave a failed machine: while the grid
// is busy, for the present slot, all, up to the true end of the failure, up to an estimated one.
func RemapWords() []string { return []string{"load", "slot", "all", "until-end", "estimate"} }

// AfterWords lists what is done when a failure outlasts its estimate: nothing, as remap=slot, or
// the same estimate again.
func AfterWords() []string { return []string{"nothing", "slot", "again"} }

// RemappingMeasures lists what such strategies are compared by. Jobs are counted for a run.
//
//	termination  jobs that failures cost, by these and the saved ones; 0 to 1
//	blocking     requests that got no reservation, by all; 0 to 1
//	terminated   jobs that failures cost
//	saved        jobs that were moved, and would have been terminated
//	overhead     jobs that were moved, though they start after the end of the failure
//	completed    jobs that were done
func RemappingMeasures() []string {
	return []string{"termination", "blocking", "terminated", "saved", "overhead", "completed"}
}

// remappingWords are the lines of such an experiment.
func (p *experimentParser) remappingWords() (map[string]func(*line), []string) {
	return map[string]func(*line){
		"machines": p.machines, "requests": p.requests, "strategy": p.remapRule,
		"expect": p.remapClaim, "seeds": p.seeds,
	}, []string{"machines", "requests", "strategy", "expect", "seeds"}
}

// mostSlots bounds all that is counted in slots, mostMachines the machines.
const (
	mostSlots    = 1 << 20
	mostMachines = 1024
)

func (p *experimentParser) machines(l *line) {
	c := MachinesCase{
		Name: l.required("name", "a name"), Lead: l.real("lead", 300, .001, mostSlots),
		Every: l.slots("every", 1500), Down: l.slots("down", 500),
	}
	c.Nodes = l.nodes(l.required("nodes", "the nodes of each machine, such as 512,256,128"))
	if c.Down >= c.Every {
		l.fail("down", strconv.FormatInt(c.Down, 10),
			fmt.Sprintf("less than every, %d: one machine fails at a time", c.Every), "")
	}
	m := p.e.Remapping
	if strings.ContainsAny(c.Name, "/@") || slices.ContainsFunc(m.Cases, func(o MachinesCase) bool {
		return o.Name == c.Name
	}) {
		l.fail("name", c.Name, "a name without / and @ that no other line machines has", "")
	}
	m.Cases = append(m.Cases, c)
}

// nodes reads the nodes of machines.
func (l *line) nodes(value string) (nodes []int64) {
	if value == "" {
		return nil // was told
	}
	for one := range strings.SplitSeq(value, ",") {
		n, err := strconv.ParseInt(one, 10, 64)
		if err != nil || n < 1 || n > maxNodes || len(nodes) == mostMachines {
			l.fail("nodes", value, fmt.Sprintf(
				"at most %d whole numbers from 1 to %d with commas between them, such as 512,256",
				mostMachines, maxNodes), "")
			return nil
		}
		nodes = append(nodes, n)
	}
	return nodes
}

// slots takes a number of slots.
func (l *line) slots(key string, fallback int64) int64 {
	if !l.has(key) {
		l.known = append(l.known, key)
		return fallback
	}
	return l.whole(key, 1, mostSlots)
}

func (p *experimentParser) requests(l *line) {
	r := RequestModel{
		Slots: l.slots("slots", 20_000), Load: l.real("load", 2, .001, 100), Shortest: 250,
		Longest: 750, Widest: 256,
	}
	if value, has := l.text("run"); has {
		low, high, is := strings.Cut(value, "..")
		if !is {
			high = low
		}
		from, err1 := strconv.ParseInt(low, 10, 64)
		to, err2 := strconv.ParseInt(high, 10, 64)
		if err1 != nil || err2 != nil || from < 1 || to < from || to > mostSlots {
			l.fail("run", value, fmt.Sprintf("slots from 1 to %d, or a range of them, the smaller "+
				"number first, such as 250..750", mostSlots), "")
		}
		r.Shortest, r.Longest = from, to
	}
	if l.has("widest") {
		r.Widest = l.whole("widest", 1, maxNodes)
	} else {
		l.known = append(l.known, "widest")
	}
	if r.Widest < 2 || bits.OnesCount64(uint64(r.Widest)) != 1 {
		have := strconv.FormatInt(r.Widest, 10)
		l.fail("widest", have, "a power of two from 2 on, such as 256", "")
	}
	p.e.Remapping.Requests = r
}

func (p *experimentParser) remapRule(l *line) {
	r := RemapRule{
		Line: l.required("name", "a name"), Remap: RemapWords()[l.oneOf("remap", RemapWords()...)],
		After: AfterWords()[l.oneOf("after", AfterWords()...)], Zeta: l.real("zeta", 2, 0, 1000),
		Surviving: l.oneOf("full", "surviving", "all") == 0, Killed: l.yes("killed"),
		Booking: l.yes("booking"), Migrate: l.yes("migrate"),
		Factor: l.real("factor", 0, .001, 1000),
	}
	l.only(r.Remap == "load", "remap=load", "zeta", "eta", "full", "killed", "booking")
	l.only(r.Remap == "estimate", "remap=estimate", "factor", "after")
	if r.Remap == "estimate" && !l.has("factor") {
		l.fail("factor", "", "the estimate as a part of the true length", "add factor=.5")
	}
	r.Name = r.Line
	value, has := l.text("eta")
	switch {
	case r.Remap != "load":
		p.addRemapRule(l, r)
	case !has:
		r.Eta = bestThreshold
		p.addRemapRule(l, r)
	default:
		for one := range strings.SplitSeq(value, ",") {
			eta, err := strconv.ParseFloat(one, 64)
			if err != nil || !(eta >= 0 && eta <= 10) {
				l.fail("eta", value, "numbers from 0 to 10 with commas between, such as .7,.8", "")
				return
			}
			if r.Eta = eta; strings.Contains(value, ",") {
				r.Name = r.Line + "-" + ThresholdName(eta)
			}
			p.addRemapRule(l, r)
		}
	}
}

// yes takes yes or no; a key that is not written means no.
func (l *line) yes(key string) bool { return l.oneOf(key, "no", "yes") == 1 }

// bestThreshold is the one of VRM, section 5.2.
const bestThreshold = .775

// ThresholdName writes a threshold as names of strategies have it: 0.775.
func ThresholdName(eta float64) string { return strconv.FormatFloat(eta, 'g', -1, 64) }

// only refuses keys that mean something in other lines only.
func (l *line) only(here bool, where string, keys ...string) {
	for _, key := range keys {
		if !here && l.has(key) {
			l.fail(key, "", "none without "+where, "remove it")
		}
	}
}

func (p *experimentParser) addRemapRule(l *line, r RemapRule) {
	m := p.e.Remapping
	isTaken := slices.ContainsFunc(m.Rules, func(o RemapRule) bool {
		return o.Name == r.Name || o.Name == r.Line || o.Line == r.Name
	})
	l.ruleName(r.Name, isTaken)
	m.Rules = append(m.Rules, r)
}

func (p *experimentParser) remapClaim(l *line) {
	claim := l.ruleClaim(RemappingMeasures(), "ratio", "more", "less", "lowest")
	p.e.Remapping.Claims = append(p.e.Remapping.Claims, claim)
}

// wholeRemapping looks at the text as a whole.
func (p *experimentParser) wholeRemapping() {
	m := p.e.Remapping
	if !p.seen["requests"] {
		p.errs = append(p.errs, &Error{
			Word: "requests", Want: "a line that says what reservations are asked for",
			Remedy: "add requests slots=20000 load=2 run=250..750 widest=256",
		})
	}
	if len(m.Rules) == 0 {
		p.errs = append(p.errs, &Error{
			Word: "strategy", Want: "a line for each strategy",
			Remedy: "add strategy name=ours remap=load",
		})
	}
	var names, cases []string
	for _, r := range m.Rules {
		names = append(names, r.Name, r.Line)
	}
	for _, c := range m.Cases {
		cases = append(cases, c.Name)
	}
	p.knownNames(m.Claims, names, cases, "machines")
}
