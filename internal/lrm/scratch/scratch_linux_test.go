package scratch_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/lrm/scratch"
)

const argInside = "__inside"

// TestMain plays a program that runs itself again: what comes after argInside is a test's body.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == scratch.Arg {
		os.Exit(scratch.Trial(os.Args[2]))
	}
	if len(os.Args) == 4 && os.Args[1] == argInside {
		trial := []string{os.Args[0], scratch.Arg}
		if err := scratch.Enter(context.Background(), os.Args[3], trial); err != nil {
			fmt.Println("cannot:", err)
			os.Exit(0)
		}
		if err := inside()[os.Args[2]](os.Args[3]); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("fine")
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// run runs a body inside and wants it to end well; it skips the test where nothing can be mounted.
func run(t *testing.T, body, dir string) {
	t.Helper()
	out, err := exec.Command(os.Args[0], argInside, body, dir).CombinedOutput()
	if why, cannot := strings.CutPrefix(string(out), "cannot: "); cannot {
		t.Skip(why)
	}
	if err != nil || string(out) != "fine\n" {
		t.Fatalf("%v: %s", err, out)
	}
}

func inside() map[string]func(dir string) error {
	return map[string]func(dir string) error{
		"size": size, "files": files, "alone": alone, "rights": rights,
	}
}

func mounted(dir string, bytes int64, files int) (string, error) {
	work := filepath.Join(dir, "work")
	return work, errors.Join(os.Mkdir(work, 0o700), scratch.Mount(work, bytes, files))
}

const limit = 1 << 20

// size wants the kernel to hold a file system at its size, also for a file without a name.
func size(dir string) error {
	work, err := mounted(dir, limit, 100)
	if err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(work, "file"))
	if err != nil {
		return err
	}
	if err = os.Remove(f.Name()); err != nil {
		return err
	}
	n, err := f.Write(make([]byte, 2*limit))
	if !errors.Is(err, syscall.ENOSPC) || n < limit || n > limit+limit/20 {
		return fmt.Errorf("wrote %d of %d, %w", n, limit, err)
	}
	if !scratch.IsFull(work) {
		return errors.New("it is not full")
	}
	return scratch.Unmount(work)
}

// files wants the kernel to hold the number of files.
func files(dir string) error {
	work, err := mounted(dir, limit, 10)
	if err != nil {
		return err
	}
	made := 0
	for ; made < 20; made++ {
		if err = os.WriteFile(filepath.Join(work, fmt.Sprint(made)), nil, 0o600); err != nil {
			break
		}
	}
	if made != 9 || !errors.Is(err, syscall.ENOSPC) || !scratch.IsFull(work) {
		return fmt.Errorf("%d files beside the directory, %w", made, err)
	}
	return scratch.Unmount(work)
}

// alone leaves a file in a file system, which nobody but this process sees.
func alone(dir string) error {
	work, err := mounted(dir, limit, 10)
	return errors.Join(err, os.WriteFile(filepath.Join(work, "file"), nil, 0o600))
}

// rights wants the process to have no right but the one to mount, and its children none.
func rights(string) error {
	if os.Geteuid() == 0 {
		return nil
	}
	const mount = "0000000000200000" // CAP_SYS_ADMIN
	own, err := os.ReadFile("/proc/self/status")
	if err != nil || !strings.Contains(string(own), "CapEff:\t"+mount) {
		return fmt.Errorf("own rights: %s %w", own, err)
	}
	child, err := exec.Command("grep", "^Cap[PEA]", "/proc/self/status").Output()
	if err != nil || strings.Count(string(child), "\t0000000000000000\n") != 3 {
		return fmt.Errorf("a child's rights: %s %w", child, err)
	}
	return nil
}

func TestTheKernelHoldsTheSize(t *testing.T)     { run(t, "size", t.TempDir()) }
func TestTheKernelHoldsTheFiles(t *testing.T)    { run(t, "files", t.TempDir()) }
func TestOnlyTheRightToMountIsKept(t *testing.T) { run(t, "rights", t.TempDir()) }

// TestNobodyElseSeesWhatIsMounted wants nothing to be left behind by a process that ends.
func TestNobodyElseSeesWhatIsMounted(t *testing.T) {
	dir := t.TempDir()
	run(t, "alone", dir)
	left, err := os.ReadDir(filepath.Join(dir, "work"))
	if err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if err = os.Remove(filepath.Join(dir, "work")); err != nil {
		t.Error(err) // it is no mount here
	}
}

// TestWhereNothingCanBeMounted wants the reason to be told, and nothing to be left.
func TestWhereNothingCanBeMounted(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	if err := scratch.Enter(t.Context(), dir, []string{"/bin/true"}); err == nil ||
		!strings.Contains(err.Error(), "install the package util-linux") {
		t.Errorf("Enter = %v", err)
	}
	if err := scratch.Unmount(dir); err != nil {
		t.Errorf("Unmount of what is no mount = %v", err)
	}
	fake := "#!/bin/sh\necho unshare: unshare failed: Operation not permitted >&2\nexit 1\n"
	if err := os.WriteFile(filepath.Join(dir, "unshare"), []byte(fake), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := scratch.Enter(t.Context(), dir, []string{"/bin/true"}); err == nil ||
		!strings.Contains(err.Error(), "Operation not permitted") {
		t.Errorf("Enter = %v", err)
	}
}
