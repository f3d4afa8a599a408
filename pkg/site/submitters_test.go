package site

import (
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// A site remembers thousands of jobs of one submitter. Each message brings the submitter's name
// anew; it is held once.
func TestASubmittersNameIsHeldOnce(t *testing.T) {
	s := newSubmitters()
	held := make(map[*byte]bool)
	for n := range 100 {
		submitter := grid.SiteID(strings.Repeat("a", 50)) // as it is decoded
		b := s.bind(grid.JobID(fmt.Sprint("job", n)), submitter)
		if b.submitter != submitter {
			t.Fatalf("bound to %q", b.submitter)
		}
		held[unsafe.StringData(string(b.submitter))] = true
	}
	if len(held) != 1 || s.names.len() != 1 {
		t.Errorf("%d copies of one name, and %d names", len(held), s.names.len())
	}
}

// What a site caches of a job is the message that it came with, so that the sites of a simulated
// mesh have one requirement together, not each its own.
func TestARequirementIsHeldOnce(t *testing.T) {
	r := newRig(t)
	for name, told := range map[string]protocol.Message{
		"announced": announcement(job1, alice),
		"served":    protocol.Requirements{Announce: announcement(job2, alice)},
	} {
		r.step(step.MessageReceived{From: alice, Message: told})
		entry, cached := r.m.cache.Peek(r.now, announceOf(told).Job)
		if !cached || dataOf(entry.Value.told) != dataOf(told) {
			t.Errorf("%s: the site keeps a copy of the message", name)
		}
	}
}

// dataOf points to the data of a message.
func dataOf(msg protocol.Message) unsafe.Pointer {
	return (*[2]unsafe.Pointer)(unsafe.Pointer(&msg))[1]
}
