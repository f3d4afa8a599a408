package tui

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/charmbracelet/x/ansi"

	"github.com/mrsmesh/mrsmesh/internal/view"
)

// acts are the keys that give an order, and what the agent is told.
func acts() map[string]struct {
	keys []string
	told string
	on   func(*fakeAgent) *screen
} {
	type act = struct {
		keys []string
		told string
		on   func(*fakeAgent) *screen
	}
	return map[string]act{
		"pause": {[]string{"p"}, "pause 0s", siteOn},
		"snooze": {
			[]string{"s", "backspace", "backspace", "3", "0", "m", "enter"}, "pause 30m0s", siteOn,
		},
		"leave":           {[]string{"l", "y"}, "leave 0s 0s", siteOn},
		"pause a member":  {[]string{"p"}, "pause 12D3KooWattic: 0s false", fleetOn},
		"resume a member": {[]string{"down", "p"}, "resume 12D3KooWben", fleetOn},
		"snooze a member": {
			[]string{"down", "s", "enter"}, "pause 12D3KooWben: 1h0m0s false", fleetOn,
		},
		"a member's jobs leave": {
			[]string{"down", "l", "y"}, "pause 12D3KooWben: 0s true", fleetOn,
		},
		"cancel": {[]string{"c", "y"}, "cancel " + string(jobID(0)), jobsOn},
		"cancel one of the tasks' job": {
			[]string{"enter", "down", "c", "y"}, "cancel " + string(jobID(0)), jobsOn,
		},
	}
}

func anAgent() *fakeAgent {
	return &fakeAgent{
		site: aSite(), jobs: someJobs(), tasks: someTasks(200), log: "one\ntwo\n", fleet: aFleet(),
	}
}

func TestAKeyThatActsDoesSoOnce(t *testing.T) {
	t.Parallel()
	for name, c := range acts() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := anAgent()
			s := c.on(a)
			run(s, typed(c.keys...)...)
			if diff := cmp.Diff([]string{c.told}, a.told); diff != "" {
				t.Errorf("the agent was told (-want +got):\n%s", diff)
			}
		})
	}
}

func TestARefusalIsShown(t *testing.T) {
	t.Parallel()
	for name, c := range acts() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := anAgent()
			a.err = &view.Problem{Status: 409, Detail: "not today", Remedy: "try tomorrow"}
			s := c.on(a)
			run(s, typed(c.keys...)...)
			text := picture(s)
			if len(a.told) != 1 || !strings.Contains(text, "not today (try tomorrow)") {
				t.Errorf("told %q, want one order and its refusal in:\n%s", a.told, text)
			}
		})
	}
}

func TestWhoSaysNoIsHeard(t *testing.T) {
	t.Parallel()
	for name, keys := range map[string][]string{
		"no": {"l", "n"}, "escape": {"l", "esc"}, "any other key": {"l", "p"},
		"no time": {"s", "esc"}, "a wrong time": {"s", "x", "enter"}, "quit": {"s", "q", "enter"},
	} {
		a := anAgent()
		s := siteOn(a)
		run(s, typed(keys...)...)
		if len(a.told) > 0 || s.ended {
			t.Errorf("%s: told %q and ended %t, want neither", name, a.told, s.ended)
		}
	}
	a := anAgent()
	run(jobsOn(a), typed("down", "down", "c", "y")...)
	if len(a.told) > 0 {
		t.Errorf("told %q of a job that has ended", a.told)
	}
}

// While an order is on its way, and until its effect is seen, another press gives none.
func TestTwoPressesAreOneOrder(t *testing.T) {
	t.Parallel()
	a := anAgent()
	s := siteOn(a)
	press := typed("p")[0]
	orders := s.update(press)
	if again := s.update(press); len(orders) != 1 || len(again) != 0 {
		t.Fatalf("%d orders and %d, want 1 and none", len(orders), len(again))
	}
	looks := s.update(orders[0](t.Context()))
	if early := s.update(press); len(looks) != 1 || len(early) != 0 {
		t.Fatalf("%d looks and %d orders, want 1 and none", len(looks), len(early))
	}
	a.site.Status.Paused = true
	s.update(looks[0](t.Context()))
	run(s, press)
	if diff := cmp.Diff([]string{"pause 0s", "resume"}, a.told); diff != "" {
		t.Errorf("the agent was told (-want +got):\n%s", diff)
	}
}

