package backend

import "testing"

func TestWhatOtherProgramsLeaveOfATask(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		need, left int64
		want       string
	}{
		{1000, 1000, ""},
		{1000, 4000, ""},
		{1000, 30, "gets at most 3 % of a core: other programs use the machine"},
		{1000, 0, "gets at most 0 % of a core: other programs use the machine"},
		{2000, 1500, "gets at most 1.5 of 2.0 cores: other programs use the machine"},
		{500, 250, "gets at most 0.2 of 0.5 cores: other programs use the machine"},
	} {
		if got := shareText(c.need, c.left); got != c.want {
			t.Errorf("of %d thousandths, %d left: %q, want %q", c.need, c.left, got, c.want)
		}
	}
	const compiles, slow = "compiling once for this site", "gets at most 3 % of a core"
	for _, c := range [][3]string{
		{"", "", ""},
		{compiles, "", compiles},
		{"", slow, slow},
		{compiles, slow, compiles + "; " + slow},
	} {
		if got := alsoSlowed(c[0], c[1]); got != c[2] {
			t.Errorf("alsoSlowed(%q, %q) = %q, want %q", c[0], c[1], got, c[2])
		}
	}
}
