package store

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	bolt "go.etcd.io/bbolt"
)

// A state directory belongs to one machine and is the only one of its site. A copy on another
// machine, or one that a backup was restored into, does not know what the site has promised
// since: it may be used only by an agent that knows that (Restored). What is compared:
//
//   - the machine, by a name that the caller gives. On another one the directory is refused
//     until Adopt moves it there.
//   - the hardware, by names of its parts of which one is enough. Where none is known any more,
//     the disk was put into another machine, or its image was copied with the machine's name.
//   - placeFile, which each start writes in place. It has another identity in the file system
//     after it was copied, and holds a later start than facts that were restored alone.

// ErrElsewhere refuses a state directory that belongs to another machine.
var ErrElsewhere = errors.New("the state belongs to another machine")

const placeFile = "place"

var (
	machineKey  = []byte("machine")  //nolint:gochecknoglobals // a constant
	placeKey    = []byte("place")    //nolint:gochecknoglobals // a constant
	restoredKey = []byte("restored") //nolint:gochecknoglobals // a constant
	hardwareKey = []byte("hardware") //nolint:gochecknoglobals // a constant
	lineKey     = []byte("line")     //nolint:gochecknoglobals // a constant
)

// epoch begins the count of seconds that gives agents with a right clock an incarnation. So the
// first start of a restored state has a higher one than all that the state does not know of.
func epoch() time.Time { return time.Date(2024, time.January, 1, 0, 0, 0, 0, time.UTC) }

// maxByClock bounds what a clock that is wrong can make of an incarnation: it stays below what
// fits into 32 bits for as long as there are starts.
const maxByClock = 1 << 31

// next is the incarnation after one.
func next(last uint64, wall time.Time) uint64 {
	byClock := wall.Unix() - epoch().Unix()
	if byClock < 0 || byClock > maxByClock {
		byClock = 0
	}
	return max(last+1, uint64(byClock))
}

// Restored reports whether facts may be older than what this site has promised.
func (s *Store) Restored() bool { return s.restored }

// Nonce was drawn for this start alone.
func (s *Store) Nonce() uint64 { return s.nonce }

// Line was drawn for the starts that followed one another on this machine: that of each found
// that the agent of the one before had ended.
func (s *Store) Line() uint64 { return s.line }

// Trust notes that what is restored was taken up: it is in the facts from here on.
func (s *Store) Trust() error {
	if !s.restored {
		return nil
	}
	err := s.db.Update(func(tx *bolt.Tx) error { return tx.Bucket(metaBucket).Delete(restoredKey) })
	if err != nil {
		return fmt.Errorf("note that the restored state was taken up: %w", err)
	}
	return nil
}

// takePlace compares where the directory was with where it is, in the transaction that counts
// the start. Gone says that the last changes are.
func (s *Store) takePlace(meta *bolt.Bucket, last uint64, gone bool) error {
	s.nonce = draw()
	if err := s.takeMachine(meta); err != nil {
		return err
	}
	identity, latest, err := writePlace(filepath.Join(s.dir, placeFile), s.incarnation)
	if err != nil {
		return err
	}
	was := meta.Get(placeKey)
	moved := len(was) > 0 && !bytes.Equal(was, identity)
	rebuilt := len(was) == 0 && latest > 0 // the facts were lost, and written anew
	other, err := s.takeHardware(meta)
	if err != nil {
		return err
	}
	s.restored = meta.Get(restoredKey) != nil || moved || rebuilt || latest > last ||
		other || gone
	if err := s.takeLine(meta); err != nil {
		return err
	}
	if err := meta.Put(placeKey, identity); err != nil || !s.restored {
		return err
	}
	return meta.Put(restoredKey, []byte{1})
}

