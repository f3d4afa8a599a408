package main

import (
	"strings"
	"testing"
)

func TestWhereASiteOffersNothing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		goos   string
		yields bool
		want   string // part of the reason; empty: it offers
	}{
		{"linux", true, ""},
		{"linux", false, ""},
		{"darwin", true, "set owner.yield to false"},
		{"darwin", false, ""},
		{"freebsd", true, "set owner.yield to false"},
		{"freebsd", false, ""},
		{"windows", true, "not supported on Windows"},
		{"windows", false, "not supported on Windows"},
	} {
		got := offersNothing(c.goos, c.yields)
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("on %s, yield %v: %q, want %q in it", c.goos, c.yields, got, c.want)
		}
	}
}
