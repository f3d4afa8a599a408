package wasm

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/internal/lrm/supervise"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// What a program was refused is to blame for its end, unless that was well; memory before disk,
// and both before the site's own disk.
func TestWhatIsToBlame(t *testing.T) {
	t.Parallel()
	const (
		memory = "wanted more than its 2.0 KiB of memory"
		disk   = "wanted more than its 3.0 KiB of disk"
		full   = "the site's disk is full; it ended with code 3"
	)
	exited := func(code int) supervise.Report {
		return supervise.Report{Cause: grid.CauseExited, Code: code}
	}
	trapped := supervise.Report{Cause: grid.CauseSignal, Code: 6, Text: "trap"}
	for name, c := range map[string]struct {
		denied, noSpace, full bool
		own, want             supervise.Report
	}{
		"well":         {true, true, true, exited(0), exited(0)},
		"nothing":      {false, false, false, exited(3), exited(3)},
		"a trap alone": {false, false, false, trapped, trapped},
		"memory": {
			true, true, true, exited(3),
			supervise.Report{Cause: grid.CauseMemory, Code: 3, Text: memory + "; it ended with code 3"},
		},
		"memory and a trap": {
			true, false, false, trapped,
			supervise.Report{Cause: grid.CauseMemory, Code: 6, Text: memory + "; trap"},
		},
		"memory and no word": {
			true, false, false,
			supervise.Report{Cause: grid.CauseSandbox},
			supervise.Report{Cause: grid.CauseMemory, Text: memory},
		},
		"disk": {
			false, true, true, exited(3),
			supervise.Report{Cause: grid.CauseDisk, Code: 3, Text: disk + "; it ended with code 3"},
		},
		"the site's disk": {
			false, false, true, exited(3),
			supervise.Report{Cause: grid.CauseSandbox, Text: full},
		},
	} {
		g := guestOf(t)
		g.memory.denied.Store(c.denied)
		g.jail.quota.denied.Store(c.noSpace)
		g.jail.quota.hostFull.Store(c.full)
		if got := g.blame(c.own); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// guestOf is a guest of this process with 2 KiB of memory and 3 KiB of disk.
func guestOf(t *testing.T) *guest {
	t.Helper()
	work := job{CacheDir: t.TempDir(), MemoryBytes: 2 << 10, DiskBytes: 3 << 10}
	return &guest{
		work: work, jail: openJail(t, t.TempDir(), work.DiskBytes), memory: &memory{limit: 1 << 20},
	}
}

// exits is the module that calls proc_exit with 3.
func exits() []byte {
	return []byte("\x00asm\x01\x00\x00\x00" + "\x01\x08\x02\x60\x00\x00\x60\x01\x7f\x00" +
		"\x02\x24\x01\x16wasi_snapshot_preview1\x09proc_exit\x00\x01" + "\x03\x02\x01\x00" +
		"\x07\x0a\x01\x06_start\x00\x01" + "\x0a\x08\x01\x06\x00\x41\x03\x10\x00\x0b")
}

// Each module ends in its own way, and what is wrong with it everywhere is no site's fault.
func TestHowModulesEnd(t *testing.T) {
	t.Parallel()
	const returns, traps = "\x0a\x04\x01\x02\x00\x0b", "\x0a\x05\x01\x03\x00\x00\x0b"
	library := bytes.Replace(module("", returns), []byte("_start"), []byte("_other"), 1)
	for name, c := range map[string]struct {
		module []byte
		cause  grid.ExitCause
		code   int
		text   string
	}{
		"returns": {module("", returns), grid.CauseExited, 0, ""},
		"exits":   {exits(), grid.CauseExited, 3, ""},
		"traps":   {module("", traps), grid.CauseSignal, 6, "trap: wasm error: unreachable"},
		"is none": {[]byte("\x00asm"), grid.CauseBadWork, 0, "the module does not compile: "},
		"library": {
			library, grid.CauseBadWork, 0, "the module exports neither _start nor step: ",
		},
		"is greedy": {greedy(), grid.CauseMemory, 6, "wanted more than its 2.0 KiB of memory; trap: "},
		"no link": {
			bytes.Replace(exits(), []byte("proc_exit"), []byte("proc_none"), 1), grid.CauseBadWork, 0,
			"the module does not link: ",
		},
		"first memory": {
			module("\x05\x04\x01\x00\xd0\x0f", returns), grid.CauseMemory, 0,
			"wanted more than its 2.0 KiB of memory; the runtime failed: ",
		},
	} {
		got := guestOf(t).run(context.Background(), wazero.NewCompilationCache(), c.module)
		if got.Cause != c.cause || got.Code != c.code || !strings.HasPrefix(got.Text, c.text) {
			t.Errorf("%s: %+v, want %v %d %q", name, got, c.cause, c.code, c.text)
		}
	}
	start := linkFailure(errors.New("start function[0] failed: x"))
	if start.Cause != grid.CauseSignal || start.Code != 6 ||
		start.Text != "trap: start function[0] failed: x" {
		t.Errorf("a start that failed: %+v", start)
	}
}

// Work that cannot be begun says whose fault it is, and names no path of the host.
func TestWorkThatCannotBegin(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"text": "#!/bin/sh", "short": "\x00as", "empty": "", "good": "\x00asm\x01\x00\x00\x00",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const no = "the module is not WebAssembly: compile it for wasip1"
	for name, c := range map[string]struct {
		work  job
		cause grid.ExitCause
		text  string
	}{
		"no module": {
			job{Module: dir + "/none"}, grid.CauseSandbox, "read module: no such file or directory",
		},
		"text":      {job{Module: dir + "/text"}, grid.CauseBadWork, no},
		"too short": {job{Module: dir + "/short"}, grid.CauseBadWork, no},
		"empty":     {job{Module: dir + "/empty"}, grid.CauseBadWork, no},
		"no place": {
			job{Module: dir + "/good", WorkDir: dir + "/none"},
			grid.CauseSandbox,
			"build sandbox: no such file or directory",
		},
		"no cache": {
			job{Module: dir + "/good", WorkDir: dir, CacheDir: dir + "/good"},
			grid.CauseSandbox,
			"open cache: ",
		},
	} {
		got := runJob(t.Context(), c.work)
		if got.Cause != c.cause || !strings.HasPrefix(got.Text, c.text) {
			t.Errorf("%s: %+v, want %v %q", name, got, c.cause, c.text)
		}
	}
}

// The result holds the end that the supervisor tells, but where the runtime itself had no memory.
func TestTheResultOfAnEnd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		broken bool
		stderr string
		cause  grid.ExitCause
		text   string
	}{
		"told":             {false, outOfMemory, grid.CauseSandbox, "own"},
		"broken":           {true, "other words", grid.CauseSandbox, "own"},
		"broken, no words": {true, "", grid.CauseSandbox, "own"},
		"broken for memory": {
			true, "x\n" + outOfMemory + "\ny", grid.CauseMemory,
			"the runtime itself ran out of memory over this module",
		},
	} {
		at := lrm.Attempt{Dir: t.TempDir(), OutputPaths: []string{"/out"}}
		if err := lrm.PrepareDir(at); err != nil {
			t.Fatal(err)
		}
		for path, text := range map[string]string{
			at.StdoutPath(): "printed", at.StderrPath(): c.stderr, at.WorkDir() + "/out": "22",
		} {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		r := finish(at, supervise.Ending{
			Report: supervise.Report{Cause: grid.CauseSandbox, Code: 4, Text: "own"}, Wall: time.Minute,
			Broken: c.broken,
		})
		if r.Exit.Cause != c.cause || r.Exit.Code != 4 || r.Exit.Text != c.text ||
			r.Exit.Wall != time.Minute || len(r.Outputs) != 1 || r.Stdout.Bytes != 7 ||
			r.Stderr.Bytes != int64(len(c.stderr)) {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if mentions("/none", "") {
		t.Error("a file that is not there holds words")
	}
}
