package native

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mrsmesh/mrsmesh/internal/lrm/supervise"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

const (
	elfMagic = "\x7fELF"
	// forAll are the rights to read and execute that every user has.
	forAll = 0o555
	// mostLinks bounds the links to a program that are followed.
	mostLinks = 8
	// leastForSandbox is the memory, in bytes, that bubblewrap itself needs between its gate
	// and the command, and much more.
	leastForSandbox = 16 << 20
)

// isDirect reports whether bubblewrap can start the command without a shell that bounds it: a
// program of the system, whose start does not fail. Where one fails, the shell has the answers
// that people know.
func (s sandbox) isDirect() bool {
	if s.attempt.Limits.OrDefault().MemoryBytes < leastForSandbox {
		return false
	}
	name := s.attempt.Task.Args[0]
	if strings.Contains(name, "/") {
		return s.host.isProgram(name)
	}
	hasPath := func(v grid.EnvVar) bool { return v.Name == "PATH" }
	if slices.ContainsFunc(s.attempt.Task.Env, hasPath) {
		return false
	}
	for _, dir := range filepath.SplitList(searchPath) {
		path := filepath.Join(dir, name)
		if _, err := os.Lstat(path); err == nil { // the first that is there has to do
			return s.host.isProgram(path)
		}
	}
	return false
}

// isProgram reports whether a path leads, here as in the sandbox, to a program of the system.
func (h *host) isProgram(path string) bool {
	if path != filepath.Clean(path) {
		return false
	}
	path, ok := h.follow(path)
	if !ok {
		return false
	}
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Mode()&forAll != forAll {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	begin := make([]byte, len(elfMagic))
	_, err = io.ReadFull(f, begin)
	return err == nil && string(begin) == elfMagic
}

// follow goes the links from a path that commands see all, to what is none.
func (h *host) follow(path string) (string, bool) {
	for range mostLinks {
		if !h.shows(path) {
			return "", false
		}
		dir, err := filepath.EvalSymlinks(filepath.Dir(path))
		if err != nil {
			return "", false
		}
		path = filepath.Join(dir, filepath.Base(path))
		target, err := os.Readlink(path)
		if err != nil {
			return path, h.shows(path) // it is no link, or not there
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(dir, target)
		}
		path = filepath.Clean(target)
	}
	return "", false
}

// shows reports whether commands see a path as it is on this machine.
func (h *host) shows(path string) bool {
	return slices.ContainsFunc(h.system, func(p systemPath) bool {
		return (p.host == p.path || p.host == "") && strings.HasPrefix(path, p.path+"/")
	})
}

// begin tells how the command begins: behind the shell that bounds it, or at a gate, where the
// supervisor does.
func (s sandbox) begin(work *supervise.Enclosure) {
	args := s.attempt.Task.Args
	work.Command = slices.Concat([]string{"--"}, s.shell(), args)
	if !s.isDirect() {
		return
	}
	var memory int64
	if !s.host.groups.memory() {
		memory = s.attempt.Limits.OrDefault().MemoryBytes
	}
	processes := 0
	if s.host.countsInside {
		processes = s.processes
	}
	limits := insideLimits(memory, processes)
	if len(limits) == 0 {
		work.Command = slices.Concat([]string{"--"}, args)
		return
	}
	work.Gate = &supervise.Gate{Rlimits: limits, Command: slices.Concat([]string{
		"--block-fd", fmt.Sprint(supervise.GateFD), "--info-fd", fmt.Sprint(supervise.InfoFD), "--",
	}, args)}
}
