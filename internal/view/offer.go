package view

import (
	"fmt"
	"strconv"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// OfferTable lists how the sites answered the last announcement of a job, nearest
// first, refusals behind.
type OfferTable struct {
	Job             grid.JobID `json:"job,omitempty"`   // empty for a plan
	Asked           Time       `json:"asked,omitzero"`  // when it was announced
	Round           uint32     `json:"round"`           // announcements so far
	Members         uint32     `json:"members"`         // sites seen in the last minute
	Answered        uint32     `json:"answered"`        // of them, those that answered
	Never           bool       `json:"never"`           // every one of them said it never fits
	Map             string     `json:"map,omitempty"`   // in which map distance is measured
	Counterfactuals []string   `json:"counterfactuals"` // "at most 2.0 GiB of memory: 5 more sites"
	// what this domain and each linked one answered, if any was asked: "own domain: full"
	Domains []string   `json:"domains,omitempty"`
	Rows    []OfferRow `json:"rows"` // offers by rank, then refusals by site
}

// ID names the table among the rounds of its job.
func (t OfferTable) ID() string { return strconv.FormatUint(uint64(t.Round), 10) }

// OfferRow is one site's answer.
type OfferRow struct {
	Site         grid.SiteID `json:"site"`
	Name         string      `json:"name,omitempty"`
	Rank         int         `json:"rank,omitempty"` // 1 = nearest; left out for refusals
	X            *float64    `json:"x,omitempty"`
	Y            *float64    `json:"y,omitempty"`
	Z            *float64    `json:"z,omitempty"`
	Distance     *float64    `json:"distance,omitempty"`
	Seconds      *float64    `json:"seconds,omitempty"` // wait, stage-in and run together
	WaitSeconds  float64     `json:"wait_seconds,omitempty"`
	StageSeconds float64     `json:"stage_seconds,omitempty"` // moving what is not yet there
	RunSeconds   float64     `json:"run_seconds,omitempty"`
	Further      []Further   `json:"further,omitempty"` // on the job's axes beyond x, y and z
	// terms of the distance that nobody knows here
	LeftOut       []string `json:"left_out,omitempty"`
	Behind        string   `json:"behind,omitempty"` // why it is not the nearest
	EarliestStart Time     `json:"earliest_start,omitzero"`
	Start         Time     `json:"expected_start,omitzero"` // when the program would begin
	Finish        Time     `json:"expected_finish,omitzero"`
	// probability that the site stays until then: 1 - z
	Kept *float64 `json:"kept,omitempty"`
	// refusals for the time's sake: the earliest start (of a fixed one) or end (of a deadline) it
	// could promise
	CouldPromise Time `json:"could_promise,omitzero"`
	Firm         bool `json:"firm,omitempty"`
	// how many tasks of the array could start now
	TasksNow       uint32      `json:"tasks_now,omitempty"`
	Awarded        uint32      `json:"awarded,omitempty"` // how many tasks went to this site
	FaultIndex     int         `json:"fault_index,omitempty"`
	Reason         grid.Reason `json:"reason,omitempty"`         // refusals: the stable number
	Never          bool        `json:"never,omitempty"`          // never fits, rather than not now
	Refusal        string      `json:"refusal,omitempty"`        // refusals: the sentence
	Counterfactual string      `json:"counterfactual,omitempty"` // what would have to change
}

// Further is a site's place on an axis beyond x, y and z.
type Further struct {
	Dimension string  `json:"dimension"`
	Value     float64 `json:"value"`
}

// FromOffer makes the row of an offer. rank counts from 1.
func FromOffer(o grid.Offer, name string, rank int) OfferRow {
	p := o.Parts
	seconds := (p.Wait + p.StageIn + p.Run).Seconds()
	row := OfferRow{
		Site: o.Site, Name: name, Rank: rank, X: &p.X, Y: &p.Y, Z: &p.Z, Distance: &p.Distance,
		Seconds: &seconds, WaitSeconds: p.Wait.Seconds(), StageSeconds: p.StageIn.Seconds(),
		RunSeconds: p.Run.Seconds(), Firm: o.Firm, TasksNow: o.TasksNow,
	}
	for _, c := range p.Further {
		if c.Known {
			row.Further = append(row.Further, Further{Dimension: c.Dimension.String(), Value: c.Value})
		} else {
			row.LeftOut = append(row.LeftOut, c.Dimension.String())
		}
	}
	if p.PotentialUnknown {
		row.LeftOut = append(row.LeftOut, "potential of the data's holder")
	}
	return row
}

// Behind says on which axis a site is farther than the nearest one; "" for
// dimension 0.
func Behind(d grid.Dimension, value, nearest float64) string {
	if d == 0 {
		return ""
	}
	if d == grid.Availability { // it counts what is missing of it
		return fmt.Sprintf("likely to leave: %s, the nearest: %s", Percent(&value), Percent(&nearest))
	}
	return fmt.Sprintf("%s %.3g, the nearest has %.3g", d, value, nearest)
}

// FromRefusal makes the row of a refusal, with the counterfactual where the
// reason has an amount.
func FromRefusal(site grid.SiteID, name string, r grid.Refusal) OfferRow {
	return OfferRow{
		Site: site, Name: name, Reason: r.Reason, Never: r.Never,
		Refusal: r.Explain(), Counterfactual: counterfactual(r),
	}
}
