package scripttest

import (
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// like compares an output with a file that has placeholders.
func like(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: like stdout|stderr FILE")
	}
	have, want := ts.ReadFile(args[0]), ts.ReadFile(args[1])
	at, ok := match(have, want)
	switch {
	case ok && neg:
		ts.Fatalf("%s is like %s", args[0], args[1])
	case !ok && !neg:
		ts.Fatalf("%s is not like %s, from line %d on:\n%s\nwant:\n%s", args[0], args[1], at, have, want)
	}
}

// placeholders stand for what differs from run to run.
func placeholders() map[string]string {
	return map[string]string{
		"<id>":   `[a-z2-7]{16}`,
		"<site>": `12D3KooW[1-9A-Za-z]{44}`,
		"<time>": `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)`,
		"<span>": `(?:[0-9.]+ ?(?:ns|us|µs|ms|s|min|m|h|d))+`,
		"<n>":    `-?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?`,
		"<any>":  `.*?`,
	}
}

var placeholder = regexp.MustCompile(`<(?:id|site|time|span|n|any)>`)

// match compares line by line and gives the first line wanted that does not fit, of
// all places where lines of dots may end the farthest.
func match(have, want string) (line int, ok bool) {
	w := lines(want)
	best := 0
	ok = fits(lines(have), w, 0, &best)
	return best + 1, ok
}

// fits reports whether the lines are those wanted from at on. best is the farthest
// that was reached.
func fits(have, want []string, at int, best *int) bool {
	*best = max(*best, at)
	switch {
	case at == len(want):
		return len(have) == 0
	case want[at] == "...":
		for skip := range len(have) + 1 {
			if fits(have[skip:], want, at+1, best) {
				return true
			}
		}
		return false
	default:
		return len(have) > 0 && lineLike(have[0], want[at]) && fits(have[1:], want, at+1, best)
	}
}

func lines(text string) []string {
	text = strings.TrimRight(text, "\n ")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

func lineLike(have, want string) bool {
	known := placeholders()
	var b strings.Builder
	rest := strings.Join(strings.Fields(want), " ")
	for {
		at := placeholder.FindStringIndex(rest)
		if at == nil {
			break
		}
		b.WriteString(regexp.QuoteMeta(rest[:at[0]]) + known[rest[at[0]:at[1]]])
		rest = rest[at[1]:]
	}
	b.WriteString(regexp.QuoteMeta(rest))
	pattern, err := regexp.Compile("^" + b.String() + "$")
	return err == nil && pattern.MatchString(strings.Join(strings.Fields(have), " "))
}
