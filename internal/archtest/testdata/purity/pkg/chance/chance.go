// Package chance draws from the source that all share.
package chance

import (
	"crypto/ed25519"
	old "math/rand"
	"math/rand/v2"
)

func draws(deck []int) {
	_ = rand.IntN(6)                           // want "seeded for its owner"
	_ = rand.Float64()                         // want "seeded for its owner"
	rand.Shuffle(len(deck), func(int, int) {}) // want "seeded for its owner"
	_ = old.Intn(6)                            // want "seeded for its owner"
	old.Seed(1)                                // want "seeded for its owner"
	_ = rand.N[int64]                          // want "seeded for its owner"
}

func key() {
	_, _, _ = ed25519.GenerateKey(nil) // want "seeded for its owner"
}

func fine(seed uint64) int {
	own := rand.New(rand.NewPCG(seed, 1))
	older := old.New(old.NewSource(int64(seed)))
	return own.IntN(6) + older.Intn(6)
}
