package tes

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// What a task gets that asks for nothing.
const (
	defaultMilliCPUs = 1_000
	defaultMemory    = 512 << 20
	defaultDisk      = 1 << 30
	defaultRuntime   = 10 * time.Minute
	coreMFLOPS       = 1_000 // as job files have it
)

const (
	gigabyte = 1e9
	maxCores = 100_000
	maxGB    = 1e6
)

// The backend parameters that are known; case does not matter.
const (
	paramRuntime = "runtime" // estimate of the run time
	paramLimit   = "limit"   // the task is stopped after so long
)

func parameters() []string { return []string{paramLimit, paramRuntime} }

// amounts are what a task needs, in the words of jobs.
type amounts struct {
	need    grid.Resources
	runtime time.Duration
	limit   time.Duration // 0 = none
}

// amountsOf reads a task's resources. What is not given has defaults.
func amountsOf(r *TesResources) (amounts, error) {
	a := amounts{
		need: grid.Resources{
			MilliCPUs: defaultMilliCPUs, MFLOPS: coreMFLOPS, MemoryBytes: defaultMemory,
			DiskBytes: defaultDisk,
		},
		runtime: defaultRuntime,
	}
	if r == nil {
		return a, nil
	}
	if r.CpuCores != nil && *r.CpuCores != 0 {
		n := int64(*r.CpuCores)
		if n < 0 || n > maxCores {
			return a, invalid("resources.cpu_cores",
				fmt.Sprintf("want 0 to %d, have %d", maxCores, n), "ask for fewer")
		}
		a.need.MilliCPUs, a.need.MFLOPS = n*1000, n*coreMFLOPS
	}
	for _, part := range []struct {
		field string
		given *float64
		into  *int64
	}{
		{"resources.ram_gb", r.RamGb, &a.need.MemoryBytes},
		{"resources.disk_gb", r.DiskGb, &a.need.DiskBytes},
	} {
		if part.given == nil || *part.given == 0 {
			continue
		}
		if !(*part.given > 0 && *part.given <= maxGB) {
			return a, invalid(part.field,
				fmt.Sprintf("want 0 to %g, have %g", maxGB, *part.given), "ask for less")
		}
		*part.into = int64(math.Ceil(*part.given * gigabyte))
	}
	return a, a.readParameters(r.BackendParameters)
}

func (a *amounts) readParameters(given *map[string]string) error {
	if given == nil {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(*given)) {
		var into *time.Duration
		switch strings.ToLower(key) {
		case paramRuntime:
			into = &a.runtime
		case paramLimit:
			into = &a.limit
		default:
			continue
		}
		span, err := spanOf((*given)[key])
		if err != nil || span <= 0 || span > grid.MaxRuntime {
			return invalid("resources.backend_parameters."+key,
				"want a duration of more than 0, have "+quoted((*given)[key]),
				"write seconds, such as 90, or a number with a unit, such as 10m or 2h")
		}
		*into = span
	}
	return nil
}

// spanOf reads a duration; a number alone counts seconds.
func spanOf(text string) (time.Duration, error) {
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second, nil
	}
	return grid.ParseSpan(text)
}

// keepKnown takes the parameters out that are unknown, and names them. Where the task is strict
// about them it is refused.
func keepKnown(r *TesResources) (unknown []string, err error) {
	if r == nil || r.BackendParameters == nil {
		return nil, nil
	}
	known := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(*r.BackendParameters)) {
		if slices.Contains(parameters(), strings.ToLower(key)) {
			known[key] = (*r.BackendParameters)[key]
			continue
		}
		unknown = append(unknown, key)
	}
	if len(unknown) > 0 && r.BackendParametersStrict != nil && *r.BackendParametersStrict {
		return nil, invalid("resources.backend_parameters."+unknown[0],
			"the parameter is unknown and backend_parameters_strict is set",
			"known are "+strings.Join(parameters(), " and "))
	}
	r.BackendParameters = &known
	return unknown, nil
}
