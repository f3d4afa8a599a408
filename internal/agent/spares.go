package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
)

// mostSpares bounds the directories that are kept.
const mostSpares = 16

// spares are the emptied directories of attempts that are gone, for those that come. File systems
// are slow to make what they have just removed: to move a directory takes a tenth of that.
type spares struct {
	dir string // where they lie, one to a number

	mu   sync.Mutex
	free []string // guarded by mu
	made int      // guarded by mu
}

// take makes an attempt's directory.
func (s *spares) take(dir string) error {
	s.mu.Lock()
	spare := ""
	if last := len(s.free) - 1; last >= 0 {
		spare, s.free = s.free[last], s.free[:last]
	}
	s.mu.Unlock()
	if spare != "" && os.Rename(spare, dir) == nil {
		return nil
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return fmt.Errorf("make the attempt's directory: %w", err)
	}
	return nil
}

// give removes an attempt's directory, with all that is in it, or keeps it.
func (s *spares) give(dir string) error {
	s.mu.Lock()
	full := len(s.free) >= mostSpares
	s.mu.Unlock()
	if full || lrm.Empty(dir) != nil {
		return lrm.RemoveTree(dir)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made++
	spare := filepath.Join(s.dir, fmt.Sprint(s.made))
	if os.Rename(dir, spare) != nil {
		return lrm.RemoveTree(dir)
	}
	s.free = append(s.free, spare)
	return nil
}
