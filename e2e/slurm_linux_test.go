//go:build e2e

package e2e_test

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// batch submits a script with options, waits for it where they say so, and gives what was printed
// and the exit code.
type batch func(dir string, args ...string) (string, int)

// TestAsOnSlurm runs batch scripts of an array and of what depends on it here and on a real Slurm:
// the files that they leave and the exit codes are the same.
func TestAsOnSlurm(t *testing.T) {
	t.Parallel()
	needBubblewrap(t)
	if err := exec.CommandContext(t.Context(), "sinfo", "--noheader").Run(); err != nil {
		t.Skipf("no Slurm answers here (sinfo: %v)", err)
	}
	m := newMesh(t, submitOnly, roomy, roomy, roomy)
	slurm, mesh := filepath.Join(m.dir, "slurm"), filepath.Join(m.work, "mesh")
	for _, dir := range []string{slurm, mesh} {
		if err := copyTree("testdata/slurm", dir); err != nil {
			t.Fatal(err)
		}
	}
	theirs := runBatches(t, slurm, func(dir string, args ...string) (string, int) {
		return batchOutput(t, exec.CommandContext(t.Context(), "sbatch", args...), dir)
	})
	ours := runBatches(t, mesh, func(dir string, args ...string) (string, int) {
		return batchOutput(t, m.submitCommand(t, append([]string{"sbatch"}, args...)...), dir)
	})
	for name, text := range ours {
		if !strings.HasPrefix(name, "id of ") {
			continue
		}
		collect := m.submitCommand(t, "sbatch", "--collect", text)
		if _, code := batchOutput(t, collect, mesh); code != 0 {
			t.Errorf("submit sbatch --collect %s ends with %d", text, code)
		}
	}
	for _, all := range []map[string]string{ours, theirs} {
		maps.DeleteFunc(all, func(name, _ string) bool { return strings.HasPrefix(name, "id of ") })
	}
	maps.Copy(theirs, filesIn(t, slurm))
	maps.Copy(ours, filesIn(t, mesh))
	const least = 3 + 1 + 2*5 + 1 + 3 // scripts, codes, and what these leave
	if diff := cmp.Diff(theirs, ours); diff != "" || len(theirs) < least {
		t.Errorf("%d results differ (-Slurm +mesh):\n%s", len(theirs), diff)
	}
	m.audit(t)
}

// runBatches submits the scripts in a directory, and gives the codes and IDs.
func runBatches(t *testing.T, dir string, submit batch) map[string]string {
	t.Helper()
	results := map[string]string{}
	array, _ := submit(dir, "--parsable", "array.sh")
	results["id of array.sh"] = strings.TrimSpace(array)
	_, code := submit(dir, "--wait", "-d", "afterok:"+results["id of array.sh"], "after.sh")
	results["code of after.sh"] = strconv.Itoa(code)
	_, code = submit(dir, "--wait", "bad.sh")
	results["code of bad.sh"] = strconv.Itoa(code)
	return results
}

func batchOutput(t *testing.T, cmd *exec.Cmd, dir string) (string, int) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &errs
	err := cmd.Run()
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
		t.Fatal(err)
	}
	if out.Len() == 0 && cmd.ProcessState.ExitCode() != 0 {
		t.Fatalf("%v: %s", cmd.Args, errs.String())
	}
	return out.String(), cmd.ProcessState.ExitCode()
}

// filesIn has the content of each file of a directory.
func filesIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, entry := range entries {
		files[entry.Name()] = readFile(t, filepath.Join(dir, entry.Name()))
	}
	return files
}
