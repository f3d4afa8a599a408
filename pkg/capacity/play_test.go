package capacity

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// TestPlay is a short game against the dumb twin; the tag e2e makes it a million
// operations long.
func TestPlay(t *testing.T) { play(t, 20_000, 60) }

// play does operations at random, on a timeline and on the dumb twin, which has a
// value for each second, and compares what they answer.
func play(t *testing.T, operations, seconds int) {
	g := &game{
		t: t, random: rand.New(rand.NewPCG(5, uint64(operations))), seconds: seconds,
		total: grid.Resources{MilliCPUs: 6, MemoryBytes: 6, DiskBytes: 6, MFLOPS: 6, NetBps: 6},
		twin:  make(slots, seconds),
	}
	g.line = New(g.total)
	g.twin.add(g.total, 0, seconds)
	for range operations {
		switch op := g.random.IntN(20); {
		case op < 6:
			g.reserve(g.window())
		case op < 10 && len(g.booked) > 0:
			g.release()
		case op < 12 && len(g.booked) > 0:
			g.resize()
		case op == 12 && g.random.IntN(10) == 0:
			g.setTotal()
		case op == 12 && g.random.IntN(4) == 0:
			g.force(g.window())
		case op == 13:
			g.line = g.line.Clone() // what it leaves behind must not matter
		case op < 17:
			g.search()
		default:
			w := g.window()
			if got, want := g.line.Free(at(w.from), at(w.to)), g.twin.free(w.from, w.to); got != want {
				t.Fatalf("Free(%d, %d) = %+v, want %+v", w.from, w.to, got, want)
			}
		}
	}
	if err := g.line.Check(); err != nil {
		t.Error(err)
	}
	for _, b := range g.booked {
		if err := g.line.Release(b.need, at(b.from), at(b.to)); err != nil {
			t.Fatal(err)
		}
	}
	if !g.line.Equal(New(g.total)) {
		t.Error("something is left after everything was released")
	}
}

type game struct {
	t       *testing.T
	random  *rand.Rand
	seconds int
	total   grid.Resources
	line    *Timeline
	twin    slots
	booked  []booking
}

func (g *game) amount() grid.Resources {
	n := func() int64 { return g.random.Int64N(4) }
	return grid.Resources{MilliCPUs: n(), MemoryBytes: n(), DiskBytes: n(), MFLOPS: n(), NetBps: n()}
}

func (g *game) window() booking {
	from := g.random.IntN(g.seconds - 1)
	return booking{g.amount(), from, from + 1 + g.random.IntN(min(g.seconds-from, 12))}
}

func (g *game) reserve(b booking) {
	err := g.line.reserve(b.need, at(b.from), at(b.to))
	if want := enough(g.twin.free(b.from, b.to), b.need); (err == nil) != want {
		g.t.Fatalf("Reserve(%+v): %v, want room %v", b, err, want)
	}
	if err == nil {
		g.twin.add(grid.Resources{}.Sub(b.need), b.from, b.to)
		g.booked = append(g.booked, b)
	}
}

func (g *game) force(b booking) {
	if err := g.line.Force(b.need, at(b.from), at(b.to)); err != nil {
		g.t.Fatal(err)
	}
	g.twin.add(grid.Resources{}.Sub(b.need), b.from, b.to)
	g.booked = append(g.booked, b)
}

func (g *game) release() {
	i := g.random.IntN(len(g.booked))
	b := g.booked[i]
	g.booked = slices.Delete(g.booked, i, i+1)
	if err := g.line.Release(b.need, at(b.from), at(b.to)); err != nil {
		g.t.Fatal(err)
	}
	g.twin.add(b.need, b.from, b.to)
}

func (g *game) resize() {
	b := &g.booked[g.random.IntN(len(g.booked))]
	to := b.from + 1 + g.random.IntN(g.seconds-b.from)
	err := g.line.resize(b.need, at(b.to), at(to))
	if to > b.to && (err == nil) != enough(g.twin.free(b.to, to), b.need) || to <= b.to && err != nil {
		g.t.Fatalf("Resize(%+v to %d): %v", *b, to, err)
	}
	if err != nil {
		return
	}
	g.twin.add(b.need, min(to, b.to), b.to)
	g.twin.add(grid.Resources{}.Sub(b.need), min(to, b.to), to)
	b.to = to
}

func (g *game) setTotal() {
	total := g.amount().
		Add(grid.Resources{MilliCPUs: 4, MemoryBytes: 4, DiskBytes: 4, MFLOPS: 4, NetBps: 4})
	g.twin.add(total.Sub(g.total), 0, g.seconds)
	g.total = total
	g.line.SetTotal(total)
}

func (g *game) search() {
	b := g.window()
	short := b.from
	for short < b.to && enough(g.twin.free(short, short+1), b.need) {
		short++
	}
	if got, found := g.line.FirstShort(b.need, at(b.from), at(b.to)); found != (short < b.to) ||
		found && !got.Equal(at(short)) {
		g.t.Fatalf("FirstShort(%+v) = %v, %v, want second %d", b, got.Sub(start), found, short)
	}
	length, w := 1+g.random.IntN(5), g.window()
	w.to = min(w.from+g.random.IntN(40), g.seconds)
	s := Search{
		Need: w.need, Duration: time.Duration(length) * time.Second, Window: window(w.from, w.to),
	}
	first := -1
	for i := w.from; i+length <= w.to && first < 0; i++ {
		if enough(g.twin.free(i, i+length), w.need) {
			first = i
		}
	}
	early, found := g.line.Earliest(s)
	if found != (first >= 0) || found && !early.Start.Equal(at(first)) {
		g.t.Fatalf("Earliest(%+v) = %v, %v, want second %d", s, early.Start.Sub(start), found, first)
	}
}
