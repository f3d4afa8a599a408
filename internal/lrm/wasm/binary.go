package wasm

import (
	"encoding/binary"
	"errors"
)

// errBinary means that a module is not as WebAssembly 2.0 says. wazero says more.
var errBinary = errors.New("the module's sections cannot be read")

// cursor reads the binary format of WebAssembly. After the first thing that cannot be read it
// gives zeros and stands at its end.
type cursor struct {
	rest []byte
	bad  bool
}

func (c *cursor) fail() {
	c.rest, c.bad = nil, true
}

func (c *cursor) done() bool { return len(c.rest) == 0 }

// take gives the next n bytes, nil if there are fewer.
func (c *cursor) take(n uint32) []byte {
	if uint64(n) > uint64(len(c.rest)) {
		c.fail()
		return nil
	}
	out := c.rest[:n:n]
	c.rest = c.rest[n:]
	return out
}

func (c *cursor) byte() byte {
	if b := c.take(1); b != nil {
		return b[0]
	}
	return 0
}

// u32 reads an unsigned number of at most 32 bits, LEB128.
func (c *cursor) u32() uint32 {
	value, n := binary.Uvarint(c.rest)
	if n <= 0 || n > maxLEB32 || value > 1<<32-1 {
		c.fail()
		return 0
	}
	c.rest = c.rest[n:]
	return uint32(value)
}

// The longest that numbers of 32 and of 64 bits can be.
const (
	maxLEB32 = 5
	maxLEB64 = 10
)

// number passes over a number of any kind.
func (c *cursor) number() {
	for range maxLEB64 {
		if c.byte()&0x80 == 0 {
			return
		}
	}
	c.fail()
}

// name reads a name.
func (c *cursor) name() string { return string(c.take(c.u32())) }

// limits passes over the limits of a table or a memory.
func (c *cursor) limits() {
	const hasMaximum = 1
	flags := c.byte()
	c.u32()
	if flags&hasMaximum != 0 {
		c.u32()
	}
}

// Sections of a module that are read here.
const (
	sectionCustom  = 0
	sectionType    = 1
	sectionImport  = 2
	sectionFunc    = 3
	sectionMemory  = 5
	sectionGlobal  = 6
	sectionExport  = 7
	sectionStart   = 8
	sectionCode    = 10
	wasmHeaderSize = 8 // magic and version
)

// section is a part of a module.
type section struct {
	id         byte
	body       []byte
	begin, end int // of the section with its head, in the module
}

// sections splits a module.
func sections(module []byte) ([]section, error) {
	if len(module) < wasmHeaderSize {
		return nil, errBinary
	}
	var all []section
	c := cursor{rest: module[wasmHeaderSize:]}
	for !c.done() {
		s := section{begin: len(module) - len(c.rest), id: c.byte()}
		s.body = c.take(c.u32())
		s.end = len(module) - len(c.rest)
		if c.bad {
			return nil, errBinary
		}
		all = append(all, s)
	}
	return all, nil
}
