// Package step is the contract between the machines that think (pkg/site, pkg/broker, pkg/domain,
// pkg/border) and the drivers that touch the world (pkg/sim, internal/agent).
//
// A machine is a deterministic state machine. Its driver owes it:
//
//  1. One goroutine owns one machine; calls never overlap.
//  2. now never decreases from call to call.
//  3. The first input is Boot. Before it, a machine that ran before gets its
//     facts by Restore.
//  4. Effects are carried out in order. All Persist effects of one Step are
//     durable before any later Send, Broadcast, Stage, StartAttempt or Reply
//     takes effect; only an Announce or a Reannounce may go before them.
//  5. A timer set under a key replaces the one under the same key. A firing
//     that was overtaken by a replacement or a stop is not delivered, or is
//     ignored by the machine.
//  6. Values that cross the boundary are never changed afterwards, by neither
//     side.
//  7. Every input is journalled in order with its time, so that a replay by the
//     same build gives the same effects.
//
// The machine owes its driver: Step is bounded and never blocks; an invalid
// input yields a Report and no panic; Snapshot is exactly the table of facts
// that its Persist effects have built up so far; Check finds a broken
// invariant.
//
// What is not a fact is lost in a crash by design: announcements under way,
// soft offers, caches. Only promises, attempts, submissions, results and the
// fault ledger are facts.
//
// Out and Bans are what both machines hold: the effects and facts of a Step, and
// the sites whose messages are ignored.
//
//	step.go    Machine: the contract
//	input.go   what can happen to a machine
//	effect.go  what a machine wants done
//	border.go  both, of the border between two domains
//	out.go     Out: the effects of a Step and the facts of all, collected
//	bans.go    Bans: the banned sites
//	facts.go   Facts: the table that survives
//	plain.go   facts as they are written, read quickly
//	codec.go   inputs as bytes, for the journal
//	trace.go   effects as text, for people
//	hash.go    effects as one number, for comparing runs
package step
