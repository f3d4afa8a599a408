package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

// figure is one row of the table.
type figure struct {
	Figure string  `json:"figure"`
	Value  float64 `json:"value"` // the median where there is a series
	Unit   string  `json:"unit"`
	summary

	Raw      string   `json:"raw,omitempty"`       // the limit that it is compared with, in words
	RawValue float64  `json:"raw_value,omitempty"` // in the figure's unit
	Ratio    *float64 `json:"ratio,omitempty"`     // value to raw value
	Goal     string   `json:"goal,omitempty"`      // empty: no goal, shown for comparison
	Met      *bool    `json:"met,omitempty"`
	Note     string   `json:"note,omitempty"` // what one should know, such as why there is no value
}

// report holds the figures of a run.
type report struct {
	Header  header   `json:"header"`
	Figures []figure `json:"figures"`
}

func (r *report) add(f figure) *figure {
	r.Figures = append(r.Figures, f)
	return &r.Figures[len(r.Figures)-1]
}

// find gives a figure by its name, or nil.
func (r *report) find(name string) *figure {
	for i := range r.Figures {
		if r.Figures[i].Figure == name {
			return &r.Figures[i]
		}
	}
	return nil
}

// missing is a row without a value, and why, in one line that fits into a table.
func (r *report) missing(name string, why error) {
	const widest = 120 // runes
	note, _, _ := strings.Cut(why.Error(), "\n")
	if short := []rune(note); len(short) > widest {
		note = string(short[:widest]) + "..."
	}
	r.add(figure{Figure: name, Note: strings.ReplaceAll(note, "|", "/")})
}

// spanned is a figure from a series of durations, by its median.
func spanned(name string, s sample, unit time.Duration) figure {
	names := map[time.Duration]string{time.Microsecond: "µs", time.Millisecond: "ms"}
	sum := s.in(unit)
	return figure{Figure: name, Value: sum.P50, Unit: names[unit], summary: sum}
}

// against sets a figure beside its raw limit.
func (f *figure) against(raw string, value float64) *figure {
	f.Raw, f.RawValue = raw, value
	if value > 0 {
		ratio := f.Value / value
		f.Ratio = &ratio
	}
	return f
}

// wants sets a goal.
func (f *figure) wants(goal string, met bool) {
	if f.N > 0 || f.Value > 0 {
		f.Met = &met
	}
	f.Goal = goal
}

// ratioAtMost wants that the figure is at most so many times its raw limit.
func (f *figure) ratioAtMost(times float64) {
	f.wants(fmt.Sprintf("<= %g x raw", times), f.Ratio != nil && *f.Ratio <= times)
}

func (f *figure) atMost(limit float64) {
	f.wants(fmt.Sprintf("<= %g %s", limit, f.Unit), f.Value <= limit)
}

func (f *figure) atLeast(limit float64) {
	f.wants(fmt.Sprintf(">= %g %s", limit, f.Unit), f.Value >= limit)
}

func (r *report) write(path string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("write figures: %w", err)
	}
	err = os.WriteFile(path, append(text, '\n'), 0o644) //nolint:gosec // G306: figures are public
	if err != nil {
		return fmt.Errorf("write figures: %w", err)
	}
	return nil
}

func readReport(path string) (*report, error) {
	text, err := os.ReadFile(path) //nolint:gosec // G703: the caller names the file
	if err != nil {
		return nil, fmt.Errorf("read figures: %w; BENCH_JSON names the file of an earlier run", err)
	}
	r := &report{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("read figures of %s: %w", path, err)
	}
	return r, nil
}
