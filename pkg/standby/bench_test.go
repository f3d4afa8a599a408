package standby

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// BenchmarkFacts commits Steps of 300 bytes in three members that share one thread, without
// network and disk: what the library and this room cost.
func BenchmarkFacts(b *testing.B) {
	for _, depth := range []int{1, 16, 128} {
		b.Run(fmt.Sprint("under way ", depth), func(b *testing.B) { benchFacts(b, depth) })
	}
}

func benchFacts(b *testing.B, depth int) {
	b.Helper()
	groups := map[MemberID]*Group{}
	for id := range MemberID(3) {
		disk := Founded(0, nil, 1, 2, 3)
		g, err := New(Default(id+1), noon, &disk)
		if err != nil {
			b.Fatal(err)
		}
		groups[id+1] = g
	}
	type due struct {
		to MemberID
		in Input
	}
	queue := []due{{1, Woken{}}}
	var term uint64
	released, stepped := 0, 0
	now := noon.Add(2 * time.Second)
	run := func() {
		for ; len(queue) > 0; queue = queue[1:] {
			at := queue[0].to
			for _, e := range groups[at].Step(now, queue[0].in) {
				switch e := e.(type) {
				case Send:
					queue = append(queue, due{e.To, Received{From: at, Data: e.Data}})
				case Save:
					if e.Sync {
						queue = append(queue, due{at, Saved{Number: e.Number}})
					}
				case Boot:
					term = e.Term
				case Release:
					released += len(e.Effects)
				}
			}
		}
	}
	run()
	if term == 0 {
		b.Fatal("nobody acts")
	}
	value := strings.Repeat("x", 300)
	for b.Loop() {
		effects := []step.Effect{
			step.Persist{Fact: step.NewFact("x/1", fmt.Sprint(stepped%1000), value)}, report(""),
		}
		queue = append(queue, due{1, Stepped{Term: term, Effects: effects}})
		if stepped++; stepped%depth == 0 {
			run()
		}
	}
	run()
	if released != stepped {
		b.Errorf("%d of %d Steps were released", released, stepped)
	}
}
