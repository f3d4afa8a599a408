package store

import (
	"bytes"
	"fmt"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// HistoryRow holds what a list shows of a job.
type HistoryRow struct {
	Job       grid.JobID
	Submitted time.Time
	Summary   []byte
}

// HistorySums says how much a history holds.
type HistorySums struct {
	Jobs  int64
	Bytes int64 // of records and summaries, as they are on disk
}

// Sums says how much there is.
func (h *History) Sums() (s HistorySums, err error) {
	err = h.view(func(tx *bolt.Tx) error {
		sums := tx.Bucket(historySums)
		s = HistorySums{Jobs: number(sums.Get([]byte("jobs"))), Bytes: number(sums.Get([]byte("bytes")))}
		return nil
	})
	return s, err
}

// Record is the record of a job, and whether its outputs are still kept; nil if the job is
// not here.
func (h *History) Record(id grid.JobID) (record []byte, outputs bool, err error) {
	var packed []byte
	err = h.view(func(tx *bolt.Tx) error {
		e, known := readHistoryEntry(tx.Bucket(endedJobs).Get([]byte(id)))
		if !known {
			return nil
		}
		end := append(bytes.Clone(e.ended), id...)
		if packed = bytes.Clone(e.record); len(packed) == 0 {
			packed = bytes.Clone(tx.Bucket(byEnd).Get(end))
		}
		outputs = tx.Bucket(byOutputs).Get(end) != nil
		return nil
	})
	if err != nil || packed == nil {
		return nil, false, err
	}
	record, err = unpack(packed)
	if err != nil {
		return nil, false, fmt.Errorf("read history: job %s: %w", id, err)
	}
	return record, outputs, nil
}

// Submitted is when a job of the history was submitted; the zero time if it is not here.
func (h *History) Submitted(id grid.JobID) (at time.Time, err error) {
	err = h.view(func(tx *bolt.Tx) error {
		if value := tx.Bucket(endedJobs).Get([]byte(id)); len(value) >= timeBytes {
			at, _ = splitKey(value[:timeBytes])
		}
		return nil
	})
	return at, err
}

// Summary returns what a list shows of a job; nil if it is not here.
func (h *History) Summary(id grid.JobID) (summary []byte, err error) {
	err = h.view(func(tx *bolt.Tx) error {
		if value := tx.Bucket(endedJobs).Get([]byte(id)); len(value) >= timeBytes {
			key := append(bytes.Clone(value[:timeBytes]), id...)
			summary = bytes.Clone(tx.Bucket(bySubmission).Get(key))
		}
		return nil
	})
	return summary, err
}

// HistoryQuery asks for a page of jobs, the one submitted last first.
type HistoryQuery struct {
	Since  time.Time  // submitted then or later; zero: all
	Before time.Time  // and before that, or at that time with a smaller ID; zero: all
	ID     grid.JobID // see Before
	Limit  int
}

// List gives a page of jobs.
func (h *History) List(q HistoryQuery) (rows []HistoryRow, err error) {
	err = h.view(func(tx *bolt.Tx) error {
		c := tx.Bucket(bySubmission).Cursor()
		key, summary := c.Last()
		if !q.Before.IsZero() {
			if key, _ = c.Seek(timeKey(q.Before, q.ID)); key == nil {
				key, summary = c.Last()
			} else {
				key, summary = c.Prev()
			}
		}
		for ; key != nil && len(rows) < q.Limit; key, summary = c.Prev() {
			at, id := splitKey(key)
			if at.Before(q.Since) {
				break
			}
			rows = append(rows, HistoryRow{Job: id, Submitted: at, Summary: bytes.Clone(summary)})
		}
		return nil
	})
	return rows, err
}

// WithPrefix lists jobs whose IDs begin with a text, ascending.
func (h *History) WithPrefix(text string, limit int) (ids []grid.JobID, err error) {
	err = h.view(func(tx *bolt.Tx) error {
		c := tx.Bucket(endedJobs).Cursor()
		for key, _ := c.Seek([]byte(text)); key != nil && len(ids) < limit; key, _ = c.Next() {
			if !bytes.HasPrefix(key, []byte(text)) {
				break
			}
			ids = append(ids, grid.JobID(key))
		}
		return nil
	})
	return ids, err
}

// Made is the job that was made by a request with a key; empty: none that is here.
func (h *History) Made(key string) (id grid.JobID, err error) {
	if key == "" {
		return "", nil
	}
	err = h.view(func(tx *bolt.Tx) error {
		id = grid.JobID(tx.Bucket(byKey).Get([]byte(key)))
		return nil
	})
	return id, err
}

// Holds reports whether data is kept for a job of the history.
func (h *History) Holds(cid grid.CID) (holds bool, err error) {
	err = h.view(func(tx *bolt.Tx) error {
		holds = tx.Bucket(outputCounts).Get([]byte(cid)) != nil
		return nil
	})
	return holds, err
}
