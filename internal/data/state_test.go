package data

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// changes are ways in which a hundredth of a state changes between two checkpoints.
func changes() map[string]func(state []byte) []byte {
	const page = 64 << 10
	scattered := func(state []byte, piece int) []byte {
		r := rand.New(rand.NewPCG(5, 6))
		for i := range len(state) / 100 / piece {
			at := r.IntN(len(state)/piece) * piece
			copy(state[at:], noise(uint64(i), piece))
		}
		return state
	}
	return map[string]func([]byte) []byte{
		"one run": func(state []byte) []byte {
			copy(state[len(state)/3+777:], noise(9, len(state)/100))
			return state
		},
		"pages here and there": func(state []byte) []byte { return scattered(state, page) },
		"quarters of pages":    func(state []byte) []byte { return scattered(state, page/4) },
		"more memory at its end": func(state []byte) []byte {
			return append(state, noise(8, len(state)/100)...)
		},
	}
}

// stateMoves adds a state, moves it, changes a hundredth, and gives which part of its size moves
// then. The state has a part that does not repeat and a part that is empty.
func stateMoves(t *testing.T, size int, change func([]byte) []byte) (share float64) {
	t.Helper()
	from, to := newSite(t, nil), newSite(t, nil)
	to.knows(from)
	state := append(noise(7, size*3/4), make([]byte, size/4)...)
	move := func() (Ref, FetchResult) {
		t.Helper()
		ref, err := from.AddState(t.Context(), bytes.NewReader(state))
		if err != nil {
			t.Fatal(err)
		}
		result, err := to.Fetch(t.Context(), ref.CID, []grid.SiteID{from.id}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return ref, result
	}
	if _, first := move(); first.Bytes > int64(size)*4/5 {
		t.Errorf("of %d bytes, a quarter empty, %d have moved", size, first.Bytes)
	}
	state = change(state)
	ref, second := move()
	if ref.Bytes != int64(len(state)) || !bytes.Equal(mustCat(t, to.Store, ref.CID), state) {
		t.Error("another state has arrived")
	}
	return float64(second.Bytes) / float64(size)
}

// "A 1 GiB checkpoint that changes by 1 % moves less than 5 % of its size": here of 32 MiB, and of
// all of it behind the tag e2e.
func TestAStateThatChangesALittleMovesALittle(t *testing.T) {
	for name, change := range changes() {
		share := stateMoves(t, 32<<20, change)
		t.Logf("%s: %.2f %%", name, 100*share)
		if share > .05 || share < .009 {
			t.Errorf("%s: a change by 1 %% has moved %.2f %%, want less than 5", name, 100*share)
		}
	}
}
