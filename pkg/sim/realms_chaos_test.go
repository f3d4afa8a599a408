package sim

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/border"
	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/site"
)

// uproar schedules one thing that goes wrong with a site, often a gateway, or with a border.
func (w *World) uproar(t *rapid.T) {
	at := time.Duration(rapid.IntRange(5, 120).Draw(t, "at s")) * time.Second
	back := at + time.Duration(rapid.IntRange(1, 60).Draw(t, "for s"))*time.Second
	a := rapid.SampledFrom(w.cfg.Realms).Draw(t, "a")
	b := rapid.SampledFrom(w.cfg.Realms).Draw(t, "b")
	victim := a.Members[rapid.IntRange(0, len(a.Members)-1).Draw(t, "victim")]
	switch rapid.IntRange(0, 4).Draw(t, "uproar") {
	case 0, 1:
		w.At(at, func() { w.CrashInStep(victim) })
	case 2:
		w.At(at, func() { w.PowerCut(victim) })
	case 3:
		w.At(at, func() { w.CutBorder(a.Name, b.Name) })
		w.At(back, func() { w.MendBorder(a.Name, b.Name) })
		return
	default:
		w.At(at, func() { w.Isolate(victim) })
		w.At(back, func() { w.Rejoin(victim) })
		return
	}
	w.At(back, func() { w.Restart(victim) })
}

// Whatever goes wrong with gateways, other sites, borders and messages, in two or three domains:
// nothing runs twice at a time over all of them, and each job comes to its end at its submitter.
func TestDomainsUnderTroubles(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		o := NewOracle()
		net := lan()
		net.Loss = rapid.SampledFrom([]float64{0, 0, .05, .2}).Draw(rt, "loss")
		net.Duplicate = rapid.Float64Range(0, .3).Draw(rt, "duplicate")
		net.Reorder = rapid.Float64Range(0, .3).Draw(rt, "reorder")
		cfg := Config{
			Seed: rapid.Uint64().Draw(rt, "seed"), Network: net, CheckFacts: true, CheckEvery: 29,
			Watch: o.Watch,
		}
		shapes := [][]int{{1, 2}, {2, 2}, {1, 1, 2}}
		cfg.Sites, cfg.Realms = realms(rapid.SampledFrom(shapes).Draw(rt, "domains")...)
		hops := uint32(rapid.IntRange(1, 2).Draw(rt, "hops"))
		tuneBorders(&cfg, func(c *border.Config) { c.MaxHops = hops })
		names := []grid.DomainID{"a", "b", "c"}
		beside(&cfg, names[:rapid.IntRange(0, len(names)).Draw(rt, "beside")]...)
		w := New(cfg)
		_ = w.Run(2 * time.Second)
		for range rapid.IntRange(1, 4).Draw(rt, "jobs") {
			by := rapid.SampledFrom(w.order).Draw(rt, "by")
			run := time.Duration(rapid.IntRange(2, 60).Draw(rt, "run s")) * time.Second
			job := bags(uint32(rapid.IntRange(1, 6).Draw(rt, "tasks")), run)
			if id, err := w.Submit(by, job); err == nil {
				o.Submitted(w, id, Truth{Run: run})
			}
			_ = w.Run(w.elapsed + time.Second)
		}
		for range rapid.IntRange(0, 5).Draw(rt, "troubles") {
			w.uproar(rt)
		}
		w.At(200*time.Second, w.healAll)
		w.recoverAt(201 * time.Second)
		_ = w.Run(202 * time.Second)
		if !w.runUntil(40*time.Minute, func() bool { return o.over(w) }) {
			rt.Fatalf("not all jobs have ended: %v", w.err())
		}
		_ = w.Run(w.elapsed + 3*time.Minute)
		if err := w.err(); err != nil {
			rt.Error(err)
		}
		for _, f := range o.Judge(w, 202*time.Second) {
			if f.Flaw != flawUnended { // all have; how soon is not looked at
				rt.Error(f)
			}
		}
		for _, r := range cfg.Realms {
			there, here := w.hosts[r.Members[0]].border.Orders()
			if len(there)+len(here) > 0 {
				rt.Errorf("%s still has %+v and %+v", r.Name, there, here)
			}
		}
	})
}

func tuneBorders(cfg *Config, tune func(*border.Config)) {
	for i := range cfg.Realms {
		cfg.Realms[i].Tune = tune
	}
}

// Each safeguard of a border is needed: with it nothing is found, and without it something is.
func TestSafeguardsOfABorder(t *testing.T) {
	overlaps := func(w *World) string {
		if n := len(w.overlapping()); n > 0 {
			return fmt.Sprintf("%d overlaps", n)
		}
		return ""
	}
	for _, c := range []struct {
		name string
		off  func(*Config)
		bad  func(w *World) string // what must not be; empty: it is not
	}{
		{"ceiling", func(cfg *Config) {
			for i := range cfg.Sites {
				cfg.Sites[i].Tune = func(_ *site.Config, b *broker.Config) { b.NoCeiling = true }
			}
		}, overlaps},
		{"names of orders", func(cfg *Config) {
			tuneBorders(cfg, func(c *border.Config) { c.NoRequestIDs = true })
		}, overlaps},
		{"hops", func(cfg *Config) {
			tuneBorders(cfg, func(c *border.Config) { c.NoHops = true })
		}, func(w *World) string {
			if n := w.Trace().Sent["BorderQuery"]; n > 400 {
				return fmt.Sprintf("%d queries", n)
			}
			return ""
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			found := ""
			for seed := uint64(1); seed <= 4; seed++ {
				if text := c.bad(tornApart(t, seed, nil)); text != "" {
					t.Errorf("seed %d: with it %s", seed, text)
				}
				if found == "" {
					found = c.bad(tornApart(t, seed, c.off))
				}
			}
			if found == "" {
				t.Error("nothing was found without it: the test is blind")
			}
			t.Log("without it: ", found)
		})
	}
}

// tornApart is a world in which the border is cut while tasks run behind it, and messages are
// doubled. Their submitter gives them to others then.
func tornApart(t *testing.T, seed uint64, off func(*Config)) *World {
	t.Helper()
	cfg := Config{Seed: seed, Network: lan()}
	cfg.Network.Duplicate = .3
	cfg.Sites, cfg.Realms = realms(2, 2, 1)
	if off != nil {
		off(&cfg)
	}
	w := New(cfg)
	_ = w.Run(3 * time.Second)
	mustSubmit(t, w, "a1", bags(8, 40*time.Second))
	w.At(20*time.Second, func() { w.CutBorder("a", "b") })
	w.At(100*time.Second, func() { w.MendBorder("a", "b") })
	if err := w.Run(3 * time.Minute); err != nil {
		t.Fatal(err)
	}
	return w
}
