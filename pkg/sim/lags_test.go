package sim

import (
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// steady are lags without chance: s0 hears in 20 ms and other sites in 30 ms, a site hears
// itself immediately.
func steady() Lags {
	return Lags{
		Message: func(from, to grid.SiteID, _ protocol.Message, _ float64) time.Duration {
			switch to {
			case from:
				return 0
			case "s0":
				return 20 * time.Millisecond
			default:
				return 30 * time.Millisecond
			}
		},
		Start: func(grid.SiteID, float64) time.Duration { return 200 * time.Millisecond },
		Stage: func(_ grid.SiteID, bytes int64, _ float64) time.Duration {
			if bytes == 0 {
				return time.Millisecond
			}
			return 70 * time.Millisecond
		},
		Collect: func(grid.SiteID, int64, float64) time.Duration { return 90 * time.Millisecond },
	}
}

// A job takes exactly the lags that follow one another: asked, offered, awarded, staged, which
// lasts longer than accepting and the lease do, started, run, ended, fetched. The second one finds
// the module there, and waits for the lease.
func TestLagsAddUp(t *testing.T) {
	const instantly = 1e18
	w := New(Config{
		Seed: 1, Sites: fleet(2), Lags: steady(),
		Network: Network{Rates: [][]float64{{instantly, instantly}, {instantly, instantly}}},
	})
	job := wasmJob(1, 10*time.Second)
	job.Spec.Need.MilliCPUs = 3000 // s1 alone has them
	for i, staged := range []int{70, 50} {
		if err := w.Run(w.Elapsed() + time.Minute); err != nil {
			t.Fatal(err)
		}
		id := mustSubmit(t, w, "s0", job)
		if err := w.Run(w.Elapsed() + time.Minute); err != nil {
			t.Fatal(err)
		}
		s, known := w.Job("s0", id)
		if !known || s.Ended.IsZero() || s.Tasks[0].Site != "s1" {
			t.Fatalf("job %d: %+v", i, s)
		}
		want := time.Duration(30+20+30+staged+200+20+90)*time.Millisecond + 10*time.Second
		if took := s.Ended.Sub(s.Submitted); took != want {
			t.Errorf("job %d took %s, want %s", i, took, want)
		}
	}
}

// Messages to one machine keep their order, whatever chance says; those to a site's other machine
// do not wait for them.
func TestLagsKeepTheOrder(t *testing.T) {
	lag := []time.Duration{time.Second, -time.Hour, time.Millisecond, 2 * time.Second}
	w := New(Config{Seed: 1, Sites: fleet(2), Lags: Lags{
		Message: func(grid.SiteID, grid.SiteID, protocol.Message, float64) time.Duration {
			next := lag[0]
			lag = lag[1:]
			return next
		},
	}})
	from, to := w.hosts["s0"], w.hosts["s1"]
	for i, c := range []struct {
		msg  protocol.Message
		want time.Duration
	}{
		{protocol.Award{}, time.Second},
		{protocol.Lease{}, time.Second}, // below 0 is 0, and the first is before it
		{protocol.Bid{}, time.Millisecond},
		{protocol.Clear{}, 2 * time.Second},
	} {
		if got := from.lagTo(to, c.msg); got != c.want {
			t.Errorf("message %d, %T, takes %s, want %s", i, c.msg, got, c.want)
		}
	}
}

// What chance makes of lags follows from the seed.
func TestLagsFollowTheSeed(t *testing.T) {
	play := func(seed uint64) uint64 {
		lags := steady()
		lags.Start = func(_ grid.SiteID, chance float64) time.Duration {
			return time.Duration(chance * float64(time.Second))
		}
		w := New(Config{Seed: seed, Sites: fleet(3), Network: lan(), Lags: lags})
		for range 3 {
			mustSubmit(t, w, "s0", wasmJob(2, 5*time.Second))
		}
		if err := w.Run(time.Minute); err != nil {
			t.Fatal(err)
		}
		return w.Hash()
	}
	if first, again, other := play(7), play(7), play(8); first != again || first == other {
		t.Error("the same seed gives different runs, or another one the same")
	}
}
