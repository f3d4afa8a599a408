// Package hostinfo says what this machine has and can do: cores, memory, disk, the
// computation that one core sustains and the rate of the disk, both measured. It
// keeps what it measured for as long as the machine stays the same. It turns what
// the machine has into the ceilings of a site whose owner named none, and says
// what of these ceilings other programs leave now.
//
// What cannot be found out is unknown and is never replaced by a guess. It does
// not watch what others do: internal/owner does.
package hostinfo
