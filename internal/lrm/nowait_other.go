//go:build !unix

package lrm

// noWait adds nothing: no job runs on such a system, so none made a pipe.
const noWait = 0
