package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// lab tries the attacks.
type lab struct {
	known    map[string][]place
	account  *account
	delegate bool          // the account has control groups
	linger   time.Duration // the wait for output of what a test program left behind; 0: no end
	out      io.Writer
}

// outcome says what came of a test. The greater one counts where several packages have it.
type outcome int

const (
	passed outcome = iota + 1
	skipped
	failed
)

// batch are the tests of one package.
type batch struct {
	at    place
	tests []string
}

// try runs the tests of the attacks, each once, and says of each attack what came of it.
func (l lab) try(ctx context.Context, attacks []attack, overlay []string) (count, error) {
	batches, err := l.batches(attacks)
	if err != nil {
		return count{}, err
	}
	ended := make(map[string]outcome)
	for _, b := range batches {
		got, err := l.runBatch(ctx, b, overlay)
		if err != nil {
			return count{}, err
		}
		for name, o := range got {
			ended[name] = max(ended[name], o)
		}
	}
	var c count
	section := ""
	for _, a := range attacks {
		if a.section != section {
			section = a.section
			fmt.Fprintf(l.out, "%s\n", section)
		}
		c = c.with(a.judge(ended))
		fmt.Fprintf(l.out, "  %s\n", a.verdict(ended))
	}
	return c, nil
}

// batches gathers the tests by their packages.
func (l lab) batches(attacks []attack) ([]batch, error) {
	wanted := make(map[place]map[string]bool)
	for _, a := range attacks {
		if len(a.tests) == 0 {
			return nil, fmt.Errorf("no test tries this attack: %s", a.text)
		}
		for _, name := range a.tests {
			if len(l.known[name]) == 0 {
				return nil, fmt.Errorf("there is no %s, which is to try: %s", name, a.text)
			}
			for _, at := range l.known[name] {
				if wanted[at] == nil {
					wanted[at] = make(map[string]bool)
				}
				wanted[at][name] = true
			}
		}
	}
	var all []batch
	for at, names := range wanted {
		all = append(all, batch{at: at, tests: slices.Sorted(maps.Keys(names))})
	}
	slices.SortFunc(all, func(x, y batch) int { return cmp.Compare(x.at.dir, y.at.dir) })
	return all, nil
}

var ended = regexp.MustCompile(`(?m)^--- (PASS|SKIP|FAIL): (Test\w+) `)

// runBatch makes the test program of a package and runs the tests in it. Their home is removed
// with all that they leave in it.
func (l lab) runBatch(ctx context.Context, b batch, overlay []string) (map[string]outcome, error) {
	dir, err := os.MkdirTemp("", "hostile-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // made a line above
	program, home := filepath.Join(dir, "attack.test"), filepath.Join(dir, "home")
	//nolint:gosec // the account runs what is in it
	if err := errors.Join(os.Chmod(dir, 0o755), os.Mkdir(home, 0o700)); err != nil {
		return nil, err
	}
	args := append([]string{"test", "-c", "-o", program}, overlay...)
	if b.at.tag != "" {
		args = append(args, "-tags", b.at.tag)
	}
	//nolint:gosec // a package of this project
	build := exec.CommandContext(ctx, "go", append(args, "./"+b.at.dir)...)
	if text, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s does not compile: %w\n%s", b.at.dir, err, text)
	}
	//nolint:gosec // it was just made
	attempt := exec.CommandContext(ctx, program, "-test.v", "-test.timeout=10m",
		"-test.run=^("+strings.Join(b.tests, "|")+")$")
	attempt.Dir = b.at.dir
	if err := l.account.dress(attempt, home); err != nil {
		return nil, err
	}
	text, failure, broken := l.watch(attempt, b.at.dir)
	if broken = errors.Join(ctx.Err(), broken); broken != nil {
		return nil, broken
	}
	got := make(map[string]outcome)
	for _, m := range ended.FindAllStringSubmatch(string(text), -1) {
		got[m[2]] = map[string]outcome{"PASS": passed, "SKIP": skipped, "FAIL": failed}[m[1]]
	}
	if failure != nil && overlay == nil {
		fmt.Fprintf(l.out, "%s:\n%s\n", b.at.dir, tail(string(text)))
	}
	for _, name := range b.tests {
		if got[name] == 0 { // it crashed, or its program did
			got[name] = failed
		}
	}
	return got, nil
}

// watch runs a test program to its end. Its failure is one of the tests; an error is the lab's own.
func (l lab) watch(attempt *exec.Cmd, from string) (said []byte, failure, err error) {
	var text bytes.Buffer
	attempt.Stdout, attempt.Stderr, attempt.WaitDelay = &text, &text, l.linger
	if !l.delegate {
		if err = attempt.Start(); err != nil {
			return nil, nil, err
		}
		failure = attempt.Wait()
		return text.Bytes(), failure, nil
	}
	groups, err := delegate(l.account)
	if err != nil {
		return nil, nil, err
	}
	if err = groups.start(attempt); err == nil {
		failure = attempt.Wait()
	}
	strays, wrong := groups.end()
	if len(strays) > 0 {
		fmt.Fprintf(l.out, "%s: left running, and killed: %s\n", from, strings.Join(strays, ", "))
	}
	return text.Bytes(), failure, errors.Join(err, wrong)
}

// tailBytes are enough for what a failed test says.
const tailBytes = 8 << 10

func tail(text string) string { return text[max(0, len(text)-tailBytes):] }

// judge says what came of an attack: held where all of its tests passed.
func (a attack) judge(ended map[string]outcome) outcome {
	worst := passed
	for _, name := range a.tests {
		worst = max(worst, ended[name])
	}
	return worst
}

// with is the count with one attack more.
func (c count) with(o outcome) count {
	switch o {
	case passed:
		c.held++
	case skipped:
		c.untried++
	default:
		c.broke++
	}
	return c
}

// verdict says it in a line, with the tests to blame.
func (a attack) verdict(ended map[string]outcome) string {
	worst := a.judge(ended)
	var names []string
	for _, name := range a.tests {
		if worst != passed && ended[name] == worst {
			names = append(names, name)
		}
	}
	word := map[outcome]string{passed: "held", skipped: "not tried", failed: "BROKE THROUGH"}[worst]
	line := word + ": " + a.text
	if len(names) > 0 {
		line += " (" + strings.Join(names, ", ") + ")"
	}
	return line
}
