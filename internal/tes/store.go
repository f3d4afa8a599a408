package tes

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/durable"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// record is all that is kept of a task, on disk.
type record struct {
	ID      string
	Created time.Time
	Task    TesTask  // as it was given, with defaults
	Notes   []string `json:",omitempty"` // what was left out of it
	Mounts  []int    `json:",omitempty"` // its inputs that are directories which it may change
	// Job is made of the task when its data is stored. It is handed over with the task's ID as its
	// key, so that the same one is never run twice.
	Job      *grid.Job  `json:",omitempty"`
	JobID    grid.JobID `json:",omitempty"` // once it was handed over
	Canceled bool       `json:",omitempty"`
	End      *ending    `json:",omitempty"`
}

// ending tells how a task has ended.
type ending struct {
	State TesState
	At    time.Time
	Logs  []TesTaskLog
}

// store keeps a file for each task in one directory. It is safe for concurrent use.
type store struct {
	dir string
	mu  sync.Mutex // held while a record is changed

	counting sync.Mutex
	sizes    map[string]int64 // guarded by counting: of each record, bytes
	total    int64            // guarded by counting: their sum
}

// count keeps the size of a record; 0 = it is gone.
func (s *store) count(id string, size int) {
	s.counting.Lock()
	defer s.counting.Unlock()
	s.total += int64(size) - s.sizes[id]
	if s.sizes[id] = int64(size); size == 0 {
		delete(s.sizes, id)
	}
}

// size is that of a record, and that of all, in bytes.
func (s *store) size(id string) (one, all int64) {
	s.counting.Lock()
	defer s.counting.Unlock()
	return s.sizes[id], s.total
}

func (s *store) file(id string) string { return filepath.Join(s.dir, id+".json") }

// add writes a new task's record.
func (s *store) add(r record) error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return fmt.Errorf("keep the task: %w", err)
	}
	text, err := json.Marshal(r)
	if err == nil {
		err = durable.Create(s.file(r.ID), text)
	}
	if err != nil {
		return fmt.Errorf("keep the task: %w", err)
	}
	s.count(r.ID, len(text))
	return nil
}

// load reads a task's record.
func (s *store) load(id string) (r record, err error) {
	text, err := os.ReadFile(s.file(id))
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		return r, fmt.Errorf("read task %s: %w", id, err)
	}
	return r, nil
}

// change rewrites a task's record and returns it. One that has ended stays as it is.
func (s *store) change(id string, change func(*record)) (record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.load(id)
	if err != nil || r.End != nil {
		return r, err
	}
	change(&r)
	text, err := json.Marshal(r)
	if err == nil {
		err = durable.Replace(s.file(id), text)
	}
	if err != nil {
		return r, fmt.Errorf("keep task %s: %w", id, err)
	}
	s.count(id, len(text))
	return r, nil
}

// remove drops a task's record.
func (s *store) remove(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count(id, 0)
	return os.Remove(s.file(id))
}

// all reads every record. Those that cannot be read are left where they are, and reported.
func (s *store) all(each func(record)) error {
	entries, err := os.ReadDir(s.dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	errs := []error{err}
	for _, entry := range entries {
		id, is := strings.CutSuffix(entry.Name(), ".json")
		if !is {
			continue
		}
		r, err := s.load(id)
		if err == nil && r.ID != id {
			err = fmt.Errorf("read task %s: the file is that of task %s", id, quoted(r.ID))
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if info, err := entry.Info(); err == nil {
			s.count(id, int(info.Size()))
		}
		each(r)
	}
	return errors.Join(errs...)
}
