package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// outcome says how the tests took a mutant.
type outcome uint8

const (
	killed   outcome = iota + 1 // a test failed, or did not end
	survived                    // all tests passed
)

// laboratory tries mutants in a directory of its own.
type laboratory struct {
	dir   string        // absolute
	root  string        // of the module
	least time.Duration // is given to the quickest tests, too
}

// tests is a package's test program, as it is to be run.
type tests struct {
	pkg     string
	dir     string // where they run
	limit   cost
	quick   string // the names of those that take little, as -test.run wants them
	program string // holds all mutants that need not be alone
	rapid   bool   // they draw their cases at random, and would keep those that fail
}

// cost counts the time that tests may use, or that they used.
type cost struct {
	wall, cpu time.Duration
}

// slow and heavy bound the tests of a mutant, as multiples of the unchanged ones' time and
// of their processor's time, which a busy machine does not change.
const (
	slow  = 10
	heavy = 3
)

// prepare runs a package's tests as they are, and says how those of its mutants are to be.
func (l laboratory) prepare(ctx context.Context, pkg string) (*tests, error) {
	dir, err := list(ctx, pkg, "{{.Dir}}")
	if err != nil {
		return nil, err
	}
	imports, err := list(ctx, pkg, `{{join .TestImports " "}} {{join .XTestImports " "}}`)
	if err != nil {
		return nil, err
	}
	t := &tests{
		pkg: pkg, dir: strings.Join(dir, " "), limit: cost{time.Hour, time.Hour},
		rapid: slices.Contains(imports, "pgregory.net/rapid"),
	}
	program, err := l.build(ctx, pkg, "plain.test", nil)
	if err != nil {
		return nil, fmt.Errorf("its tests do not compile without any change: %w", err)
	}
	out, used, err := t.run(ctx, program, "-test.v")
	if err != nil {
		return nil, fmt.Errorf("its tests fail without any change: %w\n%s", err, out)
	}
	t.quick = quickOnes(string(out))
	t.limit = cost{wall: slow*used.wall + l.least, cpu: heavy*used.cpu + l.least}
	return t, nil
}

// build makes the program of a package's tests with other texts of some files.
func (l laboratory) build(
	ctx context.Context, pkg, name string, texts map[string][]byte,
) (string, error) {
	replace := make(map[string]string)
	for file, text := range texts {
		path, err := filepath.Abs(file)
		if err != nil {
			return "", err
		}
		changed := filepath.Join(l.dir, fmt.Sprintf("changed%d.go", len(replace)))
		if err := os.WriteFile(changed, text, 0o600); err != nil {
			return "", err
		}
		replace[path] = changed
	}
	plan, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay, program := filepath.Join(l.dir, "overlay.json"), filepath.Join(l.dir, name)
	if err := os.WriteFile(overlay, plan, 0o600); err != nil {
		return "", err
	}
	cmd := exec.CommandContext( //nolint:gosec // G204: our own arguments
		ctx, "go", "test", "-c", "-vet=off", "-overlay="+overlay, "-o", program, pkg)
	cmd.Dir = l.root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return program, nil
}

// try tells whether the tests notice a mutant, which has a number in their program or needs
// one of its own. First run those that take little.
func (l laboratory) try(ctx context.Context, t *tests, m mutant, number int) (outcome, error) {
	program := t.program
	if m.body.alone {
		text, err := os.ReadFile(m.file)
		if err != nil {
			return 0, err
		}
		program, err = l.build(ctx, t.pkg, "mutant.test", map[string][]byte{m.file: m.apply(text)})
		if err != nil {
			return 0, err
		}
		number = 0
	}
	for _, some := range []string{"-test.run=" + t.quick, "-test.skip=" + t.quick} {
		out, _, err := t.run(ctx, program, some, chosenBy+"="+strconv.Itoa(number))
		var exit *exec.ExitError
		switch {
		case ctx.Err() != nil:
			return 0, ctx.Err()
		case errors.As(err, &exit):
			return killed, nil
		case err != nil:
			return 0, fmt.Errorf("%w\n%s", err, out)
		}
	}
	return survived, nil
}

// run runs tests in their package's directory, within their limit.
func (t *tests) run(
	ctx context.Context, program, flag string, env ...string,
) ([]byte, cost, error) {
	begin := time.Now()
	cmd := exec.CommandContext( //nolint:gosec // G204: our own arguments
		ctx, "sh", "-c", `ulimit -t "$1"; shift; exec "$@"`, "sh",
		strconv.Itoa(int(t.limit.cpu.Seconds()+1)),
		program, flag, "-test.failfast", "-test.paniconexit0", "-test.timeout="+t.limit.wall.String())
	cmd.Dir, cmd.Env = t.dir, append(os.Environ(), env...)
	if t.rapid { // a case that one mutant failed is not for the next one, nor for the tree
		cmd.Args = append(cmd.Args, "-rapid.nofailfile")
	}
	out, err := cmd.CombinedOutput()
	used := cost{wall: time.Since(begin)}
	if cmd.ProcessState != nil {
		used.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	return out, used, err
}

// quickOnes are the tests that take a tenth of the time of all together, the quickest
// first, as a pattern of their names.
func quickOnes(verbose string) string {
	type ran struct {
		name string
		took float64
	}
	var all []ran
	total := 0.0
	for line := range strings.Lines(verbose) {
		var r ran
		if n, _ := fmt.Sscanf(line, "--- PASS: %s (%fs)", &r.name, &r.took); n == 2 {
			all = append(all, r)
			total += r.took
		}
	}
	slices.SortStableFunc(all, func(a, b ran) int {
		switch {
		case a.took < b.took:
			return -1
		case a.took > b.took:
			return 1
		}
		return 0
	})
	var names []string
	spent := 0.0
	for _, r := range all {
		if spent += r.took; spent > total/10 {
			break
		}
		names = append(names, r.name)
	}
	return "^(" + strings.Join(names, "|") + ")$"
}
