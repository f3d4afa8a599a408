package eval

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/plan/batch"
	"github.com/mrsmesh/mrsmesh/pkg/workload"
)

// ErrUsage refuses an experiment that was not asked for properly.
var ErrUsage = errors.New("usage")

// SWF is an experiment: what a policy makes of the log of a real machine.
type SWF struct {
	Log       string // file in the Standard Workload Format, packed or not
	Procs     int    // processors of the machine; 0 = what the log says
	Policy    string // see Policies
	Semantics string // see AllSemantics
	Starts    string // file to write the starts to, replaced if it exists; empty = none

	Progress func(started, jobs int) // called now and then; nil = nobody asks
}

// SWFResult is the outcome of a rerun.
type SWFResult struct {
	Jobs               int     `json:"jobs"`
	AvgWaitS           float64 `json:"avg_wait_s"`           // seconds
	AvgBoundedSlowdown float64 `json:"avg_bounded_slowdown"` // bound: 10 s
	// MakespanS is the time from the first submission to the last end, in seconds.
	MakespanS   int64   `json:"makespan_s"`
	Utilization float64 `json:"utilization"` // 0 to 1
	JobsPerS    float64 `json:"jobs_per_s"`  // how fast the scheduler was, without reading and writing
}

// Policies are the names for SWF.Policy.
func Policies() []string { return batch.Policies() }

// AllSemantics are the names for SWF.Semantics.
func AllSemantics() []string { return batch.AllSemantics() }

// Run does the experiment, until the context ends.
func (s SWF) Run(ctx context.Context) (SWFResult, error) {
	config, err := s.config()
	if err != nil {
		return SWFResult{}, err
	}
	log, err := readLog(s.Log)
	if err != nil {
		return SWFResult{}, err
	}
	if config.Procs == 0 {
		procs, known := log.MaxProcs()
		if !known {
			return SWFResult{}, fmt.Errorf("%w: --procs: the header of %s has no MaxProcs: say how "+
				"many processors the machine has", ErrUsage, s.Log)
		}
		config.Procs = procs
	}
	jobs := log.Jobs(config.Procs)
	starts, took, err := s.rerun(ctx, jobs, config)
	if err != nil {
		return SWFResult{}, err
	}
	if s.Starts != "" {
		if err := writeStarts(s.Starts, jobs, starts); err != nil {
			return SWFResult{}, fmt.Errorf("write starts: %w", err)
		}
	}
	f := batch.Measure(jobs, starts, config.Procs)
	return SWFResult{
		Jobs: f.Jobs, AvgWaitS: f.AvgWait, AvgBoundedSlowdown: f.AvgBoundedSlowdown,
		MakespanS:   int64(f.Makespan),
		Utilization: f.Utilization, JobsPerS: float64(f.Jobs) / max(took, time.Nanosecond).Seconds(),
	}, nil
}

func (s SWF) config() (batch.Config, error) {
	if s.Log == "" {
		return batch.Config{}, fmt.Errorf("%w: --log: name a file in the Standard Workload Format",
			ErrUsage)
	}
	if s.Procs < 0 {
		return batch.Config{}, fmt.Errorf("%w: --procs: want at least 1, have %d", ErrUsage, s.Procs)
	}
	policy, err := batch.ParsePolicy(s.Policy)
	if err != nil {
		return batch.Config{}, fmt.Errorf("%w: --policy: %w", ErrUsage, err)
	}
	semantics, err := batch.ParseSemantics(s.Semantics)
	if err != nil {
		return batch.Config{}, fmt.Errorf("%w: --semantics: %w", ErrUsage, err)
	}
	return batch.Config{Procs: s.Procs, Policy: policy, Semantics: semantics}, nil
}

// lookEvery is the number of instants between two checks of whether to go on.
const lookEvery = 4096

func (s SWF) rerun(
	ctx context.Context, jobs []workload.Job, config batch.Config,
) ([]workload.Seconds, time.Duration, error) {
	begin := time.Now()
	r, err := batch.New(jobs, config)
	if err != nil {
		return nil, 0, fmt.Errorf("rerun %s: %w", s.Log, err)
	}
	for n := 1; r.Step(); n++ {
		if n%lookEvery != 0 {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, 0, fmt.Errorf("rerun %s: stopped after %d of %d jobs: %w",
				s.Log, r.Started(), len(jobs), err)
		}
		if s.Progress != nil {
			s.Progress(r.Started(), len(jobs))
		}
	}
	return r.Starts(), time.Since(begin), nil
}

func writeStarts(path string, jobs []workload.Job, starts []workload.Seconds) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	out := bufio.NewWriter(file)
	line := []byte("job_id,submit,start\n")
	for i, j := range jobs {
		if _, err := out.Write(line); err != nil {
			return err
		}
		line = strconv.AppendInt(line[:0], j.ID, 10)
		line = strconv.AppendInt(append(line, ','), int64(j.Submit), 10)
		line = strconv.AppendInt(append(line, ','), int64(starts[i]), 10)
		line = append(line, '\n')
	}
	if _, err := out.Write(line); err != nil {
		return err
	}
	return out.Flush()
}
