package archtest

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Measures of the picture, in its own units.
const (
	margin    = 28.0
	bandLabel = 92.0 // on the left, for the names of the bands
	boxHeight = 40.0
	levelStep = 96.0
	barHeight = 34.0
	headLines = 74.0
)

const fonts = "-apple-system, 'Segoe UI', 'Noto Sans', 'DejaVu Sans', Arial, sans-serif"

// band is a part of the tree, from the top of the picture.
type band struct {
	part       string
	does       []string // in lines
	fill, line string   // colours
}

func bands() []band {
	return []band{
		{"cmd", []string{"wires"}, "#fdf0dc", "#a5691a"},
		{"internal", []string{"touches", "the world"}, "#e6f2e3", "#3f7a3a"},
		{"pkg", []string{"thinks"}, "#e4edf9", "#33639c"},
	}
}

func bandOf(name string) band {
	for _, b := range bands() {
		if within(name, b.part) {
			return b
		}
	}
	return band{}
}

// picture draws the arrows between the rooms that exist.
func picture(table map[string]room, existing []string) (string, error) {
	rooms, err := drawn(table, existing)
	if err != nil {
		return "", err
	}
	l := lay(rooms, boxWidth)
	c := canvas{laidOut: l}
	width := margin + bandLabel + l.width + margin
	height := headLines + float64(len(l.levels)-1)*levelStep + barHeight + margin
	c.printf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" `+
		`width="%.0f" height="%.0f" font-size="15" font-family="%s">`,
		width, height, width, height, fonts)
	c.printf(`<title>Which room may import which</title>`)
	c.printf(`<!-- Drawn from the table of rooms: %s -->`, drawAnew)
	for _, b := range bands() {
		c.printf(`<marker id="tip-%s" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" `+
			`markerHeight="7" orient="auto"><path d="M0,0.8 L7.5,4 L0,7.2 z" fill="%s"/></marker>`,
			b.part, b.line)
	}
	c.printf(`<rect width="100%%" height="100%%" rx="10" fill="#fcfcfa"/>`)
	c.drawBands(width)
	c.drawArrows()
	for _, r := range rooms {
		c.drawBox(l.rooms[r.name])
	}
	c.drawFoundation(rooms, width)
	c.printf(`</svg>`)
	return c.String(), nil
}

type canvas struct {
	strings.Builder
	laidOut
}

func (c *canvas) printf(format string, args ...any) { fmt.Fprintf(c, format+"\n", args...) }

// boxWidth is as wide as the longer line of text.
func boxWidth(r drawnRoom) float64 {
	const letter, small = 8.6, 6.5
	name := float64(len(path.Base(r.name))) * letter
	return max(name, float64(len(strings.Join(r.inside, " ")))*small, 34) + 20
}

// top is the upper edge of a level's boxes. The levels count from the foundation.
func (c *canvas) top(level int) float64 {
	return headLines + float64(len(c.levels)-1-level)*levelStep
}

// x converts a place in the layout to one in the picture.
func x(at float64) float64 { return margin + bandLabel + at }

func (c *canvas) drawBands(width float64) {
	c.printf(`<text x="%.0f" y="30" font-size="19" font-weight="600" fill="#222">`+
		`Which room may import which</text>`, margin)
	c.printf(`<text x="%.0f" y="50" font-size="13" fill="#555">`+
		`An arrow leads from a room to one that it may import. `+
		`An arrow that follows from others is left out. `+
		`Small names are rooms inside a room.</text>`, margin)
	for _, b := range bands() {
		low, high := c.extent(b.part)
		top, bottom := c.top(high)-16, c.top(low)+boxHeight+16
		if b.part == "pkg" {
			bottom = c.top(0) + barHeight + 10
		}
		c.printf(`<rect x="10" y="%.0f" width="%.0f" height="%.0f" rx="8" fill="%s" `+
			`fill-opacity="0.35"/>`, top, width-20, bottom-top, b.fill)
		c.printf(`<text x="20" y="%.0f" font-weight="600" fill="%s">%s/</text>`,
			top+22, b.line, b.part)
		for i, text := range b.does {
			c.printf(`<text x="20" y="%.0f" font-size="13" fill="%s">%s</text>`,
				top+40+float64(16*i), b.line, text)
		}
	}
}

