package sim

import (
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// after does something a while after a story's trouble began.
func (w *World) after(d time.Duration, do func()) { w.At(w.elapsed+d, do) }

func stories() []story {
	return slices.Concat(storiesOfDeaths(), storiesOfSilence(), storiesOfHosts(), storiesOfLies())
}

// storiesOfDeaths are about agents that die, with their machines or without.
func storiesOfDeaths() []story {
	type site = grid.SiteID
	back := func(end func(*World, site)) func(*World, site) {
		return func(w *World, v site) {
			end(w, v)
			w.after(15*time.Second, func() { w.Restart(v) })
		}
	}
	return []story{
		{name: "nothing happens", happen: func(*World, site) {}},
		{name: "the agent is killed", happen: back((*World).Crash)},
		{name: "and its jobs live on for 2 s", happen: back(func(w *World, v site) {
			w.Kill(v, 2*time.Second)
		})},
		{name: "and for as long as their leases", happen: back(func(w *World, v site) {
			w.Kill(v, time.Hour)
		})},
		{
			name: "and nobody looks at leases", change: func(c *Config) { c.NoWatchdog = true },
			happen: back(func(w *World, v site) { w.Kill(v, 8*time.Second) }),
		},
		{name: "and started again immediately", happen: func(w *World, v site) {
			w.Kill(v, time.Hour)
			w.Restart(v)
		}},
		{name: "the power is cut", happen: back((*World).PowerCut)},
		{name: "the disk breaks", happen: back(func(w *World, v site) {
			w.BreakDisk(v)
			w.after(5*time.Second, func() { w.Restart(v); w.MendDisk(v) })
		})},
		{name: "the disk is lost", happen: back(func(w *World, v site) {
			w.Crash(v)
			w.LoseDisk(v)
		})},
		{name: "a backup is restored", happen: back(func(w *World, v site) {
			w.Backup(v)
			w.after(5*time.Second, func() { w.Crash(v); w.RestoreBackup(v) })
		})},
		{name: "the submitter is killed", happen: func(w *World, _ site) {
			w.Crash("s0")
			w.after(5*time.Second, func() { w.Restart("s0") })
		}},
		{name: "the submitter's disk is lost", happen: func(w *World, _ site) {
			w.Crash("s0")
			w.LoseDisk("s0")
			w.Restart("s0")
		}},
	}
}

// storiesOfSilence are about sites that do not hear each other.
func storiesOfSilence() []story {
	type site = grid.SiteID
	between := func(begin, end func(*World, site)) func(*World, site) {
		return func(w *World, v site) {
			begin(w, v)
			w.after(20*time.Second, func() { end(w, v) })
		}
	}
	return []story{
		{name: "the site is cut off", happen: between((*World).Isolate, (*World).Rejoin)},
		{
			name: "cut off, and nobody looks at leases", change: func(c *Config) { c.NoWatchdog = true },
			happen: between((*World).Isolate, (*World).Rejoin),
		},
		{name: "the mesh falls apart", happen: between(
			func(w *World, _ site) { w.Part([]site{"s0", "s1"}) }, func(w *World, _ site) { w.heal() })},
		{name: "the site is mute", happen: between((*World).Silence, (*World).Unsilence)},
		{name: "the site is deaf", happen: between((*World).Deafen, (*World).Undeafen)},
		{name: "the submitter does not hear it", happen: between(
			func(w *World, v site) { w.Cut(v, "s0") }, func(w *World, v site) { w.Mend(v, "s0") })},
		{name: "it does not hear the submitter", happen: between(
			func(w *World, v site) { w.Cut("s0", v) }, func(w *World, v site) { w.Mend("s0", v) })},
		{name: "all of that, and all is healed", happen: between(func(w *World, _ site) {
			w.Isolate("s1")
			w.Cut("s0", "s2")
			w.Deafen("s3")
			w.Silence("s0")
		}, func(w *World, _ site) { w.healAll() })},
	}
}

// storiesOfHosts are about machines that do not do what they should.
func storiesOfHosts() []story {
	type site = grid.SiteID
	sleep := func(d time.Duration) func(*World, site) {
		return func(w *World, v site) {
			w.Suspend(v)
			w.after(d, func() { w.Wake(v) })
		}
	}
	stick := func(answer time.Duration, then func(*World)) func(*World, site) {
		return func(w *World, v site) {
			w.Stick(v, answer)
			w.after(5*time.Second, func() { then(w) })
			w.after(10*time.Second, func() { w.Stick(v, 0) })
		}
	}
	cancel := func(w *World) { _ = w.Cancel("s0", w.Trace().Submitted[0].Job) }
	busy := func(w *World, v site) {
		w.Input(v, step.OwnerBusy{Reason: grid.ReasonOwnerBusy})
		w.after(10*time.Second, func() { w.Input(v, step.OwnerAway{}) })
	}
	drift := func(millionths int64) func(*World, site) {
		return func(w *World, v site) {
			w.Drift(v, millionths)
			w.Isolate(v)
		}
	}
	late := func(c *Config) {
		for i := range c.Sites {
			c.Sites[i].WakeLag = time.Second
		}
	}
	return []story{
		{name: "the host sleeps for 1 s", happen: sleep(time.Second)},
		{name: "for 5 s", happen: sleep(5 * time.Second)},
		{name: "for 30 s", happen: sleep(30 * time.Second)},
		{
			name: "for 30 s, and its jobs run a second too long", change: late,
			happen: sleep(30 * time.Second),
		},
		{name: "it is killed asleep", happen: func(w *World, v site) {
			sleep(30*time.Second)(w, v)
			w.after(5*time.Second, func() { w.Crash(v) })
			w.after(40*time.Second, func() { w.Restart(v) })
		}},
		{name: "its clock runs fast", happen: drift(100_000)},
		{name: "its clock runs slow", happen: drift(-100_000)},
		{name: "the submitter's clock is set", happen: func(w *World, _ site) {
			w.StepClock("s0", time.Hour)
		}},
		{name: "its sandboxes hang", happen: stick(time.Second, func(*World) {})},
		{name: "and the job is called off", happen: stick(8*time.Second, cancel)},
		{name: "and never answer", happen: stick(-1, cancel)},
		{name: "and its owner comes", happen: func(w *World, v site) {
			stick(time.Second, func(*World) {})(w, v)
			w.after(3*time.Second, func() { busy(w, v) })
		}},
		{name: "the owner comes", happen: busy},
		{name: "the job is called off", happen: func(w *World, _ site) { cancel(w) }},
		{name: "the submitter's disk is full", happen: func(w *World, _ site) {
			w.FillDisk("s0")
			w.after(30*time.Second, func() { w.FreeDisk("s0") })
		}},
		{name: "the site's disk is full", happen: func(w *World, v site) {
			w.FillDisk(v)
			w.after(10*time.Second, func() { w.FreeDisk(v) })
		}},
		{name: "the disk is slow", happen: func(w *World, v site) {
			w.SlowDisk(v, 700*time.Millisecond)
		}},
		{name: "inputs come together", happen: func(w *World, v site) {
			w.Batch(v, 400*time.Millisecond)
		}},
	}
}

// storiesOfLies are about sites that lie to the submitter of another job.
func storiesOfLies() []story {
	var all []story
	for _, how := range []Lie{lieIdle, lieHold, lieEmpty, lieForge, lieSilent} {
		all = append(all, story{
			name: "the site lies: " + string(how), happen: func(w *World, v grid.SiteID) {
				w.Lie(v, how)
				_, _ = w.Submit("s0", toldJob())
				w.after(30*time.Second, func() { w.Repent(v) })
			},
		})
	}
	return all
}
