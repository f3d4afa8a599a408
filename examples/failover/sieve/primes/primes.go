// Package primes counts primes in steps, so that the count can stop after each of them and go on
// from there: on another machine, in another process.
package primes

import (
	"encoding/json"
	"errors"
	"fmt"
)

// segment counts the numbers that one step looks at.
const segment = 1 << 21

// most bounds the numbers that are looked at: the primes up to its root are kept in memory.
const most = 1 << 40

// Count says how far it has come, which is all that a later step needs.
type Count struct {
	Below  uint64 `json:"below"`  // where it ends
	Next   uint64 `json:"next"`   // numbers below are counted; a multiple of segment, or Below
	Primes uint64 `json:"primes"` // so many of them are primes
	Sum    uint64 `json:"sum"`    // of these, modulo 2^64
}

// Percent returns the part of the work that is done, 0 to 100, rounded down.
func (c Count) Percent() int { return int(c.Next * 100 / max(1, c.Below)) }

// Done reports whether all numbers are counted.
func (c Count) Done() bool { return c.Next >= c.Below }

// JSON is the count as a text, equal for equal counts.
func (c Count) JSON() []byte {
	text, _ := json.Marshal(c) // it has numbers alone
	return append(text, '\n')
}

// Sieve counts. One goroutine uses it.
type Sieve struct {
	Count

	base []uint64 // odd primes up to the root of Below
	odd  []bool   // of the odd numbers of a segment: has a divisor
}

var errRange = errors.New("out of range")

// New makes a sieve for the numbers below a bound, at the beginning.
func New(below uint64) (*Sieve, error) {
	if below < 1 || below > most {
		return nil, fmt.Errorf("%w: count below %d: want 1 to %d", errRange, below, uint64(most))
	}
	s := &Sieve{Count: Count{Below: below}, odd: make([]bool, segment/2)}
	for p := uint64(3); p*p <= below; p += 2 {
		if s.isPrime(p) {
			s.base = append(s.base, p)
		}
	}
	return s, nil
}

// isPrime reports whether no smaller prime of the base divides an odd number.
func (s *Sieve) isPrime(n uint64) bool {
	for _, p := range s.base {
		if p*p > n {
			break
		}
		if n%p == 0 {
			return false
		}
	}
	return true
}

// Restore goes on from a saved count, which must be one of the same numbers.
func (s *Sieve) Restore(text []byte) error {
	var c Count
	if err := json.Unmarshal(text, &c); err != nil {
		return fmt.Errorf("go on from a saved count: %w", err)
	}
	if c.Below != s.Below || c.Next > c.Below || c.Next%segment != 0 && c.Next != c.Below {
		return fmt.Errorf("%w: go on from a saved count: it has come to %d of %d, want one of %d",
			errRange, c.Next, c.Below, s.Below)
	}
	s.Count = c
	return nil
}

// Step counts the next segment.
func (s *Sieve) Step() {
	low, high := s.Next, min(s.Next+segment, s.Below)
	if low >= high {
		return
	}
	s.strike(low, high)
	if low == 0 && high > 2 {
		s.Primes, s.Sum = 1, 2
	}
	for i, struck := range s.odd[:(high-low)/2] {
		if !struck {
			s.Primes++
			s.Sum += low + uint64(2*i+1)
		}
	}
	s.Next = high
}

// strike marks the odd numbers of a segment that are no primes; low is even.
func (s *Sieve) strike(low, high uint64) {
	clear(s.odd)
	s.odd[0] = low == 0 // 1 is none
	for _, p := range s.base {
		if p*p >= high {
			break
		}
		first := max(p*p, (low+p-1)/p*p)
		if first%2 == 0 {
			first += p
		}
		for n := first; n < high; n += 2 * p {
			s.odd[(n-low)/2] = true
		}
	}
}
