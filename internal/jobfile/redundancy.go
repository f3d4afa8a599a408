package jobfile

import (
	"cmp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// redundancy reads one of the keys that say how often each task runs, and what has to agree.
func (p *parser) redundancy(key string, node *yaml.Node) bool {
	r := &p.file.Redundancy
	switch key {
	case "replicas":
		text, ok := p.text(node, key)
		if !ok {
			break
		}
		given, err := grid.ParseReplicas(text)
		if err != nil {
			p.fail(node.Line, key, "write it like 2",
				"want auto, or a whole number from 1 to %d, have %q", grid.MaxReplicas, text)
			break
		}
		r.Replicas, r.Auto = given.Replicas, given.Auto
	case "agreement":
		p.wholeNumber(node, key, &r.Agreement, 1, grid.MaxReplicas)
	case "verify":
		r.Verify = p.number(node, key, "results in one, such as .02")
	default:
		return p.encrypt(key, node)
	}
	return true
}

// checkRedundancy refuses what does not go together.
func (p *parser) checkRedundancy(seen map[string]int) {
	f := p.file
	if f.Redundancy == (grid.Redundancy{}) || f.Spec.Kind == grid.KindReservation {
		return // of a reservation the keys were refused already
	}
	job := grid.Job{
		Spec: f.Spec, Count: max(f.Count, uint32(len(f.Items)), 1), Split: f.Split, Flood: f.Flood,
		Redundancy: f.Redundancy,
	}
	if f.Reservation.Text != "" {
		job.Spec.Reservation = grid.JobID(f.Reservation.Text)
	}
	err := job.ValidateRedundancy()
	if err == nil {
		return
	}
	text := strings.TrimPrefix(err.Error(), grid.ErrInvalid.Error()+": ")
	field, problem, _ := strings.Cut(text, ": ")
	field, _, _ = strings.Cut(field, ",") // the first of several
	for _, other := range []string{"replicas", "verify", "agreement"} {
		if _, given := seen[field]; !given {
			field = other
		}
	}
	p.fail(seen[field], cmp.Or(field, "replicas"), "change or remove it", "%s", problem)
}
