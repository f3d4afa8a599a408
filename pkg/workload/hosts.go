package workload

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat/distuv"
)

// Speeds is a table of how many hosts have which speed.
type Speeds struct {
	counts, values []float64
}

// errSpeeds refuses a table of speeds.
var errSpeeds = errors.New("not a table of speeds")

// ReadSpeeds reads lines with a number of hosts, a comma, and the speed of each of them;
// '#' starts a comment. The first wrong line ends it, with its number.
func ReadSpeeds(lines iter.Seq[[]byte]) (Speeds, error) {
	var table Speeds
	number := 0
	for line := range lines {
		number++
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		hosts, speed, _ := strings.Cut(string(line), ",")
		count, errCount := strconv.ParseUint(hosts, 10, 32)
		value, errValue := strconv.ParseFloat(speed, 64)
		if errCount != nil || errValue != nil || !(value > 0) || math.IsInf(value, 1) {
			return Speeds{}, &lineError{number, fmt.Errorf(
				"%w: want a number of hosts, a comma, and a positive speed, have %q", errSpeeds, clip(line))}
		}
		if count > 0 {
			table.counts = append(table.counts, float64(count))
			table.values = append(table.values, value)
		}
	}
	if len(table.values) == 0 {
		return Speeds{}, fmt.Errorf("%w: no hosts in %d lines", errSpeeds, number)
	}
	return table, nil
}

// Sample draws the speeds of so many hosts from those of the table.
func (s Speeds) Sample(source rand.Source, hosts int) []float64 {
	which := distuv.NewCategorical(s.counts, source)
	speeds := make([]float64, hosts)
	for i := range speeds {
		speeds[i] = s.values[int(which.Rand())]
	}
	return speeds
}

// Sample draws so many numbers.
func (l Law) Sample(source rand.Source, n int) []float64 {
	numbers := make([]float64, n)
	for i := range numbers {
		numbers[i] = l.Draw(source)
	}
	return numbers
}

// Rates are what can be sent between sites: [from][to], each ordered pair with a rate of its
// own, drawn from the law, and every site to itself with that of a local copy. All are in
// the unit of the law.
func Rates(source rand.Source, sites int, law Law, local float64) [][]float64 {
	rates := make([][]float64, sites)
	for from := range rates {
		rates[from] = law.Sample(source, sites)
		rates[from][from] = local
	}
	return rates
}
