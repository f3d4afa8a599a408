// Package standby is the group of an owner's agent and its standbys: the owner's jobs survive
// the machine on which they were handed in, its disk included. The members keep the facts of
// the owner's broker in a replicated log, and agree on the one that runs the broker, the acting
// submitter. A take-over is a restart of the broker on another machine.
//
// Consensus is a library's, go.etcd.io/raft/v3: its RawNode has no goroutine and no clock. A
// Group is one member's part. It decides when to campaign and when to withhold a vote, when a
// machine of the owner's boots and when it is thrown away, and when what the machine wants may
// leave. It does not decide who belongs to a group, and knows nothing of jobs. The driver
// carries messages, the disk and the machine. A group of one is the same code: its entries are
// committed when its own disk has them.
//
// The promise: no two attempts of a task run at the same time, and nothing that was
// acknowledged is lost, while a majority of the group keeps its disks and clocks are right to
// 5 %. With a majority that can talk, all goes on.
//
// # What a driver owes a group
//
// One owner, calls that never overlap. Effects in order; a Save is one transaction, and Saved
// comes when it would survive a power failure. now is read after an input was taken from the
// queue, by a clock that counts suspends. The machine's inputs go to the machine, its effects
// to the group as Stepped, and nothing of them leaves but by a Release. A member that has lost
// its disk joins anew, under a new ID.
//
// # Where to look
//
// Rules are those of the design of standbys; ADR 0053 lists them.
//
//	config.go    what a member is told once
//	input.go     what can happen to a member
//	effect.go    what a member wants done
//	stored.go    rule 1: what is on the disk, and what a Save does to it
//	storage.go   the same as raft reads it
//	entry.go     what an entry of the log holds
//	message.go   what other members may say
//	group.go     Group: a Step
//	node.go      raft, and how it is set up
//	loop.go      raft's wishes: disk, messages, table
//	votes.go     rule 5: when a vote is withheld, when to campaign
//	lead.go      rules 3 and 7: a machine boots, and is thrown away
//	gate.go      rules 2 and 6: effects wait until they are committed, answers until confirmed
//	hold.go      rule 2: inputs wait when too much is not committed
//	rest.go      heartbeats are rare while there is nothing to do
//	transfer.go  rule 14: the lead is handed over
//	change.go    rule 13: members are replaced
//	register.go  rules 10 and 11: whom a site heeds, and to whom it answers; no part of a Group
//	offices.go   what a register remembers over restarts
//
// In tests: world_test.go, member_test.go, site_test.go, jobs_test.go and oracle_test.go are a
// simulator of groups with drifting clocks, lost messages, crashes and suspends;
// random_test.go plays chance in it, directed_test.go the schedules that chance rarely meets,
// each with its safeguard and without.
package standby
