// Command sieve counts the primes below a number, and goes on from what it has saved: it is the
// job of examples/failover, compiled for WASM.
//
//	sieve NUMBER REST
//
// It rests for so long after each segment, as 25ms, so that the job takes its time on a fast
// machine and leaves time to others.
// It writes the count to /out/primes.json, and to /out/began at how many percent it began.
package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/mrsmesh/mrsmesh/examples/failover/sieve/primes"
	"github.com/mrsmesh/mrsmesh/sdk"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "sieve:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return errors.New("want a number and a time to rest")
	}
	below, err := strconv.ParseUint(args[0], 10, 64)
	if err != nil {
		return err
	}
	rest, err := time.ParseDuration(args[1])
	if err != nil {
		return err
	}
	s, err := primes.New(below)
	if err != nil {
		return err
	}
	saved, err := sdk.Load()
	if err == nil && saved != nil {
		err = s.Restore(saved)
	}
	if err != nil {
		return err
	}
	fmt.Printf("counting from %d %% on\n", s.Percent())
	if err := os.WriteFile("/out/began", []byte(strconv.Itoa(s.Percent())), 0o600); err != nil {
		return err
	}
	for !s.Done() {
		s.Step()
		time.Sleep(rest)
		if sdk.Wanted() {
			if err := sdk.Save(s.JSON(), s.Percent()); err != nil {
				return err
			}
		}
	}
	return os.WriteFile("/out/primes.json", s.JSON(), 0o600)
}
