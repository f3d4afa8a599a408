package tui

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// press takes a key: the question's if there is one, then the screen's, then the subject's.
func (s *screen) press(m tea.KeyPressMsg) {
	key := m.String()
	if key == "ctrl+c" {
		s.ended = true
		return
	}
	if s.asks != nil {
		s.reply(key, m.Text)
		return
	}
	s.note = said{}
	switch key {
	case "q":
		s.ended = true
	case "?":
		s.help, s.top = !s.help, 0
	case "esc", "backspace":
		if s.help {
			s.help, s.top = false, 0
		} else if s.subject.back() {
			s.turn()
		}
	default:
		if steps, moves := s.steps(key); moves {
			s.move(steps)
		} else if !s.help {
			s.subject.press(s, key, s.cursor)
		}
	}
}

// far is further than any list or text is long.
const far = 1 << 30

// steps are the rows or lines by which a key moves the cursor or the text.
func (s *screen) steps(key string) (int, bool) {
	page := max(s.height/2, 1)
	switch key {
	case "up", "k":
		return -1, true
	case "down", "j":
		return 1, true
	case "pgup":
		return -page, true
	case "pgdown", "space":
		return page, true
	case "home", "g":
		return -far, true
	case "end", "G":
		return far, true
	default:
		return 0, false
	}
}

func (s *screen) move(steps int) {
	b := s.body()
	if b.isText {
		last := s.lastTop(b)
		if b.grows && !s.held {
			s.top = last
		}
		s.top = min(max(s.top+steps, 0), last)
		s.held = s.top < last
		return
	}
	keys := keysOf(b.sections)
	at := slices.Index(keys, s.cursor)
	next := max(min(at+steps, len(keys)-1), 0)
	if len(keys) > 0 {
		s.cursor = keys[next]
	} else {
		next = at // of an empty page there is a way back
	}
	if next == at && steps != far && steps != -far {
		beyond := keyBeyond
		if steps < 0 {
			beyond = keyBefore
		}
		s.subject.press(s, beyond, s.cursor)
	}
}

// ask puts a question to be answered with y or n.
func (s *screen) ask(text string, yes func()) {
	s.asks = &question{text: "(y/n) " + text, answer: func(string) { yes() }}
}

// askFor wants a text.
func (s *screen) askFor(text, usually string, answered func(text string)) {
	s.asks = &question{text: text, entry: true, input: usually, answer: answered}
}

// reply takes a key for the question that is open.
func (s *screen) reply(key, text string) {
	q := s.asks
	switch {
	case key == "esc":
		s.asks = nil
	case !q.entry:
		s.asks = nil
		if key == "y" || key == "Y" {
			q.answer("")
		}
	case key == "enter":
		s.asks = nil
		q.answer(strings.TrimSpace(q.input))
	case key == "backspace":
		runes := []rune(q.input)
		q.input = string(runes[:max(len(runes)-1, 0)])
	default:
		const most = 100 // characters
		if len([]rune(q.input)) < most {
			q.input += text
		}
	}
}
