package yield

import "testing"

// Of the hours' share and that of keyboard and mouse the lower one counts, and what makes it so is
// told.
func TestWhatIsGivenWhileSomebodyIsThere(t *testing.T) {
	quarter := InUse{Cores: 25, Memory: 50}
	for _, c := range []struct {
		name  string
		limit InUse
		inUse bool
		share int
		want  Given
	}{
		{"nobody", quarter, false, 100, Given{Cores: 100, Memory: 100}},
		{"somebody", quarter, true, 100, Given{Cores: 25, Memory: 50, InUse: true, ByUse: true}},
		{
			"the hours give less", quarter, true, 10,
			Given{Cores: 10, Memory: 50, InUse: true, ByUse: true},
		},
		{"of cores alone", InUse{Cores: 25}, true, 10, Given{Cores: 10, Memory: 100, InUse: true}},
		{
			"of memory alone",
			InUse{Memory: 50},
			true, 100,
			Given{Cores: 100, Memory: 50, InUse: true, ByUse: true},
		},
		{"no limits", InUse{}, true, 100, Given{Cores: 100, Memory: 100, InUse: true}},
		{"outside of the hours", quarter, true, 0, Given{Memory: 100, InUse: true}},
	} {
		if got := c.limit.While(c.inUse, c.share); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
	all := InUse{Cores: 100, Memory: 100}
	if (InUse{}).Limits() || all.Limits() || !(InUse{Memory: 99}).Limits() {
		t.Error("all of it limits, or a part does not")
	}
}
