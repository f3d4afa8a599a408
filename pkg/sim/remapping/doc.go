// Package remapping plays reservations on machines that fail, and rules for which of them leave
// a failed machine, and when: the experiments of VRM, section 5.
//
// The rules are those of pkg/remap, by which the controller of a domain decides, too. What is a
// model is the rest: time goes in slots, one controller knows all reservations, and only it makes
// them. Machines fail one after the other, for as long each
// time. For each seed the same requests come and the same machines fail, whatever the rules. The
// tests hold the rules against pkg/papers/remap, which has them as they are printed.
//
//	model.go    machines, requests and failures, as they are drawn
//	machine.go  who has reserved each machine
//	play.go     Play: what happens, one slot after the other
//	count.go    what came of it
//
// Source: L.-O. Burchard and others, "VRM: A Failure-Aware Grid Resource Management System".
package remapping
