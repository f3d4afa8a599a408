package primes

import (
	"testing"

	"pgregory.net/rapid"
)

// count runs a sieve to its end.
func count(t testing.TB, s *Sieve) Count {
	t.Helper()
	for steps := 0; !s.Done(); steps++ {
		if s.Step(); steps > 1000 {
			t.Fatal("it does not come to an end")
		}
	}
	return s.Count
}

// The numbers of primes below powers of ten, and their sums, are known.
func TestKnownCounts(t *testing.T) {
	for _, want := range []Count{
		{Below: 1},
		{Below: 2},
		{Below: 3, Primes: 1, Sum: 2},
		{Below: 10, Primes: 4, Sum: 17},
		{Below: 1_000, Primes: 168, Sum: 76_127},
		{Below: 2_000_000, Primes: 148_933, Sum: 142_913_828_922},
		{Below: 10_000_000, Primes: 664_579, Sum: 3_203_324_994_356},
	} {
		s, err := New(want.Below)
		if err != nil {
			t.Fatal(err)
		}
		want.Next = want.Below
		if got := count(t, s); got != want {
			t.Errorf("counted %+v, want %+v", got, want)
		}
	}
}

// A sieve agrees with trial division, and one that goes on from a saved count with one that was
// never stopped.
func TestASavedCountGoesOn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		below := rapid.Uint64Range(1, 3*segment).Draw(t, "below")
		whole, err := New(below)
		if err != nil {
			t.Fatal(err)
		}
		first, _ := New(below)
		for range rapid.IntRange(0, 3).Draw(t, "steps") {
			first.Step()
		}
		second, _ := New(below)
		if err := second.Restore(first.JSON()); err != nil {
			t.Fatal(err)
		}
		for !whole.Done() {
			whole.Step()
		}
		for !second.Done() {
			second.Step()
		}
		if whole.Count != second.Count {
			t.Fatalf("%+v in parts, %+v in one", second.Count, whole.Count)
		}
	})
}

func TestWhatNoCountGoesOnFrom(t *testing.T) {
	s, err := New(3 * segment)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"", "{}", `{"below":1,"next":0}`, `{"below":6291456,"next":7}`,
		`{"below":6291456,"next":8388608}`,
	} {
		if err := s.Restore([]byte(text)); err == nil {
			t.Errorf("it goes on from %q", text)
		}
	}
	for _, below := range []uint64{0, most + 1} {
		if _, err := New(below); err == nil {
			t.Errorf("counts below %d", below)
		}
	}
}

func TestPercent(t *testing.T) {
	for _, test := range []struct {
		c    Count
		want int
	}{
		{Count{Below: 200}, 0},
		{Count{Below: 200, Next: 199}, 99},
		{Count{Below: 200, Next: 200}, 100},
		{Count{}, 0},
	} {
		if got := test.c.Percent(); got != test.want {
			t.Errorf("%+v is %d %%, want %d", test.c, got, test.want)
		}
	}
}

func BenchmarkStep(b *testing.B) {
	s, err := New(most)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		s.Step()
	}
}
