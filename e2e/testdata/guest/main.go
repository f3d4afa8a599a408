// The guest is the program that the tests run: it does what its arguments say,
// VERB=VALUE each, one after the other.
package main

import (
	"bytes"
	"encoding/binary"
	"errors"
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

// heavy bytes are added to each state of chain, which then says how far it is, too.
var heavy int

// turns is how often each step of chain multiplies: some milliseconds.
const turns = 1 << 22

// chain multiplies in N steps and prints the result, and on stderr where it began, with which
// number. Its state says how far it is, and the number there.
func chain(n uint64) error {
	dir := os.Getenv("MRS_CKPT_DIR")
	at, value, err := saved(dir)
	if err != nil {
		return err
	}
	os.Stderr.WriteString("from " + pair(at, value) + "\n")
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
	_, err = os.Stdout.WriteString(strconv.FormatUint(value, 10) + "\n")
	return err
}

func pair(at, value uint64) string {
	return strconv.FormatUint(at, 10) + " " + strconv.FormatUint(value, 10)
}

// saved reads the state, if there is one, and refuses one that is not as it was saved.
func saved(dir string) (at, value uint64, err error) {
	text, err := os.ReadFile(dir + "/state")
	if err != nil {
		return 0, 0, nil
	}
	head, rest, _ := bytes.Cut(text, []byte("\n"))
	first, second, _ := strings.Cut(string(head), " ")
	at, err = strconv.ParseUint(first, 10, 64)
	if err == nil {
		value, err = strconv.ParseUint(second, 10, 64)
	}
	if err == nil && !bytes.Equal(rest, filler(value)) {
		err = errors.New("the state is damaged")
	}
	return at, value, err
}

// filler has the bytes that are added to a state: others in each of them.
func filler(seed uint64) []byte {
	text := make([]byte, 0, heavy)
	for len(text) < heavy {
		seed ^= seed << 13
		seed ^= seed >> 7
		seed ^= seed << 17
		text = binary.LittleEndian.AppendUint64(text, seed|1)
	}
	return text
}

// save writes the state if one is wanted.
func save(dir string, at, value, n uint64) error {
	if heavy > 0 {
		os.Stderr.WriteString("at " + strconv.FormatUint(at, 10) + "\n")
	}
	if _, err := os.Stat(dir + "/wanted"); dir == "" || err != nil {
		return nil
	}
	percent := strconv.FormatUint(100*at/n, 10)
	if err := os.WriteFile(dir+"/percent", []byte(percent), 0o644); err != nil {
		return err
	}
	text := append([]byte(pair(at, value)+"\n"), filler(value)...)
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
