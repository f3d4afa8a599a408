// The guest is the program that the tests run: it does what its arguments say,
// VERB=VALUE each, one after the other.
package main

import (
	"encoding/binary"
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
	case "heavy": // the state of chain takes so many MiB more
		n, err := strconv.Atoi(value)
		heavy = n << 20
		return err
	case "chain": // a number that takes a while, and goes on from a saved state
		n, err := strconv.ParseUint(value, 10, 64)
		if err != nil {
			return err
		}
		return chain(n)
	default:
		misbehave(verb)
	}
	return nil
}

// heavy is what is added to each state of chain, in bytes.
var heavy int

// turns is how often each step of chain multiplies: some milliseconds.
const turns = 1 << 22

// chain multiplies in N steps and prints the result, and on stderr where it began. Its state says
// how far it is, and the number there.
func chain(n uint64) error {
	dir := os.Getenv("MRS_CKPT_DIR")
	var at, value uint64
	if text, err := os.ReadFile(dir + "/state"); err == nil {
		head, _, _ := strings.Cut(string(text), "\n")
		first, second, _ := strings.Cut(head, " ")
		at, _ = strconv.ParseUint(first, 10, 64)
		value, _ = strconv.ParseUint(second, 10, 64)
	}
	os.Stderr.WriteString("from " + strconv.FormatUint(at, 10) + "\n")
	for ; at < n; at++ {
		if at%10 == 0 {
			if err := save(dir, at, value, n); err != nil {
				return err
			}
		}
		for range turns {
			value = value*6364136223846793005 + at
		}
	}
	_, err := os.Stdout.WriteString(strconv.FormatUint(value, 10) + "\n")
	return err
}

// save writes the state if one is wanted.
func save(dir string, at, value, n uint64) error {
	if _, err := os.Stat(dir + "/wanted"); dir == "" || err != nil {
		return nil
	}
	percent := strconv.FormatUint(100*at/n, 10)
	if err := os.WriteFile(dir+"/percent", []byte(percent), 0o644); err != nil {
		return err
	}
	text := []byte(strconv.FormatUint(at, 10) + " " + strconv.FormatUint(value, 10) + "\n")
	for noise := value; len(text) < heavy; { // each time another
		noise = noise*6364136223846793005 + 1
		text = binary.LittleEndian.AppendUint64(text, noise)
	}
	if err := os.WriteFile(dir+"/next", text, 0o644); err != nil {
		return err
	}
	return os.Rename(dir+"/next", dir+"/state")
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
