package native

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// What gVisor takes for itself.
const (
	gvisorMemory      = 64 << 20 // bytes of its kernel, its file server and what starts them
	gvisorProcesses   = 32       // processes of this machine
	gvisorThreads     = 256      // threads of this machine
	gvisorThreadsEach = 32       // threads of this machine for each process of the command
)

const (
	gvisorID   = "0" // user and group inside: root of gVisor's kernel without any capability
	gvisorName = "job"
	// gvisorFatal appears in the log when gVisor failed, rather than its command.
	gvisorFatal    = "FATAL ERROR"
	mostGVisorLine = 200 // bytes of what it says that are passed on
	goCrashed      = 2   // exit code of a Go program that has crashed
	// mostCrashWords are the bytes of what it says when it crashes that are looked at.
	mostCrashWords = 1 << 10
)

// firstLine is the first line of what a program said, up to the host's paths.
func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	line, _, _ = strings.Cut(line, "/")
	line = strings.ToValidUTF8(line[:min(len(line), mostGVisorLine)], "")
	return strings.Trim(line, " :\"")
}

// gvisor is gVisor as it was found here: executables, and what starts a sandbox.
type gvisor struct {
	runsc   string
	unshare string   // of util-linux, for the namespaces that runsc starts in
	flags   []string // of runsc, as far as this version knows them
	runner  []string // the keeper's command, but for its last arguments
	tells   bool     // a crash of its kernel is written to a file
	saves   bool     // a command can be saved whole
}

// id is the command's user and group inside.
func (h *host) id() string {
	if h.sandbox == GVisor {
		return gvisorID
	}
	return nobody
}

// findGVisor finds gVisor and tries it. The warning is for the owner.
func findGVisor(
	ctx context.Context, name string, system []systemPath,
) (found gvisor, warning string, err error) {
	if name == "" {
		name = "runsc"
	}
	if found.runsc, err = exec.LookPath(name); err != nil {
		return gvisor{}, "", fmt.Errorf("runsc is missing; install gVisor: %w", exec.ErrNotFound)
	}
	if found.runsc, err = filepath.Abs(found.runsc); err != nil {
		return gvisor{}, "", err
	}
	if found.unshare, err = exec.LookPath("unshare"); err != nil {
		return gvisor{}, "", errors.New("unshare is missing; install the package util-linux")
	}
	//nolint:gosec // the owner's own program
	known, err := exec.CommandContext(ctx, found.runsc, "flags").CombinedOutput()
	if err != nil {
		return gvisor{}, "", fmt.Errorf("runsc does not tell its flags: %w", err)
	}
	found.flags = []string{"--rootless", "--network=none", "--ignore-cgroups"}
	// what a command writes must reach the disk, where it is counted
	if strings.Contains(string(known), "-overlay2 ") {
		found.flags = append(found.flags, "--overlay2=none")
	}
	found.tells = strings.Contains(string(known), "-panic-log ")
	warning, err = found.try(ctx, system)
	return found, warning, err
}

// arguments are those of unshare: runsc runs the bundle of an attempt's directory
// in namespaces that end with it, because all that it starts is to end with it, too.
func (g gvisor) arguments(dir string) []string {
	args := append(
		namespaceArguments(), g.runsc, "--root", filepath.Join(dir, "runsc"),
		"--log", gvisorLog(dir),
	)
	args = append(args, g.flags...)
	if g.tells {
		args = append(args, "--panic-log", gvisorCrash(dir))
	}
	return append(
		args, "run", "--bundle", bundleDir(dir), "--pid-file", gvisorStarted(dir), gvisorName,
	)
}

// namespaceArguments are those of unshare that make the namespaces.
func namespaceArguments() []string {
	return []string{
		"--user", "--map-root-user", "--mount", "--pid", "--fork", "--mount-proc",
		"--kill-child=KILL", "--net", "--ipc", "--uts",
	}
}

