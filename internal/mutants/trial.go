package main

import (
	"cmp"
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
	names   []string // of the tests, the quickest first
	took    map[string]time.Duration
	quick   int                // so many of them take little
	reach   map[string][]block // what each comes through, where that is asked for
	program string             // holds all mutants that need not be alone
	rapid   bool               // they draw their cases at random, and would keep those that fail
}

// cost counts the time that tests may use, or that they used.
type cost struct {
	wall, cpu time.Duration
}

// slow and heavy bound the tests of a mutant, as multiples of the unchanged ones' time and
// of their processor's time, which a busy machine does not change. Of a time beyond half a
// minute, heavy bounds both.
const (
	slow  = 10
	heavy = 3
	long  = 30 * time.Second
)

// leftover bounds the time for which the output of tests that have ended is read on, for the sake
// of processes that they left behind.
const leftover = 5 * time.Second

// bound is the time that tests get which took so long.
func (l laboratory) bound(took time.Duration) time.Duration {
	return l.least + slow*min(took, long) + heavy*max(took-long, 0)
}

// prepare runs a package's tests as they are, and says how those of mutants are to be. Of a
// package without tests, there are no names.
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
	files, err := list(ctx, pkg, `{{join .TestGoFiles " "}} {{join .XTestGoFiles " "}}`)
	if err != nil || len(files) == 0 {
		return t, err
	}
	program, err := l.build(ctx, pkg, "plain.test", nil)
	if err != nil {
		return nil, fmt.Errorf("its tests do not compile without any change: %w", err)
	}
	out, used, err := t.run(ctx, program, t.limit.wall, "-test.v")
	if err != nil {
		return nil, fmt.Errorf("its tests fail without any change: %w\n%s", err, out)
	}
	t.took = durations(string(out))
	t.names, t.quick = quickOnes(t.took)
	t.limit = cost{wall: l.bound(used.wall), cpu: heavy*used.cpu + l.least}
	return t, nil
}

// build makes the program of a package's tests with other texts of some files.
func (l laboratory) build(
	ctx context.Context, pkg, name string, texts map[string][]byte, flags ...string,
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
	args := slices.Concat([]string{"test", "-c", "-vet=off", "-overlay=" + overlay, "-o", program},
		flags, []string{pkg})
	cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // G204: our own arguments
	cmd.Dir = l.root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return program, nil
}

// try tells whether the tests notice a mutant, which has a number in their program or needs
// one of its own. First run those that take little.
func (l laboratory) try(ctx context.Context, t *tests, m mutant, number int) (outcome, error) {
	if len(t.names) == 0 {
		return survived, nil
	}
	program, err := l.programOf(ctx, t, m, number)
	if err != nil {
		return 0, err
	}
	defer os.Remove(program) // made for this mutant
	for _, some := range t.turns(m) {
		out, _, err := t.run(ctx, program, l.patience(t, m), some...)
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

// patience bounds the time of a mutant's tests by a multiple of what those that it meets took.
func (l laboratory) patience(t *tests, m mutant) time.Duration {
	if t.reach == nil {
		return t.limit.wall
	}
	var all time.Duration
	for _, name := range t.reaching(m) {
		all += t.took[name]
	}
	return min(l.bound(all), t.limit.wall)
}

// turns are the flags of the runs that a mutant meets: those that take little come first.
func (t *tests) turns(m mutant) [][]string {
	quick := anyOf(t.names[:t.quick])
	turns := [][]string{{"-test.run=" + quick}, {"-test.skip=" + quick}}
	if t.reach != nil {
		only := "-test.run=" + anyOf(t.reaching(m))
		rest := anyOf(t.names[t.quick:])
		turns = [][]string{{only, "-test.skip=" + rest}, {only, "-test.skip=" + quick}}
	}
	return turns
}

// programOf makes the program of the tests on a mutant.
func (l laboratory) programOf(
	ctx context.Context, t *tests, m mutant, number int,
) (string, error) {
	if !m.body.alone {
		program := filepath.Join(l.dir, fmt.Sprintf("mutant%d.test", number))
		return program, choose(t.program, program, number)
	}
	text, err := os.ReadFile(m.file)
	if err != nil {
		return "", err
	}
	return l.build(ctx, t.pkg, "mutant.test", map[string][]byte{m.file: m.apply(text)})
}

// run runs tests in their package's directory, within a time and their limit of the processor.
func (t *tests) run(
	ctx context.Context, program string, patience time.Duration, flags ...string,
) ([]byte, cost, error) {
	begin := time.Now()
	cmd := exec.CommandContext( //nolint:gosec // G204: our own arguments
		ctx, "sh", "-c", `ulimit -t "$1"; shift; exec "$@"`, "sh",
		strconv.Itoa(int(t.limit.cpu.Seconds()+1)),
		program, "-test.failfast", "-test.paniconexit0", "-test.timeout="+patience.String())
	cmd.Dir, cmd.Args = t.dir, append(cmd.Args, flags...)
	if t.rapid { // a case that one mutant failed is not for the next one, nor for the tree
		cmd.Args = append(cmd.Args, "-rapid.nofailfile")
	}
	cmd.WaitDelay = leftover
	out, err := cmd.CombinedOutput()
	if errors.Is(err, exec.ErrWaitDelay) { // they passed, and left a process behind
		err = nil
	}
	used := cost{wall: time.Since(begin)}
	if cmd.ProcessState != nil {
		used.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	return out, used, err
}

// durations are what the tests that passed took.
func durations(verbose string) map[string]time.Duration {
	took := make(map[string]time.Duration)
	for line := range strings.Lines(verbose) {
		var name string
		var seconds float64
		if n, _ := fmt.Sscanf(line, "--- PASS: %s (%fs)", &name, &seconds); n == 2 {
			took[name] = time.Duration(seconds * float64(time.Second))
		}
	}
	return took
}

// quickOnes are the tests, the quickest first, and how many of them take a tenth of the time
// of all together.
func quickOnes(took map[string]time.Duration) (names []string, quick int) {
	var total, spent time.Duration
	for name, d := range took {
		names = append(names, name)
		total += d
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(took[a], took[b]), strings.Compare(a, b))
	})
	for _, name := range names {
		if spent += took[name]; spent <= total/10 {
			quick++
		}
	}
	return names, quick
}
