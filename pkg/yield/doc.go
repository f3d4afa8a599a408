// Package yield decides when a site yields to its owner: from what the machine's
// processors and queues look like, and from the hours at which the owner shares it. It is
// pure; the driver measures and tells the time.
//
// The rule: the owner is in need when what others than this agent use leaves less than
// what its jobs use and a reserve, or when others wait for memory, disk or processors for
// a part of the time. What the jobs use is measured apart, so that a machine whose only
// load is its jobs is never busy. To yield takes two looks in a row; to go on takes a
// while of calm, and a longer one each time the owner was back right away. What cannot be
// measured is unknown and decides nothing.
//
// It does not decide what happens to jobs: pkg/site does.
//
//	judge.go    the owner's programs: from measurements to a verdict
//	hours.go    when the machine is shared, and what part of it
//	in_use.go   how much is given while somebody uses keyboard or mouse
//	input.go    whether somebody does
//	sessions.go ... of several who could, some at an X server
//	power.go    whether the machine runs on battery
//	metered.go  whether data costs money
//	heat.go     whether the processors are too hot
//	hook.go     the answer of a program of the owner's
package yield
