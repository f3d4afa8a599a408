// Command nap does nothing for as long as it is told, so that many can share a
// machine and yet take their time.
package main

import (
	"fmt"
	"os"
	"time"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "want a span of time, such as 3s")
		os.Exit(2)
	}
	span, err := time.ParseDuration(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	time.Sleep(span)
	fmt.Println("slept for", span)
}
