package play

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"html"
	"io"
	"slices"
	"strings"
	"time"
)

// WritePage writes the record as a page of HTML that needs nothing else: the picture of WriteSVG,
// and below it all decisions and messages, to be gone through step by step.
func (rec *Record) WritePage(out io.Writer, title string) error {
	p := newPicture(rec)
	data, err := json.Marshal(p.data()) // it writes < and > so that no tag begins
	if err != nil {
		return err
	}
	_, err = strings.NewReplacer(
		"{{TITLE}}", html.EscapeString(title), "{{SVG}}", p.svg(), "{{DATA}}", string(data),
	).WriteString(out, pageText)
	return err
}

//go:embed page.html
var pageText string

// mostSteps bounds what a page holds, so that a browser can show it.
const mostSteps = 20_000

// pageData is read by the page's script. Times are in seconds, places in the picture's units.
type pageData struct {
	Left    float64    `json:"left"`  // of the time
	Width   float64    `json:"width"` // of the time
	Top     float64    `json:"top"`
	Bottom  float64    `json:"bottom"`
	End     float64    `json:"end"` // the time at the right
	Rows    []pageRow  `json:"rows"`
	Bars    []pageSpan `json:"bars"`
	Spans   []pageSpan `json:"spans"` // troubles, and agents that are dead
	Steps   []pageStep `json:"steps"`
	LeftOut int        `json:"left_out"` // steps
}

type pageRow struct {
	Name string  `json:"name"`
	Y    float64 `json:"y"`
}

type pageSpan struct {
	Site   string  `json:"site"`
	From   float64 `json:"from"`
	To     float64 `json:"to"`
	Name   string  `json:"name,omitempty"`
	What   string  `json:"what,omitempty"`
	Frozen bool    `json:"frozen"`
}

// pageStep is a decision, or a message, with all that is told in the same line.
type pageStep struct {
	At      float64  `json:"at"`
	From    []string `json:"from"`
	To      []string `json:"to"`
	Message bool     `json:"message"`
	Lost    bool     `json:"lost"` // none of them arrived
	Line    string   `json:"line"`
}

func (p *picture) data() pageData {
	d := pageData{
		Left: gutter, Width: pictureWidth - gutter - rightMargin, Top: topMargin - 6, Bottom: p.bottom,
		End: p.end.Seconds(), Rows: []pageRow{}, Bars: []pageSpan{}, Spans: []pageSpan{},
	}
	for _, r := range p.rows {
		d.Rows = append(d.Rows, pageRow{Name: r.name, Y: r.top + r.height/2})
		for _, b := range r.bars {
			one := r.spanOf(b.span, "")
			one.Name, one.Frozen = p.rec.attemptName(b.attempt), b.frozen
			d.Bars = append(d.Bars, one)
		}
		for _, t := range r.troubles {
			d.Spans = append(d.Spans, r.spanOf(t.span, t.what))
		}
		for _, down := range r.down {
			d.Spans = append(d.Spans, r.spanOf(down, "the agent is dead"))
		}
	}
	d.Steps = p.rec.steps()
	if d.LeftOut = len(d.Steps) - mostSteps; d.LeftOut <= 0 {
		d.LeftOut = 0
		return d
	}
	d.Steps = d.Steps[:mostSteps]
	return d
}

func (r *row) spanOf(s span, what string) pageSpan {
	return pageSpan{Site: r.name, From: s.from.Seconds(), To: s.to.Seconds(), What: what}
}

// steps are the lines of all decisions and messages, in the order of time.
func (rec *Record) steps() []pageStep {
	messages, _ := rec.messages()
	lines := slices.Concat(put(rec.decisions()), put(messages))
	slices.SortStableFunc(lines, func(a, b *told) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.number, b.number))
	})
	steps := make([]pageStep, 0, len(lines))
	for _, l := range lines {
		steps = append(steps, pageStep{
			At: l.at.Round(time.Microsecond).Seconds(), From: rec.inOrder(l.froms), To: rec.inOrder(l.tos),
			Message: l.to != "", Lost: l.n > 0 && l.nLost == l.n, Line: strings.TrimSpace(rec.line(l)),
		})
	}
	return steps
}

// inOrder lists those sites that are in a set.
func (rec *Record) inOrder(set map[string]bool) []string {
	list := []string{}
	for _, name := range rec.sites {
		if set[name] {
			list = append(list, name)
		}
	}
	return list
}
