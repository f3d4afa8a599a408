package plan

import (
	"fmt"
	"math/bits"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// BenchmarkOperations is a site with many reservations far ahead, all in windows of
// their own: one more is quoted, committed and released again, at an instant drawn
// anew each time. Beside the time for all three it prints how many stretches the
// search skipped because something was short there. None of it may grow by more than
// the logarithm does.
func BenchmarkOperations(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			p := New(Config{Total: cores(64), Strangers: 50, Submitter: 40, Self: "self"})
			for i := range n {
				c := far(i, n)
				if err := p.Commit(at(0), c, 0); err != nil {
					b.Fatal(err)
				}
			}
			skipped, x := 0, uint64(1)
			b.ReportAllocs()
			for b.Loop() {
				x = x*6364136223846793005 + 1442695040888963407
				a := Ask{
					Submitter: "a", Class: ClassFixTime, Need: cores(2), At: at(1000 + int(x>>33)%(n*10)),
					Rate: hour,
				}
				if x>>60&1 == 1 { // any time from there on, in a site that is full at times
					a.Class, a.Window.NotBefore, a.Need = ClassVarTime, a.At, cores(63)
					a.Submitter = "self"
				}
				q, reason := p.Quote(at(0), a)
				if reason != grid.ReasonNone {
					b.Fatal(reason)
				}
				skipped += p.skipped
				c := commitmentOf(n, a, q)
				c.Class = ClassFixTime
				if err := p.Commit(at(0), c, 0); err != nil {
					b.Fatal(err)
				}
				p.Release(c.Attempt)
			}
			b.ReportMetric(float64(skipped)/float64(b.N), "k/op")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(bits.Len(uint(n))),
				"ns/op/log2")
		})
	}
}

// far is one of n reservations: the first hundred seconds are free, then one begins
// every ten seconds and lasts for five.
func far(i, _ int) Commitment {
	from := at(100 + 10*i)
	submitter := grid.SiteID(fmt.Sprint("s", i%50))
	return Commitment{
		Attempt: attempt(1_000_001 + i), Submitter: submitter, Give: cores(2), Class: ClassFixTime,
		Holds: true, Start: from, End: from.Add(5 * time.Second),
	}
}

func hour(grid.Resources) (int64, time.Duration) { return 0, 4 * time.Second }

// BenchmarkFullSite is a site with 64 running attempts and as many that wait: one
// more is quoted and committed, and another ends.
func BenchmarkFullSite(b *testing.B) {
	p := New(Config{Total: cores(64)})
	n := 0
	add := func() {
		q, _ := p.Quote(at(0), ask(1, 100+n%37))
		n++
		if err := p.Commit(at(0), Commitment{
			Class: ClassVarTime, Attempt: attempt(n), Give: q.Give, Start: q.Start, End: q.End,
		}, 0); err != nil {
			b.Fatal(err)
		}
	}
	for range 128 {
		add()
	}
	b.ReportAllocs()
	for b.Loop() {
		add()
		p.Release(attempt(n - 128))
		p.Advance(at(0))
	}
}
