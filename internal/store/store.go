// Package store keeps what an agent must not forget: its facts, in one bbolt file that is
// synced to disk before a promise leaves the site, and a journal of all inputs of its
// machines, from which their effects can be derived again.
//
// The files of a state directory are
//
//	facts.db                  facts by machine, incarnation, format version, place
//	facts.log                 what changed last, which facts.db takes later
//	place                     tells the directory from copies of it
//	superseded                there if the site runs on another machine, and why
//	journal/NUMBER-MACHINE    segments of the journal, in the order of NUMBER
//
//	history.db                own jobs that have ended
//
// The files of the package:
//
//	store.go           a state directory, opened
//	facts.go           facts written and read
//	redo.go            what they take later, in a file that is quicker to write
//	redo_frame.go      its frames
//	redo_read.go       read again at the next start
//	redo_linux.go      brought to the disk
//	redo_other.go      or where that is less quick
//	standby.go         the logs of groups that keep an owner's facts
//	journal.go         what machines were told
//	turn.go            continued in a new file
//	segment.go         the files of that
//	read.go            journals read again
//	replay.go          and the machines run again
//	history.go         ended jobs
//	history_pack.go    made shorter, by what they share
//	history_read.go    listed and found
//	history_forget.go  let go
//	history_renew.go   the file is opened anew now and then
//	resident_linux.go  not held in memory
//	resident_other.go  or as the system likes
//	compact.go         files made shorter
//	place.go           the machine and the place that a directory belongs to
//	place_linux.go     how a file differs from its copies
//	place_other.go     where the system does not tell
//	superseded.go      another machine runs with the site's identity
//	repair.go          lost facts made anew from the journal
//
// One process at a time may have a directory open; reading with ReadFacts and
// Runs is possible at any time. A replay meets the same times only if the
// driver hands its machines times in UTC without a monotonic reading.
package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/mrsmesh/mrsmesh/internal/durable"
)

// Problems with a state directory.
var (
	ErrLocked  = errors.New("state directory is in use")
	ErrCorrupt = errors.New("state is damaged")
	errFormat  = errors.New("state has another format")
)

const (
	factsFile  = "facts.db"
	journalDir = "journal"

	// Facts of an agent that runs, or was killed, need the file of what changed last. A program
	// that does not know it must not take them for all.
	formatAlone    = "1"
	formatWithRedo = "2"

	lockWait = 200 * time.Millisecond // long enough for a dying predecessor to let go
	dirMode  = 0o700
	fileMode = 0o600
)

var (
	metaBucket     = []byte("meta")        //nolint:gochecknoglobals // a constant
	factsBucket    = []byte("facts")       //nolint:gochecknoglobals // a constant
	standbyBucket  = []byte("standby")     //nolint:gochecknoglobals // a constant
	formatKey      = []byte("format")      //nolint:gochecknoglobals // a constant
	incarnationKey = []byte("incarnation") //nolint:gochecknoglobals // a constant
)

// Options bound the journal. A zero field stands for its default.
type Options struct {
	// JournalBytes limits all segments together; default 256 MiB. The open ones are always
	// kept.
	JournalBytes int64
	// SegmentBytes is the size at which a segment is continued in a new one; default 16 MiB.
	SegmentBytes int64
	FlushEvery   time.Duration // how long a record may wait for the disk; default 100 ms
	RedoBytes    int64         // of the file of what changed last; default 1 MiB
	// Signs name files of the directory beside which facts that are missing were lost, as
	// beside a journal.
	Signs []string
	// Machine names the machine that the directory is bound to; empty: it is not.
	Machine string
	// Hardware names parts of the machine, none of them with a space in it; empty: not known.
	Hardware []string
	// Wall is the time of the start, from which its incarnation follows; zero: it is the last
	// one and 1.
	Wall time.Time
}

func (o Options) withDefaults() Options {
	if o.JournalBytes <= 0 {
		o.JournalBytes = 256 << 20
	}
	if o.SegmentBytes <= 0 {
		o.SegmentBytes = 16 << 20
	}
	if o.FlushEvery <= 0 {
		o.FlushEvery = 100 * time.Millisecond
	}
	if o.RedoBytes <= 0 {
		o.RedoBytes = 1 << 20
	}
	return o
}

// Store is an open state directory. Its methods may be called from several
// goroutines.
type Store struct {
	dir         string
	options     Options
	log         *slog.Logger
	db          *bolt.DB
	incarnation uint64
	nonce       uint64 // drawn for this start
	line        uint64 // of the starts on this machine
	restored    bool   // the facts may be older than what was promised
	redo        redo

	mu       sync.Mutex // guards the fields below
	journals map[string]*Journal
	open     map[string]string // the segment that is written, by machine
	closed   bool

	counting sync.Mutex // guards segment
	segment  uint64     // number of the newest segment
}

// Open opens a state directory, makes it if it does not exist, and counts the
// start. The errors are ErrLocked, ErrCorrupt, ErrFactsGone, ErrFormat and those of the
// file system.
func Open(dir string, log *slog.Logger) (*Store, error) {
	return OpenWith(dir, Options{}, log)
}

