package wasm

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// turnPatience bounds how long a runner waits for another one that compiles the
// same module. That one may be frozen, and it is no harm to compile twice.
const (
	turnPatience = 15 * time.Second
	turnPoll     = 20 * time.Millisecond
)

// takeTurn waits while another runner of this site compiles the same module, so
// that tasks of one array that start together compile it once and then find it in
// the cache. The function that it returns gives the turn to the next one. Whatever
// goes wrong, the module is compiled.
func takeTurn(cacheDir string, module []byte) (done func()) {
	sum := sha256.Sum256(module)
	name := filepath.Join(cacheDir, hex.EncodeToString(sum[:8])+".turn")
	//nolint:gosec // the agent's own directory and a hash
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return func() {}
	}
	tick := time.NewTicker(turnPoll)
	defer tick.Stop()
	for end := time.Now().Add(turnPatience); ; <-tick.C {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil || time.Now().After(end) {
			return func() { _ = f.Close() } // which unlocks it
		}
	}
}
