package agent

import (
	"slices"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/lrm/fake"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// pin says whether data is kept, and whether that has no end.
type pin struct{ pinned, forGood bool }

func (b *bench) pinOf(cid grid.CID) pin {
	for _, root := range b.data.Roots() {
		if root.CID == cid {
			return pin{root.Pinned, root.Pinned && root.PinnedUntil.IsZero()}
		}
	}
	return pin{}
}

func (b *bench) wantPin(cid grid.CID, want pin, when string) {
	b.t.Helper()
	if got := b.pinOf(cid); got != want {
		b.t.Errorf("%s: %+v, want %+v", when, got, want)
	}
}

// add stores a text that nobody keeps yet.
func (b *bench) add(text string) grid.CID {
	b.t.Helper()
	ref := b.store(b.t, text)
	b.pins.mu.Lock()
	delete(b.pins.uploads, ref.CID)
	b.pins.mu.Unlock()
	if err := b.data.Unpin(ref.CID); err != nil {
		b.t.Fatal(err)
	}
	return ref.CID
}

// An owner that holds data twice has it once; what the history keeps stays when the last owner
// goes, and so does what the history cannot be asked about.
func TestDataStaysForTheHistory(t *testing.T) {
	b := newBench(t, fake.New(fake.Config{}))
	cid := b.add("kept")
	b.pins.hold("one", cid, cid)
	b.pins.hold("one", cid)
	b.wantPin(cid, pin{true, true}, "held")
	b.pins.release("one")
	b.wantPin(cid, pin{}, "released once though held three times")

	for _, c := range []struct {
		kept bool
		err  error
		want pin
	}{
		{true, nil, pin{true, true}},
		{false, errForTest, pin{true, true}},
		{false, nil, pin{}},
	} {
		var asked []grid.CID
		b.pins.kept = func(cid grid.CID) (bool, error) {
			asked = append(asked, cid)
			return c.kept, c.err
		}
		b.pins.hold("two", cid)
		b.pins.release("two")
		if !slices.Equal(asked, []grid.CID{cid}) {
			t.Errorf("the history was asked for %v", asked)
		}
		b.wantPin(cid, c.want, "what the history keeps")
	}
	// When the history lets go of it, an owner keeps it.
	b.pins.hold("three", cid)
	b.pins.letGo([]grid.CID{cid})
	b.wantPin(cid, pin{true, true}, "with an owner")
	b.pins.release("three")
	if err := b.data.Pin(cid, time.Time{}); err != nil {
		t.Fatal(err)
	}
	b.pins.letGo([]grid.CID{cid})
	b.wantPin(cid, pin{}, "without an owner")
	if b.pins.mu.Lock(); len(b.pins.owned)+len(b.pins.owners)+len(b.pins.charges) != 0 {
		t.Errorf("left: %v, %v, %v", b.pins.owned, b.pins.owners, b.pins.charges)
	}
	b.pins.mu.Unlock()
}

// An upload is kept for as long as was said, and is forgotten then; the sweep leaves it, and
// what has an owner, and takes the rest.
func TestUploadsWaitForTheirJob(t *testing.T) {
	b := newBench(t, fake.New(fake.Config{}))
	upload, owned, rest := b.add("upload"), b.add("owned"), b.add("rest")
	if err := b.KeepUpload(upload); err != nil {
		t.Fatal(err)
	}
	for _, root := range b.data.Roots() {
		left := time.Until(root.PinnedUntil)
		if root.CID == upload && (left > uploadKept || left < uploadKept-patience) {
			t.Errorf("it is kept for %s, want %s", left, uploadKept)
		}
	}
	if err := b.KeepUpload("bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy"); err == nil {
		t.Error("what is not here is kept")
	}
	b.pins.hold("owner", owned)
	if err := b.data.Pin(rest, time.Time{}); err != nil {
		t.Fatal(err)
	}
	b.pins.sweep()
	b.wantPin(upload, pin{true, false}, "an upload after the sweep")
	b.wantPin(owned, pin{true, true}, "what has an owner after the sweep")
	b.wantPin(rest, pin{}, "what nobody owns after the sweep")

	b.pins.hold("job", upload)
	b.wantPin(upload, pin{true, true}, "an upload with a job")
	b.pins.release("job")
	b.wantPin(upload, pin{true, false}, "an upload whose job is gone, within its hour")
	b.pins.mu.Lock()
	b.pins.uploads[upload] = time.Now().Add(-time.Second)
	b.pins.mu.Unlock()
	if err := b.KeepUpload(rest); err != nil {
		t.Fatal(err)
	}
	if b.pins.mu.Lock(); len(b.pins.uploads) != 2 { // rest, and the one that is not here
		t.Errorf("%d uploads are remembered, want those that still wait", len(b.pins.uploads))
	}
	b.pins.mu.Unlock()
}

// What counts for a submitter does so until its owner is released: two results of which the
// share, an eighth of the quota, takes one.
func TestWhatCountsForASubmitter(t *testing.T) {
	b := newBench(t, fake.New(fake.Config{}))
	size := int(b.cfg.Data.QuotaBytes/8/2) + 1<<20
	all := noise(2 * size)
	first, second := b.add(all[:size]), b.add(all[size:])
	const tenant = "stranger"
	charge := func(cid grid.CID) error {
		err := b.data.Charge(tenant, cid)
		if err == nil {
			b.pins.charged("owner", tenant, cid)
		}
		return err
	}
	if err := charge(first); err != nil {
		t.Fatal(err)
	}
	if err := charge(second); err == nil {
		t.Error("a submitter has more than its share")
	}
	b.pins.release("another")
	if err := charge(second); err == nil {
		t.Error("the release of another owner gives room")
	}
	b.pins.release("owner")
	if err := charge(second); err != nil {
		t.Errorf("after the release: %v", err)
	}
	b.pins.release("owner")
	if b.pins.mu.Lock(); len(b.pins.charges) != 0 {
		t.Errorf("charges are left: %v", b.pins.charges)
	}
	b.pins.mu.Unlock()
}
