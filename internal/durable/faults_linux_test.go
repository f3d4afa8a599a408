package durable

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// A file that cannot be written whole is not put in place, and nothing is left of it.
func TestAWriteThatFails(t *testing.T) {
	const role = "MRS_TEST_SMALL_FILES"
	if dir := os.Getenv(role); dir != "" {
		writeTooMuch(t, dir)
		return
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "f")
	open, err := Rewrite(nil, file, []byte("old"))
	if err == nil {
		err = open.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestAWriteThatFails$")
	cmd.Env = append(os.Environ(), role+"="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "old" {
		t.Errorf("the file holds %q, %v, want what was there", text, err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left behind are %v, %v", entries, err)
	}
}

// writeTooMuch writes files that may not become as long, in a directory.
func writeTooMuch(t *testing.T, dir string) {
	t.Helper()
	signal.Ignore(unix.SIGXFSZ) // so that the write fails instead
	var before unix.Rlimit
	wrong := unix.Getrlimit(unix.RLIMIT_FSIZE, &before)
	if wrong == nil {
		wrong = unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 4, Max: before.Max})
	}
	if wrong != nil {
		t.Fatal(wrong)
	}
	defer func() { _ = unix.Setrlimit(unix.RLIMIT_FSIZE, &before) }()
	t.Chdir(dir)
	if err := Replace("f", []byte("too long")); !errors.Is(err, syscall.EFBIG) {
		t.Errorf("Replace = %v, want %v", err, syscall.EFBIG)
	}
	if err := Create("f2", []byte("too long")); !errors.Is(err, syscall.EFBIG) {
		t.Errorf("Create = %v, want %v", err, syscall.EFBIG)
	}
	open, err := Rewrite(nil, "f", []byte("too long"))
	if !errors.Is(err, syscall.EFBIG) || open == nil {
		t.Errorf("Rewrite = %v, %v, want the file of before and %v", open, err, syscall.EFBIG)
	}
}

// For want of space a write fails on a full disk, and where a user has used up a share of it.
func TestNoSpace(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]bool{
		syscall.ENOSPC: true, syscall.EDQUOT: true, syscall.EIO: false, syscall.EFBIG: false,
	} {
		if got := NoRoom(fmt.Errorf("write: %w", err)); got != want {
			t.Errorf("%v is for want of space: %t", err, got)
		}
	}
	if NoRoom(nil) {
		t.Error("no error is for want of space")
	}
}

// A file system that has no way to sync a directory holds nothing up; one that fails does.
func TestFileSystemsThatCannotSync(t *testing.T) {
	t.Parallel()
	if err := SyncDir("/proc/self"); err != nil {
		t.Errorf("SyncDir in a file system without a disk = %v", err)
	}
	for err, want := range map[error]bool{
		syscall.EINVAL: true, syscall.ENOTSUP: true, syscall.ENOSYS: true, syscall.EIO: false,
		syscall.ENOSPC: false,
	} {
		if got := cannotSync(fmt.Errorf("sync: %w", err)); got != want {
			t.Errorf("after %v a directory cannot be synced: %t", err, got)
		}
	}
}

// A directory that is not there cannot be synced; one that was leaves nothing open.
func TestSyncingADirectory(t *testing.T) {
	dir := t.TempDir()
	if err := SyncDir(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("SyncDir = %v, want %v", err, os.ErrNotExist)
	}
	held := func() (n int) {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if to, _ := os.Readlink("/proc/self/fd/" + e.Name()); to == dir {
				n++
			}
		}
		return n
	}
	for range 3 {
		if err := SyncDir(dir); err != nil {
			t.Fatal(err)
		}
	}
	if n := held(); n != 0 {
		t.Errorf("the directory is open %d times", n)
	}
}
