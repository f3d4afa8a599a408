package agent_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/agent"
	"github.com/mrsmesh/mrsmesh/internal/history"
	"github.com/mrsmesh/mrsmesh/pkg/avail"
)

// Over restarts, crashes and the owner's coming and going an agent knows its past, and
// its z follows from it.
func TestThePastIsRemembered(t *testing.T) {
	c := agent.Plans(t, 1)[0]
	first := start(t, c)
	status := func(n *node) (runs, crashes, departures int, z float64) {
		t.Helper()
		s, err := n.Status(t.Context())
		if err != nil || s.Availability == nil || len(s.Availability.Outlook) != 2 {
			t.Fatalf("status: %+v, %v", s.Availability, err)
		}
		a := s.Availability
		return a.Runs, a.Crashes, a.Departures, a.Outlook[1].Z
	}
	runs, crashes, departures, guess := status(first)
	if runs != 1 || crashes != 0 || departures != 0 || guess < 0.2 || guess > 0.6 {
		t.Errorf("at first: %d runs, %d crashes, %d departures, z %v", runs, crashes, departures, guess)
	}
	first.NoteOwner(true)
	first.NoteOwner(false)
	if _, _, departures, _ = status(first); departures != 1 {
		t.Errorf("after the owner came and went: %d departures", departures)
	}
	first.close(t)

	// A run that crashes: its file ends before the stop.
	path := filepath.Join(c.StateDir, history.FileName)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	second := start(t, c)
	second.close(t)
	cut, err := os.ReadFile(path)
	if err != nil || len(cut) <= len(text) {
		t.Fatalf("%d bytes after %d, %v", len(cut), len(text), err)
	}
	stopLine := len(cut) - 1
	for stopLine > 0 && cut[stopLine-1] != '\n' {
		stopLine--
	}
	if err = os.WriteFile(path, append(cut[:stopLine:stopLine], "rubbish"...), 0o600); err != nil {
		t.Fatal(err)
	}
	third := start(t, c)
	runs, crashes, departures, z := status(third)
	if runs != 3 || crashes != 1 || departures != 2 || !(z > guess) {
		t.Errorf("at last: %d runs, %d crashes, %d departures, z %v after %v",
			runs, crashes, departures, z, guess)
	}
	s, err := third.Status(t.Context())
	if err != nil || s.Availability.Damaged != 1 || s.Forecast == nil || s.Forecast.Sites != 1 ||
		s.Forecast.Mean != 1 {
		t.Errorf("status %+v, forecast %+v, %v", s.Availability, s.Forecast, err)
	}
}

// A history that cannot be used is said, and does not stop the site.
func TestAHistoryThatCannotBeUsed(t *testing.T) {
	c := agent.Plans(t, 1)[0]
	if err := os.MkdirAll(filepath.Join(c.StateDir, history.FileName), 0o700); err != nil {
		t.Fatal(err)
	}
	n := start(t, c)
	s, err := n.Status(t.Context())
	if err != nil || s.Availability == nil || s.Availability.Unwritten == 0 {
		t.Errorf("status %+v, %v", s.Availability, err)
	}
	said := false
	for _, notice := range s.Notices {
		said = said || notice.Action == "look at history.log in the state directory"
	}
	if !said {
		t.Errorf("notices %+v", s.Notices)
	}
}

// What the owner announced is in z.
func TestAnnouncedTimesCount(t *testing.T) {
	c := agent.Plans(t, 1)[0]
	now := time.Now()
	_, zone := now.Zone()
	week := avail.WeekSecond(now, zone)
	from := week + 1800
	if from >= avail.WeekSeconds {
		from -= avail.WeekSeconds
	}
	c.Closed = []avail.Window{{From: from, To: week}}
	n := start(t, c)
	s, err := n.Status(t.Context())
	if err != nil || len(s.Availability.Outlook) == 0 || s.Availability.Outlook[0].Z < 0.9 {
		t.Errorf("z with an end announced in half an hour: %+v, %v", s.Availability, err)
	}
}
