package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/config"
	"github.com/mrsmesh/mrsmesh/internal/hostinfo"
	"github.com/mrsmesh/mrsmesh/internal/obs"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

func printed(t *testing.T, s view.AgentStatus) string {
	t.Helper()
	var out bytes.Buffer
	if err := printAll(&out, s, time.Now()); err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(out.String()), " ")
}

func TestStatusSaysUnknown(t *testing.T) {
	got := printed(t, view.AgentStatus{
		Machine: &view.MachineView{
			Cores: 2, OS: "linux", Arch: "amd64", Pending: "waiting for a quiet machine: others use 2 cores",
		},
		Reference: &view.Standing{Job: "a job", Refusal: "not now"},
	})
	for _, want := range []string{
		"computation unknown: jobs that ask for GFLOPS are refused until it is measured",
		"machine 2 cores, processor unknown, linux/amd64",
		"memory unknown, free unknown; disk unknown, free unknown",
		"a core does unknown GFLOPS, now unknown; the disk's rate is unknown",
		"others use unknown cores, of which stolen by the host unknown",
		"others wait for a processor unknown, for memory unknown, for a disk unknown of the time",
		"measuring waiting for a quiet machine: others use 2 cores",
		"compared by a job its answer refused: not now",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in:\n%s", want, got)
		}
	}
	if got := printed(t, view.AgentStatus{}); strings.Contains(got, "processor") ||
		strings.Contains(got, "compared") {
		t.Errorf("an agent that knows nothing of its machine says:\n%s", got)
	}
}

func TestStatusTellsNominalAndCurrentApart(t *testing.T) {
	number := func(v float64) *float64 { return &v }
	amount := func(v int64) *int64 { return &v }
	all := view.Resources{
		MilliCPUs: 3000, MemoryBytes: 8 << 30, DiskBytes: 1 << 30, MFLOPS: 12_000, NetBps: 20e6,
	}
	left := all
	left.MilliCPUs, left.MFLOPS = 1500, 6000
	got := printed(t, view.AgentStatus{
		Ceilings: all, Left: &left, InUse: view.Resources{MilliCPUs: 1000},
		Machine: &view.MachineView{
			Cores: 4, CPUModel: "a processor", OS: "linux", Arch: "amd64", MemoryBytes: amount(16 << 30),
			FreeMemoryBytes: amount(0),
			CoreMFLOPS:      amount(4000), CoreMFLOPSNow: amount(3500), DiskBps: amount(2_500_000_000),
			OtherCores: number(1.5), StolenCores: number(0), CPUPressure: number(.25),
			MemoryPressure: number(0), IOPressure: number(0),
		},
		Reference: &view.Standing{
			Job: "a job", X: number(.5), Y: number(0), Z: number(.001), Distance: number(.5),
			WaitSeconds: number(0), StageInSeconds: number(1), RunSeconds: number(7),
		},
	})
	for _, want := range []string{
		"cores 1.0 of 3.0 in use; other programs leave 1.5", "memory 0 B of 8.0 GiB in use next pause",
		"computation 0.0 of 12.0 in use; other programs leave 6.0 (GFLOPS)",
		"bandwidth 0.0 Mbit/s of 20.0 Mbit/s in use data",
		"memory 16.0 GiB, free 0 B", "a core does 4.0 GFLOPS, now 3.5; the disk's rate is 2.5 Gbit/s",
		"others use 1.5 cores, of which stolen by the host 0.0",
		"wait for a processor 25 %, for memory 0 %, for a disk 0 %",
		"distance 0.5000, of which computation 0.5000, data 0.0000, likely to leave 0.0010",
		"it would wait 0.0 s, fetch data for 1.0 s and run for 7.0 s",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in:\n%s", want, got)
		}
	}
}

func TestProbeHostMeasuresOnce(t *testing.T) {
	c := config.Default(config.PresetTest, func(string) (string, bool) { return "", false })
	c.StateDir = t.TempDir()
	c.Rates.DiskBps = 0
	kinds := []grid.WorkKind{grid.KindWasm}
	h := probeHost(t.Context(), c, kinds, obs.Or(nil))
	first := h.Capability(h.Measured)
	if err := first.Validate(); err != nil || first.CoreMFLOPS == 0 || first.DiskBps == 0 ||
		!first.Runs(grid.KindWasm) {
		t.Fatalf("%+v: %v", first, err)
	}
	if first.Total.NetBps != min(c.Rates.DownBps, c.Rates.UpBps) || first.Total.NetBps == 0 {
		t.Errorf("bandwidth %d of rates %+v", first.Total.NetBps, c.Rates)
	}
	if first.Total.MFLOPS != first.CoreMFLOPS*first.Total.MilliCPUs/1000 {
		t.Errorf("total %+v of cores at %d MFLOP/s", first.Total, first.CoreMFLOPS)
	}
	again := probeHost(t.Context(), c, kinds, obs.Or(nil))
	if again.Measured != h.Measured || hostinfo.Recall(h.Machine, c.StateDir) != h.Measured {
		t.Errorf("first %+v, then %+v", h.Measured, again.Measured)
	}
	c.Rates.DiskBps = 7
	named := probeHost(t.Context(), c, kinds, obs.Or(nil))
	if named.Want.Disk || named.Capability(named.Measured).DiskBps != 7 {
		t.Error("the owner's word on the disk does not count")
	}
}

// The agent is started with the leases that are set.
func TestLeasesReachTheAgent(t *testing.T) {
	c := config.Default(config.PresetTest, func(string) (string, bool) { return "", false })
	c.StateDir = t.TempDir()
	c.Lease.Length, c.Lease.Reserved = 4*time.Second, 7*time.Minute
	got, err := assemble(t.Context(), c, nil, obs.NewRegistry(), obs.Or(nil))
	if err != nil {
		t.Fatal(err)
	}
	if got.Lease != c.Lease.Length || got.Reserved != c.Lease.Reserved {
		t.Errorf("leases of %s and %s, want %s and %s",
			got.Lease, got.Reserved, c.Lease.Length, c.Lease.Reserved)
	}
}
