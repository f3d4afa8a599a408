package yield

import "testing"

// NetworkManager's NMMetered: 0 unknown, 1 yes, 2 no, 3 and 4 the same as guesses.
func TestWhatIsMetered(t *testing.T) {
	for number, metered := range []bool{false, true, false, true, false, false} {
		if got := Metered(number).Judge(); (got.Why == WhyMetered) != metered || got.Trouble != "" {
			t.Errorf("%d: %+v, want metered %t", number, got, metered)
		}
	}
}
