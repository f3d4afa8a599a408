package sim

import (
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/border"
	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/site"
)

// nextDoor is a world in which a0 is a domain of its own that is too small for a bag, and b has 32
// members besides its gateway b0.
func nextDoor(t *testing.T, change func(*Config)) (*World, *Oracle) {
	t.Helper()
	return twoDomains(t, func(cfg *Config) {
		cfg.Sites, cfg.Realms = realms(1, 33)
		cfg.Sites[0].Capability.Total.MilliCPUs /= 4
		cfg.Sites[0].Tune = func(_ *site.Config, c *broker.Config) {
			c.BackoffMax = 2 * time.Second
		}
		cfg.CheckEvery = 16
		if change != nil {
			change(cfg)
		}
	})
}

// ranAt tells where attempts have run.
func (w *World) ranAt() map[grid.AttemptID]grid.SiteID {
	at := make(map[grid.AttemptID]grid.SiteID)
	for _, in := range w.Trace().Intervals {
		at[in.Attempt] = in.Site
	}
	return at
}

// ranUntil tells until when a task of that number has run.
func (w *World) ranUntil(index uint32) (end time.Duration) {
	for _, in := range w.Trace().Intervals {
		if in.Attempt.Task.Index == index {
			end = max(end, in.To)
		}
	}
	return end
}

// Of 32 members next door the nearest one is found, and each is asked once for the search and once
// for the order.
func TestTheNearestOfThirtyTwoNextDoorIsFound(t *testing.T) {
	w, o := nextDoor(t, func(cfg *Config) {
		fast := &cfg.Sites[18].Capability
		fast.CoreMFLOPS, fast.Total.MFLOPS = 4*fast.CoreMFLOPS, 4*fast.Total.MFLOPS
	})
	before := w.Trace().Sent["Announce"]
	job := bags(1, 10*time.Second)
	job.Spec.Map = grid.MapSeconds
	wantAllDone(t, w.mine(t, o, "a0", job))
	at := w.ranAt()
	for _, host := range at {
		if len(at) != 1 || host != "b17" {
			t.Errorf("ran at %v, want b17, which is four times as fast", at)
		}
	}
	// Those at a, its question to b, and at b the search and the order.
	if n := w.Trace().Sent["Announce"] - before; n > 2*33+4 {
		t.Errorf("%d announcements, want two to each of 33 sites next door", n)
	}
}

// A search for what nobody next door can ever take asks none of them, and its reason is told.
func TestASearchForWhatNobodyHas(t *testing.T) {
	w, _ := nextDoor(t, nil)
	job := bags(1, 10*time.Second)
	job.Spec.Need.MilliCPUs *= 2
	for range 4 {
		before := w.Trace().Sent["Refuse"]
		id := mustSubmit(t, w, "a0", job)
		s := mustEnd(t, w, w.elapsed+time.Minute, "a0", id)
		if want := "own domain: too few cores; domain b: too few cores"; s.Abroad != want {
			t.Errorf("%q, want %q", s.Abroad, want)
		}
		// Of a0, of b0, and in b's name.
		if n := w.Trace().Sent["Refuse"] - before; n > 3 {
			t.Errorf("%d refusals", n)
		}
	}
}

// While all next door are full, many jobs wait and ask. A place that is freed there is found in the
// second round of the first of them at the latest, though the members are asked for few of the
// questions: what they have said is free, and when it is more, answers the others.
func TestAPlaceFreedNextDoorIsFoundInTwoRounds(t *testing.T) {
	const short, freed, waiting = 20, 40 * time.Second, 8
	for _, recall := range []time.Duration{0, 500 * time.Millisecond} {
		w, _ := nextDoor(t, func(cfg *Config) {
			cfg.Realms[1].Tune = func(c *border.Config) { c.Recall = recall }
			cfg.Run = func(task grid.Task, d time.Duration, _ SiteSpec) (time.Duration, grid.Exit) {
				if task.ID.Index == short {
					d = freed
				}
				return d, grid.Exit{Cause: grid.CauseExited}
			}
		})
		mustSubmit(t, w, "b1", bags(33, time.Hour))
		_ = w.Run(w.elapsed + 10*time.Second)
		if n := len(w.ranAt()); n != 33 {
			t.Fatalf("%d of 33 sites are full", n)
		}
		began := w.elapsed
		for range waiting {
			mustSubmit(t, w, "a0", bags(1, time.Minute))
		}
		asked, queries := w.Trace().Sent["Announce"], w.Trace().Sent["BorderQuery"]
		for len(w.ranAt()) == 33 && w.elapsed < began+2*time.Minute {
			_ = w.Run(w.elapsed + 100*time.Millisecond)
		}
		asked, queries = w.Trace().Sent["Announce"]-asked, w.Trace().Sent["BorderQuery"]-queries
		if queries == 0 || asked > queries*33/2 {
			t.Errorf("recall %s: %d announcements for %d questions", recall, asked, queries)
		}
		took := w.elapsed - w.ranUntil(short)
		if took < 0 || took > 5*time.Second {
			t.Errorf("recall %s: found after %s, want two pauses of 2 s", recall, took)
		}
	}
}
