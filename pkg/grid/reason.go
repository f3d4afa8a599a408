package grid

import (
	"fmt"
	"strconv"
	"time"
)

// Reason says why a site refuses. The numbers are part of the protocol and
// never change their meaning.
type Reason uint16

// The reasons. A refusal with Never set cannot change until the site's owner
// changes the site; the others are about now.
const (
	ReasonNone         Reason = 0
	ReasonKind         Reason = 1  // the site does not run this kind of work
	ReasonPlatform     Reason = 2  // other operating system or architecture
	ReasonCPUs         Reason = 3  // too few cores
	ReasonMemory       Reason = 4  // too little memory
	ReasonDisk         Reason = 5  // too little disk
	ReasonComputation  Reason = 6  // no computation left to share
	ReasonData         Reason = 7  // an input cannot be reached from the site
	ReasonWindow       Reason = 8  // cannot end before the deadline, or not start in time
	ReasonPaused       Reason = 9  // the owner paused the site
	ReasonDraining     Reason = 10 // the site is stopping
	ReasonQuota        Reason = 11 // the submitter's share of the site is used up
	ReasonNotMember    Reason = 12 // the submitter is not on the site's list
	ReasonUnknownOffer Reason = 13 // the offer expired or was never made
	ReasonWorse        Reason = 14 // the site's new quote is worse than the old one and the runner-up
	ReasonStale        Reason = 15 // the fencing token is not above the last one
	ReasonInvalid      Reason = 16 // the message is invalid
	ReasonVersion      Reason = 17 // no common protocol version
	ReasonClock        Reason = 18 // the clocks are too far apart
	ReasonDomain       Reason = 19 // the peer is of another domain
	ReasonRuntime      Reason = 20 // the estimate is longer than the owner lets jobs run
	ReasonBanned       Reason = 21 // the peer is banned, from the domain or by the site's owner
	ReasonOwnerBusy    Reason = 22 // the owner uses the machine
	ReasonOwnerHours   Reason = 23 // outside of the hours at which the owner shares it
	ReasonAvailability Reason = 24 // the job asks for more together than is up in the long run (SAA)
	ReasonReservation  Reason = 25 // the site holds no such reservation of the submitter
	ReasonPromised     Reason = 26 // what it takes is promised to others
	ReasonAhead        Reason = 27 // farther ahead, or for longer, than the site promises anything
	ReasonAdapter      Reason = 28 // the site's sandbox cannot keep the plan
	ReasonOverrun      Reason = 29 // it ran longer than estimated and others were promised its place
	ReasonBandwidth    Reason = 30 // too little bandwidth, or the rate of its link is unknown
	ReasonPreparing    Reason = 31 // its program is compiled once for the site; it has not begun
	ReasonDiskFull     Reason = 32 // the machine's disk takes no more data for now
	ReasonOlderRun     Reason = 33 // another agent with the site's identity was started later
	ReasonSavedDamaged Reason = 34 // a checkpoint is cut short, or is none
	ReasonSavedForeign Reason = 35 // a checkpoint of another task, or of another program
	ReasonSavedOld     Reason = 36 // a checkpoint that is older than it is said to be
	ReasonSavedMissing Reason = 37 // a checkpoint could not be fetched
	ReasonCannotSave   Reason = 38 // its program has saved no state that it could go on from
	ReasonNowhere      Reason = 39 // no other site offers
	ReasonWhole        Reason = 40 // the site cannot save commands whole, see Saving.Whole
	ReasonLinkClosed   Reason = 41 // no open link joins the two domains
	ReasonPassedOn     Reason = 42 // it has crossed as many borders as it may, or goes in circles
	ReasonStays        Reason = 43 // such work stays in its domain
	ReasonUnreachable  Reason = 44 // the other domain cannot be reached now
	ReasonTooMany      Reason = 45 // the border handles no more requests at a time
	ReasonShare        Reason = 46 // the share that the link allows is used up
	ReasonFull         Reason = 47 // no site of the domain has capacity for it
	ReasonFlood        Reason = 48 // the peer cost the site too much, and is kept out for minutes
	ReasonUnsigned     Reason = 49 // the site runs signed work only
	ReasonSigner       Reason = 50 // its signer is not on the owner's list
	ReasonSignerKind   Reason = 51 // its signer is, for other kinds of work
	ReasonSignature    Reason = 52 // the signature does not fit the job
	ReasonEncrypted    Reason = 53 // the site's agent does not open encrypted content
	reasons                   = ReasonEncrypted
)

