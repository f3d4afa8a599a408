package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	path := os.Getenv("BENCH_JSON")
	if page := os.Getenv("BENCH_DOCS"); page != "" {
		r, err := readReport(path)
		if err != nil {
			return err
		}
		return r.intoPage(page)
	}
	b, err := newBench(ctx)
	if err != nil {
		return err
	}
	b.measure(ctx)
	b.Header.Took = time.Since(b.began).Round(time.Second).String()
	b.print(os.Stdout)
	var wrong error
	if path != "" {
		wrong = b.write(path)
	}
	return errors.Join(wrong, ctx.Err(), b.close())
}

// bench is one run.
type bench struct {
	report
	began  time.Time
	quick  bool
	dir    string // on the disk that is measured
	memory string // where files cost no disk, else below dir
	only   []string
}

func newBench(ctx context.Context) (*bench, error) {
	b := &bench{began: time.Now(), quick: os.Getenv("BENCH_QUICK") != ""}
	if only := os.Getenv("BENCH_ONLY"); only != "" {
		if err := b.choose(only); err != nil {
			return nil, err
		}
	}
	var err error
	if b.dir, err = os.MkdirTemp(os.Getenv("BENCH_DIR"), "mrsb"); err != nil {
		return nil, fmt.Errorf("make a directory: %w; BENCH_DIR names another place", err)
	}
	if b.dir, err = filepath.Abs(b.dir); err != nil {
		return nil, err
	}
	if b.memory, err = os.MkdirTemp("/dev/shm", "mrsb"); err != nil {
		b.memory = "" // this system has no such place
	}
	b.Header = newHeader(ctx, b.dir, b.quick)
	return b, nil
}

// close removes the directories that newBench made.
func (b *bench) close() error {
	err := os.RemoveAll(b.dir)
	if b.memory != "" {
		err = errors.Join(err, os.RemoveAll(b.memory))
	}
	return err
}

// light is the directory for the files of sites that only serve.
func (b *bench) light() string {
	if b.memory != "" {
		return b.memory
	}
	return b.dir
}

// rounds returns how often to measure, fewer in a quick run.
func (b *bench) rounds(n int) int {
	if b.quick {
		return max(n/8, 10)
	}
	return n
}

// repeat does something up to so many times, fewer in a quick run and where it
// takes longer than the span: a busy machine gets fewer rounds, not a longer run.
func (b *bench) repeat(n int, span time.Duration, do func() error) error {
	const atLeast = 5
	end := time.Now().Add(span)
	for i := range b.rounds(n) {
		if i >= atLeast && time.Now().After(end) {
			break
		}
		if err := do(); err != nil {
			return err
		}
	}
	return nil
}

// part is one of a run.
type part struct {
	name string
	do   func(context.Context) error
}

// parts of a run, in order; later ones use the raw limits of the first.
func (b *bench) parts() []part {
	return []part{
		{"raw", b.measureRaw},
		{"place", b.measurePlacing},
		{"facts", b.measureFacts},
		{"jobs", b.measureJobs},
		{"small", b.measureSmall},
		{"beside", b.measureBeside},
		{"group", b.measureGroup},
		{"linked", b.measureLinked},
	}
}

// choose bounds the run to some of its parts, separated by commas.
func (b *bench) choose(only string) error {
	var all []string
	for _, part := range b.parts() {
		all = append(all, part.name)
	}
	for name := range strings.SplitSeq(only, ",") {
		if !slices.Contains(all, name) {
			return fmt.Errorf("BENCH_ONLY: there is no part %q; these are all: %s", name,
				strings.Join(all, ","))
		}
		b.only = append(b.only, name)
	}
	return nil
}

// measure runs the parts. What fails is a row without a value; the rest is measured all the same.
func (b *bench) measure(ctx context.Context) {
	for _, part := range b.parts() {
		if len(b.only) > 0 && !slices.Contains(b.only, part.name) {
			continue
		}
		began := time.Now()
		if err := part.do(ctx); err != nil {
			b.lost("the rest of "+part.name, err)
		}
		b.say("%s took %s", part.name, time.Since(began).Round(100*time.Millisecond))
		if ctx.Err() != nil {
			return
		}
	}
}

// lost is a row that could not be measured. The reason stands in the row as far
// as it fits, and whole on the terminal.
func (b *bench) lost(name string, why error) {
	b.say("%s: not measured: %v", name, why)
	b.missing(name, why)
}

// say tells people how far it is.
func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "bench: "+format+"\n", args...)
}

// raw is the median of a figure that was measured before, or 0.
func (b *bench) raw(name string) float64 {
	if f := b.find(name); f != nil {
		return f.P50
	}
	return 0
}

// await waits for a condition, looking every few milliseconds.
func await(ctx context.Context, limit time.Duration, what string, holds func() bool) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for !holds() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("wait %s for %s: %w", limit, what, ctx.Err())
		}
	}
	return nil
}

// build makes the programs as a release has them.
func (b *bench) build(ctx context.Context) error {
	args := []string{
		"build", "-trimpath", "-ldflags=-s -w", "-o", b.dir + "/", "./cmd/siteagent", "./cmd/submit",
	}
	build := exec.CommandContext(ctx, "go", args...) //nolint:gosec // G204: our own words
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the programs: %w: %s; run the bench at the repository's root", err, out)
	}
	return nil
}
