package play

import (
	"fmt"
	"html"
	"io"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Sizes of a picture, in its own units.
const (
	pictureWidth = 1120.0
	gutter       = 84.0 // left of the time, for names
	rightMargin  = 16.0
	topMargin    = 34.0
	laneHeight   = 13.0
	lanePadding  = 5.0
	mostLanes    = 24 // of a site; what more there is shares the last one
)

// palette are the colours of jobs, which people who see few colours tell apart (Okabe and Ito).
func palette() []string {
	return []string{
		"#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b8a500", "#666666",
	}
}

// picture is a record that is laid out to be drawn: rows of sites below each other, time from
// left to right.
type picture struct {
	rec     *Record
	rows    []row
	end     time.Duration
	bottom  float64
	colours map[grid.JobID]string
	order   []grid.JobID // of their first bars
	b       strings.Builder
}

// row is the place of a site.
type row struct {
	*siteLine

	top, height float64
	lanes       map[grid.AttemptID]int
}

func newPicture(rec *Record) *picture {
	lines, end := rec.siteLines()
	p := &picture{rec: rec, end: max(end, time.Second), colours: make(map[grid.JobID]string)}
	at := topMargin
	for _, l := range lines {
		lanes, n := lanesOf(l.bars)
		r := row{siteLine: l, top: at, height: float64(n)*laneHeight + 2*lanePadding, lanes: lanes}
		at += r.height
		p.rows = append(p.rows, r)
	}
	p.bottom = at
	p.colour(lines)
	return p
}

// colour gives each job its colour, in the order in which the first of their tasks began.
func (p *picture) colour(lines []*siteLine) {
	var all []bar
	for _, l := range lines {
		all = append(all, l.bars...)
	}
	sortBars(all)
	for _, b := range all {
		job := b.attempt.Task.Job
		if _, has := p.colours[job]; !has {
			p.colours[job] = palette()[len(p.order)%len(palette())]
			p.order = append(p.order, job)
		}
	}
}

// lanesOf puts attempts that overlap into lanes below each other, and says how many there are.
func lanesOf(bars []bar) (lanes map[grid.AttemptID]int, n int) {
	lanes = make(map[grid.AttemptID]int)
	last := make(map[grid.AttemptID]time.Duration)
	for _, b := range bars {
		last[b.attempt] = max(last[b.attempt], b.to)
	}
	var free []time.Duration // from when on a lane is free
	for _, b := range bars {
		if _, has := lanes[b.attempt]; has {
			continue
		}
		at := 0
		for at < len(free) && free[at] > b.from && at < mostLanes-1 {
			at++
		}
		if at == len(free) {
			free = append(free, 0)
		}
		lanes[b.attempt], free[at] = at, max(free[at], last[b.attempt])
	}
	return lanes, max(1, len(free))
}

// x is the place of a time.
func (p *picture) x(at time.Duration) float64 {
	return gutter + at.Seconds()/p.end.Seconds()*(pictureWidth-gutter-rightMargin)
}

// WriteSVG draws the record: a row for each site, a bar for each attempt while it runs, pale
// while it is frozen; what was wrong with the site behind them; and marks where an attempt was
// given up or fenced.
func (rec *Record) WriteSVG(out io.Writer) error {
	_, err := io.WriteString(out, newPicture(rec).svg())
	return err
}

func (p *picture) svg() string {
	legend := p.bottom + 40
	height := legend + 18*float64((len(p.order)+7)/8) + 26
	fmt.Fprintf(&p.b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" `+
		`font-family="sans-serif" font-size="11">`+"\n", pictureWidth, height)
	p.rect(0, 0, pictureWidth, height, `fill="white"`, "")
	p.drawAxis()
	for i := range p.rows {
		p.drawRow(&p.rows[i], i)
	}
	p.drawLegend(legend)
	p.b.WriteString("</svg>\n")
	return p.b.String()
}

// drawAxis draws the lines of time.
func (p *picture) drawAxis() {
	every := tickOf(p.end)
	for at := time.Duration(0); at <= p.end; at += every {
		fmt.Fprintf(&p.b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#dddddd"/>`+"\n",
			p.x(at), topMargin-6, p.x(at), p.bottom)
		p.text(p.x(at), topMargin-10, "middle", at.String())
	}
}

// tickOf is the time between two lines of time, of which there are at most a dozen.
func tickOf(end time.Duration) time.Duration {
	units := []time.Duration{
		time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond, time.Second,
		10 * time.Second, time.Minute, 10 * time.Minute, time.Hour, 10 * time.Hour,
	}
	for _, unit := range units {
		for _, tick := range []time.Duration{unit, 2 * unit, 5 * unit} {
			if end/tick < 12 {
				return tick
			}
		}
	}
	return (end / 12).Round(24 * time.Hour)
}

func (p *picture) drawRow(r *row, i int) {
	if i%2 == 1 {
		p.rect(0, r.top, pictureWidth, r.height, `fill="#f6f6f6" fill-opacity="0.6"`, "")
	}
	p.text(gutter-8, r.top+r.height/2+4, "end", r.name)
	for _, t := range r.troubles {
		to := min(t.to, p.end)
		p.rect(p.x(t.from), r.top, max(2, p.x(to)-p.x(t.from)), r.height,
			`fill="#ffe08a" fill-opacity="0.55"`, t.what)
	}
	for _, d := range r.down {
		to := min(d.to, p.end)
		p.rect(p.x(d.from), r.top, max(2, p.x(to)-p.x(d.from)), r.height,
			`fill="#444444" fill-opacity="0.5"`, "the agent is dead"+fromTo(d))
	}
	for _, b := range r.bars {
		p.drawBar(r, b)
	}
	for _, m := range r.marks {
		p.drawMark(r, m)
	}
}

func (p *picture) drawBar(r *row, b bar) {
	does, opacity := "runs", 0.9
	if b.frozen {
		does, opacity = "is frozen", 0.28
	}
	colour := p.colours[b.attempt.Task.Job]
	to := min(b.to, p.end)
	p.rect(p.x(b.from), r.laneTop(b.attempt), max(1, p.x(to)-p.x(b.from)), laneHeight-2,
		fmt.Sprintf(`fill="%[1]s" fill-opacity="%.2[2]f" stroke="%[1]s" stroke-width="0.6"`,
			colour, opacity),
		fmt.Sprintf("%s %s at %s%s", p.rec.attemptName(b.attempt), does, r.name, fromTo(b.span)))
}

func (r *row) laneTop(id grid.AttemptID) float64 {
	return r.top + lanePadding + float64(r.lanes[id])*laneHeight + 1
}

// drawMark draws a cross where an attempt was given up, and a diamond where it was fenced.
func (p *picture) drawMark(r *row, m mark) {
	const half = 4.0
	x, y := p.x(min(m.at, p.end)), r.laneTop(m.attempt)+laneHeight/2-1
	shape := fmt.Sprintf(`d="M%.1f %.1fl%.0f %.0fm0 -%.0fl-%.0f %.0f" fill="none" stroke="#c00000" `+
		`stroke-width="2"`, x-half, y-half, 2*half, 2*half, 2*half, 2*half, 2*half)
	if m.what == markFenced {
		shape = fmt.Sprintf(`d="M%.1f %.1fl%.0f %.0fl-%.0f %.0fl-%.0f -%.0fz" fill="#222222"`,
			x, y-half, half, half, half, half, half, half)
	}
	fmt.Fprintf(&p.b, "<path %s><title>%s</title></path>\n", shape, html.EscapeString(fmt.Sprintf(
		"%s: %s at %s", m.at, p.rec.attemptName(m.attempt), m.what)))
}

// drawLegend says which job has which colour, and what the rest means.
func (p *picture) drawLegend(at float64) {
	x, y := gutter, at
	for i, job := range p.order {
		if i > 0 && i%8 == 0 {
			x, y = gutter, y+18
		}
		p.rect(x, y-9, 12, 11, fmt.Sprintf(`fill="%s"`, p.colours[job]), "")
		p.text(x+16, y, "start", p.rec.name(job))
		x += 124
	}
	p.text(gutter, at-22, "start", "a bar: a task runs; pale: it is frozen; yellow: something is "+
		"wrong with the site; grey: its agent is dead; red cross: given up by the submitter; "+
		"black diamond: fenced")
}

func (p *picture) rect(x, y, width, height float64, style, title string) {
	fmt.Fprintf(&p.b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" %s`,
		x, y, width, height, style)
	if title == "" {
		p.b.WriteString("/>\n")
		return
	}
	fmt.Fprintf(&p.b, "><title>%s</title></rect>\n", html.EscapeString(title))
}

func (p *picture) text(x, y float64, anchor, words string) {
	fmt.Fprintf(&p.b, `<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>`+"\n",
		x, y, anchor, html.EscapeString(words))
}

func fromTo(s span) string { return fmt.Sprintf(", %s to %s", s.from, s.to) }
