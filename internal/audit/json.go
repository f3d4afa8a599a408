package audit

import (
	"encoding/json"
	"fmt"
)

// told is a report as programs read it: tasks and attempts by their names, times in seconds.
type told struct {
	Clean   bool         `json:"clean"`
	Total   JobReport    `json:"total"`
	Jobs    []JobReport  `json:"jobs"`
	Lost    []string     `json:"lost"`
	Doubled []toldDouble `json:"doubled"`
	Stuck   []string     `json:"stuck"`
	Missing []string     `json:"missing"`
	Late    []toldLate   `json:"late"`
	Unended int          `json:"unended"`
	Strays  int          `json:"strays"`
	Unseen  int          `json:"unseen"`
	Notes   []string     `json:"notes"`
}

type toldDouble struct {
	A              string  `json:"a"`
	B              string  `json:"b"`
	SiteA          string  `json:"site_a"`
	SiteB          string  `json:"site_b"`
	OverlapSeconds float64 `json:"overlap_seconds"`
}

type toldLate struct {
	Task         string  `json:"task"`
	StartSeconds float64 `json:"start_seconds"`
	EndSeconds   float64 `json:"end_seconds"`
	Said         bool    `json:"said"`
}

// MarshalJSON implements json.Marshaler. Lists that are empty are no null.
func (r Report) MarshalJSON() ([]byte, error) {
	t := told{
		Clean: r.Clean(), Total: r.Total, Jobs: append([]JobReport{}, r.Jobs...),
		Lost: names(r.Lost), Doubled: []toldDouble{}, Stuck: names(r.Stuck),
		Missing: names(r.Missing), Late: []toldLate{}, Unended: r.Unended, Strays: r.Strays,
		Unseen: r.Unseen, Notes: append([]string{}, r.Notes...),
	}
	for _, d := range r.Doubled {
		t.Doubled = append(t.Doubled, toldDouble{
			d.A.String(), d.B.String(), d.SiteA, d.SiteB, d.Overlap.Seconds(),
		})
	}
	for _, l := range r.Late {
		t.Late = append(t.Late, toldLate{
			l.Task.String(), l.Start.Seconds(), l.End.Seconds(), l.Said,
		})
	}
	return json.Marshal(t)
}

func names[T fmt.Stringer](ids []T) []string {
	texts := []string{}
	for _, id := range ids {
		texts = append(texts, id.String())
	}
	return texts
}
