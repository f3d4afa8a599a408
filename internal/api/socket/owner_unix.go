//go:build unix

package socket

import (
	"io/fs"
	"syscall"
)

const hasOwners = true

// ownerOf is the number of the user to whom a file belongs.
func ownerOf(info fs.FileInfo) (int, bool) {
	stat, known := info.Sys().(*syscall.Stat_t)
	if !known {
		return 0, false
	}
	return int(stat.Uid), true
}
