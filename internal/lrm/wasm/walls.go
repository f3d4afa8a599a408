package wasm

import (
	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

const (
	trialMilli  = 250      // of a core that a trial may use
	trialMemory = 16 << 20 // bytes that a trial may have
)

// walls tell how the ceilings of programs are enforced, each with a module that
// runs against it.
func walls() []lrm.Wall {
	return []lrm.Wall{
		{
			Ceiling: "cores", How: "the supervisor measures, and lets the program pause",
			Trial: &lrm.Trial{Module: endless(), Limits: lrm.Limits{MilliCPUs: trialMilli}},
		},
		{
			Ceiling: "memory", How: "the runtime grants no more",
			Trial: &lrm.Trial{
				Module: greedy(), Limits: lrm.Limits{MemoryBytes: trialMemory}, Want: grid.CauseMemory,
			},
		},
		{Ceiling: "disk", How: "the sandbox counts what is written, before it is"},
	}
}

// endless is the module of an endless loop:
//
//	(module (func (export "_start") (loop (br 0))))
func endless() []byte {
	return module("", "\x0a\x09\x01\x07\x00\x03\x40\x0c\x00\x0b\x0b")
}

// greedy is the module that wants a mebibyte more until there is none:
//
//	(module (memory 1) (func (export "_start")
//	  (loop (br_if 0 (i32.ne (memory.grow (i32.const 16)) (i32.const -1)))) unreachable))
func greedy() []byte {
	return module(
		"\x05\x03\x01\x00\x01",
		"\x0a\x11\x01\x0f\x00\x03\x40\x41\x10\x40\x00\x41\x7f\x47\x0d\x00\x0b\x00\x0b",
	)
}

// module puts the sections of one function "_start" around the given ones.
func module(memory, code string) []byte {
	const (
		magic    = "\x00asm\x01\x00\x00\x00"
		types    = "\x01\x04\x01\x60\x00\x00"
		function = "\x03\x02\x01\x00"
		export   = "\x07\x0a\x01\x06_start\x00\x00"
	)
	return []byte(magic + types + function + memory + export + code)
}
