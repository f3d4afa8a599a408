package protocol

import (
	"maps"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// replayBits is the distance behind a signer's highest sequence at which an envelope can
// still be told apart from a replay: a burst of some thousand envelopes may arrive in any
// order. It costs 1 KiB for each signer.
const replayBits = 8_192

// ReplayWindow tells whether an envelope is accepted for the first time. It
// holds about 1 KiB for each signer that was heard within the last MaxSkew +
// MaxValidity, and reads no clock. Make it with NewReplayWindow.
type ReplayWindow struct {
	maxSigners int
	signers    map[grid.SiteID]*seenSequences
	nextSweep  time.Time // when it is worth looking for signers to forget again
}

// NewReplayWindow returns a window for at most maxSigners signers (at least 1)
// at a time.
func NewReplayWindow(maxSigners int) *ReplayWindow {
	return &ReplayWindow{maxSigners: max(1, maxSigners), signers: make(map[grid.SiteID]*seenSequences)}
}

// Admit reports nil exactly once for a signer and sequence, and remembers it.
// Otherwise it reports errExpired, errFuture, errReplayed or errCrowded and
// remembers nothing. Call it only for an envelope whose signature was verified:
// a forged one would use up the sequence of a real one. now never decreases.
func (w *ReplayWindow) Admit(e Envelope, now time.Time) error {
	if err := w.Check(e, now); err != nil {
		return err
	}
	seen, known := w.signers[e.Signer]
	if !known {
		w.forget(now)
		if len(w.signers) >= w.maxSigners {
			return errCrowded
		}
		seen = &seenSequences{}
	}
	seen.add(e.Sequence)
	if forgetAt := e.forgetAt(); forgetAt.After(seen.forgetAt) {
		seen.forgetAt = forgetAt
	}
	w.signers[e.Signer] = seen
	return nil
}

// Check reports errExpired, errFuture or errReplayed for an envelope that Admit
// would refuse for one of these. It changes nothing, so it may come before the
// signature is verified.
func (w *ReplayWindow) Check(e Envelope, now time.Time) error {
	if err := e.CheckTime(now); err != nil {
		return err
	}
	if seen, known := w.signers[e.Signer]; known && seen.has(e.Sequence) {
		return errReplayed
	}
	return nil
}

// forget drops the signers of whom no envelope that was accepted could be
// accepted again, when the window is full.
func (w *ReplayWindow) forget(now time.Time) {
	if len(w.signers) < w.maxSigners || now.Before(w.nextSweep) {
		return
	}
	w.nextSweep = now.Add(MaxSkew)
	for _, id := range slices.Sorted(maps.Keys(w.signers)) {
		switch forgetAt := w.signers[id].forgetAt; {
		case forgetAt.Before(now):
			delete(w.signers, id)
		case forgetAt.Before(w.nextSweep):
			w.nextSweep = forgetAt
		}
	}
}

// seenSequences is the set of sequences seen of one signer: a ring of bits that
// ends with the highest one.
type seenSequences struct {
	highest  uint64
	forgetAt time.Time // when the last accepted envelope cannot be accepted again
	bits     [replayBits / 64]uint64
}

// has reports whether the sequence was seen, or is too old to tell.
func (s *seenSequences) has(sequence uint64) bool {
	if sequence > s.highest {
		return false
	}
	return s.highest-sequence >= replayBits || s.bits[sequence%replayBits/64]&(1<<(sequence%64)) != 0
}

// add adds a sequence that it has not.
func (s *seenSequences) add(sequence uint64) {
	if sequence > s.highest {
		s.clear(sequence)
		s.highest = sequence
	}
	s.bits[sequence%replayBits/64] |= 1 << (sequence % 64)
}

// clear makes room for the sequences above the highest one up to the one given.
func (s *seenSequences) clear(sequence uint64) {
	if sequence-s.highest >= replayBits {
		clear(s.bits[:])
		return
	}
	for n := s.highest + 1; n <= sequence && n != 0; n++ {
		s.bits[n%replayBits/64] &^= 1 << (n % 64)
	}
}
