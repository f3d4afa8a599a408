package store

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"

	bolt "go.etcd.io/bbolt"

	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// batch holds the facts that one machine wants to be made durable.
type batch struct {
	Machine string      // the machine's name: letters and digits, as "site" or "broker"
	Facts   []step.Fact // in order; a nil Value removes a row
}

// Load reads all facts of a machine, ascending by kind and key. It is empty for
// a machine that never ran here.
func (s *Store) Load(machine string) ([]step.Fact, error) {
	var facts []step.Fact
	err := s.db.View(func(tx *bolt.Tx) (err error) {
		facts, err = readFacts(tx.Bucket(factsBucket).Bucket([]byte(machine)))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("load facts of %s from %s: %w", machine, s.dir, err)
	}
	return facts, nil
}

// Apply makes facts of one machine durable; see ApplyAll.
func (s *Store) Apply(machine string, facts []step.Fact) error {
	return s.applyAll([]batch{{Machine: machine, Facts: facts}})
}

// applyAll makes facts durable: all of them or, after an error or a crash, none. When it
// returns nil they are on disk, and so are the frames that the machines' journals held
// back: the cause of a fact is written to the operating system before the fact, and both
// are waited for together, which takes less time than one after the other. A journal that
// cannot be written is logged and holds nothing up. Without facts nothing is done.
func (s *Store) applyAll(batches []batch) error {
	batches = slices.DeleteFunc(slices.Clone(batches), func(b batch) bool { return len(b.Facts) == 0 })
	if len(batches) == 0 {
		return nil
	}
	var synced sync.WaitGroup
	for _, b := range batches {
		if j := s.journal(b.Machine); j != nil {
			j.hand()
			synced.Go(func() { _ = j.flush() }) // was logged; facts do not depend on the journal
		}
	}
	err := s.db.Update(func(tx *bolt.Tx) error {
		for _, b := range batches {
			if err := writeFacts(tx.Bucket(factsBucket), b); err != nil {
				return err
			}
		}
		return nil
	})
	synced.Wait()
	if err != nil {
		return fmt.Errorf("write facts to %s: %w; is the disk full?",
			filepath.Join(s.dir, factsFile), err)
	}
	for _, b := range batches {
		if j := s.journal(b.Machine); j != nil {
			j.noteFacts(b.Facts)
		}
	}
	return nil
}

func writeFacts(all *bolt.Bucket, batch batch) error {
	bucket, err := all.CreateBucketIfNotExists([]byte(batch.Machine))
	if err != nil {
		return err
	}
	for _, f := range batch.Facts {
		if f.Value == nil {
			err = bucket.Delete(rowKey(f))
		} else {
			err = bucket.Put(rowKey(f), f.Value)
		}
		if err != nil {
			return fmt.Errorf("fact %s %s: %w", f.Kind, f.Key, err)
		}
	}
	return nil
}

// rowKey joins kind and key; a kind holds no zero byte, so that rows sort by
// kind, then key.
func rowKey(f step.Fact) []byte { return []byte(f.Kind + "\x00" + f.Key) }

func readFacts(bucket *bolt.Bucket) ([]step.Fact, error) {
	var facts []step.Fact
	if bucket == nil {
		return nil, nil
	}
	err := bucket.ForEach(func(k, v []byte) error {
		kind, key, found := bytes.Cut(k, []byte{0})
		if !found {
			return fmt.Errorf("%w: row %q has no kind", ErrCorrupt, k)
		}
		facts = append(facts, step.Fact{Kind: string(kind), Key: string(key), Value: bytes.Clone(v)})
		return nil
	})
	return facts, err
}

// ReadFacts reads the facts of all machines of a state directory without
// changing anything, also while its agent runs. For a running agent it reads
// the journal instead of the locked file, so that facts of the last moments
// (Options.FlushEvery) may be missing.
func ReadFacts(dir string) (map[string][]step.Fact, error) {
	path := filepath.Join(dir, factsFile)
	db, err := openDB(path, true)
	switch {
	case errors.Is(err, ErrLocked):
		return factsFromJournal(dir)
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("read facts: %s is no state directory of an agent: %w", dir, err)
	case err != nil:
		return nil, err
	}
	defer db.Close()
	facts := make(map[string][]step.Fact)
	err = guard(path, func() error {
		return db.View(func(tx *bolt.Tx) error { return readAll(tx, facts) })
	})
	if err != nil {
		return nil, fmt.Errorf("read facts: %w", err)
	}
	return facts, nil
}

func readAll(tx *bolt.Tx, facts map[string][]step.Fact) error {
	meta, all := tx.Bucket(metaBucket), tx.Bucket(factsBucket)
	if meta == nil || all == nil {
		return nil
	}
	if err := checkFormat(meta); err != nil {
		return err
	}
	return all.ForEachBucket(func(machine []byte) (err error) {
		facts[string(machine)], err = readFacts(all.Bucket(machine))
		return err
	})
}

func factsFromJournal(dir string) (map[string][]step.Fact, error) {
	runs, err := Runs(dir)
	if err != nil {
		return nil, err
	}
	facts := make(map[string][]step.Fact)
	for _, run := range runs { // ascending, so that a machine's last run stays
		table, err := run.finalFacts()
		if err != nil {
			return nil, err
		}
		facts[run.Machine] = table.All()
	}
	return facts, nil
}
