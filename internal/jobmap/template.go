package jobmap

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The replacement strings, as in the manual of GNU parallel.
const (
	whole         = "{}"   // the argument
	withoutEnding = "{.}"  // without its extension
	lastPart      = "{/}"  // without its directory
	directory     = "{//}" // its directory alone
	lastBare      = "{/.}" // neither directory nor extension
	sequence      = "{#}"  // number of the task, from 1
)

// template is a text with replacement strings in it.
type template struct {
	parts []string // texts and replacement strings by turns, a text first
}

// What is looked for in templates. Each is compiled where it is needed, because every start of the
// program would wait for it.
const (
	replacedPattern = `\{(\.|/|//|/\.|#|)\}`
	// What GNU parallel replaces besides: positions, Perl, its slot, and what --plus adds.
	unknownPattern = `\{(-?[0-9]+(\.|/|//|/\.)?|%|##|\+[./]*|/?\.\.\.?)\}|\{(-?[0-9]+)?=`
	bracedPattern  = `\{[^{}\s]*\}` // words in braces, which look like replacement strings
)

// parseTemplate finds the replacement strings of a text. Those of GNU parallel that mean
// nothing here are refused; other texts in braces stay as they are.
func parseTemplate(text string) (template, error) {
	switch found := regexp.MustCompile(unknownPattern).FindString(text); {
	case found == "{%}":
		return template{}, fmt.Errorf("%s: there are no job slots on a mesh, a task runs on "+
			"whichever site is free; use {#}, the number of the task", found)
	case found != "":
		return template{}, fmt.Errorf("%s of GNU parallel is not known here; use {}, {.}, {/}, "+
			"{//}, {/.} or {#}, or put the text into a script and send it with --input", found)
	}
	var t template
	at := 0
	for _, match := range regexp.MustCompile(replacedPattern).FindAllStringIndex(text, -1) {
		t.parts = append(t.parts, text[at:match[0]], text[match[0]:match[1]])
		at = match[1]
	}
	t.parts = append(t.parts, text[at:])
	return t, nil
}

// kinds lists the replacement strings that are used, each once.
func (t template) kinds() []string {
	var out []string
	for i := 1; i < len(t.parts); i += 2 {
		if !slices.Contains(out, t.parts[i]) {
			out = append(out, t.parts[i])
		}
	}
	return out
}

// unknown is a word in braces that is replaced by nothing, or empty. A command may have one, such
// as {print} of awk; the name of a file hardly has.
func (t template) unknown() string {
	braced := regexp.MustCompile(bracedPattern)
	for i := 0; i < len(t.parts); i += 2 {
		if found := braced.FindString(t.parts[i]); found != "" {
			return found
		}
	}
	return ""
}

// fill puts what value gives for each replacement string in its place.
func (t template) fill(value func(kind string) string) string {
	var b strings.Builder
	for i, part := range t.parts {
		if i%2 == 1 {
			part = value(part)
		}
		b.WriteString(part)
	}
	return b.String()
}

// replaced gives the text that a replacement string stands for.
func replaced(kind, argument string, number int) string {
	switch kind {
	case withoutEnding:
		return bare(argument)
	case lastPart:
		return argument[strings.LastIndex(argument, "/")+1:]
	case directory:
		if trimmed := strings.TrimRight(argument, "/"); trimmed != "" {
			return path.Dir(trimmed)
		}
		return path.Dir(argument)
	case lastBare:
		return bare(argument[strings.LastIndex(argument, "/")+1:])
	case sequence:
		return strconv.Itoa(number)
	default:
		return argument
	}
}

// bare cuts the last dot behind the last slash, and what follows it.
func bare(argument string) string {
	if dot := strings.LastIndex(argument, "."); dot > strings.LastIndex(argument, "/") {
		return argument[:dot]
	}
	return argument
}
