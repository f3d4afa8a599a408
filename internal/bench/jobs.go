package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// measureJobs runs jobs on agents in processes of their own, from their
// submission to the moment in which the submitter knows their end.
func (b *bench) measureJobs(ctx context.Context) error {
	if err := b.build(ctx); err != nil {
		return err
	}
	if err := b.measureSize(); err != nil {
		return err
	}
	sizes := []int{3, 12, 48}
	if b.quick {
		sizes = []int{3, 12}
	}
	f, err := newFarm(b.dir, filepath.Join(b.dir, "siteagent"), sizes[len(sizes)-1])
	if err != nil {
		return err
	}
	b.runFarm(ctx, f, sizes)
	if killed := f.close(); killed > 0 {
		b.say("%s did not end within 30 s and had to be killed", count(killed, "agent"))
	}
	return nil
}

// runFarm measures meshes of growing sizes. One that cannot be measured ends the
// series, because the next is larger still.
func (b *bench) runFarm(ctx context.Context, f *farm, sizes []int) {
	var kind work
	best := make(map[int]float64)
	for _, n := range sizes {
		began := time.Now()
		if err := f.grow(ctx, n); err != nil {
			b.lost(fmt.Sprintf("jobs among %d sites", n), err)
			break
		}
		b.say("%d agents in processes met in %s", n, time.Since(began).Round(100*time.Millisecond))
		if n == sizes[0] {
			b.measureIdle(ctx, f, 20*time.Second)
			kind = b.chooseWork(ctx, f)
		}
		if err := b.loads(ctx, f, &kind, best); err != nil {
			b.lost(fmt.Sprintf("further jobs among %d sites", n), err)
			break
		}
		if n == sizes[0] {
			b.measureMemory(f)
			if err := b.commandLine(ctx, f, kind); err != nil {
				b.lost(figCommandLine, err)
			}
		}
	}
	if len(f.sites) == 0 || ctx.Err() != nil {
		return
	}
	b.measureIdle(ctx, f, 10*time.Second)
	b.measureMemory(f)
}

// loads measures ever more submitters at one size of the mesh.
func (b *bench) loads(ctx context.Context, f *farm, kind *work, best map[int]float64) error {
	if err := kind.store(ctx, f); err != nil {
		return err
	}
	n, few := len(f.sites), 3
	for _, submitters := range []int{1, 4, 16} {
		rate, err := b.load(ctx, f, *kind, submitters)
		if err != nil {
			return fmt.Errorf("%s: %w", count(submitters, "submitter"), err)
		}
		if submitters == 16 {
			best[n] = rate
			b.judgeRate(n, few, best)
		}
	}
	return nil
}

// work is the trivial job: a command, or a module where commands do not run.
type work struct {
	job    grid.Job
	name   string
	args   []string // of submit run; none where it is a module
	module []byte   // to be stored by every agent that submits
	note   string
}

// store uploads the module to every agent of the mesh, as all of them submit.
// What an agent has already costs one request.
func (w *work) store(ctx context.Context, f *farm) error {
	if w.module == nil {
		return nil
	}
	for _, p := range f.sites {
		ref, err := p.api.PutData(ctx, false, bytes.NewReader(w.module))
		if err != nil {
			return fmt.Errorf("store the module at %s: %w", p.config.Name, err)
		}
		w.job.Spec.Module = grid.Input{Path: "/module.wasm", CID: ref.CID, Bytes: ref.Bytes}
	}
	return nil
}

// emptyModule is the smallest WASI program: it exports a memory and a _start
// that does nothing.
func emptyModule() []byte {
	return []byte("\x00asm\x01\x00\x00\x00" + "\x01\x04\x01\x60\x00\x00" + "\x03\x02\x01\x00" +
		"\x05\x03\x01\x00\x01" +
		"\x07\x13\x02\x06memory\x02\x00\x06_start\x00\x00" + "\x0a\x04\x01\x02\x00\x0b")
}

// chooseWork gives commands where all sites run them, else modules.
func (b *bench) chooseWork(ctx context.Context, f *farm) work {
	for _, p := range f.sites {
		if lacking := p.offers(ctx, grid.KindCommand); lacking != nil {
			job := emptyJob(1, time.Second)
			job.Spec.Kind, job.Spec.Args = grid.KindWasm, nil
			return work{job: job, name: "wasm job", module: emptyModule(), note: lacking.Error()}
		}
	}
	return work{job: emptyJob(1, time.Second), name: "native job", args: []string{"true"}}
}

// load lets submitters submit one job after the other, at agents of their own as
// far as there are enough, and gives the jobs per second.
func (b *bench) load(ctx context.Context, f *farm, kind work, submitters int) (float64, error) {
	span := 5 * time.Second
	if b.quick {
		span = time.Second
	}
	if _, err := f.once(ctx, f.sites[0], kind.job); err != nil { // warm
		return 0, err
	}
	before, _ := f.cpuTime() // where the system does not tell, there is no row
	var group sync.WaitGroup
	results := make([]served, submitters)
	began := time.Now()
	for k := range submitters {
		group.Go(func() { results[k] = f.serve(ctx, f.sites[k%len(f.sites)], kind.job, began.Add(span)) })
	}
	group.Wait()
	took := time.Since(began)
	var all served
	for _, r := range results {
		all.placed = append(all.placed, r.placed...)
		all.finished = append(all.finished, r.finished...)
		all.err = errors.Join(all.err, r.err)
	}
	if all.err != nil {
		return 0, all.err
	}
	rate := b.tellLoad(kind, len(f.sites), submitters, all, took)
	if after, err := f.cpuTime(); err == nil && submitters == 1 {
		b.tellCPU(fmt.Sprintf("%s, %d sites", kind.name, len(f.sites)), before, after, len(all.finished))
	}
	return rate, nil
}

