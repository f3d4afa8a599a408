package protocol

import (
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

func TestRenewIsValidated(t *testing.T) {
	id := func(index uint32) grid.AttemptID {
		return grid.AttemptID{Task: grid.TaskID{Job: "aaaaaaaaaaaaaaaa", Index: index}, Token: 1}
	}
	full := make([]grid.AttemptID, MaxAttempts)
	for i := range full {
		full[i] = id(uint32(i))
	}
	one, long := full[:1], []time.Duration{maxLease + 1}
	list := func(also ...grid.AttemptID) *Listing { return &Listing{Also: also} }
	for name, tt := range map[string]struct {
		msg  Renew
		want string // of the error; empty: valid
	}{
		"an earlier version": {Renew{Attempts: one}, ""},
		"a full message":     {Renew{Attempts: full, List: list()}, ""},
		"one too many":       {Renew{Attempts: full, List: list(one...)}, "at most 1024 attempts"},
		"nothing to renew":   {Renew{List: list(one...)}, "want 1 to"},
		"others' leases":     {Renew{Attempts: one, Left: make([]time.Duration, 2)}, "the leases of 2"},
		"one lease of two":   {Renew{Attempts: full[:2], Left: long[:1]}, "the leases of 1"},
		"one below zero":     {Renew{Attempts: one, Left: []time.Duration{-1}}, "left of a lease"},
		"one too long":       {Renew{Attempts: one, Left: long}, "left of a lease"},
		"the longest":        {Renew{Attempts: one, Left: []time.Duration{maxLease}}, ""},
		"a wrong attempt":    {Renew{Attempts: one, List: list(grid.AttemptID{})}, "tokens count from 1"},
		"a wrong end": {
			Renew{Attempts: one, List: &Listing{After: grid.AttemptID{Token: 1}}}, "job",
		},
	} {
		err := tt.msg.Validate()
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

// The ranges of a list in several messages meet without a gap and without overlap.
func TestRangesOfAList(t *testing.T) {
	id := func(index uint32) grid.AttemptID {
		return grid.AttemptID{Task: grid.TaskID{Job: "aaaaaaaaaaaaaaaa", Index: index}, Token: 1}
	}
	first, last := Listing{UpTo: id(5)}, Listing{After: id(5)}
	for i := range uint32(10) {
		if first.Holds(id(i)) == last.Holds(id(i)) || first.Holds(id(i)) != (i <= 5) {
			t.Errorf("%d is in the first range: %t, in the last: %t",
				i, first.Holds(id(i)), last.Holds(id(i)))
		}
		if all := (&Listing{}); !all.Holds(id(i)) {
			t.Errorf("%d is not in the whole range", i)
		}
	}
}