func bundleDir(dir string) string { return filepath.Join(dir, "bundle") }

// gvisorStarted is a file that exists once the command was started.
func gvisorStarted(dir string) string { return filepath.Join(dir, "runsc.pid") }

func gvisorLog(dir string) string { return filepath.Join(dir, "runsc.log") }

// gvisorCrash is a file that says something once gVisor's kernel has crashed. Its exit code is then
// one that a command may have, too.
func gvisorCrash(dir string) string { return filepath.Join(dir, "runsc.crash") }

// crashIn is the first line of a crash with which gVisor's kernel, a Go program, ended; "" if there
// was none.
func crashIn(file string, code int) string {
	if code != goCrashed {
		return ""
	}
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	words := make([]byte, mostCrashWords)
	n, _ := io.ReadFull(f, words)
	said := string(words[:n])
	if strings.HasPrefix(said, "panic: ") || strings.HasPrefix(said, "fatal error: ") {
		return "gVisor crashed: " + firstLine(said)
	}
	return "" // something else that it had to say
}

// try runs a shell in a sandbox like those of attempts.
func (g gvisor) try(ctx context.Context, system []systemPath) (warning string, err error) {
	dir, err := os.MkdirTemp("", "mrs-sandbox-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	box := sandbox{
		host: host{sandbox: GVisor, gvisor: g, system: system}, processes: defaultProcesses,
		attempt: lrm.Attempt{
			Dir: dir,
			Task: grid.Task{Args: []string{
				"/bin/sh", "-c", fmt.Sprintf("ls -d /work || echo old; exit %d", trialCode),
			}},
		},
	}
	if err = errors.Join(box.prepare(), box.writeBundle()); err != nil {
		return "", err
	}
	//nolint:gosec // arguments of our own
	cmd := exec.CommandContext(ctx, g.unshare, g.arguments(dir)...)
	cmd.Env, cmd.Dir = []string{}, dir
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() == trialCode:
	case len(out) > 0:
		return "", errors.New(strings.TrimSpace(string(out)) + "; " + userNamespaces)
	case err != nil:
		return "", err
	default:
		return "", errors.New("its shell does not tell how it ends")
	}
	if strings.Contains(string(out), "old") {
		return "commands: this gVisor is too old for some of the system's programs: ls fails in it; " +
			"install a newer one", nil
	}
	return "", nil
}

// gvisorCode is the command's exit code, unless gVisor itself failed.
func (e ending) gvisorCode() (int, bool) {
	if e.end.Cause != grid.CauseExited {
		return 0, false
	}
	if k, told := e.kept(); told {
		return k.Code, k.Failed == ""
	}
	if _, err := os.Stat(gvisorStarted(e.attempt.Dir)); err != nil {
		return 0, false
	}
	if crashIn(gvisorCrash(e.attempt.Dir), e.end.Code) != "" {
		return 0, false
	}
	log, err := os.ReadFile(gvisorLog(e.attempt.Dir))
	if err == nil && strings.Contains(string(log), gvisorFatal) {
		return 0, false
	}
	return e.end.Code, true
}

// bundle configures gVisor, in the format of the Open Container Initiative's
// runtime specification.
type bundle struct {
	Version  string            `json:"ociVersion"`
	Process  bundleProcess     `json:"process"`
	Root     bundleRoot        `json:"root"`
	Hostname string            `json:"hostname"`
	Mounts   []bundleMount     `json:"mounts"`
	Linux    bundleLinux       `json:"linux"`
	Notes    map[string]string `json:"annotations,omitempty"`
}

type bundleProcess struct {
	User         map[string]int   `json:"user"`
	Args         []string         `json:"args"`
	Env          []string         `json:"env"`
	Cwd          string           `json:"cwd"`
	Capabilities struct{}         `json:"capabilities"` // none
	NoNew        bool             `json:"noNewPrivileges"`
	Rlimits      []bundleResource `json:"rlimits"`
}

