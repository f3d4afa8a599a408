package workload

import (
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
)

// Stream returns the chance of one purpose of an experiment: the same for the same seed
// and name, and unrelated to that of every other seed or name. It is seeded by the
// SHA-256 of both, because generators that are seeded with neighbouring numbers can be
// shifted copies of one sequence, which makes confidence intervals far too small.
func Stream(seed uint64, name string) *rand.Rand {
	key := binary.BigEndian.AppendUint64(make([]byte, 0, 8+len(name)), seed)
	return rand.New(rand.NewChaCha8(sha256.Sum256(append(key, name...))))
}
