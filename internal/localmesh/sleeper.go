package localmesh

import (
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"time"
)

// Sleeper is a WebAssembly module that sleeps for a time, in steps of 100 ms so that
// time in which it is frozen does not count, and ends with code 0. It is padded
// to a size with bytes that nothing compresses and no other name has. It needs no
// compilation and starts immediately.
func Sleeper(name string, run time.Duration, size int) []byte {
	const (
		i32, call, drop, set, get, tee  = 0x7f, 0x10, 0x1a, 0x21, 0x20, 0x22
		block, end, repeat, void, minus = 0x03, 0x0b, 0x0d, 0x40, 0x6b
		number                          = 0x41 // i32.const
	)
	wait := make([]byte, 48) // subscription: one clock, the monotonic one
	wait[16] = 1
	binary.LittleEndian.PutUint64(wait[24:], uint64(SleepTick))
	ticks := int32(max(run/SleepTick, 1))
	body := join([]byte{1, 1, i32, number}, signed(ticks), []byte{set, 0, block, void},
		[]byte{number, 0, number}, signed(64), []byte{number, 1, number}, signed(128),
		[]byte{call, 0, drop},
		[]byte{get, 0, number, 1, minus, tee, 0, repeat, 0, end, end})
	module := join([]byte("\x00asm\x01\x00\x00\x00"),
		section(1, []byte{2, 0x60, 4, i32, i32, i32, i32, 1, i32, 0x60, 0, 0}),
		section(2, join([]byte{1}, text("wasi_snapshot_preview1"), text("poll_oneoff"), []byte{0, 0})),
		section(3, []byte{1, 1}),
		section(5, []byte{1, 0, 1}),
		section(7, join([]byte{2}, text("memory"), []byte{2, 0}, text("_start"), []byte{0, 1})),
		section(10, join([]byte{1}, unsigned(len(body)), body)),
		section(11, join([]byte{1, 0, number, 0, end}, unsigned(len(wait)), wait)))
	return join(module, section(0, join(text("pad"), Noise(name, size-len(module)-8))))
}

// SleepTick is the length of one step of a Sleeper, and its shortest run time.
const SleepTick = 100 * time.Millisecond

// Noise is bytes by chance, the same for the same name.
func Noise(name string, size int) []byte {
	content := make([]byte, max(size, 0))
	_, _ = rand.NewChaCha8(sha256.Sum256([]byte(name))).Read(content)
	return content
}

func join(parts ...[]byte) []byte {
	var all []byte
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

func section(id byte, content []byte) []byte {
	return join([]byte{id}, unsigned(len(content)), content)
}

func text(s string) []byte { return join(unsigned(len(s)), []byte(s)) }

// unsigned and signed are LEB128.
func unsigned(n int) []byte { return binary.AppendUvarint(nil, uint64(n)) }

func signed(n int32) []byte {
	var out []byte
	for {
		b := byte(n & 0x7f)
		n >>= 7
		if n == 0 && b&0x40 == 0 || n == -1 && b&0x40 != 0 {
			return append(out, b)
		}
		out = append(out, b|0x80)
	}
}
