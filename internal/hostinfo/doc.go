// Package hostinfo says what this machine has: cores, memory, free disk and the
// computation one core sustains. What cannot be found out is 0, which means
// unknown and is never replaced by a guess. It also turns what the machine has
// into the ceilings of a site whose owner named none.
package hostinfo
