package tui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

const (
	stdout = "stdout"
	stderr = "stderr"

	logKept = 64 << 10 // bytes of a log's end that are shown
	logRead = 4 << 20  // bytes read at a time; more is read a second later
)

// logPage shows what a task has printed on one stream.
type logPage struct {
	task   grid.TaskID
	stream string

	now   logFacts
	asked bool // there was an answer
}

// logFacts are a log as far as it was read.
type logFacts struct {
	token   grid.Token // of the attempt that printed it
	offset  int64      // up to which it was read
	text    string     // its end
	cut     bool       // there was more before
	phase   view.Phase
	waiting string // why there is none yet
}

// other is the page of the task's other stream.
func (p *logPage) other() *logPage {
	stream := stderr
	if p.stream == stderr {
		stream = stdout
	}
	return &logPage{task: p.task, stream: stream}
}

func (p *logPage) take(f logFacts) { p.now, p.asked = f, true }

// look reads on from where the last answer ended. An attempt elsewhere begins anew.
func (p *logPage) look(agent JobsAgent) func(context.Context) (any, error) {
	task, stream, f := p.task, p.stream, p.now
	return func(ctx context.Context) (any, error) {
		tasks, err := agent.Tasks(ctx, task.Job, task.Index, 1)
		if err != nil {
			return nil, err
		}
		if len(tasks) > 0 {
			if tasks[0].Token != f.token {
				f = logFacts{token: tasks[0].Token}
			}
			f.phase = tasks[0].Phase
		}
		body, err := agent.TaskLog(ctx, task, view.LogQuery{Stream: stream, Offset: f.offset})
		if errors.Is(err, view.ErrConflict) {
			f.waiting = err.Error()
			return f, nil
		}
		if err != nil {
			return nil, err
		}
		defer func() { _ = body.Close() }() // only read from
		data, err := io.ReadAll(io.LimitReader(body, logRead))
		f.waiting, f.offset = "", f.offset+int64(len(data))
		f.add(string(data))
		return f, err
	}
}

// add keeps the end of what was read.
func (f *logFacts) add(more string) {
	f.text += more
	if over := len(f.text) - logKept; over > 0 {
		f.text, f.cut = f.text[over:], true
		if at := strings.IndexByte(f.text, '\n'); at >= 0 {
			f.text = f.text[at+1:]
		}
	}
}

func (p *logPage) body(columns int) body {
	head := fmt.Sprintf("%s of task %s", p.stream, p.task)
	if p.now.phase != "" {
		head += ", " + string(p.now.phase)
	}
	b := body{head: []said{{head, strong}}, isText: true, grows: true}
	switch {
	case p.now.waiting != "":
		b.text = []said{{p.now.waiting, faint}}
	case p.now.text == "" && p.asked:
		b.text = []said{{"nothing was printed yet", faint}}
	case p.now.text == "":
		b.text = []said{{"the agent is asked for it", faint}}
	default:
		b.text = logLines(p.now.text, columns)
	}
	if p.now.cut {
		first := said{fmt.Sprintf("(only the end; submit logs %s has all of it)", p.task), faint}
		b.text = append([]said{first}, b.text...)
	}
	return b
}

// logLines breaks a log into lines of at most so many columns. Colours and the like are left out.
func logLines(text string, columns int) []said {
	var lines []said
	clean := strings.NewReplacer("\r\n", "\n", "\r", "\n", "\t", "    ").Replace(ansi.Strip(text))
	for line := range strings.SplitSeq(strings.TrimSuffix(clean, "\n"), "\n") {
		for _, part := range wrapHard(line, columns) {
			lines = append(lines, said{part, usual})
		}
	}
	return lines
}

// wrapHard breaks a line anywhere, so that a person sees each blank of it.
func wrapHard(line string, columns int) []string {
	line = grid.Plain(line)
	if len(line) <= columns {
		return []string{line}
	}
	return strings.Split(ansi.Hardwrap(line, columns, true), "\n")
}
