// Package remap decides which reservations leave a machine that has failed, and where they go. The
// controller of a domain (pkg/domain) and the experiments of `gridsim run vrm` (pkg/sim/remapping)
// use the same code.
//
// Who reserved a machine was promised a start and an end, so a reservation can move to another
// machine and not in time. Moving all of them together would block the other machines for nothing
// if the failure is short; moving each only when its time has come finds them full. So in each slot
// of the failure Policy.Before works out how far ahead the machines are busy, and what starts
// within that interval is moved while it fits, in the order of booking. Table says what is
// reserved of each machine, and which of them can take a reservation.
//
// Time is counted in slots from any common beginning; a reservation holds the slots from its start
// up to, and not including, its stop. Arguments are not checked: a slot beyond the table panics.
//
//	policy.go   how far ahead reservations leave: by load, and the references
//	table.go    what is reserved of each machine in each slot
//	booking.go  the average booking profile
//	move.go     who leaves, in which order, and which machine takes it
//
// Source: L.-O. Burchard, C. A. F. De Rose, H.-U. Heiss, B. Linnert, J. Schneider, "VRM: A
// Failure-Aware Grid Resource Management System", sections 4.1 to 4.6. The tests hold it against
// pkg/papers/remap, which has the same as it is printed.
package remap
