package scenario

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Trouble says what is wrong with a site from an Upset to its Settle.
type Trouble struct {
	Word string        // that begins its line, see Troubles
	To   string        // cut: the site that hears nothing of this one
	With []string      // part: the sites that are cut off together with this one
	Fast int64         // drift: millionths that the clock runs fast, below 0: slow
	By   time.Duration // what the word's own key says
	How  string        // liar: in which way
}

// Troubles lists the words of what only a simulation can do to a site, with the keys that they
// have besides site, at and for. By holds the last of them, where it is a time.
//
//	deaf     nothing arrives at the site; its own messages do
//	cut      nothing passes from the site to another one; the way back stays
//	part     the site and those with it are cut off from the others, but not from each other
//	drift    its clocks run fast by so many millionths, or slow
//	set      its wall clock is set, once
//	suspend  the host is suspended, while time goes on
//	stick    its sandboxes make no progress; stopping one takes so long, without answer: never
//	full     its disk has no space for data
//	broken   its disk takes no fact: the agent ends with the next one
//	slow     its disk takes so long for each write of facts
//	batch    its machines take together all that has come in so long
//	twin     a second machine has its disk's copy and its identity
//	kill     the agent is killed and its jobs live on for up to so long
//	power    its power is gone: nobody answers, what was not synced is lost
//	lose     its agent is killed and starts again with an empty disk
//	backup   its disk is noted, once, for restore
//	restore  its agent is killed and starts again with what was noted
//	tune     its submitter grants leases of so long from its next start on
//	liar     it lies to others in one of the ways that Lies lists
func Troubles() map[string][]string {
	return map[string][]string{
		"deaf": nil, "cut": {"to"}, "part": {"with"}, "drift": {"fast"}, "set": {"by"},
		"suspend": nil, "stick": {"answer"}, "full": nil, "broken": nil, "slow": {"each"},
		"batch": {"each"}, "twin": nil, "kill": {"lag"}, "power": nil, "lose": nil,
		"backup": nil, "restore": nil, "tune": {"lease"}, "liar": {"how"},
	}
}

// Lies lists the ways of a liar. All but silent offer distance 0 and accept all awards.
//
//	hold    says that it runs what it has, renews forever, and runs nothing
//	idle    the same without saying that it runs
//	empty   says that all has ended well, and leaves no output
//	forge   the same, and names outputs that nobody has
//	silent  answers nothing, and connects anew each second
func Lies() []string { return []string{"hold", "idle", "empty", "forge", "silent"} }

// Once reports whether a trouble has no end.
func (t Trouble) Once() bool { return slices.Contains([]string{"set", "backup", "tune"}, t.Word) }

// upset reads a trouble.
func (p *parser) upset(l *line) {
	t := Trouble{Word: l.word}
	e := Event{Kind: Upset, At: l.duration("at", 0, false)}
	if !t.Once() {
		e.For = l.duration("for", 0, false)
	}
	if at, ok := p.site(l, "site"); ok {
		e.Site = p.s.Sites[at].Name
	}
	for _, key := range Troubles()[l.word] {
		switch key {
		case "to":
			if at, ok := p.site(l, "to"); ok {
				t.To = p.s.Sites[at].Name
			}
		case "with":
			t.With = p.with(l)
		case "fast":
			t.Fast = l.whole("fast", -maxFast, maxFast)
		case "how":
			t.How = Lies()[l.oneOf("how", Lies()...)]
		default:
			t.By = l.duration(key, 0, l.word == "set")
		}
	}
	e.Trouble = t
	p.add(l, e)
}

// maxFast is the most that a clock is wrong by, in millionths.
const maxFast = 100_000

// with reads the names of sites.
func (p *parser) with(l *line) []string {
	text, has := l.text("with")
	if !has {
		return nil
	}
	names := strings.Split(text, ",")
	for _, name := range names {
		if !slices.ContainsFunc(p.s.Sites, func(s Site) bool { return s.Name == name }) {
			l.fail("with", text, "names of sites with commas between them", "")
			return nil
		}
	}
	return names
}

// text writes what a trouble has besides its site and time.
func (t Trouble) text() string {
	var b strings.Builder
	for _, key := range Troubles()[t.Word] {
		switch key {
		case "to":
			b.WriteString(" to=" + t.To)
		case "with":
			if len(t.With) > 0 {
				b.WriteString(" with=" + strings.Join(t.With, ","))
			}
		case "fast":
			fmt.Fprintf(&b, " fast=%d", t.Fast)
		case "how":
			b.WriteString(" how=" + t.How)
		default:
			b.WriteString(timeText(key, t.By))
		}
	}
	return b.String()
}
