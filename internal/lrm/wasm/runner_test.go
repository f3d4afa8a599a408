package wasm

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// The cache of compiled modules is written while a module is compiled: that its disk is full
// says nothing about the module.
func TestAFullDiskIsNotTheModulesFault(t *testing.T) {
	write := func(err error) error {
		return fmt.Errorf("compile: %w", &fs.PathError{Op: "write", Path: "cache/x.tmp", Err: err})
	}
	for _, tt := range []struct {
		err  error
		want grid.ExitCause
		text string
	}{
		{write(syscall.ENOSPC), grid.CauseStopped, "disk is full"},
		{write(syscall.EIO), grid.CauseSandbox, "cannot be kept"},
		{errors.New("invalid magic number"), grid.CauseBadWork, "does not compile: invalid magic"},
	} {
		if got := compileFailure(tt.err); got.Cause != tt.want || !strings.Contains(got.Text, tt.text) {
			t.Errorf("compileFailure(%v) = %s %q, want %s", tt.err, got.Cause, got.Text, tt.want)
		}
	}
}
