package store

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// HistoryFile is the name of the file of ended jobs in a state directory.
const HistoryFile = "history.db"

// damagedSuffix is added to the name of a file that cannot be read and is put aside.
const damagedSuffix = ".damaged"

// History keeps the jobs that have ended and left their machine, in a file of its own: it may
// grow large, and nothing that is promised rests on it. Its methods may be called from several
// goroutines.
type History struct {
	path    string
	damaged bool
	packer  packer

	mu     sync.RWMutex
	db     *bolt.DB // guarded by mu, as is all that follows
	writes int      // since it was opened
	closed bool     // by its owner
}

const (
	historyStep = 64 << 10 // by which the file grows, bytes
	inOrder     = .95      // how full a page gets in a table that is written in order
)

// HistoryJob is an ended job, with what a list shows of it.
type HistoryJob struct {
	step.ArchivedJob
	Summary []byte // the caller's own; read without the record
}

// The tables of a history. Times are part of keys, so that each is in order. What is large
// stands in the order of time: pages fill up one after the other, and those of the first jobs
// are free when these go.
var (
	endedJobs    = []byte("jobs")      //nolint:gochecknoglobals // by ID: both times, and the key
	bySubmission = []byte("submitted") //nolint:gochecknoglobals // by submission and ID: the summary
	byEnd        = []byte("ended")     //nolint:gochecknoglobals // by end and ID: the record
	byOutputs    = []byte("outputs")   //nolint:gochecknoglobals // by end and ID: outputs kept
	outputCounts = []byte("counts")    //nolint:gochecknoglobals // by CID: jobs that it is kept for
	byKey        = []byte("keys")      //nolint:gochecknoglobals // by key of the request: the job
	historySums  = []byte("sums")      //nolint:gochecknoglobals // how many bytes and jobs there are
)

// OpenHistory opens the history in a state directory, which it makes if there is none. A file
// that is damaged is put aside: a new history begins.
func OpenHistory(dir string, log *slog.Logger) (*History, error) {
	h := &History{path: filepath.Join(dir, HistoryFile)}
	err := h.open(log)
	if errors.Is(err, ErrCorrupt) {
		log.Error("the history of ended jobs is damaged; it is put aside and a new one begins",
			"file", h.path+damagedSuffix, "error", err)
		if err = os.Rename(h.path, h.path+damagedSuffix); err != nil {
			return nil, fmt.Errorf("put the damaged history aside: %w", err)
		}
		h.damaged, err = true, h.open(log)
	}
	if err != nil {
		return nil, fmt.Errorf("open history: %w", err)
	}
	return h, nil
}

func (h *History) open(log *slog.Logger) (err error) {
	if h.db, err = openCompacted(h.path, log); err != nil {
		return err
	}
	h.db.AllocSize = historyStep
	err = guard(h.path, func() error { return h.db.Update(makeTables) })
	if err != nil {
		return errors.Join(err, h.db.Close())
	}
	return nil
}

// makeTables makes the tables of a history that are not there.
func makeTables(tx *bolt.Tx) error {
	for _, name := range [][]byte{
		endedJobs, bySubmission, byEnd, byOutputs, outputCounts, byKey, historySums,
	} {
		if _, err := tx.CreateBucketIfNotExists(name); err != nil {
			return err
		}
	}
	meta, err := tx.CreateBucketIfNotExists(metaBucket)
	if err != nil {
		return err
	}
	if err = checkFormat(meta, formatAlone); err != nil {
		return err
	}
	return meta.Put(formatKey, []byte(formatAlone))
}

// Damaged reports whether an earlier file was put aside at the start.
func (h *History) Damaged() bool { return h.damaged }

// DamagedFile names the file that was put aside.
func (h *History) DamagedFile() string { return h.path + damagedSuffix }

// view reads, and update writes. Then the pages are let go: jobs are found by random identifiers,
// so that each look maps other pages, with some around them, and in time all. The agent would be
// seen to take as much memory as its history has on disk.
func (h *History) view(do func(tx *bolt.Tx) error) error {
	if err := h.use(func(db *bolt.DB) error { return db.View(do) }); err != nil {
		return fmt.Errorf("read history: %w", err)
	}
	return nil
}

func (h *History) update(do func(tx *bolt.Tx) error) error {
	err := h.renew()
	if err == nil {
		err = h.use(func(db *bolt.DB) error { return db.Update(do) })
	}
	if err != nil {
		return fmt.Errorf("write history %s: %w", h.path, err)
	}
	return nil
}

