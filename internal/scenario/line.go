package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrSyntax is the cause of every error of Parse.
var ErrSyntax = errors.New("scenario")

// Error is one thing that is wrong in a scenario's text.
type Error struct {
	Line   int    // from 1; 0: the text as a whole
	Word   string // the line's first word
	Key    string // empty: the line as a whole
	Have   string // what was written; empty: nothing
	Want   string // what was expected
	Remedy string // what to do; empty when Want says it
}

// Error names line, key, what was found and expected, and the remedy.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Line > 0 {
		fmt.Fprintf(&b, "line %d: ", e.Line)
	}
	b.WriteString(e.Word)
	if e.Key != "" {
		fmt.Fprintf(&b, " %s", e.Key)
	}
	if e.Have != "" {
		fmt.Fprintf(&b, "=%s", e.Have)
	}
	fmt.Fprintf(&b, ": want %s", e.Want)
	if e.Remedy != "" {
		fmt.Fprintf(&b, "; %s", e.Remedy)
	}
	return b.String()
}

// Unwrap is ErrSyntax.
func (e *Error) Unwrap() error { return ErrSyntax }

// line is one line while it is read: each key is asked for by what reads it, so
// what was never asked for is unknown.
type line struct {
	number int
	word   string
	pairs  []pair
	known  []string
	errs   []error
}

type pair struct {
	key, op, value string
	taken          bool
}

// operators, longest first.
var operators = []string{ //nolint:gochecknoglobals // a constant table
	">=", "<=", "!=", "=", ">", "<",
}

// newLine splits a line into its words; nil if it is empty.
func newLine(number int, text string) *line {
	text, _, _ = strings.Cut(text, "#")
	words := strings.Fields(text)
	if len(words) == 0 {
		return nil
	}
	l := &line{number: number, word: words[0]}
	for _, w := range words[1:] {
		p := split(w)
		if p.op == "" || p.key == "" || p.value == "" {
			l.fail(w, "", "key=value", "write no spaces around =")
			continue
		}
		if slices.ContainsFunc(l.pairs, func(q pair) bool { return q.key == p.key && q.op == p.op }) {
			l.fail(p.key, p.value, "each key once", "remove one of the two")
			continue
		}
		l.pairs = append(l.pairs, p)
	}
	return l
}

func split(word string) pair {
	at := strings.IndexAny(word, "=<>!")
	if at < 0 {
		return pair{key: word}
	}
	for _, op := range operators {
		if value, is := strings.CutPrefix(word[at:], op); is {
			return pair{key: word[:at], op: op, value: value}
		}
	}
	return pair{key: word}
}

func (l *line) fail(key, have, want, remedy string) {
	l.errs = append(l.errs,
		&Error{Line: l.number, Word: l.word, Key: key, Have: have, Want: want, Remedy: remedy})
}

// text takes a key's value; the flag says whether it was written.
func (l *line) text(key string) (string, bool) {
	l.known = append(l.known, key)
	for i := range l.pairs {
		p := &l.pairs[i]
		if p.key != key || p.taken {
			continue
		}
		p.taken = true
		if p.op != "=" {
			l.fail(key, "", "= behind the key", "")
			return "", false
		}
		return p.value, true
	}
	return "", false
}

// has reports whether one of some keys was written. It takes none.
func (l *line) has(keys ...string) bool {
	return slices.ContainsFunc(l.pairs, func(p pair) bool { return slices.Contains(keys, p.key) })
}

// required takes a key's value and reports a missing one.
func (l *line) required(key, want string) string {
	value, has := l.text(key)
	if !has {
		l.fail(key, "", want, "add "+key+"=...")
	}
	return value
}

// finish reports unknown keys.
func (l *line) finish() {
	for _, p := range l.pairs {
		if !p.taken {
			l.fail(p.key, "", "one of "+strings.Join(l.known, " "),
				"did you mean "+nearest(p.key, l.known)+"?")
		}
	}
}

// nearest returns the known word with the smallest edit distance.
func nearest(word string, known []string) string {
	best, least := "", -1
	for _, k := range known {
		if d := editDistance(word, k); least < 0 || d < least {
			best, least = k, d
		}
	}
	return best
}

// editDistance counts the letters to insert, remove or replace.
func editDistance(a, b string) int {
	const long = 64 // no key is longer; what is cut off does not matter
	a, b = a[:min(len(a), long)], b[:min(len(b), long)]
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
