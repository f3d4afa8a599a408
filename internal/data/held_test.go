package data

import (
	"os"
	"testing"
)

func TestHeldIsReadFromOutside(t *testing.T) {
	s := newSite(t, nil)
	ref := mustAdd(t, s.Store, noise(1, 200<<10))
	other := mustAdd(t, s.Store, noise(2, 1000))
	holds, err := HeldBelow(s.cfg.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if !holds(ref.CID) || !holds(other.CID) || holds("bafkqaaa") || holds("no cid") {
		t.Errorf("held: %t and %t, want both; unknown: %t, nonsense: %t",
			holds(ref.CID), holds(other.CID), holds("bafkqaaa"), holds("no cid"))
	}
	parsed, err := parseCID(ref.CID)
	if err != nil {
		t.Fatal(err)
	}
	d, err := digestOf(parsed)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(s.blocks.path(d)); err != nil {
		t.Fatal(err)
	}
	if holds(ref.CID) || !holds(other.CID) {
		t.Error("a root without its block is held, or another one is not")
	}
}
