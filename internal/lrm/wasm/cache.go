package wasm

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// defaultCacheBytes bounds the compiled modules that are kept: about a hundred
// large programs.
const defaultCacheBytes = 1 << 30

// pruneCache removes the oldest compiled modules until the rest takes at most
// limit bytes. A runner that has one open keeps it; one that misses it compiles.
func pruneCache(dir string, limit int64) error {
	type entry struct {
		path  string
		bytes int64
		made  time.Time
	}
	var entries []entry
	var total int64
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return nil //nolint:nilerr // it just vanished
		}
		entries = append(entries, entry{path: path, bytes: info.Size(), made: info.ModTime()})
		total += info.Size()
		return nil
	})
	if err != nil {
		return fmt.Errorf("look through wasm cache: %w", err)
	}
	slices.SortFunc(entries, func(a, b entry) int {
		return cmp.Or(a.made.Compare(b.made), cmp.Compare(a.path, b.path))
	})
	for _, e := range entries {
		if total <= limit {
			return nil
		}
		if err := os.Remove(e.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("prune wasm cache: %w", err)
		}
		total -= e.bytes
	}
	return nil
}
