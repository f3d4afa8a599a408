// Package remapping plays reservations on machines that fail, and rules for which of them leave
// a failed machine, and when: the experiments of VRM, section 5.
//
// It is a model, as domains do not move reservations yet: time goes in slots, one controller knows
// all reservations, and only it makes them. Machines fail one after the other, for as long each
// time. For each seed the same requests come and the same machines fail, whatever the rules. The
// tests hold the rules against pkg/papers/remap, which has them as they are printed.
//
//	model.go    machines, requests and failures, as they are drawn
//	policy.go   rules, and how far ahead each of them looks
//	machine.go  what is reserved of each machine in each slot
//	play.go     Play: what happens, one slot after the other
//	count.go    what came of it
//
// Source: L.-O. Burchard and others, "VRM: A Failure-Aware Grid Resource Management System".
package remapping
