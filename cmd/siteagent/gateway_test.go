package main

import (
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/view"
)

// The status and the list of domains say who acts as gateway, until when a deputy may, and who
// may stand in; where nobody but this site could, nothing.
func TestWhoActsAsGatewayIsShown(t *testing.T) {
	until := view.At(time.Date(2026, 12, 3, 14, 0, 0, 0, time.Local))
	const ends = "2026-12-03 14:00:00"
	deputies := []view.Deputy{
		{Site: "b", Name: "lab2", Until: until}, {Site: "c", Away: true}, {Site: "self"},
	}
	for _, c := range []struct {
		gateway *view.Gateway
		want    []string // none: there is no line
	}{
		{nil, nil},
		{&view.Gateway{Acting: "self", Here: true}, nil},
		{&view.Gateway{Acting: "self", Here: true, Deputies: deputies}, []string{
			"this site; may stand in: lab2 until " + ends + ", c (away), this site",
		}},
		{&view.Gateway{Acting: "b", ActingName: "lab2", Until: until}, []string{
			"lab2, which stands in until " + ends,
		}},
		{&view.Gateway{Deputies: deputies[1:2]}, []string{
			"none is heard of; may stand in: c (away)",
		}},
	} {
		lines := gatewayLines(view.AgentStatus{Site: "self", Gateway: c.gateway})
		if len(lines) != len(c.want) || len(lines) == 1 && lines[0][1] != c.want[0] {
			t.Errorf("%+v: %v, want %q", c.gateway, lines, c.want)
		}
		var out strings.Builder
		err := printDomains(&out, view.Links{
			Domain: "lab", Where: "lab1", Gateway: c.gateway,
		}, time.Now())
		if shown := strings.Contains(out.String(), "gateway of domain lab: "); err != nil ||
			shown != (len(c.want) > 0) {
			t.Errorf("%+v: %v\n%s", c.gateway, err, out.String())
		}
	}
}
