//go:build unix

package config

import (
	"io/fs"
	"syscall"
	"testing"
)

// ownerOf is a file's user and group.
func ownerOf(t *testing.T, info fs.FileInfo) [2]uint32 {
	t.Helper()
	st, known := info.Sys().(*syscall.Stat_t)
	if !known {
		t.Fatal("nobody's file")
	}
	return [2]uint32{st.Uid, st.Gid}
}
