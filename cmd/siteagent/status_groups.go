package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// controllerLines say who the controller of the domain is, where there could be one.
func controllerLines(s view.AgentStatus) []line {
	const three = 3 // fewer members have none, as ever
	c := s.Controller
	if c == nil || len(c.Members) == 0 && s.Members < three {
		return nil
	}
	return []line{{"controller", controllerText(*c, s.Site)}}
}

// gatewayLines say who holds the links with other domains, where that could be another one.
func gatewayLines(s view.AgentStatus) []line {
	if s.Gateway == nil || s.Gateway.Here && len(s.Gateway.Deputies) == 0 {
		return nil
	}
	return []line{{"gateway", gatewayText(*s.Gateway, s.Site)}}
}

// gatewayText says who does, until when if it stands in, and who may stand in.
func gatewayText(g view.Gateway, self grid.SiteID) string {
	text := "none is heard of"
	switch {
	case g.Here:
		text = "this site"
	case g.Acting != "":
		text = nameOr(g.ActingName, string(g.Acting))
	}
	if !g.Until.IsZero() {
		text += ", which stands in until " + g.Until.Local().Format(time.DateTime)
	}
	var others []string
	for _, d := range g.Deputies {
		name := nameOr(d.Name, string(d.Site))
		if d.Site == self {
			name = "this site"
		}
		if d.Away {
			name += " (away)"
		}
		if !d.Until.IsZero() {
			name += " until " + d.Until.Local().Format(time.DateTime)
		}
		others = append(others, name)
	}
	if len(others) > 0 {
		text += "; may stand in: " + strings.Join(others, ", ")
	}
	return text
}

// controllerText says who acts, with whom, or why nobody does.
func controllerText(c view.Controller, self grid.SiteID) string {
	var others []string
	for _, m := range c.Members {
		name := nameOr(m.Name, string(m.Site))
		switch {
		case m.Site == c.Acting:
			continue
		case m.Site == self:
			name = "this site"
		case m.Away:
			name += " (away)"
		}
		others = append(others, name)
	}
	slices.Sort(others)
	text := "this site"
	switch {
	case c.Acting == "":
		text = "none: " + c.Why + refusalsText(c.Refusals, "takes no part")
	case !c.Here:
		text = nameOr(c.ActingName, string(c.Acting))
	}
	if len(others) > 0 {
		text += "; members: " + strings.Join(others, ", ")
	}
	if c.Bookings > 0 {
		text += fmt.Sprintf("; watches %s at %s", plural(c.Bookings, "promise", "promises"),
			plural(c.Sites, "site", "sites"))
	}
	for _, f := range c.Failed {
		what := "has failed"
		if f.Partly {
			what = "has less than it has promised"
		}
		text += fmt.Sprintf("; %s %s, %d of its %d move", nameOr(f.Name, string(f.Site)), what,
			f.Leaving, f.Bookings)
		if f.Stuck > 0 {
			text += fmt.Sprintf(" and %d have nowhere to go", f.Stuck)
		}
	}
	if c.Notice != "" {
		text += "; " + c.Notice
	}
	return text
}

// standbyLines say who goes on with the own jobs, and with whose jobs this site goes on.
func standbyLines(s view.AgentStatus) (lines []line) {
	var others []string
	for _, g := range s.Standbys {
		if g.Owner == s.Site {
			lines = append(lines, line{"standbys", standbysText(g, s.Site)})
			continue
		}
		text := nameOr(g.OwnerName, string(g.Owner))
		switch {
		case g.Here:
			text += fmt.Sprintf(" (away; %s)", plural(g.Open, "job goes on from here",
				"jobs go on from here"))
		case g.Open > 0:
			text += fmt.Sprintf(" (%s)", plural(g.Open, "job", "jobs"))
		}
		others = append(others, text)
	}
	if len(others) > 0 {
		lines = append(lines, line{"stands by", "for " + strings.Join(others, ", ")})
	}
	return lines
}

// standbysText names the standbys of the own jobs, and who acts if that is one of them.
func standbysText(g view.Group, self grid.SiteID) string {
	var names []string
	acting := "nobody"
	for _, m := range g.Members {
		name := nameOr(m.Name, string(m.Site))
		if m.Site == g.Acting {
			acting = name
		}
		if m.Site == self {
			continue
		}
		if m.Away {
			name += " (away)"
		}
		names = append(names, name)
	}
	slices.Sort(names)
	text := strings.Join(names, ", ")
	if len(names) == 0 {
		text = "none yet"
	}
	if len(names) < g.Wanted {
		text += refusalsText(g.Refusals, "does not stand by")
	}
	if g.Acting != self {
		text += "; " + acting + " acts for your jobs"
	}
	return text
}

// refusalsText says why some of those asked do not what they were asked for.
func refusalsText(all []view.GroupRefusal, what string) string {
	const most = 3
	var said []string
	for _, r := range all[:min(len(all), most)] {
		said = append(said, nameOr(r.Name, string(r.Site))+" "+what+" ("+r.Reason+")")
	}
	if more := len(all) - most; more > 0 {
		said = append(said, plural(more, "more does not", "more do not"))
	}
	if len(said) == 0 {
		return ""
	}
	return "; " + strings.Join(said, ", ")
}

func nameOr(name, id string) string {
	if name != "" {
		return name
	}
	return id
}