// takeMachine refuses a directory that belongs to another machine, and notes this one.
func (s *Store) takeMachine(meta *bolt.Bucket) error {
	machine := []byte(s.options.Machine)
	if was := meta.Get(machineKey); len(was) > 0 && len(machine) > 0 && !bytes.Equal(was, machine) {
		return fmt.Errorf("%w: %s was last used on a machine with another identity; if it was moved "+
			"here, and no agent works with it anywhere else, run siteagent adopt; if it was copied, "+
			"remove the copy and let this machine join as a site of its own", ErrElsewhere, s.dir)
	}
	if len(machine) == 0 {
		return nil
	}
	return meta.Put(machineKey, machine)
}

// takeHardware notes the parts of the machine, and reports whether none of those is there that
// were noted before. Nothing is concluded where no parts are known, then or now.
func (s *Store) takeHardware(meta *bolt.Bucket) (other bool, err error) {
	now := s.options.Hardware
	if len(now) == 0 {
		return false, nil
	}
	was := strings.Fields(string(meta.Get(hardwareKey)))
	known := func(part string) bool { return slices.Contains(was, part) }
	other = len(was) > 0 && !slices.ContainsFunc(now, known)
	return other, meta.Put(hardwareKey, []byte(strings.Join(now, " ")))
}

// takeLine goes on with the line of the starts before, or begins a new one where nothing shows
// that these have ended.
func (s *Store) takeLine(meta *bolt.Bucket) error {
	if was := meta.Get(lineKey); len(was) == 8 && !s.restored {
		s.line = binary.BigEndian.Uint64(was)
		return nil
	}
	s.line = max(draw(), 1)
	return meta.Put(lineKey, binary.BigEndian.AppendUint64(nil, s.line))
}

func draw() uint64 {
	var drawn [8]byte
	_, _ = rand.Read(drawn[:]) // never fails: it would end the program
	return binary.BigEndian.Uint64(drawn[:])
}

// writePlace notes a start in the file that tells one directory from its copies, and returns
// the file's identity and the last start that was noted there, 0 if none was.
func writePlace(path string, start uint64) (identity []byte, last uint64, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, fileMode)
	if err != nil {
		return nil, 0, fmt.Errorf("note the place of the state: %w", err)
	}
	defer f.Close()
	var held [8]byte
	if n, _ := f.ReadAt(held[:], 0); n == len(held) {
		last = binary.BigEndian.Uint64(held[:])
	}
	_, err = f.WriteAt(binary.BigEndian.AppendUint64(nil, start), 0)
	if err = errors.Join(err, f.Sync()); err != nil {
		return nil, 0, fmt.Errorf("note the place of the state: %w", err)
	}
	return append([]byte{1}, identityOf(f)...), last, nil // never empty
}

// Adopt binds a state directory to this machine. The next start knows that it was moved or
// restored. No agent may have it open.
func Adopt(dir, machine string) error {
	path := filepath.Join(dir, factsFile)
	if _, err := os.Stat(path); err != nil {
		return fmt.Errorf("adopt state: %s is no state directory of an agent: %w", dir, err)
	}
	db, err := openDB(path, false)
	if err != nil {
		return err
	}
	newer, superseded, err := Superseded(dir)
	if err != nil {
		return errors.Join(err, db.Close())
	}
	err = guard(path, func() error {
		return db.Update(func(tx *bolt.Tx) error { return rebind(tx, machine, newer) })
	})
	if err == nil && superseded {
		err = os.Remove(filepath.Join(dir, supersededFile))
	}
	if err = errors.Join(err, db.Close()); err != nil {
		return fmt.Errorf("adopt state: %w", err)
	}
	return nil
}

// rebind notes the machine that a state directory is moved to.
func rebind(tx *bolt.Tx, machine string, newer Newer) error {
	meta, err := tx.CreateBucketIfNotExists(metaBucket)
	if err != nil {
		return err
	}
	return errors.Join(
		meta.Put(machineKey, []byte(machine)), meta.Put(restoredKey, []byte{1}),
		outrank(meta, newer),
	)
}
