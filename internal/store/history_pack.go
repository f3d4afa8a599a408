package store

import (
	"bytes"
	"compress/flate"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"sync"
)

// recordWords are what records say again and again: the names of their fields and common values.
// A record shares little with itself and much with others, so that this halves it. What is packed
// with these words can be read with nothing else: they never change.
//
//go:embed history.words
var recordWords []byte

// withWords is the first byte of a record that was packed with recordWords. Earlier versions
// packed without, and no stream of flate begins so: its kind of block would be one that there is
// not, as with all bytes that have unknownBlock.
const (
	withWords    = 0x07
	unknownBlock = 0x06
)

// packLevel is flate's own default. Below 2 it does not look at the words.
const packLevel = 6

// maxRecord bounds what a record is believed to hold.
const maxRecord = 1 << 30

// packer makes records shorter, by far. What it needs for that is large, so that it keeps it: made
// anew for one job after the other, it was a sixth of all memory that a busy agent asked for.
type packer struct {
	mu     sync.Mutex
	writer *flate.Writer // nil before the first record
}

func (p *packer) pack(jobs []HistoryJob) ([][]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.writer == nil {
		w, err := flate.NewWriterDict(nil, packLevel, recordWords)
		if err != nil {
			return nil, err
		}
		p.writer = w
	}
	packed := make([][]byte, 0, len(jobs))
	for _, j := range jobs {
		var out bytes.Buffer
		out.WriteByte(withWords)
		p.writer.Reset(&out)
		if _, err := p.writer.Write(j.Record); err != nil {
			return nil, err
		}
		if err := p.writer.Close(); err != nil {
			return nil, err
		}
		packed = append(packed, out.Bytes())
	}
	p.writer.Reset(nil)
	return packed, nil
}

func unpack(packed []byte) ([]byte, error) {
	stream := flate.NewReader(bytes.NewReader(packed))
	switch {
	case len(packed) == 0 || packed[0]&unknownBlock != unknownBlock:
	case packed[0] == withWords:
		stream = flate.NewReaderDict(bytes.NewReader(packed[1:]), recordWords)
	default:
		return nil, errors.New("a later version of the agent packed it")
	}
	record, err := io.ReadAll(io.LimitReader(stream, maxRecord))
	if err != nil {
		return nil, fmt.Errorf("unpack: %w", err)
	}
	return record, nil
}
