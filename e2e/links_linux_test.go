//go:build e2e

package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/netlab"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Two sites like each other stand behind links of 20 Mbit/s. The one that was
// given 8 MiB of data knows its link afterwards, and tells the holder; and it is
// the one that the next job with the same data goes to.
func TestLinksAreMeasuredAndDataIsNear(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	m := startLab(ctx, t)
	const bps = 20e6
	for _, name := range []string{"holder", "near", "far"} {
		link := netlab.Link{UpBps: bps, DownBps: bps}
		if name == "holder" {
			link = netlab.Link{}
		}
		m.add(
			ctx, t, name, link,
			"domain: lab\nceilings: {cpus: 1, memory: 1GiB, disk: 1GiB, gflops: 1}\nrates: {probe: false}\n",
		)
	}
	if err := m.acquaint(); err != nil {
		t.Fatal(err)
	}
	if err := m.start(ctx); err != nil {
		t.Fatal(err)
	}
	holder, near, far := m.sites[0], m.sites[1], m.sites[2]
	if err := holder.client.Pause(ctx, 0); err != nil {
		t.Fatal(err)
	}
	job := grid.Job{Count: 1, TTL: time.Second, Spec: grid.Spec{
		Name: "data", Kind: grid.KindWasm, Runtime: 20 * time.Second, Weights: grid.DefaultWeights(),
		Need: grid.Resources{MilliCPUs: 500, MemoryBytes: 64 << 20, DiskBytes: 64 << 20, MFLOPS: 100},
	}}
	store := func(content []byte) grid.Input {
		ref, err := holder.client.PutData(ctx, false, bytes.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		return grid.Input{CID: ref.CID, Bytes: ref.Bytes}
	}
	job.Spec.Module = store(sleeper("data", 100*time.Millisecond, 1000))
	input := store(noise("input", 8<<20))
	input.Path = "/in/data"
	job.Spec.Inputs = []grid.Input{input}

	place := func(avoid *labSite) grid.SiteID {
		if avoid != nil {
			if err := avoid.client.Pause(ctx, 0); err != nil {
				t.Fatal(err)
			}
		}
		id, err := holder.client.Submit(ctx, job)
		if err != nil {
			t.Fatal(err)
		}
		var tasks []view.TaskView
		err = await(ctx, time.Minute, "the job ends", func() (ended bool, err error) {
			tasks, err = holder.client.AllTasks(ctx, id)
			return err == nil && len(tasks) == 1 && tasks[0].Phase == "done", err
		})
		if err != nil {
			t.Fatal(err)
		}
		if avoid != nil {
			if err := avoid.client.Resume(ctx); err != nil {
				t.Fatal(err)
			}
		}
		return tasks[0].Site
	}
	if got := place(far); got != near.id {
		t.Fatalf("the first job ran on %s, want %s", got, near.id)
	}
	for range 2 { // near has the data now, far would have to move it
		if got := place(nil); got != near.id {
			t.Errorf("a job ran on %s, want the site that has its data", got)
		}
	}
	down := measuredRate(ctx, t, near, holder.id, func(r view.SiteRow) int64 { return r.DownBps })
	up := measuredRate(ctx, t, holder, near.id, func(r view.SiteRow) int64 { return r.UpBps })
	t.Logf(
		"a link of %.1f Mbit/s: measured %.2f by the receiver, told to the sender as %.2f", bps/1e6,
		down/1e6, up/1e6,
	)
	if math.Abs(down/bps-1) > .15 || up != down {
		t.Errorf("measured %.2f and told %.2f Mbit/s, want 20 within 15 %%", down/1e6, up/1e6)
	}
}

// measuredRate waits until a site knows its link to another one.
func measuredRate(
	ctx context.Context, t *testing.T, at *labSite, to grid.SiteID, pick func(view.SiteRow) int64,
) float64 {
	t.Helper()
	var bps int64
	if err := await(ctx, patience, fmt.Sprintf("%s knows its link to %s", at.name, to),
		func() (bool, error) {
			sites, err := at.client.Sites(ctx)
			for _, s := range sites {
				if s.ID == to {
					bps = pick(s)
				}
			}
			return bps > 0, err
		}); err != nil {
		t.Fatal(err)
	}
	return float64(bps)
}
