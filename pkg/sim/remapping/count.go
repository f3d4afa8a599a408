package remapping

// Outcome counts what came of a run.
type Outcome struct {
	Requests  int64
	Blocked   int64 // requests that got no reservation
	Ended     int64 // running jobs that failures ended
	Missed    int64 // reservations that would have started on a failed machine
	Saved     int64 // moved, and would have been Ended or Missed
	Overhead  int64 // moved, though their start was past the end of the failure
	Completed int64 // jobs that were done when the run ended
}

// Terminated counts the jobs that failures cost.
func (o Outcome) Terminated() int64 { return o.Ended + o.Missed }

// Termination is the paper's termination ratio; a job that failures hit twice counts twice (E25).
// It is 0 where failures hit nothing.
func (o Outcome) Termination() float64 {
	return part(o.Terminated(), o.Terminated()+o.Saved)
}

// Blocking is the paper's request blocking ratio.
func (o Outcome) Blocking() float64 { return part(o.Blocked, o.Requests) }

func part(some, all int64) float64 {
	if all == 0 {
		return 0
	}
	return float64(some) / float64(all)
}
