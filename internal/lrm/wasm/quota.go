package wasm

import (
	"sync/atomic"
)

// maxEntries bounds the files and directories of a scratch tree: empty ones cost
// the host too.
const maxEntries = 1 << 17

// quota counts what a scratch tree holds. It belongs to the one thread of the
// guest; only the flags are read by others, after the end.
type quota struct {
	limit   int64 // bytes
	used    int64 // bytes, by the sizes of the files
	entries int   // files and directories

	saved int64  // bytes of the saved state, which counts as long as nothing else needs the space
	shed  func() // removes that; nil: there is none

	denied   atomic.Bool // the guest was refused space it had not asked for
	hostFull atomic.Bool // the host ran out of space before the quota did
}

// take reserves n more bytes, n may be negative.
func (q *quota) take(n int64) bool {
	if n > 0 && n > q.limit-q.used {
		q.denied.Store(true)
		return false
	}
	q.used += n
	q.bound()
	return true
}

// bound removes the saved state when it does not fit beside the guest's own files: what a guest
// can write must not depend on when its states were saved.
func (q *quota) bound() {
	if q.saved > 0 && q.saved > q.limit-q.used {
		q.saved = 0
		q.shed()
	}
}

// enter reserves one more file or directory.
func (q *quota) enter() bool {
	if q.entries >= maxEntries {
		q.denied.Store(true)
		return false
	}
	q.entries++
	return true
}
