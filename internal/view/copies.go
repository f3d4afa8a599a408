package view

import (
	"fmt"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// CopyView is one of the copies in which a task runs.
type CopyView struct {
	Number   uint32      `json:"number"` // from 1
	ID       string      `json:"id"`     // the name by which sites know it, JOB.INDEX
	Phase    Phase       `json:"phase"`
	Site     grid.SiteID `json:"site,omitempty"`
	SiteName string      `json:"site_name,omitempty"`
	Code     *int        `json:"code,omitempty"`   // once it has a result
	Digest   string      `json:"digest,omitempty"` // of its result: of its end, outputs and stdout
	// agrees, outvoted, differs, unconfirmed: others are still awaited; result: nobody was to
	// confirm it; empty: it has no result
	Vote string `json:"vote,omitempty"`
}

// digestShown counts the digits of a digest that people are shown.
const digestShown = 12

// Line is a sentence about one of so many copies: "copy 2 of 3 on attic: agrees".
func (c CopyView) Line(of int) string {
	text := fmt.Sprintf("copy %d of %d", c.Number, of)
	name := c.SiteName
	if name == "" {
		name = string(c.Site)
	}
	if name != "" && (c.Phase != PhaseWaiting || c.Vote != "") {
		text += " on " + name
	}
	switch {
	case c.Vote != "":
		short := c.Digest[:min(len(c.Digest), digestShown)]
		return fmt.Sprintf("%s: %s, digest %s", text, c.Vote, short)
	case c.Phase == PhaseWaiting:
		return text + ": waits for a site that has no other copy"
	default:
		return text + ": " + string(c.Phase)
	}
}

// CopyLines are the sentences about the copies of a task; none where there is one copy only.
func (t TaskView) CopyLines() []string {
	if len(t.Copies) < 2 {
		return nil
	}
	var lines []string
	for _, c := range t.Copies {
		lines = append(lines, t.ID+", "+c.Line(len(t.Copies)))
	}
	return lines
}
