package store

import (
	bolt "go.etcd.io/bbolt"
	"golang.org/x/sys/unix"
)

// letGo gives back the memory in which a database's pages were looked at. They stay in the
// kernel's cache as long as nothing else needs the room. This is advice: where it is not taken
// nothing else changes.
func letGo(db *bolt.DB) {
	_ = db.View(func(tx *bolt.Tx) error { // while it is open nothing is mapped anew
		_, _, _ = unix.Syscall(
			unix.SYS_MADVISE, db.Info().Data, uintptr(tx.Size()), unix.MADV_DONTNEED,
		)
		return nil
	})
}
