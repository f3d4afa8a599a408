package step

import (
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"time"
)

// Machine is a deterministic state machine. See the package documentation for
// the contract.
type Machine interface {
	// Step is the only way in. It returns what the driver is to do, in order.
	Step(now time.Time, in Input) []Effect
	// Durable gives access to what outlives a crash.
	Durable
	// Check returns an error that names a broken invariant, or nil.
	Check() error
}

// Durable is the part of a machine that outlives a crash.
type Durable interface {
	// Snapshot encodes all facts; see EncodeFacts.
	Snapshot() []byte
	// Restore takes the facts of an earlier run. It must be called before the
	// first Step, on a new machine.
	Restore(facts []byte) error
}

// NewRand is the source of randomness of one machine in one incarnation. Equal
// arguments give equal sequences; the arguments are hashed, so that neighbouring
// seeds give unrelated streams.
func NewRand(seed uint64, entity string, incarnation uint64) *rand.Rand {
	text := make([]byte, 0, 16+len(entity))
	text = binary.BigEndian.AppendUint64(text, seed)
	text = binary.BigEndian.AppendUint64(text, incarnation)
	text = append(text, entity...)
	sum := sha256.Sum256(text)
	return rand.New(rand.NewPCG(binary.BigEndian.Uint64(sum[:8]), binary.BigEndian.Uint64(sum[8:16])))
}

// TimerKey names a timer of a machine.
type TimerKey struct {
	Name string // what it is for, "ttl", "lease"
	ID   string // what it is about, a job's or attempt's ID; may be empty
}
