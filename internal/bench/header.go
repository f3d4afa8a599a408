package main

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// header says where and when the figures were taken.
type header struct {
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	Kernel string `json:"kernel"`
	Go     string `json:"go"`
	Date   string `json:"date"`
	Commit string `json:"commit"`
	Disk   string `json:"disk"` // file system of the submitters' state
	Load   string `json:"load"` // of the machine before the run: 1, 5, 15 minutes
	Quick  bool   `json:"quick"`
	Took   string `json:"took"`
}

func newHeader(ctx context.Context, dir string, quick bool) header {
	return header{
		CPU: cpuModel(), Cores: runtime.NumCPU(), Kernel: firstLine("/proc/sys/kernel/osrelease"),
		Go:   runtime.Version(),
		Date: time.Now().UTC().Format("2006-01-02 15:04 MST"), Commit: commit(ctx), Disk: fileSystem(dir),
		Load: firstWords(firstLine("/proc/loadavg"), 3), Quick: quick,
	}
}

const unknown = "unknown"

func firstLine(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return unknown
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return line
}

func firstWords(line string, n int) string {
	words := strings.Fields(line)
	return strings.Join(words[:min(n, len(words))], " ")
}

func cpuModel() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	for line := range strings.Lines(string(text)) {
		if name, value, found := strings.Cut(line, ":"); found &&
			strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

func commit(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty").Output()
	if err != nil {
		return unknown
	}
	return strings.TrimSpace(string(out))
}

// fileSystem is the type of the mount that holds a directory.
func fileSystem(dir string) string {
	text, err := os.ReadFile("/proc/mounts")
	if err != nil {
		return unknown
	}
	best, kind := "", unknown
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) < 3 {
			continue
		}
		at := words[1]
		if len(at) >= len(best) && (at == "/" || dir == at || strings.HasPrefix(dir, at+"/")) {
			best, kind = at, words[2]
		}
	}
	return kind
}