func TestAnAgentThatGoesAndComesBack(t *testing.T) {
	t.Parallel()
	a := anAgent()
	s := siteOn(a)
	a.trouble = errAway
	run(s, tick{at: noon}, tick{at: noon.Add(time.Second)})
	a.trouble = errAway
	run(s, tick{at: noon.Add(13 * time.Second)})
	if got := picture(s); !strings.Contains(got, "the agent does not answer; trying again (13s)") ||
		!strings.Contains(got, "census") {
		t.Errorf("want that the agent is away, and what it said last:\n%s", got)
	}
	a.trouble, a.site.Status.Name = nil, "back"
	run(s, tick{at: noon.Add(14 * time.Second)})
	if got := picture(s); !strings.Contains(got, "the agent answers again") ||
		!strings.Contains(got, "back in domain") {
		t.Errorf("want that the agent is back:\n%s", got)
	}
}

// The agent is left alone for a hundred times as long as an answer takes, but a key is obeyed.
func TestAnAgentThatAnswersSlowlyIsAskedRarely(t *testing.T) {
	t.Parallel()
	a := anAgent()
	s := jobsOn(a)
	after := func(seconds int) int {
		return len(s.update(tick{at: noon.Add(time.Duration(seconds) * time.Second)}))
	}
	if first := after(1); first != 1 {
		t.Fatalf("%d looks after a second, want 1", first)
	}
	s.update(answer{facts: JobsFacts{Jobs: a.jobs}, took: 30 * time.Millisecond})
	if early, due := after(3), after(4); early != 0 || due != 1 {
		t.Fatalf("%d and %d looks 2 s and 3 s after an answer of 30 ms, want 0 and 1", early, due)
	}
	s.update(answer{facts: JobsFacts{Jobs: a.jobs}, took: 3 * time.Second})
	if early, late := after(33), after(34); early != 0 || late != 1 {
		t.Fatalf("%d and %d looks 29 s and 30 s after a slow answer, want 0 and 1", early, late)
	}
	s.update(answer{facts: JobsFacts{Jobs: a.jobs}, took: 3 * time.Second})
	if pressed := len(s.update(typed("enter")[0])); pressed != 1 {
		t.Errorf("%d looks when a job is opened, want 1", pressed)
	}
}

// A look that takes long is not asked for again, and one at a page that was left is not shown.
func TestOneLookAtATime(t *testing.T) {
	t.Parallel()
	s := jobsOn(anAgent())
	looks := s.update(tick{at: noon})
	if more := s.update(tick{at: noon.Add(time.Second)}); len(looks) != 1 || len(more) != 0 {
		t.Fatalf("%d looks and %d, want 1 and none", len(looks), len(more))
	}
	if more := s.update(typed("enter")[0]); len(more) != 0 {
		t.Fatalf("%d looks, want none beside the one", len(more))
	}
	looks = s.update(looks[0](t.Context()))
	if len(looks) != 1 || strings.Contains(picture(s), "exited with 3") {
		t.Fatalf("%d looks, want one at the tasks, in:\n%s", len(looks), picture(s))
	}
	s.update(looks[0](t.Context()))
	if got := picture(s); !strings.Contains(got, "exited with 3") {
		t.Errorf("want the tasks:\n%s", got)
	}
}

func TestTheCursorStaysWithItsRow(t *testing.T) {
	t.Parallel()
	a := anAgent()
	s := jobsOn(a)
	run(s, typed("down")...)
	a.jobs = append(manyJobs(5)[4:], a.jobs...)
	run(s, tick{at: noon})
	if got := picture(s); !strings.Contains(got, "> words/1 ") {
		t.Errorf("want the cursor on words/1:\n%s", got)
	}
	a.jobs = append(a.jobs[:2:2], a.jobs[3:]...)
	run(s, tick{at: noon})
	if got := picture(s); !strings.Contains(got, "> "+string(jobID(2))) {
		t.Errorf("want the cursor on the job in the place of words/1:\n%s", got)
	}
}

func TestPagesOfJobsAndTasks(t *testing.T) {
	t.Parallel()
	a := anAgent()
	a.jobs = manyJobs(250)
	a.jobs[0].Count = 100
	s := jobsOn(a)
	see := func(want string, keys ...string) {
		t.Helper()
		run(s, typed(keys...)...)
		if got := picture(s); !strings.Contains(got, want) {
			t.Fatalf("after %q, want %q in:\n%s", keys, want, got)
		}
	}
	see("> words/99 ", "end")
	see("> words/100 ", "down")
	see("page 2", "end")
	see("> words/200 ", "down")
	see("> words/249 ", "end", "down")
	see("> words/100 ", "home", "up")
	see("> words/0 ", "home", "up")
	see("TASKS 0 TO 49 OF 100", "enter")
	see("TASKS 50 TO 99 OF 100", "end", "down")
	see(">   99 ", "end", "down")
	see(">   50 ", "home")
	see("TASKS 0 TO 49 OF 100", "up")
	see("> words/0 ", "esc")
	a.jobs = manyJobs(100)
	see("> words/99 ", "end")
	see("no older jobs", "down")
	see("> words/0 ", "up")
	a.jobs = manyJobs(250)
	see("filter words/24 among", "/", "w", "o", "r", "d", "s", "/", "2", "4", "enter")
	see("> words/24 ")
	see("words/249 ")
	see("100 jobs, 100 open", "esc")
}

