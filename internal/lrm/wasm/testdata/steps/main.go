// Command steps is a module of steps that uses all that a state has to hold: memory that grows,
// goroutines, floats, random numbers, the clock, files, directories, and both output streams.
// Arguments: the number of steps, how long each takes in turns of a loop, and perhaps something
// else to do in them.
package main

import (
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"hash"
	"math"
	"os"
	"strconv"
	"time"
)

type state struct {
	at, steps, turns int
	sum              hash.Hash
	values           []float64
	held             map[string][]byte
	numbers          chan int
}

var s *state

func init() {
	s = &state{sum: sha256.New(), held: make(map[string][]byte), numbers: make(chan int)}
	s.steps, _ = strconv.Atoi(os.Args[1])
	s.turns, _ = strconv.Atoi(os.Args[2])
	go func() { // which lives on between the steps
		for i := 1; ; i++ {
			s.numbers <- i * i
		}
	}()
	fmt.Println("begins with", os.Args[1:], len(os.Environ()), "variables")
	check(os.Mkdir("/made", 0o700))
}

//go:wasmexport step
func step() int32 {
	if s.at == s.steps {
		return finish()
	}
	s.at++
	if len(os.Args) > 3 {
		return other(os.Args[3])
	}
	noise := make([]byte, 16)
	_, _ = rand.Read(noise)
	s.held[strconv.Itoa(s.at)] = append(noise, make([]byte, 5000)...)
	value := float64(<-s.numbers)
	for range s.turns {
		value = math.Sqrt(value+1) * 1.000001
	}
	s.values = append(s.values, value)
	fmt.Fprintln(s.sum, s.at, noise, value, time.Now().UnixNano())
	if s.at%10 == 0 {
		fmt.Printf("step %d: %x\n", s.at, s.sum.Sum(nil)[:4])
		fmt.Fprintln(os.Stderr, "at", s.at)
		name := fmt.Sprintf("/made/%d", s.at)
		check(os.WriteFile(name, fmt.Append(nil, s.values), 0o600))
		log, err := os.OpenFile("/log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		check(err)
		fmt.Fprintln(log, name)
		check(log.Close())
		if s.at%40 == 0 {
			check(os.Remove(name))
		}
	}
	return int32(max(1, 100*s.at/max(s.steps, 1)))
}

var held *os.File

// other does something that a state cannot hold, or that ends the program.
func other(what string) int32 {
	switch what {
	case "hold": // a file, in the second and third step
		var err error
		switch s.at {
		case 2:
			held, err = os.Create("/held")
		case 4:
			err = held.Close()
		}
		check(err)
	case "exit":
		os.Exit(7)
	case "panic":
		panic("on purpose")
	case "odd":
		return -5
	case "look":
		list, err := os.ReadDir("/")
		_, none := os.Stat("/ckpt/wanted")
		fmt.Println(list, err, none, os.Mkdir("/ckpt", 0o700),
			os.WriteFile("/ckpt/state", nil, 0o600))
	case "nan": // results that are no numbers, by their bits
		zero, infinite := float64(s.turns-1), math.Inf(s.turns)
		zero32 := float32(zero)
		for _, v := range []float64{
			zero / zero, math.Sqrt(zero - 1), infinite - infinite, infinite * zero,
			math.Floor(zero / zero), float64(zero32 / zero32),
		} {
			fmt.Printf("%x %v\n", math.Float64bits(v), v)
		}
		fmt.Printf("%x\n", math.Float32bits(zero32/zero32))
	case "grow": // its memory, to some tens of mebibytes, however fast the machine is
		value := float64(s.at)
		for range s.turns {
			value = math.Sqrt(value+1) * 1.000001
		}
		page := make([]byte, 6000)
		_, _ = rand.Read(page[copy(page, fmt.Append(nil, value)):])
		s.held[strconv.Itoa(s.at%3000)] = page
	case "fill": // the disk, by a mebibyte a step
		check(os.WriteFile(strconv.Itoa(s.at), make([]byte, 1<<20), 0o600))
	}
	return 1
}

func finish() int32 {
	if len(os.Args) > 3 {
		return 0
	}
	list, err := os.ReadDir("/made")
	check(err)
	for _, e := range list {
		info, err := e.Info()
		check(err)
		text, err := os.ReadFile("/made/" + e.Name())
		check(err)
		fmt.Fprintln(s.sum, e.Name(), info.ModTime().UnixNano(), len(text))
	}
	text, err := os.ReadFile("/log")
	check(err)
	s.sum.Write(text)
	fmt.Printf("result %x of %d\n", s.sum.Sum(nil), len(s.held))
	return 0
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {}
