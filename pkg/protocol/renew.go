package protocol

import (
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Renew asks the submitter to prolong the leases of attempts.
type Renew struct {
	// Renewal is the site's number for this request; the answer repeats it. What a site sends
	// later has a higher one.
	Renewal  uint64
	Attempts []grid.AttemptID
	// Left is the time that is left of the lease of each of Attempts, counted from sending; 0:
	// it has none. Empty: an earlier version does not say.
	Left []time.Duration `json:",omitempty"`
	// List tells what else the site has, so that what is missing is known to be gone. nil: an
	// earlier version does not say, and nothing follows from what is missing.
	List *Listing `json:",omitempty"`
}

// Listing makes a Renew the full list of the submitter's attempts at the site, within a range
// of their order (grid.AttemptID.Compare): a long list takes several messages, each of which
// counts without the others.
type Listing struct {
	Also  []grid.AttemptID `json:",omitempty"` // that the site has and wants no lease for
	After grid.AttemptID   `json:",omitzero"`  // where the range begins, exclusive; zero: at the first
	UpTo  grid.AttemptID   `json:",omitzero"`  // where it ends, inclusive; zero: with the last
}

// MaxLateLease bounds what a Lease is worth that answers a request which a later one has
// followed: the site counts at most this long from the sending of the request. So a submitter
// that reads in a later request how long a lease has left knows that no longer one of its
// own is still on the way.
const MaxLateLease = time.Minute

// Holds reports whether an attempt is in the range of the list.
func (l *Listing) Holds(id grid.AttemptID) bool {
	return id.Compare(l.After) > 0 && (l.UpTo == grid.AttemptID{} || id.Compare(l.UpTo) <= 0)
}

// Validate reports the first field that is out of its range.
func (m Renew) Validate() error {
	if len(m.Left) > 0 && len(m.Left) != len(m.Attempts) {
		return invalidf("renew: %d attempts and the leases of %d", len(m.Attempts), len(m.Left))
	}
	for _, d := range m.Left {
		if d < 0 || d > maxLease {
			return invalidf("renew: what is left of a lease: want 0 to %s, have %s", maxLease, d)
		}
	}
	if m.List == nil {
		return checkAttempts(m.Attempts)
	}
	if n := len(m.Attempts) + len(m.List.Also); n > MaxAttempts {
		return invalidf("renew: want at most %d attempts, have %d", MaxAttempts, n)
	}
	return firstError(checkAttempts(m.Attempts), m.List.validate())
}

func (l *Listing) validate() error {
	for _, id := range l.Also {
		if err := id.Validate(); err != nil {
			return err
		}
	}
	for _, end := range []grid.AttemptID{l.After, l.UpTo} {
		if end == (grid.AttemptID{}) {
			continue
		}
		if err := end.Validate(); err != nil {
			return err
		}
	}
	return nil
}
