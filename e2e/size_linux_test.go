//go:build e2e

package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// TestSize prints how large the programs are, and how much memory an agent
// takes.
func TestSize(t *testing.T) {
	t.Parallel()
	m := newMesh(t, submitOnly, twoCores)
	m.run(t, "exit=0").want(t, 0)
	for _, s := range m.sites {
		status := readFile(t, fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
		fmt.Printf(
			"agent %s after one job: %s, %s\n", s.name, field(status, "VmRSS"), field(status, "RssAnon"),
		)
		if strings.TrimSpace(field(status, "VmRSS")) == "" {
			t.Error("the system does not tell the agent's memory")
		}
	}
	for _, program := range []string{bin.siteagent, bin.submit} {
		stripped := filepath.Join(m.dir, filepath.Base(program))
		build := exec.Command(
			"go", "build", "-ldflags=-s -w", "-o", stripped, "../cmd/"+filepath.Base(program),
		)
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("go build: %v: %s", err, out)
		}
		fmt.Printf("%s: %s, stripped %s\n", filepath.Base(program), size(t, program), size(t, stripped))
	}
}

func field(status, name string) string {
	return strings.Join(strings.Fields(lineWith(status, name+":")), " ")
}

func size(t *testing.T, path string) string {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return grid.FormatBytes(info.Size())
}

// TestTerminate ends an agent by SIGTERM while jobs run there.
func TestTerminate(t *testing.T) {
	t.Parallel()
	m := newMesh(t, submitOnly, twoCores, twoCores)
	id := m.begin(t, result, "ticks=30", "put=/out/r:result 0")
	holder := m.holder(t, id)
	began := time.Now()
	holder.terminate(t)
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the agent took %s to end", took)
	}
	holder.awaitNoProcess(t)
	m.wantResults(t, id, 1)
	m.audit(t)
	m.replay(t)
}
