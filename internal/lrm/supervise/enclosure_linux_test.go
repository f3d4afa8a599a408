package supervise

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// capNetRaw lets a program send any packet; as the kernel stores it: version 2,
// one permitted bit. See capabilities(7).
var capNetRaw = append(
	[]byte{0, 0, 0, 2, 0, 1 << 5, 0, 0}, make([]byte, 12)...,
)

// A program with rights of its own would lose them by being traced, so it is not.
func TestProgramsWithRightsOfTheirOwn(t *testing.T) {
	t.Parallel()
	program := func(mode os.FileMode) string {
		path := filepath.Join(t.TempDir(), "program")
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	capable := program(0o755)
	err := unix.Setxattr(capable, "security.capability", capNetRaw, 0)
	switch {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.ENOTSUP):
		t.Logf("no file gets capabilities here: %v", err)
		capable = ""
	case err != nil:
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, path string
		want       bool
	}{
		{"plain", program(0o755), false},
		{"that runs as its owner", program(0o755 | os.ModeSetuid), true},
		{"that runs as its group", program(0o755 | os.ModeSetgid), true},
		{"that is not there", filepath.Join(t.TempDir(), "none"), true},
		{"with a capability", capable, true},
	} {
		if c.path == "" {
			continue
		}
		if got := gainsRights(c.path); got != c.want {
			t.Errorf("a program %s gains rights: %t, want %t", c.name, got, c.want)
		}
	}
}
