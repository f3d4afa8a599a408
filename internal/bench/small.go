package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

const (
	smallSites = 5
	smallFiles = 200
	fileBytes  = 20_000
	manyTasks  = 10_000
)

const (
	figParallel = "200 files by GNU parallel"
	figMap      = "200 files by submit map, 5 sites"
	figRun      = "submit run -- true, 5 sites"
	figTasks    = "tasks of 10 ms per second, 5 sites"
	figCreate   = "TES task created, 5 sites"
)

// measureSmall runs many small tasks among five sites: one command for each of 200 files, as GNU
// parallel runs it on the bare machine, single commands, tasks of workflow engines, and a list of
// 10,000 tasks of 10 ms.
func (b *bench) measureSmall(ctx context.Context) error {
	if err := b.build(ctx); err != nil {
		return err
	}
	f, err := newFarm(b.dir, filepath.Join(b.dir, "siteagent"), smallSites)
	if err != nil {
		return err
	}
	defer f.close()
	if err = f.grow(ctx, smallSites); err != nil {
		return err
	}
	for _, p := range f.sites {
		if err = p.offers(ctx, grid.KindCommand); err != nil {
			return err
		}
	}
	err = f.unwatched(ctx, func() error {
		return errors.Join(b.mapFiles(ctx, f), b.runOne(ctx, f), b.createTES(ctx, f))
	})
	return errors.Join(err, b.manyTasks(ctx, f))
}

// createTES creates tasks of workflow engines, one after the other. No site can run them, so that
// the answers alone are timed.
func (b *bench) createTES(ctx context.Context, f *farm) error {
	const task = `{"executors": [{"image": "any", "command": ["true"]}],
		"resources": {"cpu_cores": 1000}}`
	var s sample
	if err := b.repeat(200, 20*time.Second, func() error {
		return timed(&s, func() error {
			_, err := f.sites[0].api.SubmitTES(ctx, []byte(task))
			return err
		})
	}); err != nil {
		return fmt.Errorf("create a TES task: %w", err)
	}
	b.add(spanned(figCreate, s, time.Millisecond)).atMost(50)
	return nil
}

// runOne runs the smallest command as somebody at a terminal does, one after the other.
func (b *bench) runOne(ctx context.Context, f *farm) error {
	var s sample
	if err := b.repeat(200, 20*time.Second, func() error {
		cmd := exec.CommandContext( //nolint:gosec // G204: our own words
			ctx, filepath.Join(b.dir, "submit"),
			"--addr", f.sites[0].config.API.Socket, "run", "--runtime", "100ms", "--", "true",
		)
		return timed(&s, cmd.Run)
	}); err != nil {
		return fmt.Errorf("submit run: %w", err)
	}
	b.add(spanned(figRun, s, time.Millisecond)).atMost(25)
	return nil
}

// mapFiles compresses files by both programs, in turns, and compares what they made.
func (b *bench) mapFiles(ctx context.Context, f *farm) error {
	parallel, err := exec.LookPath("parallel")
	if err != nil {
		b.lost(figParallel, errors.New("GNU parallel is not installed"))
	}
	var theirs, ours sample
	before, _ := f.cpuTime() // where the system does not tell, there is no row
	err = b.repeat(24, 30*time.Second, func() error {
		if parallel != "" {
			wrong := b.compress(ctx, &theirs, parallel, "gzip", "-nk", "{}")
			if wrong != nil {
				return wrong
			}
		}
		return b.compress(ctx, &ours, filepath.Join(b.dir, "submit"),
			"--addr", f.sites[0].config.API.Socket, "map", "--runtime", "100ms",
			"--return", "{}.gz", "gzip -nk {}")
	})
	if err != nil {
		return err
	}
	row := b.add(spanned(figMap, ours, time.Millisecond))
	if parallel != "" {
		raw := spanned(figParallel, theirs, time.Millisecond)
		row.against("GNU parallel", raw.Value)
		row.ratioAtMost(2)
		b.add(raw)
	}
	if after, err := f.cpuTime(); err == nil {
		b.tellCPU("file mapped", before, after, len(ours)*smallFiles)
	}
	return nil
}

// compress times one program that compresses all of a directory's files, and checks each of them.
func (b *bench) compress(ctx context.Context, s *sample, program string, args ...string) error {
	dir, err := os.MkdirTemp(b.light(), "files")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // bench.close removes what is above it
	random := rand.New(rand.NewPCG(1, 2))    //nolint:gosec // G404: the same files in every run
	args = append(args, ":::")
	for i := range smallFiles {
		name := fmt.Sprintf("f%03d.txt", i)
		text := make([]byte, fileBytes)
		for k := range text {
			text[k] = "abcdefgh"[random.IntN(8)]
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			return err
		}
		args = append(args, name)
	}
	cmd := exec.CommandContext(ctx, program, args...) //nolint:gosec // G204: our own words
	cmd.Dir = dir
	var said []byte
	if err := timed(s, func() (err error) {
		said, err = cmd.CombinedOutput()
		return err
	}); err != nil {
		return fmt.Errorf("%s: %w: %s", filepath.Base(program), err, said)
	}
	return checkCompressed(ctx, dir)
}

// checkCompressed unpacks what was made of each file and compares it with that.
func checkCompressed(ctx context.Context, dir string) error {
	for i := range smallFiles {
		name := filepath.Join(dir, fmt.Sprintf("f%03d.txt", i))
		want, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		unpack := exec.CommandContext(ctx, "gzip", "-dc", name+".gz") //nolint:gosec // G204: ours
		got, err := unpack.Output()
		if err != nil {
			return fmt.Errorf("unpack %s.gz: %w", name, err)
		}
		if !bytes.Equal(got, want) {
			return fmt.Errorf("%s.gz is not what was compressed", name)
		}
	}
	return nil
}

// manyTasks runs one job of many tasks that sleep for a moment.
func (b *bench) manyTasks(ctx context.Context, f *farm) error {
	tasks := b.rounds(manyTasks)
	job := emptyJob(tasks, time.Second)
	job.Spec.Runtime = 100 * time.Millisecond
	job.Spec.Args = []string{"sleep", "0.01"}
	before, _ := f.cpuTime()
	began := time.Now()
	id, err := f.sites[0].api.Submit(ctx, job)
	if err != nil {
		return err
	}
	n := f.sites[0].board.job(id)
	select {
	case <-n.ended:
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(10 * time.Minute):
		return fmt.Errorf("job %s did not end within 10 minutes", id)
	}
	rate := float64(tasks) / time.Since(began).Seconds()
	b.add(figure{
		Figure: figTasks, Value: rate, Unit: "tasks/s", summary: summary{N: 1},
	}).atLeast(150)
	if after, err := f.cpuTime(); err == nil {
		b.tellCPU("task of 10 ms, 5 sites", before, after, tasks)
	}
	return nil
}
