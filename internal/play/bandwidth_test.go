package play

import (
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/scenario"
)

// A link of 10 Mbit/s has capacity for two tasks of 5 at a time, however many cores there
// are, and for none of 11.
func TestTheLinkIsShared(t *testing.T) {
	for _, c := range []struct {
		net, expect string
		least       time.Duration // as long as so many rounds of 60 s take
	}{
		{"", "done=8 within=90s", 0},
		{"net=5Mbps", "done=8 within=3m", 2 * time.Minute},
		{"net=10Mbps", "done=8 within=6m", 4 * time.Minute},
		{"net=11Mbps", "refused=8", 0},
	} {
		s, err := scenario.Parse("sites n=2 cores=8 gflops=32 uplink=10Mbps downlink=100Mbps\n" +
			"submit job=a at=1s by=s0 count=8 gflops=1 run=60s " + c.net +
			"\nrun for=20m seed=1\nexpect job=a " + c.expect + "\n")
		if err != nil {
			t.Fatal(err)
		}
		if again, err := scenario.Parse(s.String()); err != nil ||
			again.Events[0].Submit.Need != s.Events[0].Submit.Need {
			t.Errorf("%s: written and read again: %v\n%s", c.net, err, s)
		}
		if o := mustHold(t, s); o.Jobs[0].Took < c.least {
			t.Errorf("%s: took %s, want at least %s", c.net, o.Jobs[0].Took, c.least)
		}
	}
}
