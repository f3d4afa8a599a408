package grid

import "testing"

func TestBound(t *testing.T) {
	if Bound != 1 {
		t.Error(Bound)
	}
}
