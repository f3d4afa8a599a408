package store

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	bolt "go.etcd.io/bbolt"

	"github.com/mrsmesh/mrsmesh/internal/durable"
)

// A file of which more than half is free, and that is larger than this, is written anew at
// the start: bbolt never makes one shorter.
const (
	compactAbove = 8 << 20
	compactTx    = 1 << 20 // bytes written at a time
	newSuffix    = ".new"
)

// openCompacted opens a file of facts or of ended jobs. The caller's lock lasts until the
// shorter file has taken its place, so that no other agent works on the one that is left.
func openCompacted(path string, log *slog.Logger) (*bolt.DB, error) {
	// What a crash left while such a file was written.
	err := os.Remove(path + newSuffix) //nolint:gosec // the owner chose dir
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("remove what is left of an earlier start: %w", err)
	}
	db, err := openDB(path, false)
	if err != nil || !sparse(db) {
		return db, err
	}
	before := fileSize(path)
	if err = compactTo(path, db); err != nil {
		// The file is whole and only larger than it must be: the disk may be full.
		log.Warn("a file was not made shorter", "file", path, "error", err)
		return db, nil
	}
	if err = db.Close(); err != nil {
		return nil, fmt.Errorf("close %s: %w", path, err)
	}
	if db, err = openDB(path, false); err == nil {
		log.Info("a file was made shorter", "file", path, "before", before, "after", fileSize(path))
	}
	return db, err
}

// sparse reports whether most of a file is free.
func sparse(db *bolt.DB) bool {
	size := fileSize(db.Path())
	free := int64(db.Stats().FreePageN) * int64(db.Info().PageSize)
	return size > compactAbove && free > size/2
}

func fileSize(path string) int64 {
	info, err := os.Stat(path) //nolint:gosec // the owner chose dir
	if err != nil {
		return 0
	}
	return info.Size()
}

// compactTo writes what a file holds to a new one, which takes its name when it is on disk.
func compactTo(path string, db *bolt.DB) error {
	shorter, err := openDB(path+newSuffix, false)
	if err != nil {
		return err
	}
	err = guard(path, func() error { return bolt.Compact(shorter, db, compactTx) })
	if err == nil {
		err = shorter.Sync()
	}
	if err = errors.Join(err, shorter.Close()); err != nil {
		return errors.Join(err, os.Remove(path+newSuffix)) //nolint:gosec // the owner chose dir
	}
	err = os.Rename(path+newSuffix, path) //nolint:gosec // the owner chose dir
	if err != nil {
		return err
	}
	return durable.SyncDir(filepath.Dir(path))
}
