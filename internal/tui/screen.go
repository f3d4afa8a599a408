package tui

import (
	"context"
	"errors"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/mrsmesh/mrsmesh/internal/view"
)

// call asks or tells the agent something. Its answer is a message for the screen.
type call func(ctx context.Context) tea.Msg

// The messages beside those of the library: keys and sizes of the window.
type (
	tick   struct{ at time.Time } // a second has passed
	answer struct {               // to what the page asked for
		page  int // whose question it was; the screen may have turned to another one since
		facts any
		took  time.Duration // all of it; the agent worked for no longer
		err   error
	}
	done struct { // an order was carried out, or refused
		what string
		err  error
	}
)

// binding is a key with what it does.
type binding struct{ key, short, long string }

// body has what a page shows: lines that stay above, and below them either rows to move in or a
// text to scroll.
type body struct {
	head     []said
	sections []section
	text     []said
	isText   bool
	grows    bool // the text is shown from its end, unless a person scrolls back
}

// subject is the side of a screen that is not the same for both. It holds what the agent answered
// last, and which of its pages is open.
type subject interface {
	// look asks for what the open page shows.
	look() func(ctx context.Context) (any, error)
	// take puts an answer in place.
	take(facts any)
	body(now time.Time, columns int) body
	// press is told a key that the screen itself does not know, and the row under the cursor.
	press(s *screen, key, row string)
	// back closes the page and says whether there was one to close.
	back() bool
	bindings() []binding
}

// Keys that no keyboard has: the cursor was to move on from the last or the first row.
const (
	keyBeyond = "beyond the last row"
	keyBefore = "before the first row"
)

// screen is one full screen. One goroutine owns it: that which calls update.
type screen struct {
	subject       subject
	width, height int
	now           time.Time

	page    int       // grows whenever what is asked for changes
	looking bool      // an answer is to come
	next    time.Time // not earlier than then the agent is asked again, if nobody presses a key
	again   bool      // look anew when it has
	acting  bool      // an order is not carried out, or its effect not seen

	cursor string // key of the row
	at     int    // number of that row when it was seen last
	top    int    // first line shown of the rows or the text
	held   bool   // a person has scrolled back in a text that grows
	help   bool
	asks   *question
	note   said
	lost   time.Time // since when the agent has not answered; zero: it does
	ended  bool      // the person has had enough
	calls  []call
}

// question is put to the person in the line at the bottom.
type question struct {
	text   string
	entry  bool   // a text is wanted, not y or n
	input  string // so far
	answer func(text string)
}

// The usual size of a terminal, until it tells its own.
const (
	usualWidth  = 80
	usualHeight = 24
)

// newScreen shows what is known already.
func newScreen(of subject, facts any, now time.Time) *screen {
	s := &screen{subject: of, width: usualWidth, height: usualHeight, now: now}
	of.take(facts)
	s.settle()
	return s
}

// update takes one message and returns what is to be asked of the agent.
func (s *screen) update(msg tea.Msg) []call {
	s.calls = nil
	switch m := msg.(type) {
	case tea.WindowSizeMsg:
		s.width, s.height = max(m.Width, 1), max(m.Height, 1)
	case tick:
		s.now = m.at
		if !s.looking && !s.now.Before(s.next) {
			s.look()
		}
	case answer:
		s.take(m)
	case done:
		s.isDone(m)
	case tea.KeyPressMsg:
		s.press(m)
	}
	s.settle()
	return s.calls
}

// look asks for what is shown. An answer on its way is waited for first.
func (s *screen) look() {
	if s.looking {
		s.again = true
		return
	}
	s.looking, s.again = true, false
	page, ask := s.page, s.subject.look()
	s.calls = append(s.calls, func(ctx context.Context) tea.Msg {
		facts, err := ask(ctx)
		return answer{page: page, facts: facts, err: err}
	})
}

// turn shows another page, and asks for what it shows.
func (s *screen) turn() {
	s.page++
	s.cursor, s.at, s.top, s.held = "", 0, 0, false
	s.look()
}

// An open screen costs the agent about a hundredth of a core: it is left alone for a hundred times
// as long as an answer took, but for half a minute at most, however large a job is.
const (
	restTimes = 100
	restMost  = 30 * time.Second
)

func (s *screen) take(m answer) {
	s.looking = false
	s.next = s.now.Add(min(restTimes*m.took, restMost))
	var refused *view.Problem
	switch {
	case m.page != s.page: // it is about what is no longer shown
	case m.err == nil:
		if !s.lost.IsZero() {
			s.lost, s.note = time.Time{}, said{"the agent answers again", good}
		}
		s.acting = false
		s.subject.take(m.facts)
	case errors.As(m.err, &refused):
		s.lost, s.acting, s.note = time.Time{}, false, said{refused.Error(), bad}
	default:
		s.acting, s.next = false, s.now
		if s.lost.IsZero() {
			s.lost = s.now
		}
	}
	if s.again {
		s.look()
	}
}

// do gives an order. Until its effect is seen there is no other one.
func (s *screen) do(what string, order func(ctx context.Context) error) {
	if s.acting {
		return
	}
	s.acting = true
	s.calls = append(s.calls, func(ctx context.Context) tea.Msg { return done{what, order(ctx)} })
}

// isDone says how an order ended. What was asked for before may not show its effect yet.
func (s *screen) isDone(m done) {
	s.note = said{m.what, good}
	if m.err != nil {
		s.acting, s.note = false, said{m.err.Error(), bad}
	}
	s.page++
	s.look()
}

// settle puts the cursor on a row that is there: where its row has gone, on the one in its place.
func (s *screen) settle() {
	keys := keysOf(s.body().sections)
	if at := slices.Index(keys, s.cursor); at >= 0 {
		s.at = at
	} else if len(keys) > 0 {
		s.at = min(s.at, len(keys)-1)
		s.cursor = keys[s.at]
	}
}

func (s *screen) body() body {
	if s.help {
		return s.helpBody()
	}
	return s.subject.body(s.now, s.width)
}
