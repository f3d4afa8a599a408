package supervise

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
)

// RotateAbove is the size at which a run record is begun anew, bytes: some 4,000 attempts. With
// what comes before it is looked at again a record has 4 MiB at most.
const RotateAbove = 7 << 19

// Rotate puts a run record that has grown beyond a size aside, in place of the one before it,
// and reports whether it did. Supervisors go on in the file in which they began, so the one
// before is kept while any of them lives: both files together hold what is needed to recover.
// It is not called twice at the same time.
func Rotate(path string, above int64) (bool, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() <= above {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("rotate run record: %w", err)
	}
	before, err := lrm.ReadRecordsBefore(path)
	if err != nil {
		return false, err
	}
	for _, rec := range lrm.Unended(before) {
		if alive(rec.Supervisor) {
			return false, nil
		}
	}
	if err := os.Rename(path, lrm.RecordBefore(path)); err != nil {
		return false, fmt.Errorf("rotate run record: %w", err)
	}
	return true, nil
}
