package tui

import (
	"context"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// SiteAgent is the agent of the site that is shown.
type SiteAgent interface {
	Status(ctx context.Context) (view.AgentStatus, error)
	Sites(ctx context.Context) ([]view.SiteRow, error)
	Pause(ctx context.Context, span time.Duration) error
	Leave(ctx context.Context, span, stopAfter time.Duration) error
	Resume(ctx context.Context) error
}

// SiteFacts are what `siteagent top` shows.
type SiteFacts struct {
	Status view.AgentStatus `json:"status"`
	Sites  []view.SiteRow   `json:"sites"`
}

// SiteTop is `siteagent top`.
type SiteTop struct {
	Agent SiteAgent
	// Sharing says whether the site takes jobs at a moment and, if not, why.
	Sharing func(s view.AgentStatus, now time.Time) string
}

// Facts asks the agent for what is shown.
func (t SiteTop) Facts(ctx context.Context) (SiteFacts, error) {
	var f SiteFacts
	var err error
	if f.Status, err = t.Agent.Status(ctx); err != nil {
		return f, err
	}
	f.Sites, err = t.Agent.Sites(ctx)
	return f, err
}

// siteSubject is the site on a screen.
type siteSubject struct {
	top   SiteTop
	facts SiteFacts
	open  string // the row whose details are shown; empty: none
}

func (v *siteSubject) look() func(context.Context) (any, error) {
	return func(ctx context.Context) (any, error) { return v.top.Facts(ctx) }
}

func (v *siteSubject) take(facts any) { v.facts, _ = facts.(SiteFacts) }

func (v *siteSubject) back() bool {
	was := v.open != ""
	v.open = ""
	return was
}

func (v *siteSubject) bindings() []binding {
	pause := "pause"
	if v.facts.Status.Paused {
		pause = "resume"
	}
	return []binding{
		{"p", pause, "pause: take no new jobs; and again: resume"},
		{"s", "snooze", "pause for a time"},
		{"l", "leave", "pause, and jobs leave when their state is saved"},
		{"enter", "details", "all about a job, a site or a notice"},
	}
}

func (v *siteSubject) press(s *screen, key, row string) {
	switch key {
	case "p":
		if v.facts.Status.Paused {
			s.do("resumed", v.top.Agent.Resume)
			return
		}
		s.do("paused; p resumes", func(ctx context.Context) error {
			return v.top.Agent.Pause(ctx, 0)
		})
	case "s":
		s.askFor("Pause for how long? ", "1h", func(text string) { v.snooze(s, text) })
	case "l":
		leave := func(ctx context.Context) error { return v.top.Agent.Leave(ctx, 0, 0) }
		s.ask("Pause, and let jobs leave when their state is saved?", func() {
			s.do("jobs leave when their state is saved; p resumes", leave)
		})
	case "enter":
		if v.open == "" && row != "" {
			v.open = row
			s.turn()
		}
	}
}

// span reads a time that a person typed, and says what is wrong with it.
func (s *screen) span(text string) (length time.Duration, ok bool) {
	length, err := grid.ParseSpan(text)
	if err != nil || length <= 0 {
		s.note = said{"want a time such as 30m or 1h, have " + strings.TrimSpace(text), bad}
		return 0, false
	}
	return length, true
}

// snooze pauses for a time that a person typed.
func (v *siteSubject) snooze(s *screen, text string) {
	length, ok := s.span(text)
	if !ok {
		return
	}
	s.do("paused for "+text+"; p resumes", func(ctx context.Context) error {
		return v.top.Agent.Pause(ctx, length)
	})
}
