package store

import (
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"testing"
)

// A history that is looked at everywhere does not stay in the agent's memory.
func TestAHistoryStaysOnDisk(t *testing.T) {
	h := openHistory(t, t.TempDir())
	rng := rand.New(rand.NewPCG(1, 1))
	const batches, batch, bytes = 40, 100, 2 << 10
	for i := range batches {
		var jobs []HistoryJob
		for k := range batch {
			j := ended(i*batch + k)
			j.Record = make([]byte, bytes)
			for b := range j.Record {
				j.Record[b] = byte(rng.Uint32())
			}
			jobs = append(jobs, j)
		}
		must(t, h.Add(jobs))
	}
	info, err := os.Stat(h.path)
	must(t, err)
	for n := range 100 {
		if _, _, err := h.Record(ended(n * 7919 % (batches * batch)).Job); err != nil {
			t.Fatal(err)
		}
		// What stays is the page that bbolt itself reads to let go of the others.
		if held := heldOf(t, h.path); info.Size() < batches*batch*bytes || held > info.Size()/64 {
			t.Fatalf("%d bytes of the file's %d are held in memory", held, info.Size())
		}
	}
}

// heldOf gives the bytes of a file that this process has mapped and holds.
func heldOf(t *testing.T, path string) (held int64) {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/smaps")
	must(t, err)
	of := regexp.MustCompile(fmt.Sprintf(`(?m)^.* %s\n(?:[A-Z].*\n)*?Rss: +(\d+) kB$`,
		regexp.QuoteMeta(path)))
	all := of.FindAllSubmatch(maps, -1)
	if len(all) == 0 {
		t.Fatalf("%s is not mapped", path)
	}
	for _, m := range all {
		kib, err := strconv.ParseInt(string(m[1]), 10, 64)
		must(t, err)
		held += kib << 10
	}
	return held
}
