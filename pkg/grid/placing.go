package grid

import (
	"cmp"
	"errors"
	"slices"
)

// Overrun says what an attempt allows when it has run for longer than estimated and
// what it holds is promised to somebody else from now on. While nobody needs it, it
// goes on.
type Overrun uint8

// What an overrunning attempt allows.
const (
	// OverrunSuspend suspends it until there is capacity again, if memory allows; else it is
	// stopped.
	OverrunSuspend Overrun = iota
	OverrunStop            // it is stopped as out of time
	overrunKinds   = OverrunStop
)

// String is the job file's word.
func (o Overrun) String() string {
	if o == OverrunStop {
		return "stop"
	}
	return "suspend"
}

// Split says how the parts of a job that must run at the same time share sites.
type Split uint8

// How a job is split. The tasks of a split job are its parts: they start together and
// each learns where the others are.
const (
	SplitNone  Split = iota // the tasks are independent: the default
	SplitNever              // all parts on one site
	// SplitIfNeeded places all on one site if one can take them, else on as few near ones as
	// it takes.
	SplitIfNeeded
	SplitGreedy // as many on each site as it takes, nearest first (thesis 2.1, 3.1.3)
	splitKinds  = SplitGreedy
)

// Unattended says what an attempt does when its lease ends and the submitter
// is silent.
type Unattended uint8

// What an unattended attempt does.
const (
	UnattendedFreeze Unattended = iota // wait, frozen, for the submitter
	UnattendedFinish                   // run on under a long lease granted beforehand
	UnattendedStop                     // end soon: nobody will want what it would come to
	unattendedKinds  = UnattendedStop
)

// unattendedWords are the job file's, by kind.
func unattendedWords() []string { return []string{"freeze", "finish", "stop"} }

// String is the job file's word.
func (u Unattended) String() string {
	if words := unattendedWords(); int(u) < len(words) {
		return words[u]
	}
	return ""
}

// ParseUnattended reads freeze (also for nothing), finish or stop.
func ParseUnattended(word string) (Unattended, error) {
	at := slices.Index(unattendedWords(), cmp.Or(word, UnattendedFreeze.String()))
	if at < 0 {
		return 0, invalidf("unattended %q: want freeze, finish or stop", word)
	}
	return Unattended(at), nil
}

// String is the job file's word, empty for a job that is not split.
func (s Split) String() string {
	words := [...]string{"", "never", "if-needed", "greedy"}
	if int(s) < len(words) {
		return words[s]
	}
	return ""
}

// validatePlacing is about how the tasks are placed.
func (j Job) validatePlacing() error {
	if len(j.After) > MaxAfter {
		return invalidf("after: more than %d jobs", MaxAfter)
	}
	for _, id := range j.After {
		if err := id.Validate(); err != nil {
			return invalidf("after: %v", err)
		}
	}
	if err := j.validateTakes(); err != nil {
		return err
	}
	switch {
	case j.Held && j.Spec.Kind == KindReservation:
		return invalidf("held: a reservation holds capacity from its start on and cannot wait")
	case j.Split > splitKinds:
		return invalidf("split: unknown value")
	case j.Flood && (j.Split != SplitNone || j.Spec.Window.Promised()):
		return invalidf("flood: the parts of a split job, and jobs with a fixed start or a deadline, " +
			"cannot be queued at several sites")
	default:
		return errors.Join(
			checkRange("communication (bytes)", j.CommBytes, maxBytes), j.validateRetries(),
			j.ValidateRedundancy())
	}
}

// validateRetries is about tasks that fail by their own doing.
func (j Job) validateRetries() error {
	switch {
	case j.Retries > MaxRetries:
		return invalidf("retries: want at most %d, have %d", MaxRetries, j.Retries)
	case j.Retries > 0 && j.Split != SplitNone:
		return invalidf(
			"retries: the parts of a split job run together, and none of them again alone",
		)
	case j.Spec.Kind == KindReservation && (j.Retries > 0 || j.MaxFailures > 0):
		return invalidf("retries, max-failures: a reservation runs nothing that could fail")
	case j.MaxFailures > MaxTasks:
		return invalidf("max-failures: want at most %d, have %d", MaxTasks, j.MaxFailures)
	}
	return nil
}

// validateStanding is about how the job stands among others.
func (s Spec) validateStanding() error {
	switch {
	case len(s.Project) > maxProject:
		return invalidf("project: longer than %d bytes", maxProject)
	case s.Priority < -MaxPriority || s.Priority > MaxPriority:
		return invalidf("priority: want -%d to %d, have %d", MaxPriority, MaxPriority, s.Priority)
	default:
		return validateReservation(s.Kind, s.Reservation)
	}
}

// validateReservation is about the reservation in which work runs.
func validateReservation(kind WorkKind, in JobID) error {
	switch {
	case in == "":
		return nil
	case kind == KindReservation:
		return invalidf("reservation: one inside another")
	default:
		return in.Validate()
	}
}
