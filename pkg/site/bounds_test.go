package site

import (
	"reflect"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// Each setting that has bounds may be at them, and not beyond.
func TestSettingsMayBeAtTheirBounds(t *testing.T) {
	type set = func(*Config, int64)
	span := func(field func(*Config) *time.Duration) set {
		return func(c *Config, v int64) { *field(c) = time.Duration(v) }
	}
	number := func(field func(*Config) *int) set {
		return func(c *Config, v int64) { *field(c) = int(v) }
	}
	const longest = int64(grid.MaxRuntime)
	ahead := func(field func(*Planning) *time.Duration) set {
		return span(func(c *Config) *time.Duration { return field(&c.Planning) })
	}
	for name, c := range map[string]struct {
		set         set
		least, most int64
	}{
		"CacheEntries":  {number(func(c *Config) *int { return &c.CacheEntries }), 8, 1 << 20},
		"MaxAttempts":   {number(func(c *Config) *int { return &c.MaxAttempts }), 8, 1 << 20},
		"CacheTTL":      {span(func(c *Config) *time.Duration { return &c.CacheTTL }), 1e6, longest},
		"OfferValidity": {span(func(c *Config) *time.Duration { return &c.OfferValidity }), 1e6, longest},
		"RenewRetry":    {span(func(c *Config) *time.Duration { return &c.RenewRetry }), 1e6, longest},
		"GiveUp":        {span(func(c *Config) *time.Duration { return &c.GiveUp }), 1e6, longest},
		"FrozenLimit":   {span(func(c *Config) *time.Duration { return &c.FrozenLimit }), 1e6, longest},
		"ResultHold":    {span(func(c *Config) *time.Duration { return &c.ResultHold }), 1e6, longest},
		"OwnerPatience": {span(func(c *Config) *time.Duration { return &c.OwnerPatience }), 1e6, longest},
		"MaxRuntime":    {span(func(c *Config) *time.Duration { return &c.MaxRuntime }), 0, longest},
		"Horizon":       {ahead(func(p *Planning) *time.Duration { return &p.Horizon }), 0, longest},
		"Ahead":         {ahead(func(p *Planning) *time.Duration { return &p.Ahead }), 0, longest},
		"Longest":       {ahead(func(p *Planning) *time.Duration { return &p.Longest }), 0, longest},
		"Promised":      {number(func(c *Config) *int { return &c.Planning.Promised }), 0, 100},
		"Strangers":     {number(func(c *Config) *int { return &c.Planning.Strangers }), 0, 100},
		"Submitter":     {number(func(c *Config) *int { return &c.Planning.Submitter }), 0, 100},
		"Project":       {number(func(c *Config) *int { return &c.Planning.Project }), 0, 100},
		"Price":         {func(c *Config, v int64) { c.Price = float64(v) }, 0, 1e9},
		"Policy":        {func(c *Config, v int64) { c.Planning.Policy = grid.Policy(v) }, 0, 4},
		"Backfill":      {func(c *Config, v int64) { c.Planning.Backfill = grid.Backfill(v) }, 0, 2},
		"Overestimate in tenths": {
			func(c *Config, v int64) { c.Planning.Overestimate = float64(v) / 10 }, 0, 9,
		},
		"DataBytes": {func(c *Config, v int64) { c.DataBytes = v }, 0, 1<<63 - 1},
	} {
		for value, ok := range map[int64]bool{
			c.least: true, c.most: true, c.least - 1: false, c.most + 1: false,
		} {
			cfg := Default(self, fourCores())
			if c.set(&cfg, value); (cfg.Validate() == nil) != ok {
				t.Errorf("%s of %d: %v, want it taken: %t", name, value, cfg.Validate(), ok)
			}
		}
	}
}

// A phase that is none has no name, and does not hide another one's.
func TestEachPhaseHasItsName(t *testing.T) {
	seen := make(map[string]bool)
	for p := phaseAsked; p <= phaseExited; p++ {
		if name := p.String(); name == "unknown" || seen[name] {
			t.Errorf("phase %d is %q", p, name)
		}
		seen[p.String()] = true
	}
	for _, p := range []phase{0, phaseExited + 1, 255} {
		if p.String() != "unknown" {
			t.Errorf("phase %d is %q", p, p)
		}
	}
}

// What is missing is told as amounts of what the reason names, and nobody has less than nothing.
func TestARefusalNamesWhatIsMissing(t *testing.T) {
	need := grid.Resources{MilliCPUs: 1, MemoryBytes: 2, DiskBytes: 3, NetBps: 4, MFLOPS: 5}
	have := grid.Resources{MilliCPUs: 11, MemoryBytes: 12, DiskBytes: 13, NetBps: 14, MFLOPS: -15}
	for reason, want := range map[grid.Reason][2]int64{
		grid.ReasonCPUs: {1, 11}, grid.ReasonMemory: {2, 12}, grid.ReasonDisk: {3, 13},
		grid.ReasonBandwidth: {4, 14}, grid.ReasonComputation: {5, 0}, grid.ReasonPromised: {0, 0},
	} {
		r := shortfall(reason, need, have)
		if r.Reason != reason || r.Never || r.Want != want[0] || r.Have != want[1] {
			t.Errorf("%v: refused %+v, want %v", reason, r, want)
		}
	}
}

// Times are told in whole seconds, and never as shorter than they are.
func TestSecondsAreRoundedUp(t *testing.T) {
	for d, want := range map[time.Duration]int64{
		0: 0, 1: 1, time.Second - 1: 1, time.Second: 1, time.Second + 1: 2, time.Minute: 60,
	} {
		if got := seconds(d); got != want {
			t.Errorf("%s: %d", d, got)
		}
	}
}

// A site says of itself where it stands for a task, and answers a submitter the same.
func TestAQuoteIsWhatAnOfferWouldSay(t *testing.T) {
	for name, change := range map[string]func(*grid.Spec){
		"as it is":   func(*grid.Spec) {},
		"half of it": cores(2),
		"too large":  cores(5),
		"at a time":  at(10 * time.Minute),
		"too late":   by(-time.Second),
		"in seconds": func(s *grid.Spec) { s.Map = grid.MapSeconds },
	} {
		r := newRig(t)
		r.running(job1, alice, 3)
		a := announcement(job2, alice, change)
		a.Req.Sources[0].Holders = []grid.SiteID{alice}
		a.Explain = true
		parts, refusal, ok := r.m.Quote(a.Req)
		r.receive(alice, a)
		bids, refused := sent[protocol.Bid](r.out, alice), sent[protocol.Refuse](r.out, alice)
		switch {
		case ok && (len(bids) != 1 || !reflect.DeepEqual(bids[0].Offer.Parts, parts)):
			t.Errorf("%s: quoted %+v, offered %+v", name, parts, bids)
		case !ok && (len(refused) != 1 || refused[0].Refusal != refusal):
			t.Errorf("%s: would refuse %+v, refused %+v", name, refusal, refused)
		}
	}
}