func TestALogIsReadOn(t *testing.T) {
	t.Parallel()
	a := anAgent()
	s := jobsOn(a)
	run(s, sized(80, 8))
	see := func(want, unwanted string, messages ...tea.Msg) {
		t.Helper()
		run(s, messages...)
		got := picture(s)
		if !strings.Contains(got, want) || unwanted != "" && strings.Contains(got, unwanted) {
			t.Fatalf("want %q and not %q in:\n%s", want, unwanted, got)
		}
	}
	see("\ntwo\n", "", typed("l")...)
	a.log += strings.Repeat("more\n", 20) + "last\n"
	see("\nlast\n", "\none\n", tick{at: noon})
	see("\none\n", "\nlast\n", typed("home")...)
	a.log += "latest\n"
	see("\none\n", "latest", tick{at: noon})
	see("\nlatest\n", "\none\n", typed("end")...)
	see("nothing was printed yet", "latest", typed("tab")...)
	see("latest", "", typed("tab")...)
	a.tasks[0].Token, a.log = 2, "anew\n"
	see("\nanew\n", "latest", tick{at: noon})
	a.log = strings.Repeat(strings.Repeat("x", 99)+"\n", 2_000) + "end\n"
	see("\nend\n", "", tick{at: noon})
	see("only the end; submit logs", "", typed("home")...)
	a.err = &view.Problem{Status: 409, Detail: "the task has not started yet"}
	see("the task has not started yet", "end\n", tick{at: noon})
	see("3 jobs, 2 open", "", typed("esc")...)
}

func TestQuit(t *testing.T) {
	t.Parallel()
	for _, keys := range [][]string{
		{"q"}, {"ctrl+c"}, {"s", "ctrl+c"}, {"?", "q"}, {"enter", "q"},
	} {
		s := siteOn(anAgent())
		run(s, typed(keys...)...)
		if !s.ended {
			t.Errorf("%q does not end the screen", keys)
		}
	}
}

// Whatever is pressed in windows of whatever size, each line fits, and there are as many as fit.
func TestNothingIsWiderThanTheWindow(t *testing.T) {
	t.Parallel()
	keys := []string{
		"p", "s", "l", "c", "y", "n", "/", "x", "ü", "世", "?", "enter", "esc", "up", "down",
		"pgup", "pgdown", "home", "end", "tab", "backspace", "j", "k", "g", "G",
	}
	rapid.Check(t, func(t *rapid.T) {
		a := anAgent()
		a.jobs = append(a.jobs, manyJobs(rapid.IntRange(0, 150).Draw(t, "jobs"))...)
		a.jobs[1].Name = rapid.String().Draw(t, "name")
		a.log = rapid.String().Draw(t, "log")
		a.site.Sites[1].Name = rapid.StringMatching(`[世界a-z👩‍🚀é ]{0,40}`).Draw(t, "site")
		s := siteOn(a)
		a.fleet[1].Name = a.site.Sites[1].Name
		switch rapid.SampledFrom([]string{"site", "jobs", "fleet"}).Draw(t, "screen") {
		case "jobs":
			s = jobsOn(a)
		case "fleet":
			s = fleetOn(a)
		}
		width, height := usualWidth, usualHeight
		for range rapid.IntRange(0, 30).Draw(t, "steps") {
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0:
				width = rapid.IntRange(1, 200).Draw(t, "width")
				height = rapid.IntRange(1, 60).Draw(t, "height")
				run(s, sized(width, height))
			case 1:
				a.trouble = rapid.SampledFrom([]error{nil, errAway}).Draw(t, "trouble")
				run(s, tick{at: noon})
			default:
				run(s, typed(rapid.SampledFrom(keys).Draw(t, "key"))...)
			}
			lines := s.lines()
			if len(lines) != height {
				t.Fatalf("%d lines in a window of %d by %d", len(lines), width, height)
			}
			wide := func(line string) bool { return ansi.StringWidth(line) > width }
			if at := slices.IndexFunc(lines, wide); at >= 0 {
				t.Fatalf("wider than %d: %s", width, fmt.Sprintf("%q", lines[at]))
			}
		}
	})
}
