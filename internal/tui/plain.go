package tui

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
)

// plainColumns bounds plain lines, which are read in a file or by a program.
const plainColumns = 1 << 10

// Print writes what the screen would show as plain lines.
func (t SiteTop) Print(out io.Writer, f SiteFacts, now time.Time) error {
	return printPlain(out, &siteSubject{top: t, facts: f}, now)
}

// Print writes what the screen would show as plain lines.
func (t JobsTop) Print(out io.Writer, f JobsFacts, now time.Time) error {
	return printPlain(out, &jobsSubject{top: t, facts: f}, now)
}

// Print writes what the screen would show as plain lines.
func (t FleetTop) Print(out io.Writer, f FleetFacts, now time.Time) error {
	return printPlain(out, &fleetSubject{top: t, facts: f}, now)
}

func printPlain(out io.Writer, of subject, now time.Time) error {
	b := of.body(now, plainColumns)
	rows, _ := drawSections(b.sections, plainColumns, "")
	for _, line := range append(paintAll(b.head, plainColumns), rows...) {
		if _, err := fmt.Fprintln(out, strings.TrimRight(ansi.Strip(line), " ")); err != nil {
			return err
		}
	}
	return nil
}
