package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	bolt "go.etcd.io/bbolt"

	"github.com/mrsmesh/mrsmesh/internal/durable"
	"github.com/mrsmesh/mrsmesh/pkg/standby"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// A transaction of bbolt waits for the disk twice and writes whole pages. A promise waits for less:
// what changes is appended to a file that does not grow, and waits for the disk once. The facts
// take it later, much at a time, and begin the file again. After a crash the next start takes what
// is left there.

const redoFile = "facts.log"

// What a frame of the file begins at a multiple of: the smallest unit that disks write.
const sector = 512

// change has all that one machine wants on the disk, in this order.
type change struct {
	machine string         // letters and digits
	facts   []step.Fact    // a nil Value removes a row
	saves   []standby.Save // of its group
}

func (c change) write(tx *bolt.Tx) error {
	if err := writeFacts(tx.Bucket(factsBucket), c.machine, c.facts); err != nil {
		return err
	}
	for _, save := range c.saves {
		if err := saveMember(tx, c.machine, save); err != nil {
			return err
		}
	}
	return nil
}

// table has all that it changes in the machine's table.
func (c change) table() []step.Fact {
	facts := slices.Clone(c.facts)
	for _, save := range c.saves {
		facts = append(facts, save.Facts...)
	}
	return facts
}

// framed reports whether frames can hold it, or it is a whole table.
func (c change) framed() bool {
	for _, save := range c.saves {
		if save.Replaced {
			return false
		}
	}
	return true
}

// redo holds changes that are on the disk and not among the facts yet.
type redo struct {
	file  *os.File
	bytes int64  // of the file, when it is used
	run   uint64 // tells frames of this start from those of others

	disk  sync.Mutex // guards the fields up to mu, and is held while the disk is waited for
	ready bool       // the file has all its bytes
	seq   uint64     // of the newest frame
	at    int64      // where the next one begins

	mu      sync.Mutex // guards pending; nobody waits for the disk with it
	pending []change   // of the frames before
}

