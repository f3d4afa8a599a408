// The guest is the program that the tests run: it does what its arguments say,
// VERB=VALUE each, one after the other.
package main

import (
	"os"
	"strconv"
	"strings"
	"time"
)

func main() {
	for _, arg := range os.Args[1:] {
		verb, value, _ := strings.Cut(arg, "=")
		if err := do(verb, value); err != nil {
			os.Stderr.WriteString(arg + ": " + err.Error() + "\n")
			os.Exit(1)
		}
	}
}

func do(verb, value string) error {
	switch verb {
	case "print":
		_, err := os.Stdout.WriteString(value + "\n")
		return err
	case "exit":
		code, err := strconv.Atoi(value)
		if err != nil {
			return err
		}
		os.Exit(code)
	case "ticks": // prints a line every 100 ms
		n, err := strconv.Atoi(value)
		for i := range n {
			os.Stdout.WriteString("tick " + strconv.Itoa(i) + "\n")
			time.Sleep(100 * time.Millisecond)
		}
		return err
	case "put": // PATH:TEXT
		path, text, _ := strings.Cut(value, ":")
		return os.WriteFile(path, []byte(text), 0o644)
	case "copy": // FROM:TO
		from, to, _ := strings.Cut(value, ":")
		text, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		return os.WriteFile(to, text, 0o644)
	default:
		misbehave(verb)
	}
	return nil
}

// misbehave takes something without end.
func misbehave(verb string) {
	block := make([]byte, 1<<20)
	for i := range block {
		block[i] = byte('a' + i%26)
	}
	var kept [][]byte
	for n := 0; ; n++ {
		switch verb {
		case "spin":
		case "hog":
			kept = append(kept, append([]byte(nil), block...))
		case "flood":
			os.Stdout.Write(block)
		case "fill":
			if err := os.WriteFile("/out/fill"+strconv.Itoa(n), block, 0o644); err != nil {
				os.Exit(3)
			}
		default:
			os.Exit(99)
		}
	}
}
