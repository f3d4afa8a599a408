package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// measureSize tells how large the stripped programs are.
func (b *bench) measureSize() error {
	for _, name := range []string{"siteagent", "submit"} {
		info, err := os.Stat(filepath.Join(b.dir, name))
		if err != nil {
			return err
		}
		row := b.add(figure{
			Figure: name + ", stripped", Value: float64(info.Size()) / (1 << 20), Unit: "MiB",
			summary: summary{N: 1},
		})
		if name == "siteagent" {
			row.atMost(45)
		}
	}
	return nil
}

// measureIdle tells what agents cost that have nothing to do: the mean of all.
func (b *bench) measureIdle(ctx context.Context, f *farm, span time.Duration) {
	name := fmt.Sprintf("idle CPU of an agent, %d sites", len(f.sites))
	if b.quick {
		span /= 4
	}
	wait(ctx, 2*time.Second) // what the start, or the last job, left behind
	before, err := f.cpuTime()
	began := time.Now()
	wait(ctx, span)
	after, then := f.cpuTime()
	if err = errors.Join(err, then); err != nil {
		b.missing(name, err)
		return
	}
	used := (after.own - before.own) / float64(len(f.sites))
	b.add(figure{
		Figure: name, Value: 100 * used / time.Since(began).Seconds(), Unit: "%", summary: summary{N: 1},
	}).atMost(0.5)
}

// measureGroup tells what a group costs its members that have nothing to do: by how much an agent
// uses the processor more than its counterpart in a mesh without groups, at the same time.
func (b *bench) measureGroup(ctx context.Context) error {
	if os.Getenv("BENCH_STANDBYS") == "" {
		return nil
	}
	with, err := b.newSide(ctx, ".", "with", 2)
	if with != nil {
		defer with.farm.close()
	}
	if err != nil {
		return err
	}
	without, err := b.newSide(ctx, ".", "without", 0)
	if without != nil {
		defer without.farm.close()
	}
	if err != nil {
		return err
	}
	return b.compareIdle(ctx, with.farm, without.farm)
}

func (b *bench) compareIdle(ctx context.Context, with, without *farm) error {
	const goal = .1 // percent of a core
	span := time.Minute
	if b.quick {
		span /= 4
	}
	wait(ctx, 5*time.Second) // what the start left behind
	before, err := with.cpuTimesBeside(without)
	began := time.Now()
	wait(ctx, span)
	after, then := with.cpuTimesBeside(without)
	if err = errors.Join(err, then); err != nil {
		return err
	}
	took := time.Since(began).Seconds()
	share := func(i int) float64 { return 100 * (after[i] - before[i]) / took }
	b.add(figure{
		Figure: "idle CPU that a group costs who acts", Value: share(0), Unit: "%",
		summary: summary{N: 1},
	}).atMost(goal)
	most := share(1)
	for i := range after[1:] {
		most = max(most, share(i+1))
	}
	b.add(figure{
		Figure: "idle CPU that a group costs a standby, at most", Value: most, Unit: "%",
		summary: summary{N: len(after) - 1},
	}).atMost(goal)
	return nil
}

func wait(ctx context.Context, span time.Duration) {
	select {
	case <-time.After(span):
	case <-ctx.Done():
	}
}

// cpuTimesBeside returns by how much each agent has used the processor more than its counterpart
// of another farm, in seconds.
func (f *farm) cpuTimesBeside(other *farm) (more []float64, err error) {
	for i, p := range f.sites {
		own, wrong := readStat(strconv.Itoa(p.cmd.Process.Pid))
		its, then := readStat(strconv.Itoa(other.sites[i].cmd.Process.Pid))
		err = errors.Join(err, wrong, then)
		more = append(more, own.own-its.own)
	}
	if err != nil {
		return nil, fmt.Errorf("this system does not tell: %w", err)
	}
	return more, nil
}

// ticksPerSecond is the unit of /proc/PID/stat, the same on every Linux.
const ticksPerSecond = 100

// cpu is time of processor, in seconds.
type cpu struct {
	own      float64 // of all agents
	children float64 // of what they ran: supervisors, and the sandboxes and programs that have ended
}

// cpuTime returns what all agents have used since they started. Supervisors that
// still wait for their next job count too, with the jobs they ran.
func (f *farm) cpuTime() (cpu, error) {
	var sum cpu
	agents := make(map[string]bool)
	for _, p := range f.sites {
		pid := strconv.Itoa(p.cmd.Process.Pid)
		agents[pid] = true
		stat, err := readStat(pid)
		if err != nil {
			return sum, fmt.Errorf("this system does not tell: %w", err)
		}
		sum.own += stat.own
		sum.children += stat.children
	}
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return sum, err
	}
	for _, dir := range all {
		if stat, err := readStat(filepath.Base(dir)); err == nil && agents[stat.parent] {
			sum.children += stat.own + stat.children
		}
	}
	return sum, nil
}

// processStat holds what the system tells of a process.
type processStat struct {
	parent string // process ID
	cpu           // of this process alone
}

func readStat(pid string) (processStat, error) {
	var s processStat
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return s, err
	}
	_, after, _ := bytes.Cut(stat, []byte(") ")) // behind the name, from field 3 on
	words := strings.Fields(string(after))
	if len(words) < 15 {
		return s, errors.New("/proc/PID/stat is too short")
	}
	s.parent = words[1]
	// User and system time of each.
	for i, to := range []*float64{&s.own, &s.own, &s.children, &s.children} {
		ticks, err := strconv.ParseFloat(words[11+i], 64)
		if err != nil {
			return s, fmt.Errorf("/proc/PID/stat: %w", err)
		}
		*to += ticks / ticksPerSecond
	}
	return s, nil
}

// tellCPU tells what a job cost all agents, and what its processes cost.
func (b *bench) tellCPU(name string, before, after cpu, jobs int) {
	if jobs == 0 || after == before {
		return
	}
	perJob := func(of string, seconds float64) {
		b.add(figure{
			Figure: "CPU of " + of + " per " + name, Value: 1000 * seconds / float64(jobs), Unit: "ms",
			summary: summary{N: 1},
		})
	}
	perJob("all agents", after.own-before.own)
	perJob("the processes", after.children-before.children)
}

// measureMemory tells the resident memory of the largest agent.
func (b *bench) measureMemory(f *farm) {
	name := fmt.Sprintf("RSS of the largest agent after jobs, %d sites", len(f.sites))
	most := 0.0
	for _, p := range f.sites {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
		if err != nil {
			b.missing(name, fmt.Errorf("this system does not tell: %w", err))
			return
		}
		_, after, _ := strings.Cut(string(status), "VmRSS:")
		words := strings.Fields(after)
		if len(words) == 0 {
			b.missing(name, errors.New("/proc/PID/status has no VmRSS"))
			return
		}
		kib, err := strconv.ParseFloat(words[0], 64)
		if err != nil {
			b.missing(name, fmt.Errorf("/proc/PID/status: %w", err))
			return
		}
		most = max(most, kib*1024/1e6)
	}
	b.add(figure{Figure: name, Value: most, Unit: "MB", summary: summary{N: 1}}).atMost(60)
}
