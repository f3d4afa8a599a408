package grid_test

import (
	"testing"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

func TestExplain(t *testing.T) {
	t.Parallel()
	for want, r := range map[string]grid.Refusal{
		"not now: too little bandwidth (wants 20 Mbit/s, has 12.5 Mbit/s)": {
			Reason: grid.ReasonBandwidth, Want: 20e6, Have: 12_500_000,
		},
		"never fits: too little bandwidth (wants 0.0005 Mbit/s, has 0 Mbit/s)": {
			Reason: grid.ReasonBandwidth, Never: true, Want: 500,
		},
		"never fits: too little memory (wants 4.0 GiB, has 2.0 GiB)": {
			Reason: grid.ReasonMemory, Never: true, Want: 4 << 30, Have: 2 << 30,
		},
		"never fits: too few cores": {Reason: grid.ReasonCPUs, Never: true}, // a neighbour's
		"not now: ran longer than estimated, and others were promised its place": {
			Reason: grid.ReasonOverrun,
		},
	} {
		if got := r.Explain(); got != want {
			t.Errorf("%+v explains itself as %q, want %q", r, got, want)
		}
		if err := r.Validate(); err != nil {
			t.Errorf("%+v: %v", r, err)
		}
	}
}

// Every reason has words: one without would read as a number.
func TestEveryReasonHasWords(t *testing.T) {
	t.Parallel()
	for r := grid.Reason(1); (grid.Refusal{Reason: r}).Validate() == nil; r++ {
		if text := r.String(); text == "" || text[:min(len(text), 7)] == "reason " {
			t.Errorf("reason %d reads %q", r, text)
		}
	}
}
