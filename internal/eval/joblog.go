package eval

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/workload"
)

// JobLog makes up the log of a machine: jobs drawn from the model of Lublin and Feitelson.
type JobLog struct {
	Procs     int  // of the machine
	Jobs      int  // how many
	Typed     bool // batch and interactive jobs apart
	Estimates bool // users estimate run times
	// Longest is the longest estimate, at which longer runs are cut, to the second.
	Longest time.Duration
	Seed    uint64
}

const (
	mostJobs = 10_000_000 // some 2 GiB of memory
	// firstMidnight is when what is made up begins: Monday, 2024-12-30, 00:00 UTC.
	firstMidnight = 1735516800
)

// Write writes the log in the Standard Workload Format.
func (j JobLog) Write(out io.Writer) error {
	records, err := j.records()
	if err != nil {
		return err
	}
	log := workload.Log{Header: j.directives(records).Header(), Records: records}
	buffered := bufio.NewWriter(out)
	if err := writeLines(buffered, log.Lines()); err != nil {
		return fmt.Errorf("write log: %w", err)
	}
	return buffered.Flush()
}

// records draws the jobs.
func (j JobLog) records() ([]workload.Record, error) {
	switch {
	case j.Procs < 1 || j.Procs > math.MaxInt32:
		return nil, fmt.Errorf("%w: --procs: want 1 to %d processors, have %d",
			ErrUsage, math.MaxInt32, j.Procs)
	case j.Jobs < 1 || j.Jobs > mostJobs:
		return nil, fmt.Errorf("%w: --jobs: want 1 to %d, have %d", ErrUsage, mostJobs, j.Jobs)
	}
	records := make([]workload.Record, 0, j.Jobs)
	for record := range (workload.Lublin{Procs: j.Procs, Typed: j.Typed}).Records(j.Seed) {
		records = append(records, record)
		if len(records) == j.Jobs {
			break
		}
	}
	if j.Estimates {
		err := workload.Estimate(records, workload.Seconds(j.Longest/time.Second), j.Seed)
		if err != nil {
			return nil, fmt.Errorf("%w: --longest-estimate: %w", ErrUsage, err)
		}
	}
	return records, nil
}

// model says what draws the jobs.
func (j JobLog) model() string {
	model := "Lublin-Feitelson 1999, untyped"
	if j.Typed {
		model = "Lublin-Feitelson 1999, batch (queue 1) and interactive (queue 0)"
	}
	if j.Estimates {
		model += "; estimates after Tsafrir, Etsion and Feitelson 2005"
	}
	return model
}

func (j JobLog) directives(records []workload.Record) workload.Directives {
	command := fmt.Sprintf(
		"gridsim workload lublin --procs %d --jobs %d --seed %d", j.Procs, j.Jobs, j.Seed,
	)
	if j.Typed {
		command += " --typed"
	}
	if j.Estimates {
		command += " --estimates --longest-estimate " + j.Longest.String()
	}
	longest := slices.MaxFunc(records, func(a, b workload.Record) int { return int(a.Run - b.Run) })
	return workload.Directives{
		Version: "2.2", Computer: "a model: " + j.model(),
		Conversion: "none, it was made by: " + command,
		MaxJobs:    int64(j.Jobs), MaxRecords: int64(j.Jobs),
		UnixStartTime: firstMidnight, TimeZone: "UTC",
		MaxNodes: int64(j.Procs), MaxProcs: int64(j.Procs), MaxRuntime: int64(longest.Run),
	}
}
