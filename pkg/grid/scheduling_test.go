package grid

import (
	"errors"
	"strings"
	"testing"
)

func TestPlanningWordsAreReadBack(t *testing.T) {
	for i, word := range Policies() {
		if p, err := ParsePolicy(word); err != nil || p != Policy(i) || p.String() != word {
			t.Errorf("ParsePolicy(%q) = %d, %v", word, p, err)
		}
	}
	if last := PolicyLST; int(last) != len(Policies())-1 {
		t.Errorf("%d words for policies up to %d", len(Policies()), last)
	}
	for i, word := range Backfills() {
		if b, err := ParseBackfill(word); err != nil || b != Backfill(i) || b.String() != word {
			t.Errorf("ParseBackfill(%q) = %d, %v", word, b, err)
		}
	}
	if last := BackfillNone; int(last) != len(Backfills())-1 {
		t.Errorf("%d words for backfilling up to %d", len(Backfills()), last)
	}
	_, errPolicy := ParsePolicy("FCFS")
	_, errBackfill := ParseBackfill("")
	for _, err := range []error{errPolicy, errBackfill} {
		if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "want one of ") {
			t.Errorf("error = %v, want ErrInvalid with the words", err)
		}
	}
	if got := Policy(9).String() + " " + Backfill(9).String(); got != "unknown unknown" {
		t.Errorf("numbers without a name are %q", got)
	}
}