type bundleResource struct {
	Type string `json:"type"`
	Soft uint64 `json:"soft"`
	Hard uint64 `json:"hard"`
}

type bundleRoot struct {
	Path string `json:"path"`
}

type bundleMount struct {
	Destination string   `json:"destination"`
	Type        string   `json:"type"`
	Source      string   `json:"source"`
	Options     []string `json:"options,omitempty"`
}

type bundleLinux struct {
	Namespaces []map[string]string `json:"namespaces"`
}

// writeBundle writes what gVisor is told about an attempt.
func (s sandbox) writeBundle() error {
	mounts, err := s.bundleMounts()
	if err != nil {
		return err
	}
	b := bundle{
		Version: "1.0.2", Hostname: "sandbox", Root: bundleRoot{Path: s.attempt.WorkDir()},
		Mounts: mounts,
		Process: bundleProcess{
			User: map[string]int{"uid": 0, "gid": 0}, Args: append(s.shell(), s.attempt.Task.Args...),
			Cwd: startDir, NoNew: true,
			Rlimits: s.bundleRlimits(),
		},
	}
	for _, v := range s.environment() {
		b.Process.Env = append(b.Process.Env, v[0]+"="+v[1])
	}
	for _, v := range s.attempt.Task.Env {
		b.Process.Env = append(b.Process.Env, v.Name+"="+v.Value)
	}
	for _, kind := range []string{"pid", "network", "ipc", "uts", "mount"} {
		b.Linux.Namespaces = append(b.Linux.Namespaces, map[string]string{"type": kind})
	}
	if s.keeps() {
		b.Notes = map[string]string{keptRootless: "true"}
	}
	text, err := json.Marshal(b)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(bundleDir(s.attempt.Dir), 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(bundleDir(s.attempt.Dir), "config.json"), text, 0o600)
}

// bundleRlimits are the limits that gVisor's kernel sets for the command.
func (s sandbox) bundleRlimits() []bundleResource {
	limit := func(name string, most uint64) bundleResource {
		return bundleResource{Type: "RLIMIT_" + name, Soft: most, Hard: most}
	}
	return []bundleResource{
		limit("NPROC", uint64(max(s.processes, 1))), limit("NOFILE", openFiles), limit("CORE", 0),
		limit("FSIZE", uint64(max(s.attempt.Limits.OrDefault().DiskBytes, 0))),
	}
}

// bundleMounts are the same paths as under bubblewrap. The links among them are
// made in the root directory.
func (s sandbox) bundleMounts() ([]bundleMount, error) {
	readOnly := func(from, to string) bundleMount {
		return bundleMount{Destination: to, Type: "bind", Source: from, Options: []string{"bind", "ro"}}
	}
	mounts := []bundleMount{
		{Destination: "/proc", Type: "proc", Source: "proc"},
		{Destination: "/dev", Type: "tmpfs", Source: "tmpfs"},
	}
	for _, p := range s.host.system {
		if p.host != "" {
			mounts = append(mounts, readOnly(p.host, p.path))
			continue
		}
		if err := os.Symlink(p.link, filepath.Join(s.attempt.WorkDir(), p.path)); err != nil &&
			!errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	for _, name := range etcFiles() {
		mounts = append(mounts, readOnly(filepath.Join(s.etcDir(), name), "/etc/"+name))
	}
	temp := filepath.Join(s.attempt.WorkDir(), tempDir)
	for _, dir := range []string{tempDir, "/dev/shm"} { // on disk, where they are counted
		mounts = append(mounts, bundleMount{
			Destination: dir, Type: "bind", Source: temp, Options: []string{"bind", "rw"},
		})
	}
	for _, in := range s.attempt.Inputs {
		mounts = append(mounts, readOnly(in.HostPath, path.Clean(in.SandboxPath)))
	}
	return mounts, nil
}
