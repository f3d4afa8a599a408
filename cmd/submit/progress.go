package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/mrsmesh/mrsmesh/internal/view"
)

// progress shows a job's way: a table that is redrawn on a terminal, otherwise a
// line for each change.
type progress struct {
	app    *app
	last   string
	screen redraw
}

const maxTaskLines = 10

func (p *progress) show(ctx context.Context, v view.JobView) {
	line := fmt.Sprintf("%s  %s", v.ID, counts(v.Tasks))
	if v.Count == 1 {
		line = fmt.Sprintf("%s  %s", v.ID, v.Phase)
	}
	if v.Phase == view.PhaseAnnounced && v.Offers > 0 {
		line += fmt.Sprintf("  offers %d", v.Offers)
	}
	if v.Moves > 0 {
		line += fmt.Sprintf("  moved %d", v.Moves)
	}
	line += p.plan(ctx, v)
	hint := ""
	if v.Hint != "" && !v.Phase.Ended() {
		hint = "  " + clean(v.Hint)
	}
	if !p.app.terminal {
		if line+hint != p.last {
			p.app.say("%s%s", line, hint)
		}
		p.last = line + hint
		return
	}
	lines := []string{line + bar(v)}
	lines = append(lines, p.tasks(ctx, v)...)
	if hint != "" {
		lines = append(lines, hint)
	}
	p.screen.print(p.app.err, lines)
}

// plan is "  planned for ..." of a single task that waits where it was promised.
func (p *progress) plan(ctx context.Context, v view.JobView) string {
	if v.Count != 1 || v.Phase != view.PhaseAwarded && v.Phase != view.PhaseStaging && v.Phase != view.PhaseHeld {
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

// bar is "  [#####.....]" of an array's ended tasks.
func bar(v view.JobView) string {
	const width = 20
	if v.Count < 2 {
		return ""
	}
	var ended uint32
	for _, phase := range view.Phases() {
		if phase.Ended() {
			ended += v.Tasks[phase]
		}
	}
	full := int(uint64(ended) * width / uint64(v.Count))
	return "  [" + strings.Repeat("#", full) + strings.Repeat(".", width-full) + "]"
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
		if t.Distance != nil {
			line += "  distance " + number(t.Distance)
		}
		if t.Progress != nil && t.Progress.TotalBytes > 0 {
			line += fmt.Sprintf("  %d %%", 100*t.Progress.DoneBytes/t.Progress.TotalBytes)
		}
		lines = append(lines, line)
	}
	return lines
}

// redraw rewrites lines on a terminal.
type redraw struct{ lines int }

func (r *redraw) print(w io.Writer, lines []string) {
	var b bytes.Buffer
	if r.lines > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", r.lines)
	}
	for _, line := range lines {
		b.WriteString("\x1b[2K" + line + "\n")
	}
	b.WriteString("\x1b[J")
	r.lines = len(lines)
	_, _ = w.Write(b.Bytes()) // a picture; the next one may succeed
}
