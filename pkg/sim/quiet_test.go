package sim

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// A machine is checked after each step that writes or reports something, and after so many that
// do not.
func TestQuietStepsAreCheckedNowAndThen(t *testing.T) {
	const quiet = 16
	damaged := func() (*World, *host) {
		w := New(Config{Seed: 1, Sites: fleet(3), Network: lan(), CheckFacts: true, CheckQuiet: quiet})
		if err := w.Run(time.Second); err != nil {
			t.Fatal(err)
		}
		h := w.hosts["s0"]
		for r := range h.disk.facts { // a row that the machine knows nothing of
			h.write(role(r), step.Fact{Kind: "odd/1", Key: "a", Value: []byte("1")})
			h.quiet[r] = 0
		}
		return w, h
	}
	w, h := damaged()
	for n := range quiet {
		if w.failure != nil {
			t.Fatalf("checked after %d quiet steps, want %d", n, quiet)
		}
		h.step(roleSite, step.HeldChanged{})
	}
	if w.failure == nil {
		t.Errorf("not checked after %d quiet steps", quiet)
	}
	if w, _ = damaged(); w.failure != nil {
		t.Fatal(w.failure)
	}
	if _, err := w.Submit("s0", wasmJob(1, time.Second)); err != nil {
		t.Fatal(err)
	}
	if w.failure == nil {
		t.Error("not checked after a step that writes a fact")
	}
}

// A machine that finds itself broken ends the world, and the world says where.
func TestAWorldEndsWithABrokenMachine(t *testing.T) {
	w := New(Config{Seed: 1, Sites: fleet(2), Network: lan()})
	_ = w.Run(time.Second)
	h := w.hosts["s1"]
	on := reflect.ValueOf(h.site).Elem().FieldByName("owner").FieldByName("paused").FieldByName("on")
	*(*bool)(on.Addr().UnsafePointer()) = true // no fact says so
	h.step(roleSite, step.HeldChanged{})
	if err := w.Run(2 * time.Second); err == nil || !strings.Contains(err.Error(), "at 1s: s1 after") {
		t.Errorf("the world goes on: %v", err)
	}
}
