package store

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	bolt "go.etcd.io/bbolt"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/standby"
)

// A member of a group has its log beside its table, which is the facts of a machine of the same
// name, so that all that reads facts reads them too. Both are written in one transaction: a
// table that has come further than the log says lacks facts for good.

// Member is a member of a group as it is on the disk.
type Member struct {
	Name   string           // of the machine that the group runs: letters and digits
	ID     standby.MemberID // its own
	Owner  grid.SiteID      // whose jobs they are
	Stored standby.Stored
}

// The rows of a member beside its entries.
var (
	memberKey  = []byte("member")  //nolint:gochecknoglobals // a constant
	ballotKey  = []byte("ballot")  //nolint:gochecknoglobals // a constant
	baseKey    = []byte("base")    //nolint:gochecknoglobals // a constant
	appliedKey = []byte("applied") //nolint:gochecknoglobals // a constant
	confKey    = []byte("conf")    //nolint:gochecknoglobals // a constant
	entriesKey = []byte("entries") //nolint:gochecknoglobals // a constant
)

// memberRow has what never changes of a member.
type memberRow struct {
	ID    standby.MemberID `json:"id"`
	Owner grid.SiteID      `json:"owner"`
}

// Enlist puts a new member on the disk, in place of one of the same name: its log goes, and its
// table stays until a new one is written. The new member has been founded, or it joins.
func (s *Store) Enlist(m Member) error {
	if !plainName(m.Name) {
		return fmt.Errorf("enlist in a group: machine %q: want letters and digits", m.Name)
	}
	err := s.changed(func(tx *bolt.Tx) error { return enlist(tx, m) })
	if err != nil {
		return fmt.Errorf("write to %s: %w", filepath.Join(s.dir, factsFile), err)
	}
	return nil
}

func enlist(tx *bolt.Tx, m Member) error {
	all, err := tx.CreateBucketIfNotExists(standbyBucket)
	if err != nil {
		return err
	}
	if all.Bucket([]byte(m.Name)) != nil {
		if err = all.DeleteBucket([]byte(m.Name)); err != nil {
			return err
		}
	}
	bucket, err := all.CreateBucket([]byte(m.Name))
	if err != nil {
		return err
	}
	if _, err := bucket.CreateBucket(entriesKey); err != nil {
		return err
	}
	if err := putRow(bucket, memberKey, memberRow{m.ID, m.Owner}); err != nil {
		return err
	}
	if m.Stored.Fresh {
		return nil
	}
	return saveMember(tx, m.Name, standby.Save{
		Ballot: &m.Stored.Ballot, Base: m.Stored.Base, Conf: &m.Stored.Conf,
		Facts: m.Stored.Table.All(), Replaced: true,
		Applied: standby.Position{Index: m.Stored.Applied, Term: m.Stored.Base.Term},
	})
}

// Dismiss takes a member's log away, and with it the table unless it is kept for a machine
// that goes on without a group.
func (s *Store) Dismiss(name string, keepFacts bool) error {
	err := s.changed(func(tx *bolt.Tx) error { return dismiss(tx, name, keepFacts) })
	if err != nil {
		return fmt.Errorf("write to %s: %w", filepath.Join(s.dir, factsFile), err)
	}
	return nil
}

func dismiss(tx *bolt.Tx, name string, keepFacts bool) error {
	if all := tx.Bucket(standbyBucket); all != nil && all.Bucket([]byte(name)) != nil {
		if err := all.DeleteBucket([]byte(name)); err != nil {
			return err
		}
	}
	if facts := tx.Bucket(factsBucket); !keepFacts && facts.Bucket([]byte(name)) != nil {
		return facts.DeleteBucket([]byte(name))
	}
	return nil
}

// SaveMember does to the disk what Saves of a member say, in their order: all of it or, after an
// error or a crash, nothing. When it returns nil they are on the disk, and with them what the
// machine's journal held back, see promise.
func (s *Store) SaveMember(name string, saves []standby.Save) error {
	return s.promise(change{machine: name, saves: saves})
}

// groupOf has all of a member but its table.
func groupOf(tx *bolt.Tx, name string) (*bolt.Bucket, error) {
	all := tx.Bucket(standbyBucket)
	if all == nil || all.Bucket([]byte(name)) == nil {
		return nil, fmt.Errorf("%w: machine %s has no group", ErrCorrupt, name)
	}
	return all.Bucket([]byte(name)), nil
}

func saveMember(tx *bolt.Tx, name string, save standby.Save) error {
	bucket, err := groupOf(tx, name)
	if err != nil {
		return err
	}
	facts := tx.Bucket(factsBucket)
	if save.Replaced {
		if err := clearMember(bucket, facts, name); err != nil {
			return err
		}
		if err := putRow(bucket, baseKey, save.Applied); err != nil {
			return err
		}
	}
	if err := writeFacts(facts, name, save.Facts); err != nil {
		return err
	}
	return errors.Join(putRows(bucket, save), saveEntries(bucket.Bucket(entriesKey), save))
}

