package wasm

import "fmt"

// effects are what a module's code does to state that is in neither memory nor globals.
type effects struct {
	table   bool // changes a table
	drops   bool // data.drop
	fills   bool // memory.init
	unknown string
}

// problem says why the state cannot be captured, "" if it can.
func (e effects) problem() string {
	switch {
	case e.unknown != "":
		return e.unknown
	case e.table:
		return "the module changes a table: build it without reference types"
	case e.drops && e.fills:
		return "the module drops data segments: build it without threads and passive segments"
	default:
		return ""
	}
}

// Opcodes with a meaning of their own here.
const (
	opEnd      = 0x0b
	opBrTable  = 0x0e
	opSelectT  = 0x1c
	opTableSet = 0x26
	opPrefixFC = 0xfc
	opPrefixFD = 0xfd
)

// code walks through instructions to their end.
func (c *cursor) code(e *effects) {
	for !c.done() && e.unknown == "" {
		c.instruction(e)
	}
}

// expression walks through a constant expression, which ends with its first end.
func (c *cursor) expression(e *effects) {
	for !c.bad && e.unknown == "" && c.instruction(e) != opEnd {
	}
}

// instruction passes over one instruction of WebAssembly 2.0 and gives its opcode.
func (c *cursor) instruction(e *effects) byte {
	op := c.byte()
	switch op {
	case opBrTable:
		for range c.u32() {
			if c.number(); c.bad {
				return op
			}
		}
		c.number()
	case opSelectT:
		c.take(c.u32())
	case opTableSet:
		e.table = true
		c.number()
	case opPrefixFC:
		c.miscellaneous(e)
	case opPrefixFD:
		c.vector(e)
	default:
		c.plain(op, e)
	}
	return op
}

// plain passes over what follows an opcode that stands alone.
func (c *cursor) plain(op byte, e *effects) {
	const f32, f64 = 4, 8
	switch {
	case op <= 0x01, op == 0x05, op == opEnd, op == 0x0f, // control
		op == 0x1a, op == 0x1b, // drop, select
		op >= 0x45 && op <= 0xc4, op == 0xd1: // numbers, ref.is_null
	case op >= 0x02 && op <= 0x04, op == 0x0c, op == 0x0d, op == 0x10, // blocks, branches, call
		op >= 0x20 && op <= 0x25, // variables, table.get
		op == 0x3f, op == 0x40,   // memory.size, memory.grow
		op == 0x41, op == 0x42, // i32.const, i64.const
		op == 0xd0, op == 0xd2: // ref.null, ref.func
		c.number()
	case op == 0x11, op >= 0x28 && op <= 0x3e: // call_indirect; loads and stores
		c.number()
		c.number()
	case op == 0x43:
		c.take(f32)
	case op == 0x44:
		c.take(f64)
	default:
		e.unknown = fmt.Sprintf("the module has an instruction that is not known, %#x", op)
	}
}

// miscellaneous passes over an instruction of the prefix 0xfc.
func (c *cursor) miscellaneous(e *effects) {
	switch op := c.u32(); op {
	case 0, 1, 2, 3, 4, 5, 6, 7: // conversions
	case 8: // memory.init
		e.fills = true
		c.number()
		c.number()
	case 9: // data.drop
		e.drops = true
		c.number()
	case 10: // memory.copy
		c.number()
		c.number()
	case 11, 13, 16: // memory.fill, elem.drop (which matters to table.init alone), table.size
		c.number()
	case 12, 14: // table.init, table.copy
		e.table = true
		c.number()
		c.number()
	case 15, 17: // table.grow, table.fill
		e.table = true
		c.number()
	default:
		e.unknown = fmt.Sprintf("the module has an instruction that is not known, 0xfc %d", op)
	}
}

// vector passes over an instruction of the prefix 0xfd.
func (c *cursor) vector(e *effects) {
	const lanes = 16
	switch op := c.u32(); {
	case op <= 11, op == 92, op == 93: // loads and stores
		c.number()
		c.number()
	case op == 12, op == 13: // v128.const, i8x16.shuffle
		c.take(lanes)
	case op >= 21 && op <= 34: // of one lane
		c.byte()
	case op >= 84 && op <= 91: // loads and stores of one lane
		c.number()
		c.number()
		c.byte()
	case op <= 255:
	default:
		e.unknown = fmt.Sprintf("the module has an instruction that is not known, 0xfd %d", op)
	}
}
