package data

import (
	"crypto/sha256"
	"os"
	"path/filepath"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// HeldBelow reads which roots a store's directory holds, without opening the store: its agent
// may be running. A root counts if the index has it whole and the block of the root is there;
// what is below it is not looked at.
func HeldBelow(dir string) (func(grid.CID) bool, error) {
	logged := make(map[digest]bool) // small blocks whose files may not be there yet
	roots, err := readRoots(filepath.Join(dir, rootLogName), func(block []byte) error {
		logged[sha256.Sum256(block)] = true
		return nil
	})
	if err != nil {
		return nil, err
	}
	blocks := &blockFiles{dir: dir}
	return func(c grid.CID) bool {
		r := roots[c]
		if r == nil || r.Partial {
			return false
		}
		parsed, err := parseCID(c)
		if err != nil {
			return false
		}
		d, err := digestOf(parsed)
		if err != nil {
			return false
		}
		_, err = os.Stat(blocks.path(d))
		return logged[d] || isEmpty(d) || err == nil
	}, nil
}
