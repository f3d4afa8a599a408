//go:build unix

package config

import (
	"io/fs"
	"os"
	"syscall"
)

// keepOwner gives a file that root wrote anew back to whom it belonged.
func keepOwner(file string, before fs.FileInfo) error {
	was, known := before.Sys().(*syscall.Stat_t)
	if !known || os.Geteuid() != 0 {
		return nil
	}
	return os.Chown(file, int(was.Uid), int(was.Gid))
}
