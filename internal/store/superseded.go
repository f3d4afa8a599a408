package store

import (
	"encoding/binary"
	"errors"
	"fmt"

	bolt "go.etcd.io/bbolt"
)

// ErrSuperseded refuses a state directory of which a later run than all that it knows was
// heard.
var ErrSuperseded = errors.New("a later run of this site was heard of")

var supersededKey = []byte("superseded") //nolint:gochecknoglobals // a constant

// Supersede notes that another run of this site, with a higher incarnation, was heard of. The
// directory is refused until Adopt, and later starts have higher incarnations still.
func (s *Store) Supersede(incarnation uint64) error {
	err := s.db.Update(func(tx *bolt.Tx) error {
		meta := tx.Bucket(metaBucket)
		number := binary.BigEndian.AppendUint64(nil, max(incarnation, s.incarnation))
		return errors.Join(meta.Put(supersededKey, []byte{1}), meta.Put(incarnationKey, number))
	})
	if err != nil {
		return fmt.Errorf("note a later run of this site: %w", err)
	}
	return nil
}

// checkSuperseded refuses a directory that was superseded.
func (s *Store) checkSuperseded(meta *bolt.Bucket) error {
	if meta.Get(supersededKey) == nil {
		return nil
	}
	return fmt.Errorf("%w: another agent works, or has worked, with the identity in %s; stop that one "+
		"if it still runs, and then run siteagent adopt here", ErrSuperseded, s.dir)
}