// put makes a change durable, all of it or nothing.
func (s *Store) put(c change) error {
	r := &s.redo
	r.disk.Lock()
	defer r.disk.Unlock()
	if err := s.check(c); err != nil {
		return err
	}
	if !c.framed() {
		return s.settle(c)
	}
	frame := r.frame(c)
	if int64(len(frame)) > r.bytes/4 {
		return s.settle(c)
	}
	if r.at+int64(len(frame)) > r.bytes {
		if err := s.settle(); err != nil {
			return err
		}
	}
	if err := r.write(frame); err != nil {
		return fmt.Errorf("write facts: %w; is the disk full?", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pending = append(r.pending, c)
	return nil
}

// late has what only frames have, in their order.
func (r *redo) late() []change {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.pending)
}

// check refuses what no transaction could write later.
func (s *Store) check(c change) error {
	if !plainName(c.machine) {
		return fmt.Errorf("write facts: machine %q: want letters and digits", c.machine)
	}
	for _, f := range c.table() {
		if len(rowKey(f)) > bolt.MaxKeySize || int64(len(f.Value)) > bolt.MaxValueSize {
			return fmt.Errorf("write facts: fact %s %.40s: the key has %d bytes, the value %d, "+
				"want at most %d and %d", f.Kind, f.Key, len(rowKey(f)), len(f.Value),
				bolt.MaxKeySize, bolt.MaxValueSize)
		}
	}
	if len(c.saves) == 0 {
		return nil
	}
	return s.db.View(func(tx *bolt.Tx) error {
		_, err := groupOf(tx, c.machine)
		return err
	})
}

// frame makes the next frame, of a change.
func (r *redo) frame(c change) []byte {
	head := binary.LittleEndian.AppendUint64(nil, r.run)
	head = binary.LittleEndian.AppendUint64(head, r.seq+1)
	frame := appendFrame(nil, kindRedo, head, encodeChange(c))
	if past := len(frame) % sector; past > 0 {
		frame = append(frame, make([]byte, sector-past)...)
	}
	return frame
}

// write brings a frame to the disk. After an error the next one takes its place.
func (r *redo) write(frame []byte) error {
	if !r.ready {
		if err := fill(r.file, r.bytes); err != nil {
			return err
		}
		r.ready = true
	}
	if _, err := r.file.WriteAt(frame, r.at); err != nil {
		return err
	}
	if err := syncData(r.file); err != nil {
		return err
	}
	r.seq++
	r.at += int64(len(frame))
	return nil
}

// fill gives a file its bytes, so that a write changes nothing but what it writes.
func fill(file *os.File, bytes int64) error {
	info, err := file.Stat()
	if err != nil || info.Size() == bytes {
		return err
	}
	if err := file.Truncate(0); err != nil {
		return err
	}
	if _, err := file.WriteAt(make([]byte, bytes), 0); err != nil {
		return errors.Join(err, file.Truncate(0))
	}
	return file.Sync()
}

// settle lets the facts take all that only frames have, and what more there is, in one transaction.
// The caller holds the disk.
func (s *Store) settle(more ...change) error {
	r := &s.redo
	all := append(r.late(), more...)
	if len(all) == 0 {
		return nil
	}
	err := s.db.Update(func(tx *bolt.Tx) error {
		for _, c := range all {
			if err := c.write(tx); err != nil {
				return err
			}
		}
		return tx.Bucket(metaBucket).Put(redoKey, settledRow(r.run, r.seq))
	})
	if err != nil {
		path := filepath.Join(s.dir, factsFile)
		return fmt.Errorf("write to %s: %w; is the disk full?", path, err)
	}
	r.at = 0
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pending = nil
	return nil
}

// settled does something with facts that have all.
func (s *Store) settled(do func(*bolt.DB) error) error {
	s.redo.disk.Lock()
	defer s.redo.disk.Unlock()
	if err := s.settle(); err != nil {
		return err
	}
	return do(s.db)
}

// changed changes facts that have all.
func (s *Store) changed(do func(*bolt.Tx) error) error {
	return s.settled(func(db *bolt.DB) error { return db.Update(do) })
}

// seen looks at facts that have all.
func (s *Store) seen(look func(*bolt.Tx) error) error {
	return s.settled(func(db *bolt.DB) error { return db.View(look) })
}

// snapshot is a view of all facts at a moment.
type snapshot struct {
	tx   *bolt.Tx
	late []change // which the facts may lack; those that they have change nothing
}

// snapshot is taken without a wait for the disk: a machine's journal goes on after it. It holds for
// a machine none of whose facts is just being written.
func (s *Store) snapshot() (snapshot, error) {
	late := s.redo.late() // first: what is stored meanwhile is there twice, and not missing
	tx, err := s.db.Begin(false)
	return snapshot{tx, late}, err
}

// read reads all facts of a machine, and ends the view.
func (v snapshot) read(machine string) ([]step.Fact, error) {
	facts, err := readFacts(v.tx.Bucket(factsBucket).Bucket([]byte(machine)))
	if err = errors.Join(err, v.tx.Rollback()); err != nil {
		return nil, err
	}
	changes := slices.DeleteFunc(v.late, func(c change) bool { return c.machine != machine })
	return after(facts, changes), nil
}

// after has facts as they are after some changes, ascending.
func after(facts []step.Fact, changes []change) []step.Fact {
	if len(changes) == 0 {
		return facts
	}
	table := step.NewFacts()
	for _, f := range facts {
		table.Apply(f)
	}
	for _, c := range changes {
		for _, f := range c.table() {
			table.Apply(f)
		}
	}
	return table.All()
}

// openRedo opens the file, and makes it if it is not there.
func (s *Store) openRedo() (there bool, err error) {
	path := filepath.Join(s.dir, redoFile)
	_, err = os.Stat(path)
	there = err == nil
	s.redo.bytes = s.options.RedoBytes
	s.redo.file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, fileMode)
	if err == nil && !there {
		err = durable.SyncDir(s.dir)
	}
	if err != nil {
		return there, fmt.Errorf("open state: %w", err)
	}
	return there, nil
}

func (r *redo) close() error {
	if r.file == nil {
		return nil
	}
	return r.file.Close()
}

// closeRedo leaves facts that have all and need no other file.
func (s *Store) closeRedo() error {
	err := s.changed(func(tx *bolt.Tx) error {
		return tx.Bucket(metaBucket).Put(formatKey, []byte(formatAlone))
	})
	return errors.Join(err, s.redo.close())
}