// Add makes ended jobs durable, all or none. One that is there already stays as it is.
func (h *History) Add(jobs []HistoryJob) error {
	for _, j := range jobs {
		if len(j.Key) > step.MaxKey {
			return fmt.Errorf("write history: job %s: key of %d bytes, want at most %d",
				j.Job, len(j.Key), step.MaxKey)
		}
	}
	records, err := h.packer.pack(jobs)
	if err != nil {
		return fmt.Errorf("write history: %w", err)
	}
	return h.update(func(tx *bolt.Tx) error {
		for i, j := range jobs {
			if err := put(tx, j, records[i]); err != nil {
				return fmt.Errorf("job %s: %w", j.Job, err)
			}
		}
		return nil
	})
}

func put(tx *bolt.Tx, j HistoryJob, record []byte) error {
	all := tx.Bucket(endedJobs)
	if all.Get([]byte(j.Job)) != nil {
		return nil
	}
	value := append(timeKey(j.Submitted, ""), timeKey(j.Ended, "")...)
	value = append(append(value, byte(len(j.Key))), j.Key...)
	ends, submissions := tx.Bucket(byEnd), tx.Bucket(bySubmission)
	ends.FillPercent, submissions.FillPercent = inOrder, inOrder
	end := timeKey(j.Ended, j.Job)
	err := errors.Join(
		all.Put([]byte(j.Job), value), ends.Put(end, record),
		submissions.Put(timeKey(j.Submitted, j.Job), j.Summary),
		addSums(tx, int64(len(value)+len(record)+len(j.Summary)), 1),
	)
	if err == nil && j.Key != "" {
		err = tx.Bucket(byKey).Put([]byte(j.Key), []byte(j.Job))
	}
	if err != nil || len(j.Outputs) == 0 {
		return err
	}
	list, err := json.Marshal(j.Outputs)
	if err != nil {
		return err
	}
	for _, cid := range j.Outputs {
		if _, err := keepCount(tx, cid, 1); err != nil {
			return err
		}
	}
	return tx.Bucket(byOutputs).Put(end, list)
}

// keepCount changes for how many jobs data is kept, and returns the number.
func keepCount(tx *bolt.Tx, cid grid.CID, by int64) (int64, error) {
	counts := tx.Bucket(outputCounts)
	n := number(counts.Get([]byte(cid))) + by
	if n <= 0 {
		return 0, counts.Delete([]byte(cid))
	}
	return n, counts.Put([]byte(cid), binary.BigEndian.AppendUint64(nil, uint64(n)))
}

func number(value []byte) int64 {
	if len(value) != 8 {
		return 0
	}
	return int64(binary.BigEndian.Uint64(value))
}

func addSums(tx *bolt.Tx, size, jobs int64) error {
	sums := tx.Bucket(historySums)
	add := func(key string, by int64) error {
		sum := max(number(sums.Get([]byte(key)))+by, 0)
		return sums.Put([]byte(key), binary.BigEndian.AppendUint64(nil, uint64(sum)))
	}
	return errors.Join(add("bytes", size), add("jobs", jobs))
}

const timeBytes = 8

// historyEntry is the value of endedJobs: both times, the key with its length, and the record
// where an earlier version wrote it.
type historyEntry struct {
	submitted, ended []byte
	key              string
	record           []byte
}

func readHistoryEntry(value []byte) (e historyEntry, known bool) {
	const head = 2*timeBytes + 1
	if len(value) < head || len(value) < head+int(value[head-1]) {
		return historyEntry{}, false
	}
	rest := value[head:]
	length := int(value[head-1])
	return historyEntry{
		submitted: value[:timeBytes], ended: value[timeBytes : 2*timeBytes],
		key: string(rest[:length]), record: rest[length:],
	}, true
}

// timeKey makes a key that sorts by time, to the millisecond, then by ID.
func timeKey(at time.Time, id grid.JobID) []byte {
	key := binary.BigEndian.AppendUint64(nil, uint64(at.UnixMilli())^(1<<63))
	return append(key, id...)
}

func splitKey(key []byte) (time.Time, grid.JobID) {
	if len(key) < timeBytes {
		return time.Time{}, ""
	}
	ms := int64(binary.BigEndian.Uint64(key) ^ (1 << 63))
	return time.UnixMilli(ms).UTC(), grid.JobID(key[timeBytes:])
}
