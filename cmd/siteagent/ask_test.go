package main

import (
	"bufio"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/config"
	"github.com/mrsmesh/mrsmesh/internal/hostinfo"
)

// asked is a dialogue with a person who types this, and what is shown.
func asked(typed string, columns int) (*dialogue, *strings.Builder) {
	out := &strings.Builder{}
	return &dialogue{
		in: bufio.NewReader(strings.NewReader(typed)), out: out,
		columns: func() int { return columns },
	}, out
}

func TestAnswersAreAskedForUntilTheyAreOfUse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, typed string
		want, fails bool
		shown       int // times that the reason is
	}{
		{"enter", "\n", true, false, 0},
		{"no", " No \n", false, false, 0},
		{"nonsense first", "maybe\n\x1b[2J\ny\n", true, false, 2},
		{"the end of the input", "", false, true, 0},
		{"the end, after nonsense", "maybe\n", false, true, 1},
		{"a line without an end", strings.Repeat("y", 1<<20), false, true, 0},
		{"nonsense forever", strings.Repeat("maybe\n", 1000), false, true, mostTries},
	} {
		d, out := asked(c.typed, usualColumns)
		got := !c.want
		err := d.ask(t.Context(), "Is it so?", "yes", parseYes(&got))
		if c.fails != errors.Is(err, errUnanswered) || !c.fails && (err != nil || got != c.want) {
			t.Errorf("%s: %t, %v", c.name, got, err)
		}
		if n := strings.Count(out.String(), "want yes or no, have "); n != c.shown {
			t.Errorf("%s: the reason was shown %d times, want %d", c.name, n, c.shown)
		}
		if strings.Contains(out.String(), "\x1b") {
			t.Errorf("%s: what was typed steers the terminal: %q", c.name, out)
		}
	}
}

func TestAnInterruptedQuestionIsUnanswered(t *testing.T) {
	t.Parallel()
	stopped, stop := context.WithCancel(t.Context())
	stop()
	silent, _ := asked("", usualColumns)
	answer := false
	err := silent.ask(stopped, "?", "yes", parseYes(&answer))
	if !errors.Is(err, errUnanswered) || answer {
		t.Errorf("%t, %v", answer, err)
	}
}

func TestTextIsBrokenBetweenWords(t *testing.T) {
	t.Parallel()
	const text = "To let it run while you are not logged in, too: loginctl enable-linger"
	for columns := 1; columns < 80; columns++ {
		lines := strings.Split(fold(text, columns), "\n")
		if strings.Join(lines, " ") != text {
			t.Fatalf("%d columns: %q", columns, lines)
		}
		for _, line := range lines {
			if len(line) > columns && strings.Contains(line, " ") {
				t.Errorf("%d columns: %q", columns, line)
			}
		}
	}
}

func TestWhatIsGiven(t *testing.T) {
	t.Parallel()
	machine := hostinfo.Machine{Cores: 8, MemoryBytes: 16 << 30}
	for _, c := range []struct {
		text string
		m    hostinfo.Machine
		want string // empty: refused
	}{
		{"50%", machine, "ceilings.cpus 4 ceilings.memory 8192MiB"},
		{" 30 ", machine, "ceilings.cpus 2.4 ceilings.memory 4915MiB"},
		{"100%", machine, "ceilings.cpus 8 ceilings.memory 16384MiB"},
		{"1", machine, "ceilings.cpus 0.1 ceilings.memory 163MiB"},
		{
			"1",
			hostinfo.Machine{Cores: 1, MemoryBytes: 1 << 30},
			"ceilings.cpus 0.1 ceilings.memory 64MiB",
		},
		{"50", hostinfo.Machine{Cores: 2}, "ceilings.cpus 1"},
		{"0", machine, ""},
		{"101%", machine, ""},
		{"-5", machine, ""},
		{"half", machine, ""},
		{"50%%", machine, ""},
		{"99999999999999999999", machine, ""},
	} {
		values, err := parseGive(c.text, c.m)
		var said []string
		for _, v := range values {
			said = append(said, v.Name, v.Text)
		}
		if got := strings.Join(said, " "); got != c.want || (err != nil) != (c.want == "") {
			t.Errorf("%q: %q, %v, want %q", c.text, got, err, c.want)
		}
		_, err = config.LoadAgent(config.Sources{File: "f", Text: config.NewFile(values)})
		if err != nil {
			t.Errorf("%q is no configuration: %v", c.text, err)
		}
	}
}

func TestWhenItIsGiven(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"always": "", "Nights": nights, "sat-sun 00:00-24:00": "sat-sun 00:00-24:00",
	} {
		values, err := parseWhen(text)
		got := ""
		if len(values) == 1 {
			got = values[0].Text
		}
		if err != nil || got != want || len(values) > 1 {
			t.Errorf("%q: %+v, %v", text, values, err)
		}
	}
	if _, err := parseWhen("never"); err == nil || !strings.Contains(err.Error(), "mon-fri") {
		t.Errorf("a wrong answer is told %v", err)
	}
}
