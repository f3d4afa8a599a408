package standby

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// An entry of the log holds the facts of one Step of the machine, or of several that came while
// an earlier entry was under way. It bears the machine's term: raft's own term of an entry says
// only who put it into the log (rule 3).

// entryFacts is the first byte of such an entry's data. An entry without data is raft's own.
const entryFacts = 1

// errBadEntry is a committed entry that this version cannot read. Leaving it out would make
// this member's table differ from that of the others.
var errBadEntry = errors.New("an entry of the log cannot be read; is this agent older than others?")

// batch is the content of an entry.
type batch struct {
	term   uint64 // of the machine
	number uint64 // of its entries, from 1
	facts  []step.Fact
}

func (b batch) encode() []byte {
	text := binary.AppendUvarint([]byte{entryFacts}, b.term)
	return step.AppendFacts(binary.AppendUvarint(text, b.number), b.facts)
}

// decodeHead reads a batch without its facts, which rest has.
func decodeHead(data []byte) (b batch, rest []byte, err error) {
	if len(data) == 0 || data[0] != entryFacts {
		return batch{}, nil, errBadEntry
	}
	rest = data[1:]
	for _, field := range []*uint64{&b.term, &b.number} {
		value, n := binary.Uvarint(rest)
		if n <= 0 {
			return batch{}, nil, errBadEntry
		}
		*field, rest = value, rest[n:]
	}
	return b, rest, nil
}

func decodeBatch(data []byte) (batch, error) {
	b, rest, err := decodeHead(data)
	if err != nil {
		return batch{}, err
	}
	facts, err := step.DecodeFacts(rest)
	if err != nil {
		return batch{}, fmt.Errorf("%w: %w", errBadEntry, err)
	}
	b.facts = facts
	return b, nil
}

// sizeOf is about what facts take in an entry, in bytes.
func sizeOf(facts []step.Fact) int {
	size := 0
	for _, f := range facts {
		size += len(`{"kind":"","key":"","value":},`) + len(f.Kind) + len(f.Key) + len(f.Value)
	}
	return size
}
