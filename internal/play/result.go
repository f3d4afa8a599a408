package play

import (
	"errors"
	"fmt"

	"github.com/mrsmesh/mrsmesh/internal/scenario"
)

// Result is the outcome of a scenario as programs read it.
type Result struct {
	Scenario string         `json:"scenario"` // as it was named
	Met      bool           `json:"met"`      // all that the scenario expects came so
	Unmet    []string       `json:"unmet"`    // what did not
	Jobs     []JobResult    `json:"jobs"`     // in the order of submission
	Doubled  int            `json:"doubled"`  // pairs of attempts of one task that ran at one time
	Messages int            `json:"messages"` // sent, a broadcast once for each receiver
	Sites    map[string]int `json:"sites"`    // what sites reported, by event
	Brokers  map[string]int `json:"brokers"`  // what submitters reported, by event
	Hash     string         `json:"hash"`     // of all that happened: same text, same hash
}

// JobResult is the outcome of one job.
type JobResult struct {
	Name   string   `json:"name"`
	TookS  *float64 `json:"took_s"` // seconds from submission to end; null: it has not ended
	Tasks  int      `json:"tasks"`
	Done   int      `json:"done"`
	Failed int      `json:"failed"`
	Lost   int      `json:"lost"`  // have not ended
	Moves  int      `json:"moves"` // attempts that were given up for another one
}

// ResultOf puts together what came of a scenario. unmet comes from Expectations.Check.
func ResultOf(name string, o scenario.Outcome, unmet error) Result {
	r := Result{
		Scenario: name, Met: unmet == nil, Unmet: []string{}, Jobs: []JobResult{}, Doubled: o.Doubled,
		Messages: o.Messages, Sites: o.Sites, Brokers: o.Brokers, Hash: fmt.Sprintf("%016x", o.Hash),
	}
	for _, err := range parts(unmet) {
		r.Unmet = append(r.Unmet, err.Error())
	}
	for _, j := range o.Jobs {
		one := JobResult{
			Name: j.Name, Tasks: j.Count, Done: j.Total("done"), Failed: j.Total("failed"),
			Lost: j.Total("lost"), Moves: j.Total("moves"),
		}
		if j.Took >= 0 {
			seconds := j.Took.Seconds()
			one.TookS = &seconds
		}
		r.Jobs = append(r.Jobs, one)
	}
	return r
}

// parts takes apart what errors.Join put together.
func parts(err error) []error {
	var joined interface{ Unwrap() []error }
	switch {
	case err == nil:
		return nil
	case errors.As(err, &joined):
		return joined.Unwrap()
	default:
		return []error{err}
	}
}
