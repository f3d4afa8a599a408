package wasm

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	experimentalsys "github.com/tetratelabs/wazero/experimental/sys"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
)

// An input that is not what it was said to be, or not there, is named, by its path inside.
func TestInputsThatAreNot(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	err := errors.Join(os.WriteFile(dir+"/file", nil, 0o600), os.Symlink("file", dir+"/link"),
		os.Mkdir(dir+"/dir", 0o700))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		dir  bool
		want bool
	}{
		"file": {false, true}, "dir": {true, true}, "dir/": {true, true},
	} {
		for _, isDir := range []bool{false, true} {
			in := lrm.Bind{SandboxPath: "/in/x", HostPath: filepath.Join(dir, name), Dir: isDir}
			_, err := newJail(dir, []lrm.Bind{in}, 0)
			if (err == nil) != (isDir == c.dir) {
				t.Errorf("%s as a directory %v: %v", name, isDir, err)
			}
		}
	}
	for _, name := range []string{"none", "link", "none/x"} {
		for _, isDir := range []bool{false, true} {
			if name == "link" && isDir {
				continue
			}
			in := lrm.Bind{SandboxPath: "/in/x", HostPath: filepath.Join(dir, name), Dir: isDir}
			if _, err := newJail(dir, []lrm.Bind{in}, 0); err == nil ||
				!strings.HasPrefix(err.Error(), "open input /in/x: ") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if _, err := newJail(dir+"/none", nil, 0); err == nil {
		t.Error("a jail of nothing")
	}
}

// What the guest is told of the host's errors are numbers; a disk that is full is noted.
func TestNumbersOfErrors(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]experimentalsys.Errno{
		nil: 0, fs.ErrNotExist: experimentalsys.ENOENT, syscall.ENOTEMPTY: experimentalsys.ENOTEMPTY,
		fs.ErrClosed: experimentalsys.EBADF, errors.New("path escapes"): experimentalsys.EPERM,
	} {
		if got := errno(err); got != want {
			t.Errorf("%v is %v, want %v", err, got, want)
		}
		if got := readErrno(err); got != want {
			t.Errorf("%v is %v in reading, want %v", err, got, want)
		}
	}
	if got := readErrno(io.EOF); got != 0 {
		t.Errorf("the end is %v", got)
	}
	for err, want := range map[error]bool{
		syscall.ENOSPC: true, syscall.EDQUOT: true, syscall.EIO: false, fs.ErrNotExist: false,
	} {
		j := &jail{quota: &quota{}}
		if no := j.failed(fmt.Errorf("write: %w", err)); no == 0 || j.quota.hostFull.Load() != want {
			t.Errorf("%v: %v, full: %v", err, no, j.quota.hostFull.Load())
		}
	}
}
