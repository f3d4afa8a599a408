package capacity

import (
	"fmt"
	"maps"
	"math/bits"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// TestCloneIsAnother: what one does the other does not see, also where both go on from
// shared nodes, and clones of clones.
func TestCloneIsAnother(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	lines := []*Timeline{New(cores(1 << 40))}
	twins := []map[int]int64{{}}
	for range 3000 {
		i := r.IntN(len(lines))
		if len(lines) < 8 && r.IntN(50) == 0 {
			lines = append(lines, lines[i].Clone())
			twins = append(twins, maps.Clone(twins[i]))
		}
		second, amount := r.IntN(200), r.Int64N(9)+1
		if taken := twins[i][second]; taken > 0 && r.IntN(2) == 0 {
			if err := lines[i].Release(cores(taken), at(second), at(second+1)); err != nil {
				t.Fatal(err)
			}
			twins[i][second] = 0
			continue
		}
		reserve(t, lines[i], cores(amount), second, second+1)
		twins[i][second] += amount
	}
	for i, l := range lines {
		if err := l.Check(); err != nil {
			t.Fatalf("line %d: %v", i, err)
		}
		for second := range 200 {
			if got := l.peak(at(second), at(second+1)).MilliCPUs; got != twins[i][second] {
				t.Fatalf("line %d, second %d: %d taken, want %d", i, second, got, twins[i][second])
			}
		}
	}
}

// TestDepth: the tree stays as flat as it should, whatever the order of times.
func TestDepth(t *testing.T) {
	const n = 1 << 14
	r := rand.New(rand.NewPCG(1, 2))
	for name, second := range map[string]func(int) int{
		"one after the other": func(i int) int { return i },
		"backwards":           func(i int) int { return n - i },
		"at random":           func(int) int { return r.IntN(1 << 30) },
	} {
		var l tree
		for i := range n {
			l.add(nanos(at(second(i))), cores(1))
		}
		if got, most := depth(l.root), 4*bits.Len(n); got > most {
			t.Errorf("%s: %d levels for %d changes, want at most %d", name, got, n, most)
		}
	}
}

func depth(n *node) int {
	if n == nil {
		return 0
	}
	return 1 + max(depth(n.left), depth(n.right))
}

func TestCheckFinds(t *testing.T) {
	for name, breakIt := range map[string]func(*Timeline){
		"more than there is": func(l *Timeline) { l.first = cores(5) },
		"what is forgotten":  func(l *Timeline) { l.since = nanos(at(50)) },
		"what is forgotten just then": func(l *Timeline) {
			l.since = l.tree.next(always)
		},
		"a wrong sum": func(l *Timeline) { l.tree.root.sum = cores(9) },
		"the wrong order": func(l *Timeline) {
			l.tree.root.left, l.tree.root.right = l.tree.root.right, l.tree.root.left
		},
		"no change": func(l *Timeline) { l.tree.root.change = grid.Resources{}; l.tree.root.pull() },
	} {
		l := stairs(t)
		breakIt(l)
		if l.Check() == nil {
			t.Errorf("Check does not find %s", name)
		}
	}
}

// BenchmarkTimeline shows what an operation costs as reservations grow: with the
// logarithm of their number. A reservation takes one to eight cores of a machine on
// which about half are free, and half of the searches are for all that is left.
func BenchmarkTimeline(b *testing.B) {
	for n := 1000; n <= 1_000_000; n *= 10 {
		l, last := busy(b, n)
		r := rand.New(rand.NewPCG(3, uint64(n)))
		somewhere := func() time.Time { return start.Add(time.Duration(r.Int64N(int64(last)))) }
		each := func(name string, operation func()) {
			b.Run(fmt.Sprintf("%s/n=%d", name, n), func(b *testing.B) {
				for b.Loop() {
					operation()
				}
			})
		}
		each("reserve+release", func() {
			from := somewhere()
			if l.reserve(cores(1), from, from.Add(time.Minute)) == nil {
				_ = l.Release(cores(1), from, from.Add(time.Minute))
			}
		})
		each("resize", func() {
			end := somewhere()
			if l.resize(cores(1), end, end.Add(time.Minute)) == nil {
				_ = l.resize(cores(1), end.Add(time.Minute), end)
			}
		})
		each("peak", func() {
			from := somewhere()
			l.peak(from, from.Add(last/10))
		})
		for name, find := range map[string]func(Search) (Fit, bool){"earliest": l.Earliest} {
			b.Run(fmt.Sprintf("%s/n=%d", name, n), func(b *testing.B) {
				skipped := 0
				for b.Loop() {
					fit, _ := find(Search{
						Need:     cores(520),
						Duration: time.Minute, Window: grid.Window{NotBefore: somewhere(), Deadline: somewhere()},
					})
					skipped += fit.Skipped
				}
				b.ReportMetric(float64(skipped)/float64(b.N), "k/op")
			})
		}
		each("clone+reserve", func() {
			c := l.Clone()
			from := somewhere()
			_ = c.reserve(cores(1), from, from.Add(time.Minute))
		})
	}
}

// busy is a timeline of 1,000 cores with n reservations, and how far it reaches.
func busy(b *testing.B, n int) (l *Timeline, last time.Duration) {
	b.Helper()
	l = New(cores(1000))
	r := rand.New(rand.NewPCG(4, uint64(n)))
	last = time.Duration(n) * 5 * time.Second
	for range n {
		from := start.Add(time.Duration(r.Int64N(int64(last))))
		_ = l.reserve(cores(1+r.Int64N(8)), from,
			from.Add(time.Duration(r.Int64N(int64(18*time.Minute)))))
	}
	return l, last
}

// Check sees what only a mistake in the tree could do: nodes out of order, or too low.
func TestCheckFindsWhatStandsWrong(t *testing.T) {
	leaf := func(at int64) *node {
		n := &node{at: at, change: cores(1)}
		n.pull()
		return n
	}
	with := func(root int64, left, right *node) *tree {
		n := leaf(root)
		n.left, n.right = left, right
		n.pull()
		return &tree{root: n}
	}
	early, late := int64(1), int64(2) // the later one is higher
	for hash(early) > hash(late) {
		early, late = late, late+1
	}
	first, second := int64(1), int64(2) // the earlier one is higher
	for hash(first) < hash(second) {
		first, second = second, second+1
	}
	for name, c := range map[string]struct {
		tree *tree
		good bool
	}{
		"nothing":         {&tree{}, true},
		"one":             {with(7, nil, nil), true},
		"right is lower":  {with(first, nil, leaf(second)), true},
		"right is higher": {with(early, nil, leaf(late)), false},
		"left is lower":   {with(late, leaf(early), nil), true},
		"left is higher":  {with(second, leaf(first), nil), false},
		"the same twice":  {with(7, nil, leaf(7)), false},
		"the end of time": {with(never, nil, nil), false},
		"the beginning":   {with(always, nil, nil), false},
	} {
		if err := c.tree.check(); (err == nil) != c.good {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// In every tree, each node is above its children: it is the one tree of its times.
func TestTreesOfTheSameTimesAreTheSame(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	for range 50 {
		times := r.Perm(40)
		var one, other tree
		for _, second := range times {
			one.add(nanos(at(second)), cores(int64(second)+1))
		}
		r.Shuffle(len(times), func(i, j int) { times[i], times[j] = times[j], times[i] })
		for _, second := range times {
			other.add(nanos(at(second)), cores(int64(second)+1))
		}
		if a, b := shape(one.root), shape(other.root); a != b {
			t.Fatalf("%s and %s", a, b)
		}
	}
}

func shape(n *node) string {
	if n == nil {
		return "."
	}
	return fmt.Sprint("(", shape(n.left), n.at, shape(n.right), ")")
}

// What one forgets its clone still knows, and the other way round.
func TestToForgetIsOnesOwn(t *testing.T) {
	for _, clones := range []bool{true, false} {
		l, same := stairs(t), stairs(t)
		other := l.Clone()
		if clones {
			l, other = other, l
		}
		for second := range 100 {
			l.Forget(at(second))
			if err := other.Check(); err != nil || !other.Equal(same) {
				t.Fatalf("at %d s: %v, %+v", second, err, other)
			}
		}
	}
}
