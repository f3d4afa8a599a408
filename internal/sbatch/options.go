package sbatch

import (
	"fmt"
	"slices"
	"strings"
)

// Option is an option of sbatch that this program knows.
type Option struct {
	Long, Short string
	Help        string
	Bare        bool // it has no value
}

// Options lists them.
func Options() []Option {
	return []Option{
		{Long: "job-name", Short: "J", Help: "name of the job"},
		{Long: "output", Short: "o", Help: "file for what it prints, such as slurm-%j.out"},
		{Long: "error", Short: "e", Help: "file for its errors; default: that of --output"},
		{Long: "input", Short: "i", Help: "file that is its standard input"},
		{Long: "chdir", Short: "D", Help: "directory here of the files that are named"},
		{Long: "cpus-per-task", Short: "c", Help: "cores of a task"},
		{Long: "ntasks", Short: "n", Help: "1: a batch script is one task"},
		{Long: "nodes", Short: "N", Help: "1: a task is at one site"},
		{Long: "mem", Help: "memory, such as 4G; a plain number is MiB"},
		{Long: "mem-per-cpu", Help: "memory for each core"},
		{Long: "time", Short: "t", Help: "longest running time, such as 1:30:00 or 2-12"},
		{Long: "array", Short: "a", Help: "indexes of an array, such as 0-9, 1,3,5 or 0-30:10"},
		{Long: "dependency", Short: "d", Help: "afterok:ID: run when that job is done"},
		{Long: "export", Help: "variables of this shell to send along: NAME,NAME=VALUE or NONE"},
		{Long: "begin", Help: "earliest start, such as 14:00 or now+2hours"},
		{Long: "deadline", Help: "latest end, such as 18:00"},
		{
			Long: "hold", Short: "H", Help: "place it only when submit release lets it go",
			Bare: true,
		},
		{Long: "wait", Short: "W", Help: "wait for the end, and write what it prints", Bare: true},
		{Long: "parsable", Help: "print the ID alone", Bare: true},
	}
}

// find is the option of a word such as --mem or -t; the rest of a word such as -t5 is its value.
func find(word string) (o Option, rest string, known bool) {
	long, isLong := strings.CutPrefix(word, "--")
	name, value, _ := strings.Cut(long, "=")
	for _, o := range Options() {
		switch {
		case isLong && o.Long == name:
			return o, value, true
		case !isLong && o.Short != "" && strings.HasPrefix(word, "-"+o.Short):
			return o, word[2:], true
		}
	}
	return o, "", false
}

// Given is an option that was given.
type Given struct {
	File  string // the script as its caller names it; empty: on the command line
	Line  int    // of the script; 0: on the command line
	Name  string
	Value string
}

// Problem is a mistake in an option.
type Problem struct {
	Given

	Text, Remedy string
	Unknown      bool // there is no such option here
}

// Where is the place of an option for a message: "job.sh:4: ", or nothing for the command line.
func (g Given) Where() string {
	switch {
	case g.Line == 0:
		return ""
	case g.File == "":
		return fmt.Sprintf("line %d: ", g.Line)
	default:
		return fmt.Sprintf("%s:%d: ", g.File, g.Line)
	}
}

// Error is the mistake in one line: "job.sh:4: --gres: ...".
func (p *Problem) Error() string {
	return fmt.Sprintf("%s--%s: %s; %s", p.Where(), p.Name, p.Text, p.Remedy)
}

// MaxScript is the longest script, in bytes.
const MaxScript = 4 << 20

// Script is a batch script as it was read.
type Script struct {
	name        string   // as its caller names it
	Interpreter []string // of its first line
	Given       []Given  // in its #SBATCH lines
}

