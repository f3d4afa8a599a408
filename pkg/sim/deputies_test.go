package sim

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// deputized are two domains of three sites each, whose second sites may stand in for the first.
func deputized(cfg *Config) {
	cfg.Sites, cfg.Realms = realms(3, 3)
	for i := range cfg.Realms {
		cfg.Realms[i].Deputies = 1
	}
}

// The gateway of either domain is lost for good while a task runs next door: its deputy takes the
// link up, what was next door is placed again, and later work crosses, too.
func TestAnotherGatewayTakesALinkUp(t *testing.T) {
	for _, victim := range []grid.SiteID{"a0", "b0"} {
		t.Run(string(victim), func(t *testing.T) {
			w, o := twoDomains(t, deputized)
			job := bags(4, 20*time.Second)
			w.At(15*time.Second, func() {
				if n := w.hosts["a0"].border.Links()[0].There; n == 0 {
					t.Error("nothing runs next door")
				}
				w.PowerCut(victim)
			})
			wantAllDone(t, w.mine(t, o, "a2", job))
			later := w.mine(t, o, "a2", bags(9, 20*time.Second))
			wantAllDone(t, later)
			if abroad(later)["b"] == 0 {
				t.Errorf("ran at %v, want some at the neighbour's", abroad(later))
			}
		})
	}
}

// What a lost gateway had running for its neighbour soon holds nothing of its own domain any more.
func TestALostGatewaysOrdersFreeTheirSites(t *testing.T) {
	w, o := twoDomains(t, deputized)
	held := func() (milliCPUs int64) {
		for _, id := range []grid.SiteID{"b1", "b2"} {
			milliCPUs += fleet(1)[0].Capability.Total.MilliCPUs - w.Site(id).Status().Free.MilliCPUs
		}
		return milliCPUs
	}
	w.At(15*time.Second, func() {
		if held() == 0 {
			t.Error("nothing runs next door")
		}
		w.PowerCut("b0")
	})
	wantAllDone(t, w.mine(t, o, "a2", bags(5, 20*time.Second)))
	if n := held(); n != 0 {
		t.Errorf("%d thousandths of a core are held", n)
	}
}

// A gateway that is back takes the link over again; what the deputy had is given up and placed
// again.
func TestTheGatewayTakesTheLinkBack(t *testing.T) {
	w, o := twoDomains(t, deputized)
	w.PowerCut("b0") // before anything is ordered of it
	w.At(40*time.Second, func() {
		if n := w.hosts["b1"].border.Links(); len(n) != 1 || n[0].Here == 0 {
			t.Errorf("the deputy has %+v, want orders", n)
		}
		w.Restart("b0")
	})
	wantAllDone(t, w.mine(t, o, "a2", bags(12, 30*time.Second)))
	for id, want := range map[grid.SiteID]int{"b0": 1, "b1": 0} {
		if n := len(w.hosts[id].border.Links()); n != want {
			t.Errorf("%s holds %d links, want %d", id, n, want)
		}
	}
}

// Gateways that come, go, and are cut off, also from their own domain, so that two act: nothing
// runs twice at a time, and each job comes to its end.
func TestGatewaysThatChange(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		o := NewOracle()
		net := lan()
		net.Loss = rapid.SampledFrom([]float64{0, .05, .2}).Draw(rt, "loss")
		net.Duplicate = rapid.Float64Range(0, .3).Draw(rt, "duplicate")
		cfg := Config{
			Seed: rapid.Uint64().Draw(rt, "seed"), Network: net, CheckFacts: true, CheckEvery: 29,
			Watch: o.Watch,
		}
		deputized(&cfg)
		w := New(cfg)
		_ = w.Run(2 * time.Second)
		for range rapid.IntRange(1, 3).Draw(rt, "jobs") {
			by := rapid.SampledFrom(w.order).Draw(rt, "by")
			run := time.Duration(rapid.IntRange(2, 40).Draw(rt, "run s")) * time.Second
			job := bags(uint32(rapid.IntRange(1, 9).Draw(rt, "tasks")), run)
			if id, err := w.Submit(by, job); err == nil {
				o.Submitted(w, id, Truth{Run: run})
			}
		}
		for range rapid.IntRange(1, 6).Draw(rt, "troubles") {
			w.uproar(rt)
		}
		w.At(200*time.Second, w.healAll)
		w.recoverAt(201 * time.Second)
		_ = w.Run(202 * time.Second)
		if !w.runUntil(40*time.Minute, func() bool { return o.over(w) }) {
			rt.Fatalf("not all jobs have ended: %v", w.err())
		}
		if err := w.err(); err != nil {
			rt.Error(err)
		}
		for _, f := range o.Judge(w, 202*time.Second) {
			if f.Flaw == flawOverlap {
				rt.Error(f)
			}
		}
	})
}
