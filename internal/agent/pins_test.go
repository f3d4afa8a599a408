package agent

import (
	"fmt"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/lrm/fake"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

func TestPins(t *testing.T) {
	a := newBench(t, fake.New(fake.Config{}))
	ref := a.store(t, "shared")
	pinned := func() (bool, bool) {
		for _, root := range a.data.Roots() {
			if root.CID == ref.CID {
				return root.Pinned, root.PinnedUntil.IsZero()
			}
		}
		return false, false
	}
	a.pins.hold("one", ref.CID)
	a.pins.hold("two", ref.CID)
	a.pins.release("one")
	if held, forGood := pinned(); !held || !forGood {
		t.Errorf("the data of two owners is let go by one of them")
	}
	a.pins.release("two")
	if held, forGood := pinned(); !held || forGood {
		t.Errorf("an upload is let go with the owner of the same data: pinned %t, for good %t",
			held, forGood)
	}
	a.pins.mu.Lock()
	a.pins.uploads[ref.CID] = time.Now().Add(-time.Second)
	a.pins.mu.Unlock()
	a.pins.hold("three", ref.CID)
	a.pins.release("three")
	if held, _ := pinned(); held {
		t.Error("data without an owner stays pinned")
	}
	a.pins.release("three") // again: nothing
	a.pins.hold("none", "bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy")
}

// A release costs what its owner holds, however much others do: each task's end is one.
func TestAReleaseDoesNotLookAtWhatOthersHold(t *testing.T) {
	t.Parallel()
	a := newBench(t, fake.New(fake.Config{}))
	cost := func() time.Duration {
		least := time.Hour
		for n := range 50 {
			owner := pinOwner(fmt.Sprint("owner ", n))
			a.pins.hold(owner, grid.CID(fmt.Sprint("own ", n)))
			begun := time.Now()
			a.pins.release(owner)
			least = min(least, time.Since(begun))
		}
		return least
	}
	few := cost()
	a.pins.mu.Lock()
	for n := range 200_000 {
		cid := grid.CID(fmt.Sprint("other ", n))
		owner := pinOwner(fmt.Sprint("other ", n))
		a.pins.owned[owner], a.pins.owners[cid] = map[grid.CID]bool{cid: true}, []pinOwner{owner}
	}
	a.pins.mu.Unlock()
	if many := cost(); many > 20*few+time.Millisecond {
		t.Errorf("a release takes %s, and %s when others hold 200,000 roots", few, many)
	}
}
