package view

import (
	"fmt"
	"io"
	"math"
	"strings"
)

// The drawing's measures, in its own units.
const (
	mapSize   = 560.0 // of the square in which sites stand
	mapLeft   = 70.0
	mapTop    = 50.0
	mapSide   = 300.0 // of the column of refusals
	mapRings  = 4     // arcs of equal distance, about
	mapDot    = 7.0
	mapListed = 24 // refusals that are named
)

// WriteMap draws the virtual map as an SVG document: the job at the origin, each
// offer at its x and y (in the seconds map: seconds until its end, and seconds of
// stage-in), its z as colour, arcs of equal distance, the chosen site filled, and
// refusals with their reasons at the side.
func (t OfferTable) WriteMap(w io.Writer) error {
	d := drawing{table: t}
	d.measure()
	d.frame()
	d.sites()
	d.refusals()
	d.line(`</svg>`)
	_, err := io.WriteString(w, d.out.String())
	return err
}

// drawing is a map that is being drawn.
type drawing struct {
	table OfferTable
	out   strings.Builder
	reach float64 // the value at the far end of both axes
}

func (d *drawing) line(format string, args ...any) { fmt.Fprintf(&d.out, format+"\n", args...) }

// text writes words at a place; anchor is start, middle or end.
func (d *drawing) text(x, y float64, anchor, words string) {
	d.line(`<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>`, x, y, anchor, escaped(words))
}

// escaped makes words safe inside of an element, whatever a site calls itself.
func escaped(words string) string {
	clean := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0xfffe || r == 0xffff {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(words, "?"))
	return strings.NewReplacer(
		"&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#39;",
	).Replace(clean)
}

// point returns a row's coordinates on the two drawn axes.
func (t OfferTable) point(row OfferRow) (x, y float64) {
	if t.Map == "seconds" {
		return row.WaitSeconds + row.RunSeconds, row.StageSeconds
	}
	if row.X == nil || row.Y == nil {
		return 0, 0
	}
	return *row.X, *row.Y
}

// measure finds a round number that is at least as far as the farthest site.
func (d *drawing) measure() {
	far := 0.0
	for _, row := range d.table.Rows {
		if row.Rank > 0 {
			x, y := d.table.point(row)
			far = max(far, x, y)
		}
	}
	d.reach = 1
	if far > 0 {
		d.reach = mapRings * niceStep(far*1.05/mapRings)
	}
}

// niceStep is the lowest of 1, 2 and 5 times a power of ten that is not below v.
func niceStep(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if m*power >= v {
			return m * power
		}
	}
	return 10 * power
}

// place turns values on the axes into places on the paper.
func (d *drawing) place(x, y float64) (px, py float64) {
	return mapLeft + x/d.reach*mapSize, mapTop + mapSize - y/d.reach*mapSize
}

func (d *drawing) frame() {
	width, height := mapLeft+mapSize+mapSide, mapTop+mapSize+70
	d.line(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" role="img" font-family="sans-serif" font-size="13">`, width, height)
	d.line(`<title>Virtual map: %d of %d sites answered</title>`, d.table.Answered, d.table.Members)
	d.line(`<rect width="100%%" height="100%%" fill="#fff"/>`)
	right, top := d.place(d.reach, d.reach)
	left, bottom := d.place(0, 0)
	d.line(
		`<clipPath id="paper"><rect x="%.1f" y="%.1f" width="%.1f" height="%.1f"/></clipPath>`, left,
		top, mapSize, mapSize,
	)
	for i := 1; i <= mapRings; i++ {
		value := d.reach * float64(i) / mapRings
		d.line(`<circle cx="%.1f" cy="%.1f" r="%.1f" fill="none" stroke="#ccc" clip-path="url(#paper)"/>`,
			left, bottom, mapSize*float64(i)/mapRings)
		x, y := d.place(value, value)
		d.text(x, bottom+18, "middle", fmt.Sprintf("%.3g", value))
		d.text(left-8, y+4, "end", fmt.Sprintf("%.3g", value))
	}
	d.line(`<path d="M%.1f %.1fV%.1fH%.1f" fill="none" stroke="#333"/>`, left, top, bottom, right)
	d.line(`<circle cx="%.1f" cy="%.1f" r="4" fill="#333"/>`, left, bottom)
	across, up := "x, computation", "y, data"
	if d.table.Map == "seconds" {
		across, up = "seconds waiting and running", "seconds of stage-in"
	}
	d.text((left+right)/2, bottom+40, "middle", across)
	d.text(left, top-16, "start", up)
	d.text(left-8, bottom+18, "end", "job")
	d.text(
		right, bottom+60, "end",
		"z, availability: blue 0 (stays up) to orange 1 (does not); filled: chosen",
	)
}

// shade is z as a colour between blue and orange, which people who cannot tell
// red from green tell apart.
func shade(z *float64) string {
	if z == nil {
		return "#888888"
	}
	f := min(max(*z, 0), 1)
	mix := func(a, b float64) int { return int(math.Round(a + (b-a)*f)) }
	return fmt.Sprintf("#%02x%02x%02x", mix(0x00, 0xe6), mix(0x72, 0x9f), mix(0xb2, 0x00))
}

func (d *drawing) sites() {
	anyAwarded := false
	for _, row := range d.table.Rows {
		anyAwarded = anyAwarded || row.Awarded > 0
	}
	for _, row := range d.table.Rows {
		if row.Rank < 1 {
			continue
		}
		x, y := d.place(d.table.point(row))
		fill, colour := "#fff", shade(row.Z)
		if row.Awarded > 0 || !anyAwarded && row.Rank == 1 {
			fill = colour
		}
		d.line(`<g><title>%s</title>`, escaped(describe(row)))
		d.line(
			`<circle cx="%.1f" cy="%.1f" r="%.0f" fill="%s" stroke="%s" stroke-width="3"/>`, x, y, mapDot,
			fill, colour,
		)
		if row.Rank <= 12 {
			d.text(x+11, y-6, "start", fmt.Sprintf("%d %s", row.Rank, label(row)))
		}
		d.line(`</g>`)
	}
}

// label is a site's name, or the end of its ID where it has none.
func label(row OfferRow) string {
	if row.Name != "" {
		return row.Name
	}
	return string(row.Site[max(0, len(row.Site)-8):])
}

func describe(row OfferRow) string {
	text := label(row)
	if row.X != nil && row.Y != nil && row.Z != nil && row.Distance != nil {
		text += fmt.Sprintf(
			": x %.3g, y %.3g, z %.3g, distance %.3g", *row.X, *row.Y, *row.Z, *row.Distance,
		)
	}
	if row.Behind != "" {
		text += "; " + row.Behind
	}
	return text
}

func (d *drawing) refusals() {
	x, y, more := mapLeft+mapSize+30, mapTop, 0
	for _, row := range d.table.Rows {
		if row.Rank > 0 {
			continue
		}
		if y > mapTop+mapListed*22 {
			more++
			continue
		}
		d.line(`<circle cx="%.1f" cy="%.1f" r="5" fill="none" stroke="#888" stroke-width="2"/>`, x, y-4)
		d.text(x+12, y, "start", label(row)+": "+row.Refusal)
		y += 22
	}
	if more > 0 {
		d.text(x+12, y, "start", fmt.Sprintf("and %d more", more))
	}
}
