package view

import (
	"fmt"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// FaultRow is one entry of the fault-index ledger.
type FaultRow struct {
	Site   grid.SiteID   `json:"site"`
	Name   string        `json:"name,omitempty"`
	Index  int           `json:"index"`            // in whole faults, what others say left out
	Shared float64       `json:"shared,omitempty"` // what others say, as faults that count besides
	Says   int           `json:"says,omitempty"`   // others that say they have tried the site
	Causes []CountedWord `json:"causes,omitempty"` // those that it made up for included
	Last   Time          `json:"last,omitzero"`    // fault
}

// CountedWord is a word with how often it applies.
type CountedWord struct {
	Word  string `json:"word"`
	Count uint32 `json:"count"`
}

// IsEmpty reports whether nothing is known against the site.
func (f FaultRow) IsEmpty() bool {
	return f.Index == 0 && f.Shared == 0 && len(f.Causes) == 0
}

// Text says it in words: "2 lost leases, last 3h ago; others say 0.4".
func (f FaultRow) Text(now time.Time) string {
	var parts []string
	for _, c := range f.Causes {
		word := c.Word
		if c.Count != 1 {
			word = manyOf(word)
		}
		parts = append(parts, fmt.Sprintf("%d %s", c.Count, word))
	}
	if !f.Last.IsZero() {
		parts = append(parts, "last "+roughly(now.Sub(f.Last.Time))+" ago")
	}
	text := strings.Join(parts, ", ")
	if f.Shared > 0 {
		if text != "" {
			text += "; "
		}
		text += fmt.Sprintf("others say %.1f", f.Shared)
	}
	return text
}

func manyOf(word string) string {
	first, rest, more := strings.Cut(word, " of ")
	if first += "s"; more {
		first += " of " + rest
	}
	return first
}

// roughly is a span in its largest unit.
func roughly(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d >= 2*day:
		return fmt.Sprintf("%dd", d/day)
	case d >= time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d >= time.Minute:
		return fmt.Sprintf("%dm", d/time.Minute)
	default:
		return fmt.Sprintf("%ds", max(d, 0)/time.Second)
	}
}
