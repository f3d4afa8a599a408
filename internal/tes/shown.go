package tes

import (
	"cmp"
	"strconv"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// stateOf is the state of a task whose job is so far. One that has ended is still running as long
// as its outputs are not where they belong.
func stateOf(phase view.Phase) TesState {
	switch phase {
	case view.PhaseWaiting, view.PhaseAnnounced:
		return QUEUED
	case view.PhaseAwarded, view.PhaseStaging, view.PhasePreparing:
		return INITIALIZING
	default: // frozen and suspended, too: a client has no use for them
		return RUNNING
	}
}

// endOf is the state of a task whose job has ended, before its outputs are looked at.
func endOf(t view.TaskView) TesState {
	switch {
	case t.Phase == view.PhaseDone:
		return COMPLETE
	case t.Phase == view.PhaseCancelled:
		return CANCELED
	case t.Phase == view.PhaseFailed && ofExecutor(t.Cause):
		return EXECUTORERROR
	default:
		return SYSTEMERROR
	}
}

// ofExecutor reports whether an end is the doing of a task's program.
func ofExecutor(cause string) bool {
	for _, c := range []grid.ExitCause{
		grid.CauseExited, grid.CauseSignal, grid.CauseMemory, grid.CauseOutput, grid.CauseTimeLimit,
	} {
		if cause == c.String() {
			return true
		}
	}
	return false
}

// ended reports whether a state is final.
func ended(s TesState) bool {
	switch s {
	case COMPLETE, CANCELED, EXECUTORERROR, SYSTEMERROR:
		return true
	default:
		return false
	}
}

// logsOf has an entry for each attempt of a task, the oldest first. What was not at another domain
// was at home.
func logsOf(job grid.JobID, home grid.DomainID, t view.TaskView) []TesTaskLog {
	logs := []TesTaskLog{}
	for _, a := range t.Attempts {
		facts := map[string]string{
			"job": string(job), "attempt": strconv.FormatUint(uint64(a.Token.Number()), 10),
			"site": string(a.Site), "domain": string(cmp.Or(a.Domain, home)),
			"distance": number(a.Distance),
		}
		if a.X != 0 || a.Y != 0 || a.Z != 0 { // else they are not known any more
			facts["x"], facts["y"], facts["z"] = number(a.X), number(a.Y), number(a.Z)
		}
		for name, text := range map[string]string{
			"site_name": a.SiteName, "cause": a.Cause, "text": a.Text,
		} {
			if text != "" {
				facts[name] = text
			}
		}
		logs = append(logs, TesTaskLog{
			Logs: []TesExecutorLog{}, Outputs: []TesOutputFileLog{}, Metadata: &facts,
			StartTime: timeOf(a.Started.Time), EndTime: timeOf(a.Ended.Time),
		})
	}
	return logs
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

// timeOf writes a time as the specification wants it, nil if there is none.
func timeOf(at time.Time) *string {
	if at.IsZero() {
		return nil
	}
	text := at.UTC().Format(time.RFC3339Nano)
	return &text
}

// last is the newest entry of the logs; it makes one if there is none.
func last(logs []TesTaskLog) ([]TesTaskLog, *TesTaskLog) {
	if len(logs) == 0 {
		logs = append(logs, TesTaskLog{Logs: []TesExecutorLog{}, Outputs: []TesOutputFileLog{}})
	}
	return logs, &logs[len(logs)-1]
}

// withNotes adds what the system has to say to the newest entry.
func withNotes(logs []TesTaskLog, notes []string) []TesTaskLog {
	if len(notes) == 0 {
		return logs
	}
	logs, newest := last(logs)
	newest.SystemLogs = &notes
	return logs
}

// minimal is a task in the view MINIMAL.
type minimal struct {
	ID    string   `json:"id"`
	State TesState `json:"state"`
}

// basic leaves out what the view BASIC does not have. The task is not changed.
func basic(task TesTask) TesTask {
	if task.Inputs != nil {
		inputs := make([]TesInput, len(*task.Inputs))
		for i, in := range *task.Inputs {
			in.Content = nil
			inputs[i] = in
		}
		task.Inputs = &inputs
	}
	if task.Logs == nil {
		return task
	}
	logs := make([]TesTaskLog, len(*task.Logs))
	for i, entry := range *task.Logs {
		entry.SystemLogs = nil
		ran := make([]TesExecutorLog, len(entry.Logs))
		for j, one := range entry.Logs {
			one.Stdout, one.Stderr = nil, nil
			ran[j] = one
		}
		entry.Logs = ran
		logs[i] = entry
	}
	task.Logs = &logs
	return task
}
