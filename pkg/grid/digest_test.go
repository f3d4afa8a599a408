package grid

import (
	"testing"

	"pgregory.net/rapid"
)

// A digest is one of the data and the domain: equal for the same two, different otherwise, and no
// text of it is the CID's.
func TestDigestsOfData(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`b[a-z0-9]{1,60}`)
		name := rapid.StringMatching(`[a-z]{1,8}`)
		a, b := CID(text.Draw(t, "one")), CID(text.Draw(t, "other"))
		home, next := DomainID(name.Draw(t, "home")), DomainID(name.Draw(t, "next"))
		one := a.Digest(home)
		if err := one.Validate(); err != nil || string(one) == string(a) {
			t.Fatalf("%q of %s: %v", one, a, err)
		}
		if (one == b.Digest(home)) != (a == b) || (one == a.Digest(next)) != (home == next) {
			t.Fatalf("%s and %s, in %s and %s: %s", a, b, home, next, one)
		}
	})
	if d := CID("").Digest("home"); d != "" {
		t.Errorf("no data is called %q", d)
	}
}
