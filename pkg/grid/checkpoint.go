package grid

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"
)

// Saving says when a task's state is to be saved, so that another site can go on from there. The
// zero value leaves it to the site: as often as what it has learned of its failures makes
// worthwhile (pkg/ckpt). A program that saves nothing is run all the same.
type Saving struct {
	Off   bool          `json:",omitempty"` // never
	Every time.Duration `json:",omitempty"` // so often; 0 = the site decides
	// Rule says what is left out or changed of that; it needs an interval.
	Rule SavingRule `json:",omitempty"`
	// Whole says that the program does not save by itself: the site saves all of it, memory and
	// files. Only sites that can do that run it.
	Whole bool `json:",omitempty"`
}

// SavingRule adapts how often a state is saved to how often its site fails, as the FIBR paper has
// it (pkg/ckpt).
type SavingRule uint8

// The rules.
const (
	saveAlways SavingRule = iota // after every interval
	SaveLFCA                     // less on a site that was lost longer ago than the task runs
	SaveMFCA                     // the interval grows and shrinks with the time between failures
)

// String is the job file's word, empty where none is named.
func (r SavingRule) String() string {
	switch r {
	case SaveLFCA:
		return "lfca"
	case SaveMFCA:
		return "mfca"
	default:
		return ""
	}
}

// The limits on how often a state is saved on request.
const (
	MinSaving = time.Second
	MaxSaving = 24 * time.Hour
)

// Validate reports a rule that contradicts itself or is out of its range.
func (s Saving) Validate() error {
	switch {
	case s.Off && s.Whole:
		return invalidf("checkpoint: off and transparent exclude each other")
	case s.Off && s.Every != 0:
		return invalidf("checkpoint: off and an interval exclude each other")
	case s.Rule > SaveMFCA:
		return invalidf("checkpoint: no such rule: %d", s.Rule)
	case s.Rule != saveAlways && s.Every == 0:
		return invalidf("checkpoint: want an interval beside %s", s.Rule)
	case s.Every != 0 && (s.Every < MinSaving || s.Every > MaxSaving):
		return invalidf("checkpoint: want an interval of %s to %s, have %s",
			MinSaving, MaxSaving, s.Every)
	default:
		return nil
	}
}

// String is the job file's word: "auto", "off", "every 5m0s", "lfca every 5m0s", "transparent" or
// "transparent every 5m0s".
func (s Saving) String() string {
	often := s.often()
	switch {
	case s.Whole && often == "":
		return wholeWord
	case s.Whole:
		return wholeWord + " " + often
	case s.Off:
		return "off"
	case often == "":
		return "auto"
	default:
		return often
	}
}

// often is empty where the site decides.
func (s Saving) often() string {
	switch {
	case s.Every == 0:
		return ""
	case s.Rule == saveAlways:
		return everyWord + s.Every.String()
	default:
		return s.Rule.String() + " " + everyWord + s.Every.String()
	}
}

// The words before an interval; the first one asks for Whole, alone or with an interval.
const (
	wholeWord = "transparent"
	everyWord = "every "
)

// validateWhole refuses to save whole what is no command: other programs save by themselves.
func (s Spec) validateWhole() error {
	if s.Checkpoint.Whole && s.Kind != KindCommand {
		return invalidf("checkpoint: transparent is for commands; a module is saved without it")
	}
	return nil
}

// Checkpoint is a saved state of a task.
type Checkpoint struct {
	Number uint64        // of the task's checkpoints, from 1; a later one has a higher number
	CID    CID           // the state with its seal, see protocol.Seal
	Bytes  int64         // its size
	Worked time.Duration `json:",omitempty"` // run time that is in it, as its sites measured it
	// Percent of the work is done, as the program itself says: 1 to 100; 0 = it does not say.
	Percent uint8 `json:",omitempty"`
}

// MaxSaved checkpoints of a task are kept: the one before the latest is used when that cannot be.
const MaxSaved = 2

// Validate reports the first field that is out of its range.
func (c Checkpoint) Validate() error {
	switch {
	case c.Number == 0:
		return invalidf("checkpoint: numbers count from 1")
	case c.Worked < 0 || c.Worked > 2*MaxRuntime:
		return invalidf("checkpoint: run time: want 0 to %s, have %s", 2*MaxRuntime, c.Worked)
	case c.Percent > 100:
		return invalidf("checkpoint: want at most 100 %%, have %d", c.Percent)
	default:
		return firstError(c.CID.Validate(), checkRange("checkpoint (bytes)", c.Bytes, maxBytes))
	}
}

// ValidateSaved reports the first thing that is wrong with the checkpoints of one task, the latest
// first.
func ValidateSaved(saved []Checkpoint) error {
	if len(saved) > MaxSaved {
		return invalidf("checkpoints: want at most %d, have %d", MaxSaved, len(saved))
	}
	for i, c := range saved {
		if err := c.Validate(); err != nil {
			return err
		}
		if i > 0 && c.Number >= saved[i-1].Number {
			return invalidf("checkpoints: want the latest first")
		}
	}
	return nil
}

// WorkDigest names what a task computes: its program, arguments, variables and inputs, in
// hexadecimal digits of a SHA-256. A state that was saved under another digest is none of this
// task's. What a site adds of its own, such as a limit, does not count.
func (t Task) WorkDigest() string {
	text, err := json.Marshal(struct {
		ID     TaskID
		Kind   WorkKind
		Module CID
		Args   []string
		Env    []EnvVar
		Inputs []Input
	}{t.ID, t.Kind, t.Module, t.Args, t.Env, t.Inputs})
	if err != nil {
		return "" // plain texts and numbers always can be written
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// ParseSaving reads what String writes, and any span after "every". The error is ErrInvalid.
func ParseSaving(text string) (Saving, error) {
	switch text {
	case "auto":
		return Saving{}, nil
	case "off":
		return Saving{Off: true}, nil
	case wholeWord:
		return Saving{Whole: true}, nil
	}
	rest, whole := strings.CutPrefix(text, wholeWord+" ")
	s := Saving{Whole: whole}
	for _, rule := range []SavingRule{SaveLFCA, SaveMFCA} {
		if after, is := strings.CutPrefix(rest, rule.String()+" "); is {
			s.Rule, rest = rule, after
			break
		}
	}
	span, is := strings.CutPrefix(rest, everyWord)
	switch {
	case !is && rest != text:
		return Saving{}, invalidf("checkpoint: want every 5m after %s, have %q",
			strings.TrimSpace(strings.TrimSuffix(text, rest)), rest)
	case !is:
		return Saving{}, invalidf("checkpoint: want auto, off, every 5m, lfca every 5m, "+
			"mfca every 5m or transparent, have %q", text)
	}
	return s.parseEvery(span)
}

// parseEvery adds the interval.
func (s Saving) parseEvery(span string) (Saving, error) {
	every, err := ParseSpan(strings.TrimSpace(span))
	if err != nil {
		return Saving{}, invalidf(
			"checkpoint: want a number with a unit (s, m, h) after every, have %q", span,
		)
	}
	if every == 0 { // it is not the same as auto
		return Saving{}, invalidf("checkpoint: want an interval of %s to %s, have %s",
			MinSaving, MaxSaving, every)
	}
	s.Every = every
	return s, s.Validate()
}
