package plan

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

func TestDbg(t *testing.T) {
	if os.Getenv("SEED") == "" {
		t.Skip()
	}
	seed, _ := strconv.ParseUint(os.Getenv("SEED"), 10, 64)
	random := rand.New(rand.NewPCG(7, seed))
	w := newWorld(seeded{t, seed}, random.IntN)
	fmt.Printf("%+v calm %v lossy %v\n", w.p.config, w.calm, w.lossy)
	dump := func() {
		fmt.Println("== now", w.now.Sub(start), "strained", w.p.strained, "ceiling", w.p.site.ceiling, "outage", w.p.outage.Missing, w.p.outage.Until.Sub(start))
		for _, c := range w.p.Commitments() {
			fmt.Printf("   %v cl%d %v [%v %v) run%v susp%v left%v late%v aw%v over%v bor%v stop%v holds%v in%v\n", c.Attempt, c.Class, c.Give, c.Start.Sub(start), c.End.Sub(start), c.Running, c.Suspended, c.Left, c.Late, c.AwaitsData, c.Overran, c.Borrows, c.Stopped, c.Holds, c.Within)
		}
		for _, o := range w.p.Offers() {
			fmt.Printf("   offer %d firm%v holds%d %v [%v %v) exp %v\n", o.Number, o.Firm, o.Holds, o.Quote.Give, o.Quote.Start.Sub(start), o.Quote.End.Sub(start), o.Expires.Sub(start))
		}
	}
	defer dump()
	for range 20 + int(seed%8)*20 {
		dump()
		w.step()
	}
}
