package fault

import "fmt"

// Cause says in what way a site failed. The numbers are part of the protocol and of stored facts:
// they never change their meaning.
type Cause uint8

// The causes.
const (
	unnamed  Cause = iota // counted by an earlier version, or by a newer one in a way unknown here
	Silent                // a lease ended without a sign of life
	NoAnswer              // an award was not answered within the response window
	Died                  // the site's agent was restarted, or died
	Overdue               // an attempt had its time and did not end
	Failed                // the site could not bring a task to an end
	NoOutput              // what it is said to have left is not there
	Wrong                 // its result was wrong
	causes
)

// String is the cause in words that follow a number and "times".
func (c Cause) String() string {
	names := [causes]string{
		"earlier fault", "lost lease", "unanswered award", "restart", "overrun bound",
		"failure of the site", "missing output", "wrong result",
	}
	if c < causes {
		return names[c]
	}
	return fmt.Sprintf("cause %d", uint8(c))
}

// OfTheLink reports whether a fault may as well be one of the link to the site, or of who counts
// it, than of the site.
func (c Cause) OfTheLink() bool { return c == Silent || c == NoAnswer }

// Counts says how often a site failed in each way.
type Counts [causes]uint32

// Counted is a cause in words, with how often a site failed so.
type Counted struct {
	Word  string
	Times uint32
}

// InWords lists the causes that were counted, in their order.
func (n *Counts) InWords() []Counted {
	var all []Counted
	for c, times := range n {
		if times > 0 {
			all = append(all, Counted{Cause(c).String(), times})
		}
	}
	return all
}

// add counts a fault. A cause that is not known counts as unnamed.
func (n *Counts) add(c Cause) {
	if c >= causes {
		c = unnamed
	}
	if n[c] < maxCount {
		n[c]++
	}
}

func (n *Counts) takeBack(c Cause) {
	if c < causes && n[c] > 0 {
		n[c]--
	}
}

// maxCount is the highest count.
const maxCount = 1 << 30
