package wasm

import (
	"crypto/sha256"
	"math"
	"math/rand/v2"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

const (
	clockStart = 1_640_995_200 * int64(time.Second) // 2022-01-01 UTC, wazero's default
	clockTick  = int64(time.Millisecond)            // per reading
	maxSleep   = time.Minute                        // that one call really takes
)

// clock is the guest's time. It depends on nothing but what the guest does.
type clock struct {
	now int64 // nanoseconds since the start
}

func (c *clock) advance(nanos int64) {
	// The wall clock, which starts later, must not overflow either.
	if nanos > 0 && nanos <= math.MaxInt64-clockStart-c.now {
		c.now += nanos
	}
}

// unix is the wall clock's time in nanoseconds, which this reading does not advance.
func (c *clock) unix() int64 { return clockStart + c.now }

// nanotime reads the monotonic clock.
func (c *clock) nanotime() int64 {
	c.advance(clockTick)
	return c.now
}

// walltime reads the wall clock.
func (c *clock) walltime() (sec int64, nsec int32) {
	now := clockStart + c.nanotime()
	return now / int64(time.Second), int32(now % int64(time.Second))
}

// sleep takes the time asked for, up to maxSleep; the guest's clock advances by
// all of it, so that a program that sleeps until a moment comes there.
func (c *clock) sleep(nanos int64) {
	c.advance(nanos)
	time.Sleep(min(time.Duration(nanos), maxSleep))
}

// random is the guest's source of random numbers: the same in every attempt of a
// task, another in each task.
func random(task grid.TaskID) *rand.ChaCha8 {
	return rand.NewChaCha8(sha256.Sum256([]byte("mrsmesh wasm random " + task.String())))
}
