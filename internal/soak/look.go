package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/localmesh"
	"github.com/mrsmesh/mrsmesh/internal/view"
)

// look holds what can be seen when a batch of jobs has ended.
type look struct {
	rate     float64            // jobs per second of the batch
	rss      int64              // bytes of the submitter's agent
	rssOther int64              // of the largest other one
	files    []map[string]int64 // of each agent: bytes below each name of its state directory
	list     time.Duration      // submit list, the whole command: a median
	answer   time.Duration      // the slowest of some questions to the agent: its median
}

func (l look) String() string {
	var state int64
	for _, bytes := range l.files[0] {
		state += bytes
	}
	return fmt.Sprintf("%.1f jobs/s, RSS %.1f MB, state %.1f MB, list %s, API %s", l.rate,
		mega(l.rss), mega(state), l.list.Round(100*time.Microsecond), l.answer.Round(10*time.Microsecond))
}

func mega(bytes int64) float64 { return float64(bytes) / 1e6 }

func (s *soak) look(ctx context.Context) (look, error) {
	var l look
	for i, a := range s.mesh.Agents {
		rss, err := resident(ctx, a)
		if err != nil {
			return l, err
		}
		if i == 0 {
			l.rss = rss
		} else {
			l.rssOther = max(l.rssOther, rss)
		}
		files, err := measureFiles(a.Config.StateDir)
		if err != nil {
			return l, err
		}
		l.files = append(l.files, files)
	}
	var err error
	if l.list, err = s.timeList(ctx); err != nil {
		return l, err
	}
	l.answer, err = s.timeAnswers(ctx)
	return l, err
}

// resident is the memory of an agent's process, as every Unix tells it.
func resident(ctx context.Context, a *localmesh.Agent) (int64, error) {
	cmd := exec.CommandContext( //nolint:gosec // G204: a number
		ctx, "ps", "-o", "rss=", "-p", strconv.Itoa(a.Process.Pid),
	)
	said, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("ask for the memory of %s: %w", a.Name, err)
	}
	kib, err := strconv.ParseInt(strings.TrimSpace(string(said)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("ask for the memory of %s: %w", a.Name, err)
	}
	return kib << 10, nil
}

// measureFiles gives the bytes below each name of a directory. Files that are written and
// removed meanwhile are no error.
func measureFiles(dir string) (map[string]int64, error) {
	sizes := make(map[string]int64)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return gone(err)
		}
		info, err := d.Info()
		if err != nil {
			return gone(err)
		}
		below, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		name, _, _ := strings.Cut(filepath.ToSlash(below), "/")
		sizes[name] += info.Size()
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("measure files: %w", err)
	}
	return sizes, nil
}

func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

const timings = 9 // of each question, for a median

func (s *soak) timeList(ctx context.Context) (time.Duration, error) {
	return median(func() error {
		cmd := exec.CommandContext( //nolint:gosec // G204: our own program
			ctx, s.submit, "--addr", s.mesh.Submitter().Config.API.Socket, "list",
		)
		if said, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("submit list: %w: %s", err, said)
		}
		return nil
	})
}

// timeAnswers asks for the newest jobs, for one of them, for the sites and for the status.
func (s *soak) timeAnswers(ctx context.Context) (slowest time.Duration, err error) {
	api := s.mesh.Submitter().API
	newest, err := api.Jobs(ctx, view.JobQuery{Limit: 100})
	if err != nil {
		return 0, err
	}
	oldest := newest[len(newest)-1].ID // the history has it
	for _, question := range []func() error{
		func() error { _, err := api.Jobs(ctx, view.JobQuery{Limit: 100}); return err },
		func() error { _, err := api.Jobs(ctx, view.JobQuery{Before: oldest, Limit: 100}); return err },
		func() error { _, err := api.Job(ctx, oldest); return err },
		func() error { _, err := api.Sites(ctx); return err },
		func() error { _, err := api.Status(ctx); return err },
	} {
		took, err := median(question)
		if err != nil {
			return 0, err
		}
		slowest = max(slowest, took)
	}
	return slowest, nil
}

func median(do func() error) (time.Duration, error) {
	var took []time.Duration
	for range timings {
		began := time.Now()
		if err := do(); err != nil {
			return 0, err
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}

// countHeld pages through all jobs that the submitter lists.
func (s *soak) countHeld(ctx context.Context) (int, error) {
	const page = 1000
	all, q := 0, view.JobQuery{Limit: page}
	for {
		jobs, err := s.mesh.Submitter().API.Jobs(ctx, q)
		if err != nil {
			return 0, fmt.Errorf("list the jobs: %w", err)
		}
		all += len(jobs)
		if len(jobs) < page {
			return all, nil
		}
		q.Before = jobs[len(jobs)-1].ID
	}
}
