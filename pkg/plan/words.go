package plan

import (
	"fmt"
	"slices"
	"strings"
)

// The words for policies and kinds of backfilling, in the order of their numbers.
func policyWords() []string   { return []string{"fcfs", "sjf", "ljf", "edf", "lst"} }
func backfillWords() []string { return []string{"conservative", "easy", "none"} }

// ParsePolicy reads fcfs, sjf, ljf, edf or lst. The error is ErrInvalidArgument and
// names what there is.
func ParsePolicy(word string) (Policy, error) { return parse[Policy]("policy", word, policyWords()) }

// ParseBackfill reads conservative, easy or none. The error is ErrInvalidArgument and
// names what there is.
func ParseBackfill(word string) (Backfill, error) {
	return parse[Backfill]("backfilling", word, backfillWords())
}

// String is the policy's word.
func (p Policy) String() string { return wordOf(p, policyWords()) }

// String is the word for the kind of backfilling.
func (b Backfill) String() string { return wordOf(b, backfillWords()) }

func parse[E ~uint8](what, word string, words []string) (E, error) {
	at := slices.Index(words, word)
	if at < 0 {
		return 0, fmt.Errorf("%w: %s %q: want %s", ErrInvalidArgument, what, word, strings.Join(words, ", "))
	}
	return E(at), nil
}

func wordOf[E ~uint8](e E, words []string) string {
	if int(e) < len(words) {
		return words[e]
	}
	return "unknown"
}