// tellLoad makes the rows of one load.
func (b *bench) tellLoad(kind work, sites, submitters int, all served, took time.Duration) float64 {
	at := fmt.Sprintf("%s, %d sites, %s", kind.name, sites, count(submitters, "submitter"))
	fsync, rtt, spawn := b.raw(figSync), b.raw(figStream)/1000, b.raw(figSpawn)
	placed := spanned("placed, "+at, all.placed, time.Millisecond)
	finished := spanned("finished, "+at, all.finished, time.Millisecond)
	placed.Note, finished.Note = kind.note, kind.note
	p, f := b.add(placed), spawn+3*fsync+3*rtt
	p.against("2 fsync + RTT", 2*fsync+rtt)
	if submitters == 1 && sites == 3 {
		p.atMost(15)
	}
	done := b.add(finished)
	done.against("spawn + 3 fsync + 3 RTT", f)
	if submitters == 1 && sites == 3 {
		done.wants("<= 3 x raw and <= 60 ms", done.Ratio != nil && *done.Ratio <= 3 && done.Value <= 60)
	}
	rate := float64(len(all.finished)) / took.Seconds()
	row := b.add(figure{
		Figure: "jobs per second, " + at, Value: rate, Unit: "jobs/s", summary: summary{N: 1},
		Note: kind.note,
	})
	if box := b.raw(figBwrap); box > 0 {
		row.against("bwrap on every core", float64(runtime.NumCPU())*1000/box)
	}
	return rate
}

func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// judgeRate sets the goals of the heaviest load.
func (b *bench) judgeRate(sites, few int, best map[int]float64) {
	row := &b.Figures[len(b.Figures)-1]
	switch sites {
	case few:
		row.atLeast(60)
	case 48:
		row.wants(fmt.Sprintf(">= half of %d sites", few), best[sites] >= best[few]/2)
	}
}

// served holds what one submitter saw.
type served struct {
	placed, finished sample
	err              error
}

// fewestJobs is the number of jobs each submitter submits, however long they take.
const fewestJobs = 5

// serve submits one job after the other until a time.
func (f *farm) serve(ctx context.Context, at *process, job grid.Job, until time.Time) served {
	var s served
	for len(s.finished) < fewestJobs || time.Now().Before(until) {
		one, err := f.once(ctx, at, job)
		if err != nil {
			s.err = err
			return s
		}
		s.placed, s.finished = append(s.placed, one[0]), append(s.finished, one[1])
	}
	return s
}

// once submits a job and waits for its end. It gives how long it took until the
// submitter knew that it was placed, and that it had ended.
func (f *farm) once(ctx context.Context, at *process, job grid.Job) ([2]time.Duration, error) {
	began := time.Now()
	id, err := at.api.Submit(ctx, job)
	if err != nil {
		return [2]time.Duration{}, err
	}
	n := at.board.job(id)
	late := time.NewTimer(time.Minute)
	defer late.Stop()
	select {
	case <-n.ended:
	case <-late.C:
		return [2]time.Duration{}, at.explain(fmt.Errorf("job %s did not end within a minute", id))
	case <-ctx.Done():
		return [2]time.Duration{}, ctx.Err()
	}
	if !n.good {
		return [2]time.Duration{}, at.explain(fmt.Errorf("job %s failed", id))
	}
	return [2]time.Duration{n.placed.Sub(began), n.finished.Sub(began)}, nil
}

const figCommandLine = "submit run -- true, 3 sites, the whole command"

// commandLine times the whole of submit run, as a user does.
func (b *bench) commandLine(ctx context.Context, f *farm, kind work) error {
	if kind.args == nil {
		return nil
	}
	var s sample
	err := b.repeat(40, 10*time.Second, func() error {
		args := append([]string{"--addr", f.sites[0].config.API.Socket, "run", "--"}, kind.args...)
		cmd := exec.CommandContext( //nolint:gosec // G204: our own program
			ctx, filepath.Join(b.dir, "submit"), args...,
		)
		cmd.Dir = f.dir
		var said []byte
		err := timed(&s, func() (err error) { said, err = cmd.CombinedOutput(); return err })
		if err != nil {
			return fmt.Errorf("submit run: %w: %s", err, said)
		}
		return nil
	})
	if err != nil {
		return err
	}
	b.add(spanned(figCommandLine, s, time.Millisecond)).
		against("spawn + 3 fsync + 3 RTT", b.raw(figSpawn)+3*b.raw(figSync)+3*b.raw(figStream)/1000)
	return nil
}
