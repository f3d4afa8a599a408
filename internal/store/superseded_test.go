package store

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// A directory whose site runs on another machine is refused until it is adopted; then its next
// start comes after the one of that machine.
func TestASupersededStateIsRefused(t *testing.T) {
	dir := t.TempDir()
	s := at(t, dir, Options{})
	newer := Newer{Incarnation: s.Incarnation() + 100, Since: epoch()}
	if err := s.Supersede(newer); err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
	_, err := OpenWith(dir, Options{}, nil)
	if !errors.Is(err, ErrSuperseded) || !strings.Contains(err.Error(), epoch().Format(time.RFC3339)) {
		t.Fatalf("%v, want ErrSuperseded and since when", err)
	}
	if err := Adopt(dir, ""); err != nil {
		t.Fatal(err)
	}
	if s = at(t, dir, Options{}); s.Incarnation() <= newer.Incarnation || !s.Restored() {
		t.Errorf("start %d, restored %t; want it above %d, and restored",
			s.Incarnation(), s.Restored(), newer.Incarnation)
	}
}

// Starts are of one line for as long as the directory stays in its place.
func TestLinesOfStarts(t *testing.T) {
	dir := t.TempDir()
	start := func(hardware ...string) (line uint64, restored bool) {
		s := at(t, dir, Options{Hardware: hardware})
		line, restored = s.Line(), s.Restored()
		if err := s.Trust(); err != nil {
			t.Fatal(err)
		}
		_ = s.Close()
		return line, restored
	}
	first, _ := start("x", "y")
	for _, c := range []struct {
		name     string
		hardware []string
		restored bool
	}{
		{"restarted", []string{"x", "y"}, false},
		{"a part replaced", []string{"y", "z"}, false},
		{"not known", nil, false},
		{"other hardware", []string{"v", "w"}, true},
	} {
		line, restored := start(c.hardware...)
		if restored != c.restored || (line != first) != c.restored || line == 0 {
			t.Errorf("%s: restored %t, line %d after %d; want %t", c.name, restored, line, first, c.restored)
		}
	}
}
