package agent

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/history"
	"github.com/mrsmesh/mrsmesh/pkg/avail"
	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// withPast gives a bare agent a history of its own, and a broker's machine with the members.
func withPast(t *testing.T, b *bare, dir string, members ...grid.SiteID) {
	t.Helper()
	b.cfg.StateDir, b.bootID = dir, "boot"
	var err error
	if b.past, err = history.Open(dir, time.UTC, b.reading(), b.log); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.past.Close(b.reading()); err != nil {
			t.Error(err)
		}
	})
	b.brokerMachine = broker.New(broker.Default("self"))
	b.broker.machine = b.brokerMachine
	b.broker.tell(step.Boot{Incarnation: 1})
	for _, site := range members {
		b.broker.tell(step.PeerSeen{Site: site, Capability: capability()})
	}
}

func capability() grid.Capability {
	return grid.Capability{
		Total: grid.Resources{MilliCPUs: 2000, MemoryBytes: 1 << 30, DiskBytes: 1 << 30, MFLOPS: 8000},
		Kinds: []grid.WorkKind{grid.KindWasm}, OS: "linux", Arch: "amd64",
	}
}

// What the site has learned counts from when it is up and free by its machine's clock, which the
// wall clock does not move.
func TestWhatIsLearned(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		b := newBare(t)
		withPast(t, b, dir)
		const up, free = 3 * time.Hour, time.Hour
		time.Sleep(up - free)
		b.noteOwner(true)
		b.noteOwner(true) // it is no news
		b.noteOwner(false)
		time.Sleep(free)
		b.learn()
		b.settle(t)
		all := heardOf[step.AvailabilityLearned](&b.ofSite)
		if len(all) != 4 {
			t.Fatalf("the site is told %d times", len(all))
		}
		got, now := all[3], b.clock.now()
		if off := now.Sub(got.Up) - up; off.Abs() > time.Second {
			t.Errorf("up for %s, want %s", now.Sub(got.Up), up)
		}
		if off := now.Sub(got.Free) - free; off.Abs() > time.Second {
			t.Errorf("free for %s, want %s", now.Sub(got.Free), free)
		}
		if busy := all[0]; now.Sub(busy.Free) != free {
			t.Errorf("while the owner is there it is free since %s", busy.Free)
		}
		if b.past.Known(b.reading()).Busy {
			t.Error("the owner is still there")
		}
		b.cfg.Closed = []avail.Window{{From: -1, To: -2}}
		b.inForce.terms = b.cfg.terms()
		b.learn()
		b.settle(t)
		if n := len(heardOf[step.AvailabilityLearned](&b.ofSite)); n != 4 {
			t.Errorf("told %d times, want nothing of what makes no sense", n)
		}
		if n := b.reports.counters()["history_unusable"]; n != 1 ||
			b.said.count("nothing can be learned") != 1 {
			t.Errorf("counted %d times: %s", n, b.said.String())
		}
	})
}

// The model knows which time of the week it is, also when the wall clock was set since the
// start: times that the owner announces are times on it.
func TestTheModelKnowsTheTimeOfTheWeek(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		b := newBare(t)
		withPast(t, b, dir)
		for n, set := range []time.Duration{0, 5 * time.Hour, -50 * time.Hour, 30 * 24 * time.Hour} {
			b.clock.real = func() time.Time { return time.Now().Add(set) }
			wall := b.clock.real()
			_, zone := wall.Zone()
			b.learn()
			b.settle(t)
			model := heardOf[step.AvailabilityLearned](&b.ofSite)[n].Model
			want := avail.WeekSecond(wall, zone)
			if got := avail.WeekSecond(b.clock.now(), model.Zone); got != want {
				t.Errorf("set by %s it is second %v of the week, want %v", set, got, want)
			}
		}
	})
}

// A forecast is held against what came of it once, an hour later; one whose hour the machine
// slept over is not, and of those that were only the last weeks' count.
func TestForecastsAreChecked(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		b := newBare(t)
		withPast(t, b, dir, "other", "third")
		b.broker.tell(step.PeerGone{Site: "third"})
		now := b.reading()
		check := func() { b.checkForecast(now); b.settle(t) }
		o := &b.outlook
		check()
		first := o.said
		if !o.pending || o.dueBoot != now.Boot+forecastAhead || first <= 1 || first >= 3 {
			t.Errorf("the first forecast: %+v", *o)
		}
		now.Boot += forecastAhead - 1
		check()
		if len(o.pairs) != 0 {
			t.Errorf("checked before it is due: %+v", o.pairs)
		}
		now.Boot++
		check()
		want := avail.ForecastPair{Predicted: first, Actual: 2} // this site and the other
		if len(o.pairs) != 1 || o.pairs[0] != want || o.dueBoot != now.Boot+forecastAhead {
			t.Errorf("checked: %+v, want %+v", o.pairs, want)
		}
		if mean, _ := avail.ForecastError(o.pairs); o.errorTerm != mean || mean == 0 {
			t.Errorf("the mean error is %v, want %v", o.errorTerm, mean)
		}
		now.Boot += forecastAhead + 2*history.Every
		check()
		if len(o.pairs) != 1 || o.dueBoot != now.Boot+forecastAhead {
			t.Errorf("one that the machine slept over counts: %+v", o.pairs)
		}
		now.Boot += forecastAhead + 2*history.Every - 1
		check()
		if len(o.pairs) != 2 {
			t.Errorf("one that is a little late does not count: %+v", o.pairs)
		}
		for range 2 * forecastMemory {
			now.Boot += forecastAhead
			check()
		}
		if len(o.pairs) != forecastMemory {
			t.Errorf("%d are remembered, want %d", len(o.pairs), forecastMemory)
		}
		o.pairs = o.pairs[:3]
		v, err := b.Forecast(t.Context())
		if err != nil || v.Hours != forecastAhead.Hours() || v.Checked != 3 || v.Sites != 3 ||
			v.ErrorTerm != o.errorTerm || v.Mean <= 0 || float64(v.Low) > v.Mean {
			t.Errorf("users are shown %+v, %v", v, err)
		}
		if err := b.end(); err != nil {
			t.Error(err)
		}
		if _, err := b.Forecast(t.Context()); err == nil {
			t.Error("a machine that has ended gives forecasts")
		}
	})
}
