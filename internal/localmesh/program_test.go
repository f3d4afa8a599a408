package localmesh

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

// A program of steps says after each tick whether there is more to do, and leaves its file at
// the end.
func TestAProgramOfSteps(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	runtime := wazero.NewRuntime(ctx)
	defer runtime.Close(ctx)
	wasi_snapshot_preview1.MustInstantiate(ctx, runtime)
	module := Program{Sleep: 3 * SleepTick, File: "/result", Text: "done\n", Steps: true}.Module()
	config := wazero.NewModuleConfig().WithFSConfig(wazero.NewFSConfig().WithDirMount(dir, "/"))
	instance, err := runtime.InstantiateWithConfig(ctx, module, config)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []uint64{1, 1, 0} {
		if _, err := os.Stat(filepath.Join(dir, "result")); err == nil {
			t.Errorf("it has written before step %d", i)
		}
		if got, err := instance.ExportedFunction("step").Call(ctx); err != nil || got[0] != want {
			t.Errorf("step %d returned %d, %v, want %d", i, got, err, want)
		}
	}
	if got, err := os.ReadFile(filepath.Join(dir, "result")); string(got) != "done\n" {
		t.Errorf("it left %q, %v", got, err)
	}
}
