package grid

import (
	"slices"
	"strings"
)

// Policy is the order in which what waits in a site's plan for no promised time moves
// up. The configuration file's key is planning.policy.
type Policy uint8

// The policies. OpenCCS explains EDF by the time until the latest possible start,
// which is LST, and DMS by the same; here EDF looks at the deadline itself.
const (
	PolicyFCFS Policy = iota // first come, first served
	PolicySJF                // shortest run time first, as asked for
	PolicyLJF                // longest run time first, as asked for
	PolicyEDF                // earliest deadline first
	PolicyLST                // least slack: earliest latest start first
)

// Backfill says who may overtake those that came before. The configuration file's key
// is planning.backfill.
type Backfill uint8

// The kinds of backfilling.
const (
	BackfillConservative Backfill = iota // jobs that delay no other: all that wait keep their places
	BackfillEASY                         // jobs that do not delay the first of those that wait
	BackfillNone                         // no job
)

// AvailPolicy says what availability does to a job's placing, beyond its share in
// distance (thesis 3.3.1). The configuration file's key is placing.policy.
type AvailPolicy uint8

// What availability does.
const (
	AvailNone AvailPolicy = iota // nothing; the default
	AvailSAA                     // jobs for more nodes than are up in the long run are refused
	AvailNAA                     // tasks go to the sites likeliest to stay, not to the nearest
	AvailNSA                     // both
)

// Policies are the words for the policies, in the order of their numbers.
func Policies() []string { return []string{"fcfs", "sjf", "ljf", "edf", "lst"} }

// Backfills are the words for the kinds of backfilling, in the order of their numbers.
func Backfills() []string { return []string{"conservative", "easy", "none"} }

// AvailPolicies are the words for what availability does, in the order of their numbers.
func AvailPolicies() []string { return []string{"none", "saa", "naa", "nsa"} }

// ParsePolicy reads one of Policies. The error is ErrInvalid and names what there is.
func ParsePolicy(word string) (Policy, error) {
	return parseWord[Policy]("policy", word, Policies())
}

// ParseBackfill reads one of Backfills. The error is ErrInvalid and names what there is.
func ParseBackfill(word string) (Backfill, error) {
	return parseWord[Backfill]("backfill", word, Backfills())
}

// ParseAvailPolicy reads one of AvailPolicies. The error is ErrInvalid and names what
// there is.
func ParseAvailPolicy(word string) (AvailPolicy, error) {
	return parseWord[AvailPolicy]("policy", word, AvailPolicies())
}

// String is the word for what availability does.
func (p AvailPolicy) String() string { return wordOf(p, AvailPolicies()) }

// Admits reports whether jobs are refused that ask for too many nodes.
func (p AvailPolicy) Admits() bool { return p == AvailSAA || p == AvailNSA }

// Orders reports whether the sites likeliest to stay come first.
func (p AvailPolicy) Orders() bool { return p == AvailNAA || p == AvailNSA }

// String is the policy's word.
func (p Policy) String() string { return wordOf(p, Policies()) }

// String is the word for the kind of backfilling.
func (b Backfill) String() string { return wordOf(b, Backfills()) }

func parseWord[E ~uint8](what, word string, words []string) (E, error) {
	at := slices.Index(words, word)
	if at < 0 {
		return 0, invalidf("%s: want one of %s, have %q", what, strings.Join(words, ", "), word)
	}
	return E(at), nil
}

func wordOf[E ~uint8](e E, words []string) string {
	if int(e) < len(words) {
		return words[e]
	}
	return "unknown"
}
