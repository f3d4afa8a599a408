package scenario

import (
	"fmt"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Link joins two domains of a scenario. The gateway of each is its first site.
type Link struct {
	A, B  grid.DomainID
	Give  uint32 // how much of each the other may use at a time, percent of its cores; 100: all
	Tasks uint32 // most tasks of each at the other at a time; 0: no limit
	Hops  uint32 // how many borders work of either may cross
	// Beside: each asks the other one together with its members, not after them.
	Beside bool
	// Cut is when nothing crosses it any more, and For for how long; 0: never, and to the end.
	Cut, For time.Duration
}

// text is the line that the link is written as.
func (k Link) text() string {
	text := fmt.Sprintf("link a=%s b=%s give=%d hops=%d", k.A, k.B, k.Give, k.Hops)
	if k.Tasks > 0 {
		text += fmt.Sprintf(" tasks=%d", k.Tasks)
	}
	if k.Beside {
		text += " beside=yes"
	}
	return text + timeText("cut", k.Cut) + timeText("for", k.For) + "\n"
}

// maxHops bounds the borders that work may cross, as pkg/protocol does.
const maxHops = 4

// link reads a link.
func (p *parser) link(l *line) {
	k := Link{
		A: p.domain(l, "a"), B: p.domain(l, "b"), Give: 100,
		Hops: uint32(l.whole("hops", 1, maxHops)), Beside: l.yes("beside"),
		Cut: l.duration("cut", 0, false), For: l.duration("for", 0, false),
	}
	if l.has("give") {
		k.Give = uint32(l.whole("give", 0, 100))
	}
	if l.has("tasks") {
		k.Tasks = uint32(l.whole("tasks", 1, grid.MaxTasks))
	}
	same := func(o Link) bool { return o.A == k.A && o.B == k.B || o.A == k.B && o.B == k.A }
	switch {
	case k.A == k.B:
		l.fail("b", string(k.B), "another domain than a", "")
	case k.For > 0 && k.Cut == 0:
		l.fail("cut", "", "when the border is cut", "add cut=1m, or leave for= out")
	case slices.ContainsFunc(p.s.Links, same):
		l.fail("", "", "one line for two domains", "")
	default:
		p.s.Links = append(p.s.Links, k)
	}
}

// domain takes the name of a domain that has sites.
func (p *parser) domain(l *line, key string) grid.DomainID {
	name := l.required(key, "the name of a domain")
	if name != "" && !slices.ContainsFunc(p.s.Sites, func(s Site) bool {
		return string(s.Domain) == name
	}) {
		l.fail(key, name, "a domain that has sites", "add sites n=2 domain="+name)
	}
	return grid.DomainID(name)
}
