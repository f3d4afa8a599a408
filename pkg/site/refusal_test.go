package site

import (
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// TestRefusalsInTheirOrder asks for a task that this site refuses for every reason, and mends
// one after the other. What can never be comes before what cannot be now.
func TestRefusalsInTheirOrder(t *testing.T) {
	r := newRig(t, func(c *Config) {
		c.MaxRuntime, c.DataBytes = time.Hour, 8<<30
		c.Planning.Longest, c.Planning.Ahead = 10*time.Minute, 24*time.Hour
	})
	r.step(step.Pause{})
	a := announcement(job1, alice, reserving(2*time.Hour), at(48*time.Hour), cores(5))
	a.Explain, a.Req.Arch = true, "arm64"
	a.Req.Sources = []grid.DataSource{{
		Digest: grid.CID("bfar").Digest(""), Bytes: 2 << 30, Holders: []grid.SiteID{"gone"},
	}}
	for i, c := range []struct {
		reason grid.Reason
		never  bool
		mend   func()
	}{
		{grid.ReasonPlatform, true, func() { a.Req.Arch = "" }},
		{grid.ReasonCPUs, true, func() { a.Req.Need.MilliCPUs = 4_000 }},
		{grid.ReasonMemory, true, func() { a.Req.Need.MemoryBytes = 4 << 30 }},
		{grid.ReasonRuntime, true, func() { a.Req.Runtime = time.Hour }},
		{grid.ReasonAhead, true, func() { a.Req.Runtime = 10 * time.Minute }},
		{grid.ReasonAhead, false, func() { a.Req.Window = grid.Window{Deadline: epoch()} }},
		{grid.ReasonQuota, true, func() { a.Req.Sources[0].Bytes = 1 << 30 }},
		{grid.ReasonWindow, true, func() { a.Req.Window = grid.Window{At: epoch().Add(time.Hour)} }},
		{grid.ReasonPaused, false, func() { r.step(step.Resume{}) }},
		{grid.ReasonData, false, func() { a.Req.Sources[0].Holders = nil }},
	} {
		a.Job, a.Seq = numbered(i), 1
		r.receive(alice, a)
		got := one[protocol.Refuse](r, alice).Refusal
		if got.Reason != c.reason || got.Never != c.never {
			t.Errorf("refused %+v, want %v and never = %t", got, c.reason, c.never)
		}
		c.mend()
	}
	a.Job = job1
	r.receive(alice, a)
	one[protocol.Bid](r, alice)
}

// Data that names no holder is the submitter's, and is as far as it.
func TestDataWithoutAHolderIsTheSubmitters(t *testing.T) {
	r := newRig(t)
	offered := func(job grid.JobID, holders ...grid.SiteID) grid.Parts {
		a := announcement(job, alice)
		a.Req.Sources = []grid.DataSource{
			{
				Digest: grid.CID("bdata").Digest(""), Bytes: 1 << 30,
				Holders: holders, UploadBps: 3_000_000,
			},
		}
		return r.bid(a).Parts
	}
	named, unnamed := offered(job1, alice), offered(job2)
	if named.Y != unnamed.Y || named.StageIn != unnamed.StageIn {
		t.Errorf("named %+v, not named %+v, want them alike", named, unnamed)
	}
	if got := 8 * float64(1<<30) / unnamed.StageIn.Seconds(); got > 3_000_001 {
		t.Errorf("data comes with %.0f bit/s, more than its submitter sends", got)
	}
}
