package jobmap

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// words draws words that a command line can hold: all but zero bytes.
func words(t *rapid.T) []string {
	text := rapid.OneOf(
		rapid.StringOf(rapid.RuneFrom([]rune(" '\"\\$`*?~#&;|<>(){}[]!\n\t=-aä"))),
		rapid.String(),
	).Filter(func(s string) bool { return !strings.Contains(s, "\x00") })
	return rapid.SliceOfN(text, 1, 20).Draw(t, "words")
}

// TestQuotingSurvivesTheShell has sh print what was quoted.
func TestQuotingSurvivesTheShell(t *testing.T) {
	t.Parallel()
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("commands of a map run by sh, which this system does not have")
	}
	rapid.Check(t, func(r *rapid.T) {
		given := words(r)
		line := `printf '%s\0' ` + quoteAll(given)
		out, err := exec.CommandContext(t.Context(), sh, "-c", line).Output()
		if err != nil {
			r.Fatalf("%q: %v", line, err)
		}
		if want := strings.Join(given, "\x00") + "\x00"; string(out) != want {
			r.Errorf("sh reads %q as %q, want %q", line, out, want)
		}
	})
}

// TestUnquoteReadsWhatWasQuoted is the same without a shell.
func TestUnquoteReadsWhatWasQuoted(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		given := words(r)
		if got, err := unquote(quoteAll(given)); err != nil || !slices.Equal(got, given) {
			r.Errorf("%q is read as %q, %v", given, got, err)
		}
	})
	if got, err := unquote("'open"); err == nil {
		t.Errorf("an open quote is read as %q", got)
	}
}

// FuzzUnquote reads any text; what it gives can be quoted and read again.
func FuzzUnquote(f *testing.F) {
	for _, text := range []string{"", "a 'b c' ''", `'it'\''s'`, "'", `\`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		read, err := unquote(text)
		if err != nil {
			return
		}
		if again, err := unquote(quoteAll(read)); err != nil || !slices.Equal(again, read) {
			t.Errorf("%q is read as %q, and then as %q, %v", text, read, again, err)
		}
	})
}
