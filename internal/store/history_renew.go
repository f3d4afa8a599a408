package store

import bolt "go.etcd.io/bbolt"

// renewAfter is after how many writes a history's file is opened anew. For as long as it is open
// the database remembers of each page that was free and was taken which write took it: after
// 100,000 jobs that is a megabyte, which it has no use for.
const renewAfter = 2048

// use lends the open database.
func (h *History) use(do func(*bolt.DB) error) error {
	h.mu.RLock()
	defer h.mu.RUnlock()
	err := guard(h.path, func() error { return do(h.db) })
	if err == nil {
		letGo(h.db)
	}
	return err
}

// renew counts a write and opens the file anew when it is time. Where that fails nothing is lost:
// the next write tries again.
func (h *History) renew() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.writes++; h.closed || h.writes <= renewAfter {
		return nil
	}
	if err := h.db.Close(); err != nil {
		return err
	}
	db, err := openDB(h.path, false)
	if err != nil {
		return err
	}
	db.AllocSize, db.NoSync = historyStep, h.db.NoSync
	h.db, h.writes = db, 0
	return nil
}

// Close closes the file.
func (h *History) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	return h.db.Close()
}
