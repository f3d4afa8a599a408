package agent

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/mrsmesh/mrsmesh/internal/data"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// modules are the programs that attempts run, one file for each, shared by all
// attempts that run it and removed with the last of them.
type modules struct {
	dir   string
	store *data.Store

	mu    sync.Mutex       // held while a module is laid out: who needs it, too, waits for it
	users map[grid.CID]int // guarded by mu
}

func newModules(dir string, store *data.Store) *modules {
	return &modules{dir: dir, store: store, users: make(map[grid.CID]int)}
}

// take lays a module out unless it is there, and gives its path. Every take that
// returns no error is followed by one drop.
func (m *modules) take(
	ctx context.Context, key grid.JobKey, cid grid.CID,
) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	path := filepath.Join(m.dir, string(cid))
	if m.users[cid] == 0 {
		if err := layOut(ctx, m.store, key, grid.Input{CID: cid}, path); err != nil {
			return "", fmt.Errorf("lay out the module: %w", err)
		}
	}
	m.users[cid]++
	return path, nil
}

func (m *modules) drop(cid grid.CID) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.users[cid]--; m.users[cid] > 0 {
		return nil
	}
	delete(m.users, cid)
	return os.Remove(filepath.Join(m.dir, string(cid)))
}
