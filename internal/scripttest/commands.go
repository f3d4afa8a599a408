package scripttest

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/mrsmesh/mrsmesh/internal/localmesh"
)

// exits runs a program and wants an exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARGS")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	code := 0
	if err := execute(ts, args[1], args[2:]); err != nil {
		exit, ok := err.(*exec.ExitError) //nolint:errorlint // it is not wrapped
		if !ok {
			ts.Fatalf("%s: %v", args[1], err)
		}
		code = exit.ExitCode()
	}
	if code != want {
		ts.Fatalf("%s ended with code %d, want %d", args[1], code, want)
	}
}

const (
	eventuallyLimit = time.Minute // on a machine that has more to do
	eventuallyPause = 50 * time.Millisecond
)

// eventually runs a program until its standard output matches.
func eventually(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: eventually PATTERN PROGRAM ARGS")
	}
	pattern, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	for until := time.Now().Add(eventuallyLimit); ; time.Sleep(eventuallyPause) {
		err := execute(ts, args[1], args[2:])
		if err == nil && pattern.MatchString(ts.ReadFile("stdout")) {
			return
		}
		if time.Now().After(until) {
			ts.Fatalf(
				"%s: no match for %s within %s; the last error: %v", args[1], args[0], eventuallyLimit, err,
			)
		}
	}
}

// module writes a WebAssembly module.
func module(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: module FILE [KEY=VALUE]...")
	}
	var p localmesh.Program
	for _, arg := range args[1:] {
		key, value, _ := strings.Cut(arg, "=")
		value = strings.ReplaceAll(value, `\n`, "\n")
		var err error
		switch key {
		case "sleep":
			p.Sleep, err = time.ParseDuration(value)
		case "stdout":
			p.Stdout = value
		case "stderr":
			p.Stderr = value
		case "file":
			p.File = value
		case "text":
			p.Text = value
		case "code":
			p.Code, err = strconv.Atoi(value)
		default:
			ts.Fatalf("module: no key %q", key)
		}
		ts.Check(err)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), p.Module(), 0o600))
}

// keep puts the last standard output into a variable.
func keep(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: keep NAME")
	}
	ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile("stdout")))
}
