package wasm

import (
	"bytes"
	"io"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// A guest has the memory that it may have and no byte more, keeps what it wrote when it grows,
// and it is noted when it wanted more.
func TestMemoryOfAGuest(t *testing.T) {
	t.Parallel()
	for _, reserved := range []uint64{0, 1 << 16, 1 << 18} {
		m := &memory{limit: 1 << 18}
		l := &linear{memory: m, pages: reserve(reserved)}
		if uint64(len(l.pages)) != reserved {
			t.Errorf("reserved %d of %d bytes", len(l.pages), reserved)
		}
		for _, size := range []uint64{1 << 16, 1 << 16, 1 << 17, 1 << 18} {
			if reserved == 1<<16 && size > reserved {
				continue // what is reserved is all that there can be
			}
			got := l.Reallocate(size)
			if uint64(len(got)) != size {
				t.Fatalf("%d bytes, want %d", len(got), size)
			}
			if size > 1<<16 && got[7] != 42 {
				t.Error("what was written is lost")
			}
			got[7], got[size-1] = 42, 1
		}
		if m.denied.Load() {
			t.Error("denied what it may have")
		}
		if got := l.Reallocate(1<<18 + 1); got != nil || !m.denied.Load() {
			t.Errorf("%d bytes, denied %v", len(got), m.denied.Load())
		}
		if l.Free(); l.pages != nil || l.own != nil {
			t.Error("it is not let go")
		}
	}
	for size, want := range map[uint64]bool{0: false, 1: true, maxMemory + 1: false} {
		pages := reserve(size)
		if (pages != nil) != want {
			t.Errorf("%d bytes are reserved: %v", size, !want)
		}
		release(pages)
	}
	l, is := (&memory{limit: 1 << 20}).Allocate(0, 1<<16).(*linear)
	if !is || len(l.pages) != 1<<16 || l.memory.limit != 1<<20 {
		t.Errorf("of a module that wants less %d bytes are reserved", len(l.pages))
	}
	l.Free()
}

// The guest's time begins in 2022, passes by what the guest does, and never runs over.
func TestTheGuestsClock(t *testing.T) {
	t.Parallel()
	c := &clock{}
	if first, second := c.nanotime(), c.nanotime(); first != 1_000_000 || second != 2_000_000 {
		t.Errorf("the readings are %d and %d", first, second)
	}
	if sec, nsec := c.walltime(); sec != 1_640_995_200 || nsec != 3_000_000 {
		t.Errorf("it is %d s and %d ns", sec, nsec)
	}
	c.advance(time.Second.Nanoseconds())
	tooFar := math.MaxInt64 - clockStart - c.now + 1
	for _, n := range []int64{0, -1, math.MinInt64, math.MaxInt64, tooFar} {
		if c.advance(n); c.now != 1_003_000_000 {
			t.Errorf("advanced by %d to %d", n, c.now)
		}
	}
	if c.advance(math.MaxInt64 - clockStart - c.now); c.now != math.MaxInt64-clockStart {
		t.Errorf("the last moment is %d", c.now)
	}
	synctest.Test(t, func(t *testing.T) {
		for asked, took := range map[time.Duration]time.Duration{
			time.Second: time.Second, time.Minute: time.Minute, time.Hour: time.Minute, -1: 0,
		} {
			c, began := &clock{}, time.Now()
			if c.sleep(int64(asked)); time.Since(began) != took || c.now != int64(max(asked, 0)) {
				t.Errorf("a sleep of %s took %s, to %d", asked, time.Since(began), c.now)
			}
		}
	})
}

// A task draws the same numbers in each attempt, and others than another task.
func TestNumbersOfATask(t *testing.T) {
	t.Parallel()
	draw := func(index uint32) []byte {
		all := make([]byte, 32)
		task := grid.TaskID{Job: "mfrggzdfmztwq2lk", Index: index}
		if _, err := io.ReadFull(random(task), all); err != nil {
			t.Fatal(err)
		}
		return all
	}
	if !bytes.Equal(draw(1), draw(1)) || bytes.Equal(draw(1), draw(2)) {
		t.Error("the numbers do not belong to the task")
	}
}
