package localmesh

import (
	"encoding/binary"
	"strings"
	"time"
)

// Program says what a WebAssembly module does, in this order. The module is assembled
// here, has some hundred bytes and needs no compiler, so that a test which runs it
// starts right away.
type Program struct {
	Sleep  time.Duration // rounded down to SleepTick
	Stdout string
	Stderr string
	File   string // absolute path of a file that it writes; its directory must be there
	Text   string // what it writes there
	Code   int    // with which it ends
	Steps  bool   // it sleeps one tick a step, so that its state can be saved; Code is 0 then
}

// Numbers of the WebAssembly binary format.
const (
	wasmI32, wasmI64                 = 0x7f, 0x7e
	wasmCall, wasmDrop               = 0x10, 0x1a
	wasmGet, wasmSet, wasmTee        = 0x20, 0x21, 0x22
	wasmLoop, wasmEnd, wasmRepeat    = 0x03, 0x0b, 0x0d
	wasmVoid, wasmMinus              = 0x40, 0x6b
	wasmConst, wasmConst64, wasmLoad = 0x41, 0x42, 0x28
	wasmStore, wasmPlus, wasmLess    = 0x36, 0x6a, 0x48
	wasmIf, wasmReturn               = 0x04, 0x0f
)

// The functions that a Program imports, by their index.
const (
	wasiPoll, wasiWrite, wasiExit, wasiOpen = 0, 1, 2, 3
	wasiFunctions                           = 4
)

// Where a Program keeps what: a subscription, the answers, the vectors, the texts.
const (
	memEvent, memCount, memFile, memTicks, memVectors, memTexts = 64, 128, 132, 136, 160, 256

	firstFolder = 3 // the descriptor of the sandbox's root
	openCreate  = 9 // create, and cut to nothing
)

// Module is the program as a WASI preview 1 module.
func (p Program) Module() []byte {
	memory, texts := make([]byte, memTexts), []byte(nil)
	memory[16] = 1 // the monotonic clock
	binary.LittleEndian.PutUint64(memory[24:], uint64(SleepTick))
	vector := 0
	// place puts a text into memory, and a vector that points to it.
	place := func(s string) (at, length, pointer int32) {
		at, length, pointer = int32(memTexts+len(texts)), int32(len(s)), int32(memVectors+8*vector)
		binary.LittleEndian.PutUint32(memory[pointer:], uint32(at))
		binary.LittleEndian.PutUint32(memory[pointer+4:], uint32(length))
		texts, vector = append(texts, s...), vector+1
		return at, length, pointer
	}
	body := p.sleeps()
	write := func(descriptor []byte, s string) {
		_, _, pointer := place(s)
		body = join(body, descriptor, number(pointer), number(1), number(memCount),
			[]byte{wasmCall, wasiWrite, wasmDrop})
	}
	for i, s := range []string{p.Stdout, p.Stderr} {
		if s != "" {
			write(number(int32(i+1)), s)
		}
	}
	if p.File != "" {
		at, length, _ := place(strings.TrimPrefix(p.File, "/"))
		rights := join([]byte{wasmConst64}, signed(1<<29-1))
		body = join(body, number(firstFolder), number(0), number(at), number(length),
			number(openCreate), rights, rights,
			number(0), number(memFile), []byte{wasmCall, wasiOpen, wasmDrop})
		write(join(number(memFile), []byte{wasmLoad, 2, 0}), p.Text)
	}
	kind, name, last := byte(1), "_start", join(number(int32(p.Code)), []byte{wasmCall, wasiExit})
	if p.Steps {
		kind, name, last = 4, "step", number(0)
	}
	body = join([]byte{1, 1, wasmI32}, body, last, []byte{wasmEnd})
	return join([]byte("\x00asm\x01\x00\x00\x00"), signatures(),
		section(3, []byte{1, kind}),
		section(5, []byte{1, 0, 1}),
		section(7, join([]byte{2}, text("memory"), []byte{2, 0}, text(name),
			[]byte{0, wasiFunctions})),
		section(10, join([]byte{1}, unsigned(len(body)), body)),
		section(11, join([]byte{1, 0}, number(0), []byte{wasmEnd}, unsigned(len(memory)+len(texts)),
			memory, texts)))
}

// sleeps are the instructions that let the time pass.
func (p Program) sleeps() []byte {
	tick := join(number(0), number(memEvent), number(1), number(memCount),
		[]byte{wasmCall, wasiPoll, wasmDrop})
	switch ticks := int32(p.Sleep / SleepTick); {
	case p.Steps:
		slept := join(number(memTicks), []byte{wasmLoad, 2, 0})
		return join(tick, number(memTicks), slept, number(1), []byte{wasmPlus, wasmStore, 2, 0},
			slept, number(ticks), []byte{wasmLess, wasmIf, wasmVoid},
			number(1), []byte{wasmReturn, wasmEnd})
	case ticks > 0:
		return join(number(ticks), []byte{wasmSet, 0, wasmLoop, wasmVoid}, tick,
			[]byte{wasmGet, 0}, number(1), []byte{wasmMinus, wasmTee, 0, wasmRepeat, 0, wasmEnd})
	default:
		return nil
	}
}

// signatures are the types of functions and the functions of WASI that are used.
func signatures() []byte {
	imported := func(name string, kind byte) []byte {
		return join(text("wasi_snapshot_preview1"), text(name), []byte{0, kind})
	}
	return join(
		section(1, []byte{
			5,
			0x60, 4, wasmI32, wasmI32, wasmI32, wasmI32, 1, wasmI32,
			0x60, 0, 0,
			0x60, 1, wasmI32, 0,
			0x60, 9, wasmI32, wasmI32, wasmI32, wasmI32, wasmI32, wasmI64, wasmI64, wasmI32, wasmI32, 1,
			wasmI32,
			0x60, 0, 1, wasmI32,
		}),
		section(2, join([]byte{wasiFunctions}, imported("poll_oneoff", 0), imported("fd_write", 0),
			imported("proc_exit", 2), imported("path_open", 3))))
}

// number is an instruction that gives a number.
func number(n int32) []byte { return join([]byte{wasmConst}, signed(n)) }
