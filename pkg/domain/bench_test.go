package domain

import (
	"fmt"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// BenchmarkJudge is one judgement of a domain of which one site has failed, with 64 promises for
// each site that begin within a week.
func BenchmarkJudge(b *testing.B) {
	for _, n := range []int{8, 64, 512} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			r := newRig(b, nil)
			for i := range n {
				id := grid.SiteID(fmt.Sprintf("s%03d", i))
				r.comes(id)
				var held []protocol.Booking
				for k := range 64 {
					p := places(64*i+k, 1, time.Duration(1+(37*i+101*k)%10_000)*time.Minute)
					p.BookedAgo = time.Minute
					held = append(held, p)
				}
				r.says(id, 16, held...)
			}
			r.wait(time.Second)
			r.do(step.PeerGone{Site: "s000"})
			r.wait(r.cfg.Grace + time.Second)
			for b.Loop() {
				r.m.judgeNow()
				r.m.out.Take()
			}
		})
	}
}
