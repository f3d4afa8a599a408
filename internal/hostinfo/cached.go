package hostinfo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/mrsmesh/mrsmesh/internal/durable"
)

// cacheName is the file in the state directory that keeps the measurements.
const cacheName = "hostinfo.json"

// maxCacheBytes bounds what is read of that file.
const maxCacheBytes = 64 << 10

// Measured holds the measurements of a machine.
type Measured struct {
	CoreMFLOPS int64 // sustained computation of one core, 10^6 FLOP/s; 0 = unknown
	Steady     bool  // the machine was quiet: measuring CoreMFLOPS again would find the same
	DiskBps    int64 // rate of the disk, bit/s; 0 = unknown
}

// content is that of the file: what was measured, and for which machine it holds.
type content struct {
	Core coreContent `json:"core"`
	Disk diskContent `json:"disk"`
}

// coreContent holds for one processor, number of cores, compiler and kernel.
type coreContent struct {
	CPUModel  string `json:"cpu_model"`
	Cores     int    `json:"cores"`
	Arch      string `json:"arch"`
	GoVersion string `json:"go_version"`
	Kernel    int    `json:"kernel"`
	MFLOPS    int64  `json:"mflops"`
	Steady    bool   `json:"steady"`
}

// diskContent holds for a file system of one size.
type diskContent struct {
	Bytes int64 `json:"bytes"`
	Bps   int64 `json:"bps"`
}

func keyOf(m Machine) content {
	return content{
		Core: coreContent{
			CPUModel: m.CPUModel, Cores: m.Cores, Arch: m.Arch, GoVersion: runtime.Version(),
			Kernel: kernelVersion,
		},
		Disk: diskContent{Bytes: m.DiskBytes},
	}
}

// Recall returns the earlier measurements of the same machine, kept in stateDir: the
// computation while processor, number of cores, architecture, Go version and the
// measuring code are the same, the disk while its size is. Removing the file asks
// for new measurements.
func Recall(m Machine, stateDir string) Measured {
	have, ok := readCache(filepath.Join(stateDir, cacheName))
	if !ok {
		return Measured{}
	}
	var out Measured
	want := keyOf(m)
	want.Core.MFLOPS, want.Core.Steady = have.Core.MFLOPS, have.Core.Steady
	if have.Core == want.Core {
		out.CoreMFLOPS = plausible(have.Core.MFLOPS, mostMFLOPS)
		out.Steady = have.Core.Steady && out.CoreMFLOPS > 0
	}
	if want.Disk.Bps = have.Disk.Bps; have.Disk == want.Disk {
		out.DiskBps = plausible(have.Disk.Bps, mostBps)
	}
	return out
}

// No core and no disk is faster: a file that says so is broken.
const (
	mostMFLOPS = 10_000_000
	mostBps    = 10_000_000_000_000
)

// plausible is the value, or unknown.
func plausible(value, most int64) int64 {
	if value < 0 || value > most {
		return 0
	}
	return value
}

// Want says what to measure.
type Want struct {
	Core bool
	Disk bool
}

// Missing returns the part of w that is not known, or was measured on a busy machine.
func (w Want) Missing(known Measured) Want {
	return Want{Core: w.Core && !known.Steady, Disk: w.Disk && known.DiskBps == 0}
}

// meters are the measurements; tests put others in their place.
type meters struct {
	core func(context.Context) (coreSpeed, error)
	disk func(ctx context.Context, dir string, freeBytes int64) (int64, error)
}

// Measure measures what is wanted, adds it to what is known, and keeps all of it
// in stateDir. A steady computation replaces what was known; another one does only
// where nothing was. What could not be measured stays as it was, and the error says
// why; it is not nil either when only the writing of the file failed.
func Measure(
	ctx context.Context, m Machine, stateDir string, known Measured, want Want,
) (Measured, error) {
	return measure(ctx, m, stateDir, known, want, meters{core: measureCore, disk: measureDisk})
}

func measure(
	ctx context.Context, m Machine, stateDir string, known Measured, want Want, by meters,
) (Measured, error) {
	var errs []error
	if want.Core {
		speed, err := by.core(ctx)
		if err == nil && (speed.Steady || known.CoreMFLOPS == 0) {
			known.CoreMFLOPS, known.Steady = speed.MFLOPS, speed.Steady
		}
		errs = append(errs, err)
	}
	if want.Disk {
		bps, err := by.disk(ctx, stateDir, m.FreeDiskBytes)
		if err == nil {
			known.DiskBps = bps
		}
		errs = append(errs, err)
	}
	kept := keyOf(m)
	kept.Core.MFLOPS, kept.Core.Steady, kept.Disk.Bps = known.CoreMFLOPS, known.Steady, known.DiskBps
	if err := writeCache(filepath.Join(stateDir, cacheName), kept); err != nil {
		errs = append(errs, fmt.Errorf("keep measurement: %w", err))
	}
	return known, errors.Join(errs...)
}

// readCache reports false for a file that is missing or makes no sense: it is
// only a cache, so it is measured again.
func readCache(path string) (content, bool) {
	info, err := os.Stat(path)
	if err != nil || info.Size() > maxCacheBytes {
		return content{}, false
	}
	data, err := os.ReadFile(path)
	var c content
	if err == nil {
		err = json.Unmarshal(data, &c)
	}
	return c, err == nil
}

func writeCache(path string, c content) error {
	data, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	return durable.Replace(path, append(data, '\n'))
}
