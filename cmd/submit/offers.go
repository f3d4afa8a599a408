package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/mrsmesh/mrsmesh/internal/view"
)

// showOffers prints each site's answer, and beside it what would change it.
func (a *app) showOffers(offers view.OfferTable) error {
	r := result{value: offers}
	for _, row := range offers.Rows {
		r.names = append(r.names, string(row.Site))
	}
	r.table = func(t *table) {
		t.row("RANK", "SITE", "DISTANCE", "X", "Y", "RISK", "SECONDS", "START", "FINISH", "STAYS",
			"TASKS", "ANSWER", "|FURTHER", "|FAULTS", "|ID")
		for _, row := range offers.Rows {
			rank, answer, tasks := "", row.Refusal, ""
			if row.Rank > 0 {
				rank, answer, tasks = strconv.Itoa(row.Rank), "offers", strconv.FormatUint(
					uint64(row.TasksNow), 10,
				)
			}
			if row.Rank > 1 && row.Behind != "" {
				answer = "offers; " + row.Behind
			}
			if row.Awarded > 0 {
				answer += fmt.Sprintf("; has %d %s of this job", row.Awarded, plural(row.Awarded, "task"))
			}
			if row.Counterfactual != "" {
				answer += "; fits if the job asks for " + row.Counterfactual
			}
			if !row.CouldPromise.IsZero() {
				answer += "; earliest it could promise: " + a.local(row.CouldPromise)
			}
			start := row.Start
			if start.IsZero() {
				start = row.EarliestStart
			}
			t.row(rank, nameOf(row.Name, row.Site), number(row.Distance), number(row.X), number(row.Y),
				view.Percent(row.Z), number(row.Seconds), a.local(start), a.local(row.Finish),
				view.Percent(row.Kept), tasks, answer, "|"+further(row),
				"|"+strconv.Itoa(row.FaultIndex), "|"+string(row.Site))
		}
	}
	if err := a.show(r); err != nil {
		return err
	}
	a.say("%d of %d sites answered", offers.Answered, max(offers.Members, offers.Answered))
	if site, at := earliest(offers); !at.IsZero() {
		a.say("the earliest that could be promised: %s, by %s", a.local(at), clean(site))
	}
	for _, text := range offers.Counterfactuals {
		a.say("if the job asks for %s", clean(text))
	}
	return nil
}

// further are a site's places on the job's axes beyond x, y and z, and what is
// not known of it.
func further(row view.OfferRow) string {
	var parts []string
	for _, f := range row.Further {
		parts = append(parts, fmt.Sprintf("%s %.3g", f.Dimension, f.Value))
	}
	if len(row.LeftOut) > 0 {
		parts = append(parts, "without "+strings.Join(row.LeftOut, ", "))
	}
	return strings.Join(parts, ", ")
}

// earliest is the earliest time that a site which refused could promise.
func earliest(offers view.OfferTable) (site string, at view.Time) {
	for _, row := range offers.Rows {
		if !row.CouldPromise.IsZero() && (at.IsZero() || row.CouldPromise.Before(at.Time)) {
			site, at = nameOf(row.Name, row.Site), row.CouldPromise
		}
	}
	return site, at
}

// writeMap draws the virtual map into a file, if one is named.
func writeMap(path string, offers view.OfferTable) error {
	if path == "" {
		return nil
	}
	var drawn bytes.Buffer
	if err := offers.WriteMap(&drawn); err != nil {
		return err
	}
	err := os.WriteFile(path, drawn.Bytes(), 0o644) //nolint:gosec // a drawing, for anyone to read
	if err != nil {
		return fmt.Errorf("draw the map: %w", err)
	}
	return nil
}