// Read reads a batch script of this name: its first line and its #SBATCH lines, which end where the
// first command stands. The problems are options that are wrong in themselves; unknown ones may be
// ignored. The error is for a text that is no batch script.
func Read(name, text string) (*Script, []*Problem, error) {
	if len(text) > MaxScript {
		return nil, nil, fmt.Errorf("%s: the script is larger than %d MiB; put data into files",
			name, MaxScript>>20)
	}
	lines := strings.Split(text, "\n")
	first, isScript := strings.CutPrefix(lines[0], "#!")
	s := &Script{name: name, Interpreter: strings.Fields(first)}
	if !isScript || len(s.Interpreter) == 0 {
		return nil, nil, fmt.Errorf("%s:1: the script does not begin with #! and its interpreter; "+
			"write #!/bin/sh in its first line", name)
	}
	var problems []*Problem
	for i, line := range lines[1:] {
		rest, is := strings.CutPrefix(strings.TrimRight(line, "\r"), "#SBATCH")
		trimmed := strings.TrimSpace(line)
		if !is && trimmed != "" && !strings.HasPrefix(trimmed, "#") {
			break
		}
		if !is || rest != "" && rest[0] != ' ' && rest[0] != '\t' {
			continue
		}
		problems = append(problems, s.line(i+2, rest)...)
	}
	return s, problems, nil
}

// line reads the options of one line.
func (s *Script) line(number int, text string) (problems []*Problem) {
	words, err := split(text)
	if err != nil {
		return []*Problem{{
			Given: Given{File: s.name, Line: number, Name: "SBATCH"}, Text: err.Error(),
			Remedy: "close the quote",
		}}
	}
	for len(words) > 0 {
		word := words[0]
		words = words[1:]
		o, value, known := find(word)
		given := Given{File: s.name, Line: number, Name: o.Long, Value: value}
		switch {
		case !known:
			// What follows may be its value.
			given.Name = strings.TrimLeft(word, "-")
			given.Name, _, _ = strings.Cut(given.Name, "=")
			problems = append(problems, unknown(given))
			for len(words) > 0 && !strings.HasPrefix(words[0], "-") {
				words = words[1:]
			}
			continue
		case o.Bare || value != "" || strings.Contains(word, "="):
		case len(words) == 0:
			problems = append(problems, &Problem{
				Given: given, Text: "has no value", Remedy: "add one",
			})
			continue
		default:
			given.Value, words = words[0], words[1:]
		}
		s.Given = append(s.Given, given)
	}
	return problems
}

func unknown(g Given) *Problem {
	return &Problem{
		Given: g, Unknown: true, Text: "no such option on a mesh",
		Remedy: "remove it, or pass over such options with --ignore-unknown",
	}
}

// splitter separates words as a shell does that knows quotes and comments only.
type splitter struct {
	words []string
	word  strings.Builder
	begun bool // a word, which may be empty so far
	quote byte // in which it stands; 0: none
}

// take takes one byte and reports whether a comment begins with it.
func (s *splitter) take(c byte) bool {
	switch {
	case s.quote != 0 && c == s.quote:
		s.quote = 0
	case s.quote != 0:
		s.word.WriteByte(c)
	case c == '"' || c == '\'':
		s.quote, s.begun = c, true
	case strings.IndexByte(" \t\r", c) >= 0:
		s.end()
	case c == '#' && !s.begun:
		return true
	default:
		s.word.WriteByte(c)
		s.begun = true
	}
	return false
}

func (s *splitter) end() {
	if s.begun {
		s.words = append(s.words, s.word.String())
	}
	s.word.Reset()
	s.begun = false
}

func split(text string) ([]string, error) {
	var s splitter
	for i := range len(text) {
		if s.take(text[i]) {
			break
		}
	}
	if s.quote != 0 {
		return nil, fmt.Errorf("a quote %c is not closed", s.quote)
	}
	s.end()
	return s.words, nil
}

// Merge gives the value that counts of each option: that of the command line, else the last one of
// the script.
func Merge(script, line []Given) map[string]Given {
	all := map[string]Given{}
	for _, g := range slices.Concat(script, line) {
		all[g.Name] = g
	}
	return all
}