var reasonTexts = [...]string{ //nolint:gochecknoglobals // a constant table
	"no reason", "does not run this kind of work", "other operating system or architecture",
	"too few cores",
	"too little memory", "too little disk", "no computation left to share",
	"an input cannot be reached",
	"does not fit the time window", "paused by its owner", "stopping",
	"your share of this site is used up",
	"you are not on this site's list",
	"the offer is no longer valid", "became worse than the runner-up",
	"fenced off by a later attempt", "the message is invalid", "no common protocol version",
	"the clocks are too far apart", "other domain", "runs longer than the owner allows",
	"banned", "its owner is using the machine", "its owner shares it at other hours",
	"asks for more together than is up in the long run", "holds no such reservation of yours",
	"what it takes is promised to others", "farther ahead or longer than this site promises anything",
	"this site's sandbox cannot keep that plan",
	"ran longer than estimated, and others were promised its place",
	"too little bandwidth", "its program is being compiled, once for this site",
	"no space left on the machine's disk",
	"another agent with this site's identity was started later",
	"the checkpoint is damaged or cut short", "the checkpoint is of another task or program",
	"the checkpoint is older than it is said to be", "the checkpoint could not be fetched",
	"its program has saved no state", "no other site offers", "does not save commands",
	"no open link joins the two domains",
	"has crossed as many borders as it may", "such work stays in its own domain",
	"that domain cannot be reached", "too many requests at the border",
	"the share that the link allows is used up", "no site there has capacity",
	"made this site too much work, and is kept out for some minutes",
	"this site runs signed work only, and the job is not signed",
	"this site runs signed work only, and the job's signer is not on its list",
	"this site runs other kinds of work of the job's signer only",
	"the job's signature does not fit the job",
	"its agent is too old to open encrypted jobs; its owner can update it",
}

// String is the reason in words a person understands.
func (r Reason) String() string {
	if int(r) < len(reasonTexts) {
		return reasonTexts[r]
	}
	return fmt.Sprintf("reason %d", uint16(r))
}

// Refusal is a site's answer when it makes no offer. For a resource, Want tells what the
// task needs and Have what the site could give, in the resource's unit; their difference
// says what would have to change.
type Refusal struct {
	Reason Reason
	Never  bool  // never fits, rather than not now
	Want   int64 // what was asked for; 0 where the reason has no amount
	Have   int64 // what there is
}

// Validate reports an unknown reason or a negative amount.
func (r Refusal) Validate() error {
	if r.Reason == ReasonNone || r.Reason > reasons {
		return invalidf("reason %d is unknown", uint16(r.Reason))
	}
	return firstError(
		checkRange("wanted", r.Want, maxBytes),
		checkRange("available", r.Have, maxBytes),
	)
}

// Explain is the refusal as a sentence: "never fits: too little memory (wants
// 4.0 GiB, has 2.0 GiB)".
func (r Refusal) Explain() string {
	when := "not now"
	if r.Never {
		when = "never fits"
	}
	text := when + ": " + r.Reason.String()
	if r.Want == 0 && r.Have == 0 {
		return text // a neighbouring domain tells no amounts
	}
	switch r.Reason {
	case ReasonCPUs:
		return fmt.Sprintf("%s (wants %s cores, has %s)",
			text, FormatThousandths(r.Want), FormatThousandths(r.Have))
	case ReasonMemory, ReasonDisk:
		return fmt.Sprintf("%s (wants %s, has %s)", text, FormatBytes(r.Want), FormatBytes(r.Have))
	case ReasonComputation:
		return fmt.Sprintf("%s (wants %s GFLOPS, has %s)",
			text, FormatThousandths(r.Want), FormatThousandths(r.Have))
	case ReasonBandwidth:
		return fmt.Sprintf("%s (wants %s, has %s)", text, FormatRate(r.Want), FormatRate(r.Have))
	case ReasonWindow, ReasonAhead:
		return text + earliest(r)
	case ReasonAvailability:
		return fmt.Sprintf("%s (wants %d tasks, %d are acceptable)", text, r.Want, r.Have)
	default:
		return text
	}
}

// earliest returns what a refusal about time says beyond its reason. The amounts are
// seconds from the answer on: of a window the time that was asked for and the earliest
// that could be promised, of what is too far ahead the limit.
func earliest(r Refusal) string {
	of := func(s int64) time.Duration {
		return time.Duration(min(s, int64(MaxRuntime/time.Second))) * time.Second
	}
	switch {
	case r.Have == 0:
		return ""
	case r.Reason == ReasonAhead:
		return fmt.Sprintf(" (asks for %s, the limit is %s)", of(r.Want), of(r.Have))
	default:
		return fmt.Sprintf(" (wanted within %s, could be promised in %s)", of(r.Want), of(r.Have))
	}
}

// FormatBytes writes a size with the binary unit that suits it: "512 B",
// "1.5 GiB".
func FormatBytes(n int64) string {
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	units := []string{"KiB", "MiB", "GiB", "TiB", "PiB"}
	value, unit := float64(n)/1024, 0
	for value >= 1024 && unit < len(units)-1 {
		value, unit = value/1024, unit+1
	}
	return fmt.Sprintf("%.1f %s", value, units[unit])
}

// FormatThousandths writes an amount that counts in thousandths, such as cores or GFLOPS, exactly,
// so that what is a little too little does not read as enough: "1.96".
func FormatThousandths(n int64) string {
	return strconv.FormatFloat(float64(n)/1000, 'f', -1, 64)
}

// FormatRate writes a link's rate in Mbit/s, exactly, so that a small one does not
// read as none: "12.5 Mbit/s".
func FormatRate(bps int64) string {
	return strconv.FormatFloat(float64(bps)/1e6, 'f', -1, 64) + " Mbit/s"
}
