package hostinfo

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

func TestProbe(t *testing.T) {
	m, err := Probe(t.Context(), t.TempDir())
	if err != nil {
		t.Logf("Probe: %v", err)
	}
	if m.Cores < 1 || m.OS != runtime.GOOS || m.Arch != runtime.GOARCH {
		t.Errorf("Probe = %+v, want this machine", m)
	}
	if m.FreeMemory > m.MemoryBytes || m.FreeDiskBytes > m.DiskBytes {
		t.Errorf("Probe = %+v, more free than there is", m)
	}
	t.Logf("%+v", m)
}

func TestProbeOfMissingDirectoryIsUnknown(t *testing.T) {
	m, err := Probe(t.Context(), filepath.Join(t.TempDir(), "missing"))
	if err == nil {
		t.Fatal("Probe of a missing directory reports no error")
	}
	if m.DiskBytes != 0 || m.FreeDiskBytes != -1 {
		t.Errorf("disk = %d, %d; want 0 and -1, unknown", m.DiskBytes, m.FreeDiskBytes)
	}
	if m.Cores < 1 {
		t.Error("the rest is lost too")
	}
}

func TestCeilings(t *testing.T) {
	machine := Machine{Cores: 8, MemoryBytes: 16 << 30, FreeDiskBytes: 100 << 30}
	tests := []struct {
		name  string
		m     Machine
		owner grid.Resources
		core  int64
		want  grid.Resources
	}{
		{
			name: "nothing named", m: machine, core: 1000,
			want: grid.Resources{MilliCPUs: 6000, MemoryBytes: 8 << 30, DiskBytes: 25 << 30, MFLOPS: 6000},
		},
		{
			name: "named is kept", m: machine, core: 1000,
			owner: grid.Resources{MilliCPUs: 500, MemoryBytes: 12 << 30, DiskBytes: 1 << 30, MFLOPS: 77},
			want:  grid.Resources{MilliCPUs: 500, MemoryBytes: 12 << 30, DiskBytes: 1 << 30, MFLOPS: 77},
		},
		{
			name: "never more than there is", m: machine, core: 1000,
			owner: grid.Resources{
				MilliCPUs: 64000, MemoryBytes: 1 << 40, DiskBytes: 1 << 50, MFLOPS: 1 << 30,
			},
			want: grid.Resources{MilliCPUs: 8000, MemoryBytes: 16 << 30, DiskBytes: 100 << 30, MFLOPS: 8000},
		},
		{
			name: "one core is given whole", m: Machine{Cores: 1, FreeDiskBytes: -1},
			want: grid.Resources{MilliCPUs: 1000},
		},
		{
			name: "unknown stays unknown, the owner's word counts", m: Machine{Cores: 2, FreeDiskBytes: -1},
			owner: grid.Resources{MemoryBytes: 5, MFLOPS: 9},
			want:  grid.Resources{MilliCPUs: 1000, MemoryBytes: 5, MFLOPS: 9},
		},
		{
			name: "a full disk is not an unknown one", m: Machine{Cores: 2},
			owner: grid.Resources{DiskBytes: 1 << 30},
			want:  grid.Resources{MilliCPUs: 1000},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, Ceilings(tt.m, tt.owner, tt.core)); diff != "" {
				t.Errorf("Ceilings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestKernelStaysFinite(t *testing.T) {
	lanes := multiplyAdd([kernelLanes]float64{1, 2, 3, 4, 5, 6, 7, 8}, 5_000_000)
	for i, v := range lanes {
		if v < 0.9 || v > 1.1 {
			t.Errorf("lane %d = %g, want it near 1", i, v)
		}
	}
}

func BenchmarkMultiplyAdd(b *testing.B) {
	lanes := [kernelLanes]float64{1, 2, 3, 4, 5, 6, 7, 8}
	for b.Loop() {
		lanes = multiplyAdd(lanes, 1000)
	}
	b.ReportMetric(float64(b.N)*1000*kernelLanes*flopsPerLane/b.Elapsed().Seconds()/1e9, "GFLOP/s")
}

// Interfaces that software makes come and go, and are the same in a copy. Addresses that are
// drawn by chance are others after each start.
func TestPartsAreOfHardware(t *testing.T) {
	dir := t.TempDir()
	write := func(in, name, text string) {
		if err := os.WriteFile(filepath.Join(in, name), []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name     string
		hardware bool
		assigned string
	}{{"eth0", true, "0"}, {"docker0", false, "0"}, {"wlan0", true, "1"}, {"wlan1", true, "3"}} {
		in := filepath.Join(dir, c.name)
		if err := os.MkdirAll(in, 0o700); err != nil {
			t.Fatal(err)
		}
		write(in, "address", c.name)
		write(in, "addr_assign_type", c.assigned)
		if c.hardware {
			if err := os.Mkdir(filepath.Join(in, "device"), 0o700); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := partsIn(dir); len(got) != 1 || got[0] != hidden("eth0") {
		t.Errorf("%v, want one", got)
	}
}