// clearMember deletes log and table: a whole table follows.
func clearMember(bucket, facts *bolt.Bucket, name string) error {
	if facts.Bucket([]byte(name)) != nil {
		if err := facts.DeleteBucket([]byte(name)); err != nil {
			return err
		}
	}
	if err := bucket.DeleteBucket(entriesKey); err != nil {
		return err
	}
	_, err := bucket.CreateBucket(entriesKey)
	return err
}

// putRows writes what a Save changes beside entries and table.
func putRows(bucket *bolt.Bucket, save standby.Save) error {
	var errs []error
	if save.Ballot != nil {
		errs = append(errs, putRow(bucket, ballotKey, save.Ballot))
	}
	if save.Applied.Index > 0 {
		errs = append(errs, putRow(bucket, appliedKey, save.Applied.Index))
	}
	if save.Conf != nil {
		errs = append(errs, putRow(bucket, confKey, save.Conf))
	}
	if save.Base.Index > 0 && !save.Replaced {
		errs = append(errs, putRow(bucket, baseKey, save.Base))
	}
	return errors.Join(errs...)
}

// saveEntries writes entries, after deleting what they replace, and lets the oldest go.
func saveEntries(log *bolt.Bucket, save standby.Save) error {
	if len(save.Entries) > 0 {
		err := deleteEntries(log, save.Entries[0].Index, ^uint64(0))
		if err != nil {
			return err
		}
	}
	for _, e := range save.Entries {
		if err := log.Put(entryKey(e.Index), encodeEntry(e)); err != nil {
			return err
		}
	}
	if save.Base.Index > 0 {
		return deleteEntries(log, 0, save.Base.Index)
	}
	return nil
}

// deleteEntries deletes those from one index to another one.
func deleteEntries(log *bolt.Bucket, from, to uint64) error {
	c := log.Cursor()
	for k, _ := c.Seek(entryKey(from)); k != nil && bytes.Compare(k, entryKey(to)) <= 0; {
		if err := log.Delete(k); err != nil {
			return err
		}
		k, _ = c.Seek(entryKey(from))
	}
	return nil
}

func entryKey(index uint64) []byte { return binary.BigEndian.AppendUint64(nil, index) }

// entryHead is the length of an entry without its data: its term and its kind.
const entryHead = 9

func encodeEntry(e standby.Entry) []byte {
	head := append(binary.BigEndian.AppendUint64(nil, e.Term), e.Kind)
	return append(head, e.Data...)
}

func decodeEntry(key, value []byte) (standby.Entry, error) {
	if len(key) != len(entryKey(0)) || len(value) < entryHead {
		return standby.Entry{}, fmt.Errorf("%w: entry %x of a group's log", ErrCorrupt, key)
	}
	at := standby.Position{
		Index: binary.BigEndian.Uint64(key), Term: binary.BigEndian.Uint64(value),
	}
	return standby.Entry{
		Position: at, Kind: value[entryHead-1], Data: bytes.Clone(value[entryHead:]),
	}, nil
}

func putRow(bucket *bolt.Bucket, key []byte, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return bucket.Put(key, text)
}

// Members reads all members of groups that are on the disk, by their names.
func (s *Store) Members() (members []Member, err error) {
	err = s.seen(func(tx *bolt.Tx) (err error) {
		members, err = readMembers(tx)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("load groups from %s: %w", s.dir, err)
	}
	return members, nil
}

func readMembers(tx *bolt.Tx) (members []Member, err error) {
	all := tx.Bucket(standbyBucket)
	if all == nil {
		return nil, nil
	}
	err = all.ForEachBucket(func(name []byte) error {
		m, wrong := readMember(tx, all.Bucket(name), string(name))
		members = append(members, m)
		return wrong
	})
	return members, err
}

func readMember(tx *bolt.Tx, bucket *bolt.Bucket, name string) (Member, error) {
	m := Member{Name: name}
	var row memberRow
	if err := readRow(bucket, memberKey, &row); err != nil {
		return m, err
	}
	m.ID, m.Owner = row.ID, row.Owner
	if bucket.Get(ballotKey) == nil {
		m.Stored = standby.Joining()
		return m, nil
	}
	stored := &m.Stored
	for key, field := range map[string]any{
		string(ballotKey): &stored.Ballot, string(baseKey): &stored.Base,
		string(appliedKey): &stored.Applied, string(confKey): &stored.Conf,
	} {
		if err := readRow(bucket, []byte(key), field); err != nil {
			return m, err
		}
	}
	facts, err := readFacts(tx.Bucket(factsBucket).Bucket([]byte(name)))
	if err != nil {
		return m, err
	}
	for _, f := range facts {
		stored.Table.Apply(f)
	}
	err = bucket.Bucket(entriesKey).ForEach(func(k, v []byte) error {
		e, wrong := decodeEntry(k, v)
		stored.Entries = append(stored.Entries, e)
		return wrong
	})
	return m, err
}

func readRow(bucket *bolt.Bucket, key []byte, value any) error {
	text := bucket.Get(key)
	if text == nil {
		return nil // as it is when nothing was saved of it
	}
	if err := json.Unmarshal(text, value); err != nil {
		return fmt.Errorf("%w: row %q of a group: %w", ErrCorrupt, key, err)
	}
	return nil
}