// OpenWith is Open with bounds other than the defaults.
func OpenWith(dir string, options Options, log *slog.Logger) (*Store, error) {
	journals := filepath.Join(dir, journalDir)
	if err := os.MkdirAll(journals, dirMode); err != nil { //nolint:gosec // the owner chose dir
		return nil, fmt.Errorf("open state: %w", err)
	}
	s := &Store{
		dir: dir, options: options.withDefaults(), log: log, journals: make(map[string]*Journal),
		open: make(map[string]string),
	}
	if newer, is, err := Superseded(dir); err != nil {
		return nil, err
	} else if is {
		return nil, newer.Explain(dir)
	}
	if err := s.checkEarlierLife(); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, factsFile)
	var err error
	if s.db, err = openCompacted(path, log); err != nil {
		return nil, err
	}
	if err := s.start(path); err != nil {
		return nil, errors.Join(err, s.db.Close(), s.redo.close())
	}
	return s, nil
}

func (s *Store) start(path string) error {
	if err := guard(path, func() error { return s.db.View(walk) }); err != nil {
		return err
	}
	there, err := s.openRedo()
	if err != nil {
		return err
	}
	count := func(tx *bolt.Tx) error { return s.countStart(tx, there) }
	if err = guard(path, func() error { return s.db.Update(count) }); err != nil {
		return fmt.Errorf("open state %s: %w", path, err)
	}
	names, err := segmentNames(s.dir)
	if err != nil {
		return err
	}
	if len(names) > 0 {
		s.segment = names[len(names)-1].number
	}
	return durable.SyncDir(s.dir)
}

// countStart raises the incarnation, in the same transaction that writes the
// format of a new file.
func (s *Store) countStart(tx *bolt.Tx, there bool) error {
	meta, err := tx.CreateBucketIfNotExists(metaBucket)
	if err != nil {
		return err
	}
	if err = checkFormat(meta, formatAlone, formatWithRedo); err != nil {
		return err
	}
	var last uint64
	if old := meta.Get(incarnationKey); len(old) == 8 {
		last = binary.BigEndian.Uint64(old)
	}
	s.incarnation = next(last, s.options.Wall)
	gone, err := s.takeRedo(tx, there)
	if err != nil {
		return err
	}
	if err := s.takePlace(meta, last, gone); err != nil {
		return err
	}
	s.redo.run = s.nonce
	return errors.Join(
		s.writeMeta(tx, formatWithRedo), meta.Put(redoKey, settledRow(s.redo.run, 0)),
	)
}

// writeMeta writes the format and the incarnation.
func (s *Store) writeMeta(tx *bolt.Tx, format string) error {
	meta, err := tx.CreateBucketIfNotExists(metaBucket)
	if err != nil {
		return err
	}
	if _, err := tx.CreateBucketIfNotExists(factsBucket); err != nil {
		return err
	}
	if err := meta.Put(formatKey, []byte(format)); err != nil {
		return err
	}
	return meta.Put(incarnationKey, binary.BigEndian.AppendUint64(nil, s.incarnation))
}

func checkFormat(meta *bolt.Bucket, known ...string) error {
	format := string(meta.Get(formatKey))
	if format != "" && !slices.Contains(known, format) {
		return fmt.Errorf("%w: it is %q, this program reads %s; use the program that wrote it, "+
			"or choose another state directory", errFormat, format, strings.Join(known, ", "))
	}
	return nil
}

// Incarnation is the number of this start, from 1. It was on disk before Open
// returned and is never given again.
func (s *Store) Incarnation() uint64 { return s.incarnation }

// Close writes what is buffered and releases the directory.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	journals := s.journals
	s.mu.Unlock()
	var errs []error
	for _, j := range journals {
		errs = append(errs, j.close())
	}
	return errors.Join(append(errs, s.closeRedo(), s.db.Close())...)
}

// openDB opens the file of facts. An agent that was killed leaves no lock
// behind.
func openDB(path string, readOnly bool) (*bolt.DB, error) {
	var file *os.File
	var db *bolt.DB
	err := guard(path, func() (err error) {
		db, err = bolt.Open(path, fileMode, &bolt.Options{
			Timeout: lockWait, ReadOnly: readOnly, FreelistType: bolt.FreelistMapType,
			OpenFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
				file, err = os.OpenFile(name, flag, mode)
				return file, err
			},
		})
		return err
	})
	switch {
	case err == nil:
		return db, nil
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, fmt.Errorf("%w: %s is held by another agent; stop that one or choose another "+
			"state directory", ErrLocked, filepath.Dir(path))
	case file != nil:
		_ = file.Close() // bbolt leaves it open when it panics; the lock lasts as long as this process
	}
	return nil, err
}

// guard turns what bbolt does on a damaged file (an error, a panic, or a fault
// in mapped memory) into ErrCorrupt.
func guard(path string, do func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if cause := recover(); cause != nil {
			err = corrupt(path, fmt.Errorf("%v", cause))
		}
	}()
	err = do()
	for _, damage := range []error{
		bolterrors.ErrInvalid, bolterrors.ErrChecksum, bolterrors.ErrVersionMismatch,
	} {
		if errors.Is(err, damage) {
			return corrupt(path, err)
		}
	}
	return err
}

func corrupt(path string, cause error) error {
	return fmt.Errorf("%w: %s: %w; %s", ErrCorrupt, path, cause, remedy)
}

// walk reads every row once, so that damage shows at the start and not in the
// middle of the work.
func walk(tx *bolt.Tx) error {
	return tx.ForEach(func(_ []byte, b *bolt.Bucket) error { return walkBucket(b) })
}

func walkBucket(b *bolt.Bucket) error {
	return b.ForEach(func(k, v []byte) error {
		if v == nil {
			return walkBucket(b.Bucket(k))
		}
		return nil
	})
}
