package store

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	bolt "go.etcd.io/bbolt"
)

// redoKey has the start whose frames the facts may lack some of, and the newest that they have.
var redoKey = []byte("redo") //nolint:gochecknoglobals // a constant

// errRedoGone says that the facts lack what only frames had.
var errRedoGone = fmt.Errorf("%w: %s does not belong to %s", ErrCorrupt, redoFile, factsFile)

func settledRow(run, seq uint64) []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, run), seq)
}

// unsettled reads what the facts of a transaction lack. It is errRedoGone if that cannot be read:
// one of the two files was put there by itself.
func unsettled(tx *bolt.Tx, dir string) ([]change, error) {
	meta := tx.Bucket(metaBucket)
	if meta == nil || string(meta.Get(formatKey)) != formatWithRedo {
		return nil, nil
	}
	row := meta.Get(redoKey)
	if len(row) != len(settledRow(0, 0)) {
		return nil, fmt.Errorf("%w: no frame is named", ErrCorrupt)
	}
	run, seq := binary.LittleEndian.Uint64(row), binary.LittleEndian.Uint64(row[8:])
	text, err := os.ReadFile(filepath.Join(dir, redoFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errRedoGone
	}
	if err != nil {
		return nil, fmt.Errorf("read state: %w", err)
	}
	return readRedo(text, run, seq)
}

// readRedo reads the frames of a run behind the one of that number. They end where the file does,
// or where others begin that are older, or one that was being written.
func readRedo(text []byte, run, seq uint64) (changes []change, err error) {
	at, last := 0, uint64(0)
	for at < len(text) {
		found, size, ok := frameAt(text[at:], run)
		if !ok || last > 0 && found.seq != last+1 {
			break
		}
		if last == 0 && found.seq > seq+1 {
			return nil, errRedoGone
		}
		last = found.seq
		at += size
		if found.seq <= seq {
			continue
		}
		c, err := decodeChange(found.body)
		if err != nil {
			return nil, err
		}
		changes = append(changes, c)
	}
	for at += sector; at < len(text); at += sector {
		if found, _, ok := frameAt(text[at:], run); ok && found.seq > max(last, seq) {
			return nil, fmt.Errorf("%w: frame %d of %s, and frame %d follows", ErrCorrupt, last+1,
				redoFile, found.seq)
		}
	}
	return changes, nil
}

// found is a frame that was read.
type found struct {
	seq  uint64
	body []byte
}

// frameAt reads the frame of a run with which a text begins, and how many bytes it takes.
func frameAt(text []byte, run uint64) (f found, size int, ok bool) {
	in := frameReader{in: bufio.NewReaderSize(bytes.NewReader(text), 16), left: int64(len(text))}
	kind, body, err := in.next()
	if err != nil || kind != kindRedo || len(body) < 16 || binary.LittleEndian.Uint64(body) != run {
		return found{}, 0, false
	}
	size = frameHeader + 1 + len(body)
	if past := size % sector; past > 0 {
		size += sector - past
	}
	return found{seq: binary.LittleEndian.Uint64(body[8:]), body: body[16:]}, size, true
}

// takeRedo lets the facts take what the start before has left in frames, in the transaction that
// counts this one. It reports whether that is gone.
func (s *Store) takeRedo(tx *bolt.Tx, there bool) (gone bool, err error) {
	changes, err := unsettled(tx, s.dir)
	if err == nil && !there && string(tx.Bucket(metaBucket).Get(formatKey)) == formatWithRedo {
		err = errRedoGone
	}
	if errors.Is(err, errRedoGone) {
		s.log.Error("the last changes of the state are gone: it is taken as restored", "error", err)
		return true, nil
	}
	if errors.Is(err, ErrCorrupt) {
		return false, fmt.Errorf("%w; %s", err, remedy)
	}
	if err != nil {
		return false, err
	}
	for _, c := range changes {
		if err := c.write(tx); err != nil {
			return false, err
		}
	}
	return false, nil
}
