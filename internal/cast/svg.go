package main

import (
	"fmt"
	"html"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	charWidth  = 7.8 // pixels; each line is fitted to it, whatever font the reader has
	lineHeight = 18
	padding    = 14
)

// The colours follow the reader's preference.
const style = `text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,` +
	`"DejaVu Sans Mono",monospace;fill:#1f2328;white-space:pre}.m{fill:#116329;font-weight:bold}` +
	`rect{fill:#f6f8fa;stroke:#d1d9e0}` +
	`@media(prefers-color-scheme:dark){text{fill:#e6edf3}.m{fill:#7ee787}` +
	`rect{fill:#0d1117;stroke:#3d444d}}`

// render draws the film; marked lines stand out.
func (f *film) render(title string, marked func(line string) bool) string {
	var b strings.Builder
	width := int(float64(f.columns)*charWidth) + 2*padding
	height := f.rows*lineHeight + 2*padding
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" `, width, height)
	fmt.Fprintf(&b, `width="%d" height="%d" role="img">`+"\n", width, height)
	title = html.EscapeString("Recording of " + title)
	fmt.Fprintf(&b, "<title>%s</title>\n<style>%s</style>\n", title, style)
	fmt.Fprintf(&b, `<rect x=".5" y=".5" width="%d" height="%d" rx="8"/>`+"\n", width-1, height-1)
	for _, s := range f.stills {
		f.renderStill(&b, s, marked(s.text))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// renderStill draws one line. Without animation only the last screen is visible.
func (f *film) renderStill(b *strings.Builder, s still, marked bool) {
	text := strings.TrimLeft(s.text, " ")
	indent := utf8.RuneCountInString(s.text) - utf8.RuneCountInString(text)
	fmt.Fprintf(b, `<text x="%s" y="%d" textLength="%s" xml:space="preserve"`,
		pixels(padding+float64(indent)*charWidth), padding+s.row*lineHeight+lineHeight*3/4,
		pixels(float64(utf8.RuneCountInString(text))*charWidth))
	if marked {
		b.WriteString(` class="m"`)
	}
	if s.until < f.end {
		b.WriteString(` visibility="hidden"`)
	}
	fmt.Fprintf(b, ">%s%s</text>\n", html.EscapeString(text), f.animate(s))
}

// animate shows a still between its times, again and again. One that is always
// there needs no animation.
func (f *film) animate(s still) string {
	values, times := []string{}, []string{}
	add := func(value string, at time.Duration) {
		values = append(values, value)
		times = append(times, strconv.FormatFloat(at.Seconds()/f.end.Seconds(), 'f', 4, 64))
	}
	if s.from > 0 {
		add("hidden", 0)
	}
	add("visible", s.from)
	if s.until < f.end {
		add("hidden", s.until)
	}
	if len(values) == 1 {
		return ""
	}
	whole := strconv.FormatFloat(f.end.Seconds(), 'f', 2, 64)
	return fmt.Sprintf(`<animate attributeName="visibility" dur="%ss" repeatCount="indefinite" `+
		`calcMode="discrete" values="%s" keyTimes="%s"/>`, whole,
		strings.Join(values, ";"), strings.Join(times, ";"))
}

func pixels(v float64) string { return strconv.FormatFloat(v, 'f', -1, 32) }
