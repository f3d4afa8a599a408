package scenario

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

var storms = flag.Int("storms", 5, "how many random stories TestStorms plays")

// storm makes up a story: a lossy network, crashes between and amid steps,
// sites that are cut off or silent, all over after four minutes.
func storm(seed uint64) Scenario {
	r := rand.New(rand.NewPCG(seed, 1))
	s := Scenario{Run: Run{For: 30 * time.Minute, Seed: seed}}
	for i := range 3 + r.IntN(4) {
		s.Sites = append(s.Sites, stormSite(i, r))
	}
	s.Net = Net{
		Latency: time.Duration(1+r.IntN(40)) * time.Millisecond, Jitter: time.Duration(r.IntN(40)) * time.Millisecond,
		Loss: float64(r.IntN(3)) / 20, Duplicate: float64(r.IntN(3)) / 20, Reorder: float64(r.IntN(3)) / 20,
	}
	second := func(n int) time.Duration { return time.Duration(r.IntN(n)) * time.Second }
	site := func() string { return s.Sites[r.IntN(len(s.Sites))].Name }
	for n := range 1 + r.IntN(3) {
		sub := Submission{
			Name: fmt.Sprintf("j%d", n), By: site(), Jobs: 1, Count: uint32(1 + r.IntN(16)), TTL: time.Second,
			Need: grid.Resources{MilliCPUs: 1000, MemoryBytes: 256 << 20, DiskBytes: 1 << 20, MFLOPS: 2000},
			Run:  time.Second + second(40), Unattended: grid.Unattended(r.IntN(8) / 7),
		}
		s.Events = append(s.Events, Event{Kind: Submit, At: time.Second + second(60), Submit: sub})
	}
	for range 4 + r.IntN(16) {
		e := Event{Kind: []Kind{Crash, Crash, Isolate, Silent}[r.IntN(4)], Site: site(), At: second(200), For: time.Second + second(40)}
		e.Amid = e.Kind == Crash && r.IntN(2) == 0
		s.Events = append(s.Events, e)
	}
	for _, name := range []string{"lost", "doubled"} {
		s.Expect = append(s.Expect, Expectation{Measure: name, Op: "="})
	}
	return s
}

func stormSite(i int, r *rand.Rand) Site {
	cores := int64(1+r.IntN(6)) * 1000
	return Site{
		Name: fmt.Sprintf("s%d", i), Domain: "a", Skew: time.Duration(r.IntN(600)-300) * time.Second,
		Capability: grid.Capability{
			Total: grid.Resources{MilliCPUs: cores, MemoryBytes: 4 << 30, DiskBytes: 64 << 30, MFLOPS: 2 * cores},
			UpBps: 20e6, DownBps: 100e6, CoreMFLOPS: 2000, OS: "linux", Arch: "amd64", Kinds: []grid.WorkKind{grid.KindWasm},
		},
	}
}

// No storm loses or doubles a task. One that does belongs into the graveyard.
func TestStorms(t *testing.T) {
	for seed := range uint64(*storms) {
		s := storm(seed)
		read, err := Parse(s.String())
		if err != nil {
			t.Fatalf("a storm that cannot be read: %v\n%s", err, s)
		}
		o, err := play(read, nil)
		if err == nil {
			err = read.Expect.Check(o)
		}
		if err != nil {
			t.Errorf("storm %d: %v\nput this into testdata/graveyard/storm-%d.txt:\n%s", seed, err, seed, s)
		}
	}
}
