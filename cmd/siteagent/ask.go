package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/term"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

const (
	usualColumns  = 80 // of a terminal that does not tell
	fewestColumns = 10 // for which text is broken
	mostTries     = 10 // at one question: what types on after that is no person
)

// errUnanswered ends a command whose questions were not answered.
var errUnanswered = errors.New("no answer; nothing was changed")

// dialogue asks the person at a terminal.
type dialogue struct {
	in      *bufio.Reader
	out     io.Writer
	columns func() int
}

// talk is a dialogue if there is a person to talk to: both ends are a terminal. Else it is nil.
func talk(in io.Reader, out io.Writer) *dialogue {
	keys, isFile := in.(*os.File)
	screen, areFiles := out.(*os.File)
	if !isFile || !areFiles || !term.IsTerminal(int(keys.Fd())) ||
		!term.IsTerminal(int(screen.Fd())) {
		return nil
	}
	return &dialogue{in: bufio.NewReader(in), out: out, columns: func() int {
		if columns, _, err := term.GetSize(int(screen.Fd())); err == nil && columns > 0 {
			return max(columns, fewestColumns)
		}
		return usualColumns
	}}
}

// say prints a text, broken between words.
func (d *dialogue) say(text string) { fmt.Fprintln(d.out, fold(grid.Plain(text), d.columns())) }

// tell prints a sentence to a person who is there, and else as a line.
func tell(person *dialogue, notes io.Writer, text string) {
	if person != nil {
		person.say(text)
		return
	}
	fmt.Fprintln(notes, text)
}

// fold breaks a text between words, and nowhere else: commands and paths are there to be copied.
func fold(text string, columns int) string {
	var b strings.Builder
	used := 0
	for word := range strings.FieldsSeq(text) {
		width := ansi.StringWidth(word)
		switch {
		case used == 0:
		case used+1+width > columns:
			b.WriteByte('\n')
			used = 0
		default:
			b.WriteByte(' ')
			used++
		}
		b.WriteString(word)
		used += width
	}
	return b.String()
}

// ask asks until parse takes the answer, and says why it does not. Enter is the usual answer. ^C
// and the end of the input are errors.
func (d *dialogue) ask(
	ctx context.Context, question, usual string, parse func(answer string) error,
) error {
	d.say(question)
	for range mostTries {
		fmt.Fprintf(d.out, "[%s] ", usual)
		line, err := unlessStopped(ctx, d.line)
		if err != nil {
			fmt.Fprintln(d.out)
			if ctx.Err() != nil {
				return errUnanswered
			}
			return err
		}
		answer := strings.TrimSpace(line)
		if answer == "" {
			answer = usual
		}
		if err = parse(answer); err == nil {
			return nil
		}
		d.say(err.Error() + ". Once more:")
	}
	return errUnanswered
}

// line reads what was typed up to Enter; the reader's buffer bounds it.
func (d *dialogue) line() (string, error) {
	line, err := d.in.ReadSlice('\n')
	switch {
	case err == nil:
		return string(line), nil
	case errors.Is(err, io.EOF), errors.Is(err, bufio.ErrBufferFull):
		return "", errUnanswered
	default:
		return "", fmt.Errorf("read the answer: %w", err)
	}
}

// parseYes reads yes or no.
func parseYes(into *bool) func(string) error {
	return func(answer string) error {
		switch strings.ToLower(answer) {
		case "y", "yes":
			*into = true
		case "n", "no":
			*into = false
		default:
			return fmt.Errorf("want yes or no, have %q", answer)
		}
		return nil
	}
}
