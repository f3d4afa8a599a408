package scenario

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Setting is a key of a line of an experiment, and the values that it is to have one after the
// other. It is written jobs.load=.5,.6,.7; where there are several lines of a word the one with
// a name is meant, strategy:MRS.grain=1,2,4, or all of them, strategy:*.ttl=1s,3s.
type Setting struct {
	Word   string // of the line
	Name   string // the value of its key name; empty: there is one such line; *: all of them
	Key    string
	Values []string // at least one, none twice
}

// ParseSetting reads a setting. Errors have the cause ErrSyntax and say what a setting looks like.
func ParseSetting(text string) (Setting, error) {
	var s Setting
	left, values, has := strings.Cut(text, "=")
	at := strings.LastIndex(left, ".")
	if !has || at < 1 || values == "" || strings.ContainsFunc(text, parts) {
		return s, fmt.Errorf("%w: %q: want LINE.KEY=VALUE[,VALUE...] without spaces, such as "+
			"jobs.load=.5,.6 or strategy:MRS.grain=1,2", ErrSyntax, text)
	}
	s.Word, s.Name, _ = strings.Cut(left[:at], ":")
	s.Key, s.Values = left[at+1:], strings.Split(values, ",")
	for i, v := range s.Values {
		if v == "" || slices.Contains(s.Values[:i], v) {
			return s, fmt.Errorf("%w: %s: want values that differ between commas, have %q",
				ErrSyntax, s.Path(), values)
		}
	}
	return s, nil
}

// parts reports whether a letter ends a word of a line, or its text.
func parts(r rune) bool { return unicode.IsSpace(r) || r == '#' }

// Path is the setting without its values: jobs.load, strategy:MRS.grain.
func (s Setting) Path() string { return s.line() + "." + s.Key }

func (s Setting) line() string {
	if s.Name == "" {
		return s.Word
	}
	return s.Word + ":" + s.Name
}

// Apply returns the text of an experiment in which the key has a value. Whether there is such a
// key, and may have such a value, ParseExperiment finds out; Apply says only which lines there
// are, with the cause ErrSyntax.
func (s Setting) Apply(text, value string) (string, error) {
	var out strings.Builder
	var lines []string // that could be meant, as a setting names them
	matches := 0
	for raw := range strings.Lines(text) {
		words := wordsOf(raw)
		if len(words) > 0 {
			lines = append(lines, lineName(words))
			if s.means(words) {
				matches++
				raw = withValue(raw, s.Key, value)
			}
		}
		out.WriteString(raw)
	}
	slices.Sort(lines)
	lines = slices.Compact(lines)
	switch {
	case matches == 0:
		return "", fmt.Errorf("%w: %s: there is no line %s: want one of %s; did you mean %s?",
			ErrSyntax, s.Path(), s.line(), strings.Join(lines, " "), nearest(s.line(), lines))
	case matches > 1 && s.Name != allLines:
		return "", fmt.Errorf("%w: %s: there are %d such lines: want one of %s, or %s:%s for all",
			ErrSyntax, s.Path(), matches, strings.Join(lines, " "), s.Word, allLines)
	}
	return out.String(), nil
}

// allLines is the name by which all lines of a word are meant.
const allLines = "*"

// means reports whether a line of such words is one of those that get the value.
func (s Setting) means(words []string) bool {
	return words[0] == s.Word &&
		(s.Name == "" || s.Name == allLines || slices.Contains(words, "name="+s.Name))
}

// wordsOf are a line's words without its comment.
func wordsOf(raw string) []string {
	body, _, _ := strings.Cut(raw, "#")
	return strings.Fields(body)
}

// lineName is a line's word, with its name if it has one.
func lineName(words []string) string {
	for _, w := range words[1:] {
		if name, is := strings.CutPrefix(w, "name="); is {
			return words[0] + ":" + name
		}
	}
	return words[0]
}

// withValue is a line in which a key has a value; in place of the old one, or behind all others.
func withValue(raw, key, value string) string {
	words := wordsOf(raw)
	at := slices.IndexFunc(words, func(w string) bool { return strings.HasPrefix(w, key+"=") })
	if at < 0 {
		words = append(words, "")
		at = len(words) - 1
	}
	words[at] = key + "=" + value
	return strings.Join(words, " ") + "\n"
}
