//go:build e2e

package e2e_test

import (
	"time"

	"github.com/mrsmesh/mrsmesh/internal/localmesh"
)

const tick = localmesh.SleepTick

// sleeper is a module that sleeps.
func sleeper(name string, run time.Duration, size int) []byte {
	return localmesh.Sleeper(name, run, size)
}

// noise is bytes by chance, the same for the same name.
func noise(name string, size int) []byte { return localmesh.Noise(name, size) }
