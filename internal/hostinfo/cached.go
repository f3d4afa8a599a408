package hostinfo

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// cacheName is the file in the state directory that keeps the measurement.
const cacheName = "hostinfo.json"

// maxCacheBytes bounds what is read of that file.
const maxCacheBytes = 64 << 10

// cached is the content of the file. The first three fields say for which
// machine and which compiler the measurement holds.
type cached struct {
	CPUModel   string `json:"cpu_model"`
	Cores      int    `json:"cores"`
	GoVersion  string `json:"go_version"`
	CoreMFLOPS int64  `json:"core_mflops"`
}

// CoreMFLOPS is the computation one core sustains, in MFLOP/s: from the file in
// stateDir when it was measured there for the same processor, number of cores
// and Go version, else measured now and written there. Removing the file asks
// for a new measurement. When only the writing fails, the value is valid and the
// error says why it will have to be measured again.
func CoreMFLOPS(ctx context.Context, m Machine, stateDir string) (int64, error) {
	return coreMFLOPS(ctx, m, stateDir, MeasureCore)
}

func coreMFLOPS(
	ctx context.Context, m Machine, stateDir string, measure func(context.Context) (int64, error),
) (int64, error) {
	path := filepath.Join(stateDir, cacheName)
	want := cached{CPUModel: m.CPUModel, Cores: m.Cores, GoVersion: runtime.Version()}
	if have, ok := readCache(path); ok {
		want.CoreMFLOPS = have.CoreMFLOPS
		if have == want {
			return have.CoreMFLOPS, nil
		}
	}
	mflops, err := measure(ctx)
	if err != nil {
		return 0, err
	}
	want.CoreMFLOPS = mflops
	if err := writeCache(path, want); err != nil {
		return mflops, fmt.Errorf("keep measurement: %w", err)
	}
	return mflops, nil
}

// readCache reports false for a file that is missing or makes no sense: it is
// only a cache, so it is measured again.
func readCache(path string) (cached, bool) {
	info, err := os.Stat(path)
	if err != nil || info.Size() > maxCacheBytes {
		return cached{}, false
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return cached{}, false
	}
	var c cached
	if json.Unmarshal(data, &c) != nil || c.CoreMFLOPS <= 0 {
		return cached{}, false
	}
	return c, true
}

func writeCache(path string, c cached) error {
	data, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), cacheName+".*")
	if err != nil {
		return err
	}
	_, err = tmp.Write(append(data, '\n'))
	if closeErr := tmp.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		_ = os.Remove(tmp.Name())
	}
	return err
}
