package view

// TESTask is a task of the agent's door for workflow engines (GA4GH TES), as far as a person who
// has submitted it wants to know.
type TESTask struct {
	ID    string   `json:"id"`
	State string   `json:"state"` // QUEUED, INITIALIZING, RUNNING or how it ended
	Logs  []TESLog `json:"logs"`  // one for each attempt, the newest last
}

// TESLog is an attempt to run such a task.
type TESLog struct {
	Metadata  map[string]string `json:"metadata"`    // job, site_name, distance and more
	Notes     []string          `json:"system_logs"` // what went wrong outside of its programs
	Executors []TESExecutor     `json:"logs"`        // those that have run
}

// TESExecutor is one of a task's programs that has ended.
type TESExecutor struct {
	Code   int    `json:"exit_code"`
	Stdout string `json:"stdout"` // the last 10 KiB
	Stderr string `json:"stderr"` // the last 10 KiB
}

// Ended reports whether the task's state is final.
func (t TESTask) Ended() bool {
	switch t.State {
	case "COMPLETE", "EXECUTOR_ERROR", "SYSTEM_ERROR", "CANCELED":
		return true
	default:
		return false
	}
}

// Newest is the log of the newest attempt, empty if there was none.
func (t TESTask) Newest() TESLog {
	if len(t.Logs) == 0 {
		return TESLog{}
	}
	return t.Logs[len(t.Logs)-1]
}
