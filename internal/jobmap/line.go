package jobmap

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Line is a command line, split where arguments begin.
type Line struct {
	Words     []string // the command, or the arguments of a module
	Arguments []string // behind :::
	File      string   // behind ::::, - for standard input
	Given     bool     // whether arguments stand behind :::
}

// Split finds ::: and :::: among the words of a command line. The error names what GNU
// parallel does and this does not: several lists, lists that are linked.
func Split(words []string) (Line, error) {
	isMark := func(word string) bool {
		return slices.Contains([]string{":::", "::::", ":::+", "::::+"}, word)
	}
	at := slices.IndexFunc(words, isMark)
	if at < 0 {
		return Line{Words: words}, nil
	}
	line, mark, rest := Line{Words: words[:at]}, words[at], words[at+1:]
	if strings.HasSuffix(mark, "+") || slices.ContainsFunc(rest, isMark) {
		return Line{}, errors.New("want one list of arguments, have several; combine them first, " +
			"as by loops of the shell, and give the lines on standard input")
	}
	if mark == ":::" {
		if len(rest) == 0 {
			return Line{}, errors.New("nothing stands behind :::, so there is nothing to run; " +
				"write at least one argument")
		}
		line.Arguments, line.Given = rest, true
		return line, nil
	}
	if len(rest) != 1 {
		return Line{}, fmt.Errorf("want one file behind ::::, have %d; "+
			"give several by `cat FILES | submit map ...`", len(rest))
	}
	line.File = rest[0]
	return line, nil
}

// ReadArguments reads an argument a line. It stops at the first line that is too long, and
// when there are more than a job may have tasks.
func ReadArguments(from io.Reader) ([]string, error) {
	var out []string
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxText+1)
	for lines.Scan() {
		if len(out) == grid.MaxTasks {
			return nil, errTooMany
		}
		out = append(out, lines.Text())
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return nil, fmt.Errorf("line %d is longer than %d bytes; %s", len(out)+1, maxText,
			intoFiles)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read arguments: %w", err)
	}
	if len(out) == 0 {
		return nil, errors.New("the list of arguments is empty, so there is nothing to run; " +
			"give one on each line")
	}
	return out, nil
}

// maxText bounds the text that sets a task apart, in bytes: it is an item of the job.
const maxText = 4096

const intoFiles = "write long ones to files and give the files' names"

var errTooMany = fmt.Errorf("more than %d arguments; submit them in parts, as by `split -l %[1]d`",
	grid.MaxTasks)
