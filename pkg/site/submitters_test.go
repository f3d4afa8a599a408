package site

import (
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
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