// extent is the lowest and the highest level of a part of the tree.
func (c *canvas) extent(part string) (low, high int) {
	low = len(c.levels)
	for name, s := range c.rooms {
		if within(name, part) {
			low, high = min(low, s.level), max(high, s.level)
		}
	}
	return low, high
}

func (c *canvas) drawBox(s *spot) {
	r, b := s.room, bandOf(s.room.name)
	top := c.top(s.level)
	c.drawRect(x(s.x-s.width/2), top, s.width, boxHeight, b)
	line := top + boxHeight/2 + 5
	if len(r.inside) > 0 {
		line -= 7
		c.printf(`<text x="%.0f" y="%.0f" font-size="11.5" text-anchor="middle" fill="#555">%s</text>`,
			x(s.x), top+boxHeight-7, strings.Join(r.inside, " "))
	}
	c.printf(`<text x="%.0f" y="%.0f" text-anchor="middle" fill="#111">%s</text>`,
		x(s.x), line, path.Base(r.name))
}

func (c *canvas) drawRect(left, top, width, height float64, b band) {
	c.printf(`<rect x="%.0f" y="%.0f" width="%.0f" height="%.0f" rx="6" fill="%s" stroke="%s" `+
		`stroke-width="1.4"/>`, left, top, width, height, b.fill, b.line)
}

// drawArrows draws each arrow as one line, in the colour of the room that it leaves.
func (c *canvas) drawArrows() {
	c.printf(`<g fill="none" stroke-width="1.2" stroke-opacity="0.75">`)
	for _, level := range slices.Backward(c.levels) {
		for _, from := range level {
			if from.room == nil {
				continue
			}
			for _, to := range from.down {
				c.drawArrow(from, to)
			}
		}
	}
	c.printf(`</g>`)
}

func (c *canvas) drawArrow(from, first *spot) {
	at, y := port(from, first, from.down), c.top(from.level)+boxHeight
	var d strings.Builder
	fmt.Fprintf(&d, "M%.1f,%.1f", x(at), y)
	for last, to := from, first; ; last, to = to, to.down[0] {
		end, edge := to.x, c.top(to.level)
		if to.room != nil {
			end = port(to, last, to.up)
		}
		half := (edge - y) / 2
		fmt.Fprintf(&d, " C%.1f,%.1f %.1f,%.1f %.1f,%.1f",
			x(at), y+half, x(end), edge-half, x(end), edge)
		if to.room != nil {
			break
		}
		at, y = end, edge+boxHeight
		fmt.Fprintf(&d, " V%.1f", y)
	}
	b := bandOf(from.room.name)
	c.printf(`<path d="%s" stroke="%s" marker-end="url(#tip-%s)"/>`, d.String(), b.line, b.part)
}

// port returns the place on a box's edge at which the arrow to or from a neighbour
// touches it: side by side, in the order of the neighbours.
func port(s, neighbour *spot, all []*spot) float64 {
	const apart = 11.0
	sorted := slices.SortedStableFunc(slices.Values(all),
		func(a, b *spot) int { return cmp.Compare(a.x, b.x) })
	step := min(apart, (s.width-16)/float64(max(len(all)-1, 1)))
	i := slices.Index(sorted, neighbour)
	return s.x + (float64(i)-float64(len(all)-1)/2)*step
}

// drawFoundation draws pkg/grid, and says who does not stand on it.
func (c *canvas) drawFoundation(rooms []drawnRoom, width float64) {
	var not []string
	for _, r := range rooms {
		if !r.grid {
			not = append(not, path.Base(r.name))
		}
	}
	b := bandOf(foundation)
	top := c.top(0)
	c.drawRect(margin+bandLabel, top, width-2*margin-bandLabel, barHeight, b)
	c.printf(`<text x="%.0f" y="%.0f" text-anchor="middle"><tspan fill="#111">%s</tspan>`+
		`<tspan dx="14" font-size="13" fill="#555">every room may import it but %s</tspan></text>`,
		(width+bandLabel)/2, top+barHeight/2+5, path.Base(foundation), strings.Join(not, ", "))
}
