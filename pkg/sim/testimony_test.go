package sim

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// accused says what became of honest sites: the part of the honest submitters' tasks that they had,
// and the most that was said against one of them, as it counted.
type accused struct {
	part, worst float64
	heard       int
}

// accuse plays ten submitters on ten sites, of which the last three may accuse all others each two
// minutes, of as much as can be said. Honest sites crash now and then, so that there is something
// to say of them, and tasks that go on elsewhere.
func accuse(t *testing.T, seed uint64, lies bool) accused {
	t.Helper()
	w := New(Config{Seed: seed, Sites: fleet(10), Network: lan()})
	_ = w.Run(time.Second)
	honest, liars := w.order[:7], w.order[7:]
	const length = 20 * time.Minute
	jobs := map[grid.SiteID][]grid.JobID{}
	for at, n := time.Minute, 0; at < length; at, n = at+time.Minute, n+1 {
		w.At(at, func() {
			for _, by := range honest {
				jobs[by] = append(jobs[by], mustSubmit(t, w, by, wasmJob(5, 15*time.Second)))
			}
		})
		victim := honest[n%len(honest)]
		w.At(at+5*time.Second, func() { w.Crash(victim) })
		w.At(at+15*time.Second, func() { w.Restart(victim) })
	}
	for at := time.Minute; lies && at < length; at += 2 * time.Minute {
		w.At(at+30*time.Second, func() {
			for _, liar := range liars {
				for _, to := range honest {
					w.hosts[liar].send(to, lieAbout(liar, to, honest, w.now()))
				}
			}
		})
	}
	if err := w.Run(length + 2*time.Minute); err != nil {
		t.Fatal(err)
	}
	return w.judgeAccused(t, jobs, honest)
}

func lieAbout(liar, to grid.SiteID, honest []grid.SiteID, now time.Time) protocol.Testimony {
	m := protocol.Testimony{
		Author: liar, Sequence: uint64(now.UnixMilli()) << 12, IssuedMS: now.UnixMilli(),
	}
	for _, about := range honest {
		if about != to {
			m.Said = append(m.Said, protocol.Statement{
				About: about, Index: protocol.MaxFaultIndex, Tried: 1 << 20,
			})
		}
	}
	return m
}

func (w *World) judgeAccused(
	t *testing.T, jobs map[grid.SiteID][]grid.JobID, honest []grid.SiteID,
) (a accused) {
	t.Helper()
	all, there := 0, 0
	for _, by := range honest {
		for _, id := range jobs[by] {
			s, known := w.Broker(by).Job(id)
			for _, task := range s.Tasks {
				if all++; slices.Contains(honest, task.Site) {
					there++
				}
			}
			if !known || s.Ended.IsZero() {
				t.Errorf("job %s of %s has not ended", id, by)
			}
		}
		for _, m := range w.Broker(by).Members() {
			if a.heard = max(a.heard, m.Fault.Says); slices.Contains(honest, m.Site) {
				a.worst = max(a.worst, m.Fault.Shared)
			}
		}
	}
	a.part = float64(there) / float64(all)
	return a
}

// Three of ten submitters accuse all others of as much as can be said. The part of the work that
// honest sites get changes by less than .06, which is as much as by other delays of messages, and
// what the lies count stays below one fault: honest submitters that hear a site accused say what
// they have seen.
func TestFalseAccusationsChangeLittle(t *testing.T) {
	const seeds = 4
	var quiet, loud, worst float64
	heard := 0
	for seed := range uint64(seeds) {
		none, some := accuse(t, seed, false), accuse(t, seed, true)
		quiet, loud = quiet+none.part/seeds, loud+some.part/seeds
		worst, heard = max(worst, some.worst), max(heard, some.heard)
	}
	line := fmt.Sprintf("honest sites have %.3f of the tasks, with lies %.3f; these count %.2f",
		quiet, loud, worst)
	t.Log(line)
	if heard < 3 {
		t.Fatalf("the lies are not even heard: %d", heard)
	}
	if d := max(loud-quiet, quiet-loud); d > .06 || worst >= 1 {
		t.Error(line)
	}
}
