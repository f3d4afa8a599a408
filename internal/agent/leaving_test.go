package agent_test

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/scenario"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/site"
)

// twoSites are a submitter that gives nothing and a site that runs its jobs.
func twoSites() scenario.Scenario {
	gives := func(total grid.Resources) grid.Capability {
		return grid.Capability{
			Total: total, CoreMFLOPS: 4000, DownBps: 1e9, UpBps: 1e9, DiskBps: 1e9,
			Kinds: []grid.WorkKind{grid.KindWasm}, OS: "linux", Arch: "amd64",
		}
	}
	return scenario.Scenario{
		Net: scenario.Net{Latency: time.Millisecond},
		Sites: []scenario.Site{
			{Name: "s0", Domain: "home", Capability: gives(grid.Resources{
				MilliCPUs: 1, MemoryBytes: 1 << 20, DiskBytes: 1 << 20, MFLOPS: 1,
			})},
			{Name: "s1", Domain: "home", Capability: gives(grid.Resources{
				MilliCPUs: 2000, MemoryBytes: 1 << 30, DiskBytes: 1 << 30, MFLOPS: 8000,
			})},
		},
	}
}

// program is a job of one task that does what the arguments say.
func (v *virtual) program(by *virtualSite, args ...string) grid.TaskID {
	v.t.Helper()
	ref, err := by.agent.PutData(v.t.Context(), false, bytes.NewReader([]byte("module")))
	v.must(err)
	id, err := by.agent.Submit(v.t.Context(), grid.Job{
		Count: 1, TTL: time.Second,
		Spec: grid.Spec{
			Kind:   grid.KindWasm,
			Module: grid.Input{Path: "/module.wasm", CID: ref.CID, Bytes: ref.Bytes}, Args: args,
			Need: grid.Resources{
				MilliCPUs: 1000, MemoryBytes: 64 << 20, DiskBytes: 64 << 20, MFLOPS: 1000,
			},
			Runtime: time.Minute, Map: grid.MapThesis, Weights: grid.DefaultWeights(),
		},
	}, "")
	v.must(err)
	return grid.TaskID{Job: id}
}

func (v *virtual) phase(by *virtualSite, id grid.TaskID) view.Phase {
	v.t.Helper()
	tasks, err := by.agent.Tasks(v.t.Context(), id.Job, id.Index, 1)
	v.must(err)
	return tasks[0].Phase
}

// awaitPhase waits until a task stands there, in steps of a second.
func (v *virtual) awaitPhase(by *virtualSite, id grid.TaskID, want view.Phase) {
	v.t.Helper()
	for range 60 {
		if v.phase(by, id) == want {
			return
		}
		time.Sleep(time.Second)
	}
	v.t.Fatalf("after a minute the task is %s, want %s", v.phase(by, id), want)
}

// A site that is to end waits until running jobs have ended, and then for ten seconds for
// submitters that do not acknowledge it. With nothing of either it ends without delay.
func TestHowLongASiteWaitsBeforeItEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		run, mute   string
		least, most time.Duration
	}{
		"nothing runs":       {"", "", 0, time.Second},
		"one runs":           {"run=30s", "", 25 * time.Second, 35 * time.Second},
		"nobody hears of it": {"run=1500ms", "mute", 10 * time.Second, 16 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				v := openVirtual(t, dir, twoSites())
				defer v.net.Close()
				submitter, worker := v.order[0], v.order[1]
				worker.leaves = true
				if c.run != "" {
					v.awaitPhase(submitter, v.program(submitter, c.run), view.PhaseRunning)
				}
				if c.mute != "" { // its lease of three seconds lasts longer than the task
					v.set(func() { submitter.mute = true })
					for exited := false; !exited; time.Sleep(100 * time.Millisecond) {
						v.must(worker.agent.AskSite(t.Context(), func(m *site.Machine) {
							for _, at := range m.Status().Attempts {
								exited = exited || at.Exit != 0
							}
						}))
					}
				}
				begin := time.Now()
				v.must(worker.agent.Stop(t.Context(), false))
				if err := <-worker.done; err != nil {
					t.Errorf("it ends with %v", err)
				}
				if took := time.Since(begin); took < c.least || took > c.most {
					t.Errorf("it ended after %s, want %s to %s", took, c.least, c.most)
				}
				worker.done <- nil
				for _, s := range v.order {
					v.kill(s)
				}
			})
		})
	}
}
