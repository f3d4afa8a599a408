package grid

// Promise says what became of the promise of a time that a task was given.
type Promise uint8

// What became of it.
const (
	PromiseNone   Promise = iota // none was given, or the task was called off
	PromiseOpen                  // a site has promised it; it has not ended
	PromiseKept                  // it began and ended as was promised
	PromiseLate                  // it ended, but began or ended later than was promised
	PromiseBroken                // it never ran to its end: no site could keep it
)

// String is the promise in one word, empty for none.
func (p Promise) String() string {
	names := [...]string{"", "open", "kept", "late", "broken"}
	if int(p) < len(names) {
		return names[p]
	}
	return "unknown"
}
