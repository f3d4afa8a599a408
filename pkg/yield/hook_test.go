package yield

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// An answer of 0 shares, of 1 pauses with its reason; all else pauses, and is told as trouble.
func TestHookAnswers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		answer       HookAnswer
		why, trouble string
	}{
		{HookAnswer{}, "owner.hook: it has not answered yet", ""},
		{HookAnswer{Ended: true}, "", ""},
		{HookAnswer{Ended: true, Line: "all is calm"}, "", ""},
		{HookAnswer{Ended: true, Code: 1, Line: "blender runs"}, "owner.hook: blender runs", ""},
		{HookAnswer{Ended: true, Code: 1}, "owner.hook: it says no, and not why", ""},
		{
			HookAnswer{Ended: true, Code: 2, Line: "no display"},
			"owner.hook: it does not work: it ended with code 2, want 0 or 1, and said: no display",
			"it ended with code 2, want 0 or 1, and said: no display",
		},
		{
			HookAnswer{Ended: true, Code: -1},
			"owner.hook: it does not work: it ended with code -1, want 0 or 1",
			"it ended with code -1, want 0 or 1",
		},
		{HookAnswer{Fault: "it is gone"}, "owner.hook: it does not work: it is gone", "it is gone"},
	} {
		if got := c.answer.Judge(); got != (Said{Why: c.why, Trouble: c.trouble}) {
			t.Errorf("%+v: %+v", c.answer, got)
		}
	}
}

// A line is one line, printable, and bounded, whatever a program prints.
func TestHookLine(t *testing.T) {
	t.Parallel()
	for output, want := range map[string]string{
		"":                                  "",
		"blender runs\n":                    "blender runs",
		" a\tb \r\nmore":                    "a b",
		"\x1b[31mred\x1b[0m\n":              "[31mred[0m",
		"\xff\xfeok":                        "ok",
		"\nsecond":                          "",
		strings.Repeat("ä", hookLineLength): strings.Repeat("ä", hookLineLength),
	} {
		if got := HookLine(output); got != want {
			t.Errorf("HookLine(%q) = %q, want %q", output, got, want)
		}
	}
	long := HookLine(strings.Repeat("ä", hookLineLength+1))
	if n := utf8.RuneCountInString(long); n != hookLineLength || !strings.HasSuffix(long, "ä…") {
		t.Errorf("%d characters of %q", n, long)
	}
}
