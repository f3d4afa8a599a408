package site

import (
	"fmt"
	"reflect"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/signed"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// vouching decides whose work this site runs. Judging a signature costs a tenth of a millisecond,
// and an award of a thousand tasks asks a thousand times: what was found is remembered. It follows
// from what is asked alone, so that forgetting it changes nothing.
type vouching struct {
	keys  signed.Keys
	known map[claim]grid.Reason
}

// claim is judged: a signature, for work of a kind.
type claim struct {
	kind grid.WorkKind
	sig  grid.Signature
}

const maxClaims = 1024 // remembered, at most 2 KiB each

// newVouching takes a list that was validated.
func newVouching(signers []grid.Signer) vouching {
	keys, err := signed.NewKeys(signers)
	if err != nil {
		panic(fmt.Sprintf("signers that were validated: %v", err))
	}
	return vouching{keys: keys, known: make(map[claim]grid.Reason)}
}

// refuses says why work of that kind is not run for its signature, or ReasonNone.
func (v *vouching) refuses(kind grid.WorkKind, sig grid.Signature) grid.Reason {
	if !v.keys.Any() {
		return grid.ReasonNone
	}
	c := claim{kind: kind, sig: sig}
	reason, known := v.known[c]
	if !known {
		if len(v.known) >= maxClaims {
			clear(v.known)
		}
		reason = v.keys.Judge(kind, sig)
		v.known[c] = reason
	}
	return reason
}

// isCovered reports whether a job's signature, if it has one, is about that job. It is asked of
// every signed job, also while nobody is listed: an owner may begin a list while it runs.
func isCovered(s grid.Spec) bool { return s.Signature.IsZero() || signed.Covers(s.Signature, s) }

// isCoveredItem reports the same of a task's item in its place of the job.
func isCoveredItem(s grid.Spec, t protocol.AwardedTask) bool {
	place := t.Index
	if t.CopyOf > 0 {
		place = t.CopyOf - 1
	}
	return s.Signature.IsZero() || signed.CoversItem(s.Signature, place, t.Item)
}

// trusted are the checkpoints that a task may go on from here. The memory of a command that was
// saved whole holds its program, too, and nobody has signed that: where work has to be signed such
// a task begins anew.
func (m *Machine) trusted(t grid.Task, saved []grid.Checkpoint) []grid.Checkpoint {
	if m.vouching.keys.Any() && t.Checkpoint.Whole {
		return nil
	}
	return saved
}

// isUnvouched reports whether an attempt may not run here for its signature.
func (m *Machine) isUnvouched(a *attempt) bool {
	if a.reserves() || !m.vouching.keys.Any() {
		return false
	}
	restored := a.task.Checkpoint.Whole && len(a.saving.from) > 0
	return a.started && !a.vouched || !a.started && restored ||
		m.vouching.refuses(a.task.Kind, a.task.Signature) != grid.ReasonNone
}

// stopUnvouched ends an attempt; its submitter hears of it and places the task elsewhere.
func (m *Machine) stopUnvouched(a *attempt) {
	m.stop(a, told, "its site now runs signed work only, and this is not signed by a listed key")
}

// changeSigners follows a list that the owner has changed: what it does not cover any more is
// stopped, while it runs, too, and so is all that began before there was a list: nobody has
// compared that with what was signed.
func (m *Machine) changeSigners(before []grid.Signer) {
	if reflect.DeepEqual(before, m.cfg.Signers) {
		return
	}
	m.vouching = newVouching(m.cfg.Signers)
	m.out.Report(
		step.LevelInfo,
		eventSignersChanged,
		step.Report{Value: float64(len(m.cfg.Signers))},
	)
	for _, a := range m.roster.where((*attempt).wantsLease) {
		if m.isUnvouched(a) {
			m.stopUnvouched(a)
		}
	}
	m.noteRoom() // a refused job may be welcome now
}
