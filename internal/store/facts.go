package store

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	bolt "go.etcd.io/bbolt"

	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// Load reads all facts of a machine, ascending by kind and key. It is empty for
// a machine that never ran here.
func (s *Store) Load(machine string) ([]step.Fact, error) {
	var facts []step.Fact
	err := s.seen(func(tx *bolt.Tx) (err error) {
		facts, err = readFacts(tx.Bucket(factsBucket).Bucket([]byte(machine)))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("load facts of %s from %s: %w", machine, s.dir, err)
	}
	return facts, nil
}

// Apply makes facts of one machine durable, in their order: all of them or, after an error or a
// crash, none. A nil Value removes a row. When it returns nil they are on the disk, see promise.
// Without facts nothing is done.
func (s *Store) Apply(machine string, facts []step.Fact) error {
	if len(facts) == 0 {
		return nil
	}
	return s.promise(change{machine: machine, facts: facts})
}

// promise makes a change durable, and with it the frames that the machine's journal held back: the
// cause of a fact is written to the operating system before the fact, and both are waited for
// together, which takes less time than one after the other. A journal that cannot be written is
// logged and holds nothing up.
func (s *Store) promise(c change) error {
	j := s.journal(c.machine)
	flushed := make(chan struct{})
	if j == nil {
		close(flushed)
	} else {
		j.hand()
		go func() {
			defer close(flushed)
			_ = j.flush() // was logged; facts do not depend on the journal
		}()
	}
	err := s.put(c)
	<-flushed
	if facts := c.table(); err == nil && j != nil && len(facts) > 0 {
		j.noteFacts(facts)
	}
	return err
}

func writeFacts(all *bolt.Bucket, machine string, facts []step.Fact) error {
	bucket, err := all.CreateBucketIfNotExists([]byte(machine))
	if err != nil {
		return err
	}
	for _, f := range facts {
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
		return db.View(func(tx *bolt.Tx) error {
			return errors.Join(readAll(tx, facts), readOn(tx, dir, facts))
		})
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
	if err := checkFormat(meta, formatAlone, formatWithRedo); err != nil {
		return err
	}
	return all.ForEachBucket(func(machine []byte) (err error) {
		facts[string(machine)], err = readFacts(all.Bucket(machine))
		return err
	})
}

// readOn takes what the facts of a killed agent lack.
func readOn(tx *bolt.Tx, dir string, facts map[string][]step.Fact) error {
	changes, err := unsettled(tx, dir)
	if err != nil {
		return err
	}
	late := make(map[string][]change)
	for _, c := range changes {
		late[c.machine] = append(late[c.machine], c)
	}
	for machine, of := range late {
		facts[machine] = after(facts[machine], of)
	}
	return nil
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
