// Command steps counts primes as a module of steps: its state is saved without its help. Compiled
// for WASI as a library it exports step, which its site calls until nothing is left to do; compiled
// for this machine it is an ordinary program with the same result.
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -o primes.wasm ./examples/steps
//	submit run --wasm primes.wasm --runtime 1m -- 100000000
package main

import (
	"fmt"
	"os"
	"strconv"
)

// segment is the count of numbers that a step looks at, which takes some milliseconds.
const segment = 1 << 20

// sieve counts the primes below limit. What is between two steps is in its fields and in no local
// variable; it need not be, as the whole memory is saved.
type sieve struct {
	limit, next, count int
}

// advance looks at one more segment, and returns what step does: 0 when all is done, else 1, or
// from 2 to 100 how many percent are done.
func (s *sieve) advance() int32 {
	if s.next >= s.limit {
		fmt.Printf("%d primes below %d\n", s.count, s.limit)
		return 0
	}
	end := min(s.next+segment, s.limit)
	composite := make([]bool, end-s.next)
	for p := 2; p*p < end; p++ {
		for n := max(p*p, (s.next+p-1)/p*p); n < end; n += p {
			composite[n-s.next] = true
		}
	}
	for i, is := range composite {
		if n := s.next + i; !is && n >= 2 {
			s.count++
		}
	}
	s.next = end
	return max(int32(100*s.next/s.limit), 1)
}

// newSieve reads the limit from the arguments.
func newSieve() *sieve {
	s := &sieve{limit: 100_000_000}
	if len(os.Args) > 1 {
		limit, err := strconv.Atoi(os.Args[1])
		if err != nil || limit < 0 {
			fmt.Fprintf(os.Stderr, "steps: %q: want a number above 0\n", os.Args[1])
			os.Exit(2)
		}
		s.limit = limit
	}
	return s
}

// main is not called in a module of steps.
func main() {
	s := newSieve()
	for s.advance() != 0 {
	}
}
