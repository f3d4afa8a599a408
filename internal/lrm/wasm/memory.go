package wasm

import (
	"sync/atomic"

	"github.com/tetratelabs/wazero/experimental"
)

const maxMemory = 1 << 32 // bytes that 32-bit WebAssembly can address

// memory gives the guest its linear memory and refuses what goes beyond limit. A
// module's own maximum plays no part: compilers write any number there.
type memory struct {
	limit  uint64 // bytes
	denied atomic.Bool
}

// Allocate implements experimental.MemoryAllocator.
func (m *memory) Allocate(_, maximum uint64) experimental.LinearMemory {
	return &linear{memory: m, pages: reserve(min(m.limit, maximum))}
}

// linear is one linear memory.
type linear struct {
	memory *memory
	pages  []byte // reserved address space, nil where that is not possible
	own    []byte // used when there is none
}

// Reallocate implements experimental.LinearMemory.
func (l *linear) Reallocate(size uint64) []byte {
	if size > l.memory.limit {
		l.memory.denied.Store(true)
		return nil
	}
	if size <= uint64(len(l.pages)) {
		return l.pages[:size]
	}
	if grow := size - uint64(len(l.own)); size > uint64(len(l.own)) {
		l.own = append(l.own, make([]byte, grow)...)
	}
	return l.own[:size]
}

// Free implements experimental.LinearMemory.
func (l *linear) Free() {
	release(l.pages)
	l.pages, l.own = nil, nil
}
