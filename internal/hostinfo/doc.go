// Package hostinfo says what this machine has and can do: cores, memory, disk, the
// computation that one core sustains and the rate of the disk, both measured. It
// keeps what it measured for as long as the machine stays the same. It turns what
// the machine has into the ceilings of a site whose owner named none, and says
// what of these ceilings other programs leave now.
//
// What cannot be found out is unknown and is never replaced by a guess. It does
// not watch what others do: internal/owner does.
//
// The files:
//
//	machine.go    what the hardware has, and the ceilings made of it
//	identity.go   the machine's name
//	kernel.go     the computation of a core, measured
//	disk.go       the rate of the disk, measured
//	cached.go     measurements kept
//	left.go       what other programs leave
//	sys_linux.go  what Linux tells of threads and files
//	sys_other.go  and what other systems do not
package hostinfo
