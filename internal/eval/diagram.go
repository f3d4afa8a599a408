package eval

import (
	"bytes"
	"fmt"
)

// reliabilitySVG draws a reliability diagram: for each bin a dot whose area grows with
// its queries, over the line on which promise and outcome are the same.
func reliabilitySVG(r CalibrateResult) []byte {
	const size, margin = 400.0, 50.0
	x := func(p float64) float64 { return margin + p*size }
	y := func(p float64) float64 { return margin + (1-p)*size }
	var b bytes.Buffer
	line := func(x1, y1, x2, y2 float64, style string) {
		fmt.Fprintf(&b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" %s/>`+"\n", x1, y1, x2, y2, style)
	}
	text := func(x, y float64, anchor, words string) {
		fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>`+"\n", x, y, anchor, words)
	}
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" font-family="sans-serif" font-size="12">`+"\n",
		size+2*margin, size+2*margin)
	fmt.Fprintf(&b, `<rect width="%.0f" height="%.0f" fill="white"/>`+"\n", size+2*margin,
		size+2*margin)
	for i := range reliabilityBins + 1 {
		p := float64(i) / reliabilityBins
		line(x(p), y(0), x(p), y(1), `stroke="#dddddd"`)
		line(x(0), y(p), x(1), y(p), `stroke="#dddddd"`)
		text(x(p), y(0)+16, "middle", fmt.Sprintf("%.1f", p))
		text(x(0)-6, y(p)+4, "end", fmt.Sprintf("%.1f", p))
	}
	line(x(0), y(0), x(1), y(1), `stroke="#888888" stroke-dasharray="4 4"`)
	line(x(0.05), y(0), x(1), y(0.95), `stroke="#cccccc"`)
	line(x(0), y(0.05), x(0.95), y(1), `stroke="#cccccc"`)
	for _, bin := range r.Bins {
		if bin.Queries == 0 {
			continue
		}
		share := float64(bin.Queries) / float64(max(r.Queries, 1))
		fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="%.1f" fill="#1f5fa8" fill-opacity="0.8">`+
			`<title>%d queries: predicted %.3f, actual %.3f</title></circle>`+"\n",
			x(bin.Predicted), y(bin.Actual), 3+9*share, bin.Queries, bin.Predicted, bin.Actual)
	}
	text(x(0.5), y(0)+36, "middle", "predicted probability to stay available")
	fmt.Fprintf(&b, `<text x="14" y="%.1f" text-anchor="middle" transform="rotate(-90 14 %.1f)">`+
		"share that did</text>\n", y(0.5), y(0.5))
	text(x(0.5), 24, "middle",
		fmt.Sprintf("%d machines, %d queries, Brier score %.4f (constant %.4f, equation 9: %.4f)",
			r.Machines, r.Queries, r.Brier, r.BrierConstant, r.BrierPaper))
	text(x(0.5), 40, "middle", "grey lines: 0.05 off")
	b.WriteString("</svg>\n")
	return b.Bytes()
}
