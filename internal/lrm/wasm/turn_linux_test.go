package wasm

import (
	"testing"
	"time"
)

func TestTakeTurn(t *testing.T) {
	dir, module := t.TempDir(), []byte("module")
	first := takeTurn(dir, module)
	next := make(chan func())
	go func() { next <- takeTurn(dir, module) }()
	takeTurn(dir, []byte("another module"))() // does not wait
	select {
	case <-next:
		t.Fatal("two runners compile the same module at the same time")
	case <-time.After(5 * turnPoll):
	}
	first()
	select {
	case done := <-next:
		done()
	case <-time.After(turnPatience):
		t.Fatal("the turn was not passed on")
	}
	takeTurn("/nonexistent", module)() // without a lock file it just compiles
}
