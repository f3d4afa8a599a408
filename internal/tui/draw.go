package tui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// lines draws the screen: at most its height, none wider than it.
func (s *screen) lines() []string {
	b := s.body()
	foot := s.foot()
	head := paintAll(b.head, s.width)
	const least = 3 // lines of the list, before the head has any
	head = head[:min(len(head), max(s.height-len(foot)-least, 0))]
	lines := append(head, s.middle(b, s.height-len(head)-len(foot))...)
	return append(lines, foot...)
}

// middle draws the rows or the text into so many lines.
func (s *screen) middle(b body, height int) []string {
	var all []string
	if b.isText {
		all = paintAll(b.text, s.width)
		if b.grows && !s.held {
			s.top = far
		}
	} else {
		rows, at := drawSections(b.sections, s.width, s.cursor)
		s.top = min(s.top, at-2) // the headings above it are seen, too
		s.top = max(s.top, at-height+1)
		all = rows
	}
	s.top = max(min(s.top, len(all)-height), 0)
	shown := all[s.top:min(s.top+height, len(all))]
	return append(slices.Clip(shown), make([]string, height-len(shown))...)
}

// lastTop is the first line shown of a text that is scrolled to its end.
func (s *screen) lastTop(b body) int {
	head := min(len(b.head), max(s.height-len(s.foot())-3, 0))
	return max(len(b.text)-(s.height-head-len(s.foot())), 0)
}

// foot draws the lines at the bottom: the word that was said last, and the keys.
func (s *screen) foot() []string {
	word := s.word()
	keys := paint(fit(s.hints(), s.width), faint)
	switch {
	case s.height < 2:
		return nil
	case s.height < 5 && word.text != "":
		return []string{paint(fit(word.text, s.width), word.tone)}
	case s.height < 5:
		return []string{keys}
	case word.text == "" && s.isSmall():
		word = said{"window is too small", warn}
		fallthrough
	default:
		return []string{paint(fit(word.text, s.width), word.tone), keys}
	}
}

// word is the question, or that the agent is away, or what was said last.
func (s *screen) word() said {
	switch {
	case s.asks != nil && s.asks.entry: // what was typed last is seen in a narrow window, too
		text := grid.Plain(s.asks.text + s.asks.input + "_")
		return said{ansi.TruncateLeft(text, ansi.StringWidth(text)-s.width+1, ellipsis), strong}
	case s.asks != nil:
		return said{s.asks.text, strong}
	case !s.lost.IsZero():
		text := "the agent does not answer; trying again"
		if away := s.now.Sub(s.lost); away >= time.Second {
			text += fmt.Sprintf(" (%s)", span(away))
		}
		return said{text, bad}
	default:
		return s.note
	}
}

// isSmall reports whether so little can be shown that a person may miss the rest.
func (s *screen) isSmall() bool {
	const low = 12 // lines
	return s.width < narrow || s.height < low
}

// hints are the keys in a line, those that act first. In a narrow window the last ones that act are
// left out, and none is cut: help has them all.
func (s *screen) hints() string {
	const blanks = "  "
	switch {
	case s.asks != nil && s.asks.entry:
		return "enter done  esc never mind"
	case s.asks != nil:
		return "y yes  n no"
	}
	ends := strings.Join(hintsOf(common()), blanks)
	var text string
	for _, hint := range hintsOf(s.subject.bindings()) {
		if ansi.StringWidth(text+hint+blanks+ends) > s.width {
			break
		}
		text += hint + blanks
	}
	return text + ends
}

// hintsOf are keys with what they do, in a word or two.
func hintsOf(bindings []binding) (hints []string) {
	for _, b := range bindings {
		if b.short != "" {
			hints = append(hints, b.key+" "+b.short)
		}
	}
	return hints
}

func common() []binding {
	return []binding{
		{"?", "help", "this page"},
		{"q", "quit", "quit; ^C does, too"},
		{"esc", "", "back"},
		{"up, down", "", "move by a row; j and k do, too"},
		{"pgup, pgdn", "", "move by half a window; home and end go all the way"},
	}
}

// helpBody explains the keys.
func (s *screen) helpBody() body {
	var pairs [][2]string
	for _, k := range append(s.subject.bindings(), common()...) {
		pairs = append(pairs, [2]string{k.key, k.long})
	}
	return body{head: []said{{"keys", strong}}, isText: true, text: pairLines(pairs, s.width)}
}

func paintAll(all []said, columns int) []string {
	lines := make([]string, 0, len(all))
	for _, l := range all {
		lines = append(lines, paint(fit(l.text, columns), l.tone))
	}
	return lines
}

// span is a time in its one or two largest units.
func span(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	default:
		return fmt.Sprintf("%dd%02dh", int(d.Hours())/24, int(d.Hours())%24)
	}
}
