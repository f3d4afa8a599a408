package main

import "testing"

// "There are 168 primes below 1,000, 78,498 below 1,000,000 and 664,579 below 10,000,000."
func TestPrimesAreCounted(t *testing.T) {
	for limit, want := range map[int]int{
		0: 0, 2: 0, 3: 1, 1000: 168, 1_000_000: 78_498, 10_000_000: 664_579,
	} {
		s := &sieve{limit: limit}
		last := int32(1)
		for n := s.advance(); n != 0; n = s.advance() {
			if n < last || n > 100 {
				t.Errorf("%d %% after %d %%", n, last)
			}
			last = n
		}
		if s.count != want {
			t.Errorf("%d primes below %d, want %d", s.count, limit, want)
		}
	}
}
