package owner

import (
	"os"
	"testing"
)

// openFiles counts the open files of this process.
func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// The agent's threads are found, at most as many as were asked for, and no file stays open.
func TestThreadsOfThisProcess(t *testing.T) {
	before := openFiles(t)
	for _, most := range []int{1, 1, 1, 1, maxThreads} {
		if ids := threads(most); len(ids) == 0 || len(ids) > most {
			t.Errorf("of at most %d threads these: %v", most, ids)
		}
	}
	if after := openFiles(t); after > before+3 { // the runtime may open some of its own
		t.Errorf("%d files are open, before %d", after, before)
	}
}
