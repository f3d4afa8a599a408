package store

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A segment is a file of frames: length and CRC-32C of the payload, both four
// bytes little-endian, then the payload, whose first byte says what it is.
const (
	frameHeader = 8
	maxPayload  = 128 << 20
	recordHead  = 16  // of a record, before the input
	kindHeader  = 'H' // JSON of Header; the first frame of a segment and nowhere else
	// kindRecord holds the time in ns since 1970 and the hash of the effects, both 8 bytes
	// little-endian, and the input.
	kindRecord = 'R'
	kindFacts  = 'F' // facts that became durable, as step.AppendFacts writes them
	kindGap    = 'G' // why an input is missing
	kindRedo   = 'D' // changes of facts, in no segment: see redo.go
	// kindBegin follows the header of a segment that continues a run, and makes it count: the
	// number of its first record, 8 bytes little-endian, and the facts that became durable since
	// those of its header, which was written earlier.
	kindBegin       = 'B'
	segmentNumberFn = "%010d-%s"
)

// errTorn says that a segment ends within a frame, as after a crash.
var errTorn = errors.New("torn")

func crcTable() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// appendFrame appends a frame whose payload is kind and the parts.
func appendFrame(buf []byte, kind byte, parts ...[]byte) []byte {
	start := len(buf)
	buf = append(buf, make([]byte, frameHeader)...)
	buf = append(buf, kind)
	for _, p := range parts {
		buf = append(buf, p...)
	}
	payload := buf[start+frameHeader:]
	binary.LittleEndian.PutUint32(buf[start:], uint32(len(payload)))
	binary.LittleEndian.PutUint32(buf[start+4:], crc32.Checksum(payload, crcTable()))
	return buf
}

// frameReader reads the frames of a segment.
type frameReader struct {
	in   *bufio.Reader
	left int64 // bytes of the file not read yet: bounds what is allocated
}

// next returns the kind and the body of the next frame, io.EOF behind the last
// one, or errTorn where the file cannot be read on.
func (r *frameReader) next() (kind byte, body []byte, err error) {
	var head [frameHeader]byte
	if r.left == 0 {
		return 0, nil, io.EOF
	}
	if r.left < frameHeader {
		return 0, nil, errTorn
	}
	if _, err := io.ReadFull(r.in, head[:]); err != nil {
		return 0, nil, tornOr(err)
	}
	size := int64(binary.LittleEndian.Uint32(head[:]))
	if r.left -= frameHeader; size == 0 || size > maxPayload || size > r.left {
		return 0, nil, errTorn
	}
	payload := make([]byte, size)
	if _, err := io.ReadFull(r.in, payload); err != nil {
		return 0, nil, tornOr(err)
	}
	r.left -= size
	if crc32.Checksum(payload, crcTable()) != binary.LittleEndian.Uint32(head[4:]) {
		return 0, nil, errTorn
	}
	return payload[0], payload[1:], nil
}

func tornOr(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errTorn
	}
	return err
}

type segmentName struct {
	path    string
	number  uint64
	machine string
	bytes   int64
}

// segmentNames lists the segments of a state directory, ascending by number.
func segmentNames(dir string) ([]segmentName, error) {
	dir = filepath.Join(dir, journalDir)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("list journal: %w", err)
	}
	var names []segmentName
	for _, e := range entries {
		digits, machine, found := strings.Cut(e.Name(), "-")
		number, err := strconv.ParseUint(digits, 10, 64)
		info, statErr := e.Info()
		if !found || err != nil || statErr != nil || !info.Mode().IsRegular() {
			continue // not ours, or deleted meanwhile
		}
		names = append(names, segmentName{filepath.Join(dir, e.Name()), number, machine, info.Size()})
	}
	slices.SortFunc(names, func(a, b segmentName) int {
		switch {
		case a.number < b.number:
			return -1
		case a.number > b.number:
			return 1
		default:
			return strings.Compare(a.machine, b.machine)
		}
	})
	return names, nil
}
