package metrics

import (
	"errors"
	"fmt"
	"math"

	"github.com/mrsmesh/mrsmesh/pkg/argument"
)

// Outcome tells how a job ended.
type Outcome uint8

// The outcomes.
const (
	Completed Outcome = iota
	Failed            // ended by a failure of its resource, for good
	Rejected          // never started: it asked for more than there was
)

// Job is the record of one job.
type Job struct {
	SubmitSeconds float64 // s
	Started       bool    // otherwise the next three count for nothing

	// StartSeconds is e, when the job began. The thesis counts waiting until it
	// "begins execution" in section 2.3 and until it "begins its transmission" in
	// section 4.2: which of both this is, is the caller's choice for all jobs.
	StartSeconds float64
	RunSeconds   float64 // E, with input, output and communication
	Nodes        float64 // resources used while running

	Outcome  Outcome
	Failures int64 // how often an attempt of it was ended by a failure
}

func (j Job) validate() error {
	if err := errors.Join(
		argument.Amount("submit time", j.SubmitSeconds),
		argument.Amount("start time", j.StartSeconds),
		argument.Amount("run time", j.RunSeconds),
		argument.Amount("nodes", j.Nodes),
		argument.AtLeast("failures", 0, j.Failures),
	); err != nil {
		return err
	}
	if j.Outcome > Rejected {
		return fmt.Errorf("%w: no such outcome: %d", argument.ErrInvalid, j.Outcome)
	}
	if j.Started && j.StartSeconds < j.SubmitSeconds {
		return fmt.Errorf("%w: start time %v: before the submit time %v",
			argument.ErrInvalid, j.StartSeconds, j.SubmitSeconds)
	}
	return nil
}

// Summary is the thesis' measures of a run, sections 2.3 and 4.1.
type Summary struct {
	// AverageWaitSeconds is AWT, the mean of e - s over the jobs that started.
	AverageWaitSeconds Value

	// CompletionSeconds is QCT, from the first submission to the end of the last
	// job to end. The thesis' formula takes the job submitted last, its text "the
	// time the last job exits"; the text holds.
	CompletionSeconds Value

	// Utilization is AGU, the share of all nodes that was in use on average over
	// QCT. The thesis' sum runs from the absolute time s_0 to the duration QCT;
	// here it is a plain average over time.
	Utilization Value

	// Per second of QCT: jobs completed (JPR), jobs failed (JFR), jobs rejected
	// (JRR).
	CompletedRate, FailedRate, RejectedRate Value

	// FailureRate is the failures of attempts per second of QCT. The thesis calls
	// JFR the rate of jobs failing, and fails a job once; where a job can run again
	// the two differ.
	FailureRate Value
}

// Summarise measures a run on a grid of so many nodes. Without a job that
// started, nothing is defined. A run that took no time has a wait and a QCT of 0
// seconds and no rates; a grid without nodes has no utilization.
func Summarise(jobs []Job, gridNodes float64) (Summary, error) {
	if err := argument.Amount("nodes of the grid", gridNodes); err != nil {
		return Summary{}, err
	}
	var total totals
	first, last := math.Inf(1), math.Inf(-1)
	for _, j := range jobs {
		if err := j.validate(); err != nil {
			return Summary{}, err
		}
		first = min(first, j.SubmitSeconds)
		if j.Started {
			last = max(last, j.StartSeconds+j.RunSeconds)
		}
		total.add(j)
	}
	if total.started == 0 {
		return Summary{}, nil
	}
	s := Summary{
		AverageWaitSeconds: value(total.wait / total.started), CompletionSeconds: value(last - first),
	}
	qct, known := s.CompletionSeconds.Get()
	if !known || qct == 0 {
		return s, nil
	}
	if gridNodes > 0 {
		s.Utilization = value(total.work / qct / gridNodes)
	}
	s.CompletedRate, s.FailedRate = value(total.outcomes[Completed]/qct),
		value(total.outcomes[Failed]/qct)
	s.RejectedRate, s.FailureRate = value(total.outcomes[Rejected]/qct), value(total.failures/qct)
	return s, nil
}

// totals holds the sums of Summarise.
type totals struct {
	started, wait, work float64
	failures            float64
	outcomes            [Rejected + 1]float64
}

func (t *totals) add(j Job) {
	t.outcomes[j.Outcome]++
	t.failures += float64(j.Failures)
	if j.Started {
		t.started++
		t.wait += j.StartSeconds - j.SubmitSeconds
		t.work += argument.Product(j.RunSeconds, j.Nodes)
	}
}
