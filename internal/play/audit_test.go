package play

import (
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/scenario"
	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/sim"
	"github.com/mrsmesh/mrsmesh/pkg/site"
)

const cutOff = `
sites   n=5 cores=2..6 gflops=8..24 domain=a
net     latency=2ms jitter=1ms
submit  job=many at=1s by=s0 count=14 gflops=4 run=60s
isolate site=s4 at=10s for=20s
isolate site=s3 at=10s for=30s
isolate site=s2 at=10s for=40s
run     for=5m seed=1
expect  lost=0 done=14 frozen>=1
`

// The audit finds nothing in a mesh as it is, and something when either of the
// two walls against doubles is taken away: it is not blind.
func TestAuditSeesWhatTheWallsPrevent(t *testing.T) {
	s, err := scenario.Parse(cutOff)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		tune func(*sim.Config)
		want bool
	}{
		"as it is":         {tune: func(*sim.Config) {}},
		"without watchdog": {tune: func(c *sim.Config) { c.NoWatchdog = true }, want: true},
		"without fencing":  {tune: withoutFencing, want: true},
	} {
		o, err := simulate(s, c.tune)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if (o.Doubled > 0) != c.want {
			t.Errorf("%s: %d doubled, want more than 0: %v\n%s", name, o.Doubled, c.want, o.Summary())
		}
		if !c.want {
			if err := s.Expect.Check(o); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func withoutFencing(c *sim.Config) {
	for i := range c.Sites {
		c.Sites[i].Tune = func(_ *site.Config, b *broker.Config) { b.NoFencing = true }
	}
}
