package hostinfo

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"

	"github.com/shirou/gopsutil/v4/cpu"
	"github.com/shirou/gopsutil/v4/disk"
	"github.com/shirou/gopsutil/v4/mem"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Machine describes the hardware, apart from what its owner gives away.
type Machine struct {
	OS            string // as Go names it, "linux"
	Arch          string // as Go names it, "amd64"
	CPUModel      string // the vendor's words; empty = unknown
	Cores         int    // logical cores that this process may use, at least 1
	MemoryBytes   int64  // main memory; 0 = unknown
	FreeMemory    int64  // bytes that could be used now without swapping; -1 = unknown
	DiskBytes     int64  // size of the file system that was asked about; 0 = unknown
	FreeDiskBytes int64  // bytes free there for this user; -1 = unknown
}

// Probe asks the operating system. The disk values are those of the file system
// that holds dir, which must exist. The Machine is usable even when the error is
// not nil: the error only names what stayed unknown.
func Probe(ctx context.Context, dir string) (Machine, error) {
	m := Machine{OS: runtime.GOOS, Arch: runtime.GOARCH, Cores: runtime.NumCPU()}
	var errs []error
	if infos, err := cpu.InfoWithContext(ctx); err != nil {
		errs = append(errs, fmt.Errorf("read processor model: %w", err))
	} else if len(infos) > 0 {
		m.CPUModel = strings.Join(strings.Fields(infos[0].ModelName), " ")
	}
	room, err := ProbeRoom(ctx, dir)
	m.MemoryBytes, m.FreeMemory = room.MemoryBytes, room.FreeMemory
	m.DiskBytes, m.FreeDiskBytes = room.DiskBytes, room.FreeDiskBytes
	return m, errors.Join(append(errs, err)...)
}

// Room is memory and disk of the machine, the fields meaning what they mean in
// Machine.
type Room struct {
	MemoryBytes, FreeMemory  int64
	DiskBytes, FreeDiskBytes int64
}

// ProbeRoom asks only for what changes all the time and costs little to ask.
func ProbeRoom(ctx context.Context, dir string) (Room, error) {
	r := Room{FreeMemory: -1, FreeDiskBytes: -1}
	var errs []error
	if vm, err := mem.VirtualMemoryWithContext(ctx); err != nil {
		errs = append(errs, fmt.Errorf("read memory size: %w", err))
	} else {
		r.MemoryBytes, r.FreeMemory = toInt64(vm.Total), toInt64(vm.Available)
	}
	var err error
	if r.DiskBytes, r.FreeDiskBytes, err = ProbeDisk(ctx, dir); err != nil {
		errs = append(errs, err)
	}
	return r, errors.Join(errs...)
}

// ProbeDisk is the size of the disk a directory is on, and what is free there for every user, in
// bytes. free is -1 where that is unknown.
func ProbeDisk(ctx context.Context, dir string) (size, free int64, err error) {
	du, err := disk.UsageWithContext(ctx, dir)
	if err != nil {
		return 0, -1, fmt.Errorf("read free disk of %s: %w", dir, err)
	}
	return toInt64(du.Total), toInt64(du.Free), nil
}

func toInt64(n uint64) int64 {
	if n > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(n)
}

// Shares of the machine that a site gives when its owner named no ceiling.
const (
	coreShareNum, coreShareDen = 3, 4 // of the cores, at least one
	memoryShareDen             = 2    // half of the memory
	diskShareDen               = 4    // a quarter of the free disk
)

// Ceilings fills in what the owner left at 0: three quarters of the cores (at
// least one), half of the memory, a quarter of the free disk, and the
// computation of the given cores. What the owner named stays as it is, but never
// above what the machine is known to have. coreMFLOPS is one core's sustained
// computation in MFLOP/s, 0 = unknown; a field about which nothing is known
// stays 0.
func Ceilings(m Machine, owner grid.Resources, coreMFLOPS int64) grid.Resources {
	cores := int64(m.Cores)
	out := grid.Resources{
		MilliCPUs:   ceiling(owner.MilliCPUs, max(cores*coreShareNum/coreShareDen, 1)*1000, cores*1000),
		MemoryBytes: ceiling(owner.MemoryBytes, m.MemoryBytes/memoryShareDen, known(m.MemoryBytes)),
		DiskBytes:   ceiling(owner.DiskBytes, m.FreeDiskBytes/diskShareDen, m.FreeDiskBytes),
	}
	out.MFLOPS = ceiling(owner.MFLOPS, coreMFLOPS*out.MilliCPUs/1000, known(coreMFLOPS*cores))
	return out
}

// known is the value, or -1 where 0 means that nobody knows.
func known(value int64) int64 {
	if value <= 0 {
		return -1
	}
	return value
}

// ceiling returns what the owner wants or else the usual share, at most have; -1 for
// have means that it is unknown.
func ceiling(owner, usual, have int64) int64 {
	want := owner
	if want <= 0 {
		want = usual
	}
	if have < 0 {
		return max(owner, 0)
	}
	return min(max(want, 0), have)
}
