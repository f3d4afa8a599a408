package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// forgetAtOnce bounds the jobs that one transaction forgets.
const forgetAtOnce = 256

// spareBytes is the most that is left free of a history's bound.
const spareBytes = 4 << 20

// Keep says how long a history keeps what it has. A zero field is no bound.
type Keep struct {
	Outputs time.Time // outputs of jobs that ended before are let go
	Jobs    time.Time // jobs that ended before are forgotten
	Bytes   int64     // that the file may have; those that ended first make room for others
}

// Forgotten says what a history has let go.
type Forgotten struct {
	Jobs    int        // that it knows no more
	Emptied int        // whose outputs it keeps no more
	Outputs []grid.CID // that are kept for no job of it any more
}

// Forget drops a job.
func (h *History) Forget(id grid.JobID) (f Forgotten, err error) {
	err = h.update(func(tx *bolt.Tx) error {
		f = Forgotten{}
		e, known := readHistoryEntry(tx.Bucket(endedJobs).Get([]byte(id)))
		if !known {
			return nil
		}
		return f.drop(tx, append(bytes.Clone(e.ended), id...))
	})
	return f, err
}

// Expire lets go of some of what is beyond the bounds, and reports whether there is more.
func (h *History) Expire(keep Keep) (f Forgotten, more bool, err error) {
	over, err := h.isOver(keep)
	if err != nil || !over {
		return f, false, err
	}
	err = h.update(func(tx *bolt.Tx) error {
		f = Forgotten{}
		fits := fitting(tx, keep.Bytes)
		for f.Jobs+f.Emptied < forgetAtOnce {
			switch key, outputs := beyond(tx, keep, fits); {
			case key == nil:
				return nil
			case outputs:
				if err = f.empty(tx, key); err != nil {
					return err
				}
				f.Emptied++
			default:
				if err = f.drop(tx, key); err != nil {
					return err
				}
			}
		}
		more = true
		return nil
	})
	return f, more, err
}

// isOver looks without writing.
func (h *History) isOver(keep Keep) (over bool, err error) {
	err = h.view(func(tx *bolt.Tx) error {
		key, _ := beyond(tx, keep, fitting(tx, keep.Bytes))
		over = key != nil
		return nil
	})
	return over, err
}

// fitting counts the bytes of records and summaries that may stay. What the file has beyond its
// bound they have too many: less in them makes more of its pages free. A quarter of the bound, up
// to spareBytes, is left for what is added next and for the file's next step.
func fitting(tx *bolt.Tx, most int64) int64 {
	if most == 0 {
		return math.MaxInt64
	}
	stats, page := tx.DB().Stats(), int64(tx.DB().Info().PageSize)
	used := tx.Size() - int64(stats.FreePageN+stats.PendingPageN)*page
	most -= min(most/4, spareBytes)
	return bytesOf(tx) - max(used-most, 0)
}

// bytesOf counts what records and summaries take.
func bytesOf(tx *bolt.Tx) int64 { return number(tx.Bucket(historySums).Get([]byte("bytes"))) }

// beyond is the key, by its end, of the job that ended first of those that go, or of those
// whose outputs do. Records and summaries that fit stay.
func beyond(tx *bolt.Tx, keep Keep, fits int64) (key []byte, outputs bool) {
	before := func(table []byte, limit time.Time) []byte {
		first, _ := tx.Bucket(table).Cursor().First()
		if at, _ := splitKey(first); first == nil || !at.Before(limit) {
			return nil
		}
		return bytes.Clone(first)
	}
	if key = before(byEnd, keep.Jobs); key != nil {
		return key, false
	}
	if key, _ = tx.Bucket(byEnd).Cursor().First(); key != nil && bytesOf(tx) > fits {
		return bytes.Clone(key), false
	}
	key = before(byOutputs, keep.Outputs)
	return key, key != nil
}

// drop forgets the job under a key of byEnd.
func (f *Forgotten) drop(tx *bolt.Tx, end []byte) error {
	_, id := splitKey(end)
	all, submitted := tx.Bucket(endedJobs), tx.Bucket(bySubmission)
	value := all.Get([]byte(id))
	e, known := readHistoryEntry(value)
	if !known { // the tables disagree: the key alone is left
		return tx.Bucket(byEnd).Delete(end)
	}
	key := append(bytes.Clone(e.submitted), id...)
	size := len(value) + len(tx.Bucket(byEnd).Get(end)) + len(submitted.Get(key))
	f.Jobs++
	return errors.Join(
		f.empty(tx, end), all.Delete([]byte(id)), submitted.Delete(key),
		tx.Bucket(byKey).Delete([]byte(e.key)), tx.Bucket(byEnd).Delete(end),
		addSums(tx, -int64(size), -1),
	)
}

// empty keeps the outputs of a job no more.
func (f *Forgotten) empty(tx *bolt.Tx, end []byte) error {
	table := tx.Bucket(byOutputs)
	list := table.Get(end)
	if list == nil {
		return nil
	}
	var cids []grid.CID
	if err := json.Unmarshal(list, &cids); err != nil {
		return errors.Join(ErrCorrupt, err)
	}
	for _, cid := range cids {
		left, err := keepCount(tx, cid, -1)
		if err != nil {
			return err
		}
		if left == 0 {
			f.Outputs = append(f.Outputs, cid)
		}
	}
	return table.Delete(end)
}
