package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// progress shows how far a job is: some lines that are redrawn on a terminal, otherwise
// a line for each change.
type progress struct {
	app    *app
	last   string
	screen redraw
}

const maxTaskLines = 10

func (p *progress) show(ctx context.Context, v view.JobView) {
	hint := ""
	if v.Hint != "" && !v.Phase.Ended() {
		hint = "  " + clean(v.Hint)
	}
	line := p.single(ctx, v)
	if v.Count != 1 {
		line = tally(v)
	}
	if !p.app.terminal {
		line = string(v.ID) + "  " + line + hint
		if line != p.last {
			p.app.say("%s", line)
		}
		p.last = line
		return
	}
	if v.Count == 1 {
		line = string(v.ID) + "  " + line
	} else if left := p.app.timeLeft(v); left != "" {
		line += "  " + left
	}
	lines := append([]string{line}, p.tasks(ctx, v)...)
	if hint != "" {
		lines = append(lines, hint)
	}
	p.screen.print(p.app.err, lines, p.app.columns())
}

// single describes a job of one task.
func (p *progress) single(ctx context.Context, v view.JobView) string {
	line := string(v.Phase)
	if v.Phase == view.PhaseAnnounced && v.Offers > 0 {
		line += fmt.Sprintf("  offers %d", v.Offers)
	}
	if v.Moves > 0 {
		line += fmt.Sprintf("  moved %d", v.Moves)
	}
	return line + p.plan(ctx, v)
}

// tally is "200 tasks  34 done 17 %  5 running" of an array.
func tally(v view.JobView) string {
	done := v.Tasks[view.PhaseDone]
	parts := []string{
		fmt.Sprintf("%d tasks", v.Count),
		fmt.Sprintf("%d done %d %%", done, uint64(done)*100/uint64(max(v.Count, 1))),
	}
	for _, phase := range view.Phases() {
		switch phase {
		// the rest of the tasks
		case view.PhaseDone, view.PhaseWaiting, view.PhaseAnnounced, view.PhaseAwarded:
		default:
			if n := v.Tasks[phase]; n > 0 {
				parts = append(parts, fmt.Sprintf("%d %s", n, phase))
			}
		}
	}
	if v.Moves > 0 {
		parts = append(parts, fmt.Sprintf("moved %d", v.Moves))
	}
	return strings.Join(parts, "  ")
}

// timeLeft is "~3 min left": what is left takes as long for each task as what has ended
// took, frozen time and all. It is empty before any task has ended.
func (a *app) timeLeft(v view.JobView) string {
	var ended uint32
	for phase, n := range v.Tasks {
		if phase.Ended() {
			ended += n
		}
	}
	if ended == 0 || ended >= v.Count || v.Started.IsZero() {
		return ""
	}
	passed := a.now().Sub(v.Started.Time)
	left := time.Duration(float64(passed) / float64(ended) * float64(v.Count-ended))
	if left <= 0 {
		return ""
	}
	return "~" + about(left) + " left"
}

// about is a span of time in its one or two largest units.
func about(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", max(int(d.Seconds()), 1))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Round(time.Minute).Minutes()))
	case d < 24*time.Hour:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	default:
		return fmt.Sprintf("%d d %d h", int(d.Hours())/24, int(d.Hours())%24)
	}
}

// plan is "  planned for ..." of a single task that waits where it was promised.
func (p *progress) plan(ctx context.Context, v view.JobView) string {
	if v.Count != 1 || v.Phase != view.PhaseAwarded && v.Phase != view.PhaseStaging &&
		v.Phase != view.PhaseHeld {
		return ""
	}
	tasks, err := p.app.client.Tasks(ctx, v.ID, 0, 1)
	if err != nil || len(tasks) == 0 {
		return "" // the next look tells
	}
	if text := p.app.planText(tasks[0]); text != "" {
		return "  " + text
	}
	return ""
}

// tasks describes the tasks that are under way.
func (p *progress) tasks(ctx context.Context, v view.JobView) []string {
	if v.Phase.Ended() || v.Count > 1_000 {
		return nil
	}
	tasks, err := p.app.client.Tasks(ctx, v.ID, 0, int(v.Count))
	if err != nil {
		return nil // the next look tells
	}
	var lines []string
	for _, t := range tasks {
		if t.Phase.Ended() || t.Site == "" || len(lines) == maxTaskLines {
			continue
		}
		line := fmt.Sprintf("  %-6d %-10s on %s", t.Index, t.Phase, clean(nameOf(t.SiteName, t.Site)))
		if t.Progress != nil && t.Progress.TotalBytes > 0 {
			line += "  " + ofTotal(t.Progress.DoneBytes, t.Progress.TotalBytes)
		}
		if t.Text != "" {
			line += "  " + clean(t.Text)
		}
		lines = append(lines, line)
	}
	return lines
}

// ofTotal is "12.0 MiB of 48.0 MiB  25 %".
func ofTotal(done, total int64) string {
	done = min(done, total)
	return fmt.Sprintf("%s of %s  %d %%", grid.FormatBytes(done), grid.FormatBytes(total),
		100*done/max(total, 1))
}

// redraw rewrites lines on a terminal.
type redraw struct{ lines int }

// print draws lines in place of those drawn before, none wider than the terminal: one
// that wrapped would be drawn over by half.
func (r *redraw) print(w io.Writer, lines []string, columns int) {
	var b bytes.Buffer
	if r.lines > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", r.lines)
	}
	for _, line := range lines {
		b.WriteString("\x1b[2K" + cut(line, columns) + "\n")
	}
	b.WriteString("\x1b[J")
	r.lines = len(lines)
	_, _ = w.Write(b.Bytes()) // a picture; the next one may succeed
}

// wide is the first of the characters that may take two columns.
const wide = 0x1100

// cut shortens a line to less than a number of columns: the last one stays free, because
// some terminals go to the next line when it is written.
func cut(line string, columns int) string {
	used := 0
	for at, r := range line {
		size := 1
		if r >= wide {
			size = 2
		}
		if used += size; used >= columns {
			return strings.TrimRight(line[:at], " ")
		}
	}
	return line
}
