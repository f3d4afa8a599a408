package native

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/internal/lrm/scratch"
	"github.com/mrsmesh/mrsmesh/internal/lrm/supervise"
)

const (
	warmInputs = 4 << 20 // bytes of all inputs of a task in a warm sandbox, which are copied
	warmText   = 4 << 10 // bytes of its line
	warmDir    = "warm"  // beside the run record: roots of warm sandboxes between two tasks
	queuesPath = "/dev/mqueue"
	ownerAll   = 0o700
)

// receive is the script of a warm sandbox: each line it reads is a task. When that has
// ended it ends what the task has left running, and says whether anything is left that the kernel
// keeps without a process: memory, semaphores and queues of System V, queues of messages, and
// connections, whose ports are taken for a while.
const receive = `n='
'
echo ready >&%[2]d
while IFS= read -r task <&%[1]d; do
	(exec %[1]d<&- %[2]d>&-; cd /work && unset OLDPWD && eval "$task")
	code=$? left=
	kill -9 -1 2>/dev/null
	for name in shm sem msg; do
		{ read -r line && read -r line; } </proc/sysvipc/$name && left=' left'
	done
	{ read -r line && read -r name name used name name name closed name; } </proc/net/sockstat
	[ "$used$closed" = 00 ] || left=' left'
	! read -r name name used 2>/dev/null </proc/net/sockstat6 || [ "$used" = 0 ] || left=' left'
	for name in ` + queuesPath + `/* ` + queuesPath + `/.[!.]* ` + queuesPath + `/..?*; do
		[ ! -e "$name" ] || left=' left'
	done
	echo "$code$left" >&%[2]d
done`

// tryWarm ends with trialCode where that can be said.
const tryWarm = `cat /proc/sysvipc/shm /proc/sysvipc/sem /proc/sysvipc/msg >/dev/null &&
	[ -d ` + queuesPath + ` ] && grep -q '^TCP: inuse .* tw' /proc/net/sockstat && exit 42`

// series is the key of the sandboxes that an attempt may share with others, one after the other;
// empty: it has one for itself. Those of one series have the same limits.
func (s sandbox) series() string {
	at := s.attempt
	if at.Series == "" || !s.host.warm || at.StatePath != "" || s.refuse() != "" {
		return ""
	}
	l := at.Limits.OrDefault()
	bytes, ok := inputBytes(at.Inputs)
	if l.MemoryBytes < leastForSandbox || !ok || bytes > warmInputs || s.line() == "" {
		return ""
	}
	return fmt.Sprintln(at.Series, l.MilliCPUs, l.MemoryBytes, l.DiskBytes, l.OutputBytes)
}

// inputBytes is the size of inputs that are all files.
func inputBytes(inputs []lrm.Bind) (bytes int64, ok bool) {
	for _, in := range inputs {
		info, err := os.Lstat(in.HostPath)
		if err != nil || !info.Mode().IsRegular() {
			return 0, false
		}
		bytes += info.Size()
	}
	return bytes, true
}

// isVariable reports whether every shell takes a name for a variable that is not its own.
func isVariable(name string) bool {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"
	return strings.Trim(name, letters+"0123456789") == "" &&
		strings.Trim(name[:min(1, len(name))], letters) == "" && name != "" &&
		!slices.Contains(ofTheShell(), name)
}

// ofTheShell are variables that shells keep for themselves.
func ofTheShell() []string {
	return []string{
		"_", "BASHOPTS", "BASHPID", "EUID", "GROUPS", "IFS", "LINENO", "OLDPWD", "OPTIND", "PPID",
		"PWD", "RANDOM", "SECONDS", "SHELLOPTS", "UID", "n",
	}
}

// line is the task as a line for the shell, empty if it cannot be one.
func (s sandbox) line() string {
	var b strings.Builder
	for _, v := range s.attempt.Task.Env {
		if !isVariable(v.Name) {
			return ""
		}
		b.WriteString("export " + v.Name + "=" + quoted(v.Value) + "; ")
	}
	b.WriteString("exec")
	for _, arg := range s.attempt.Task.Args {
		b.WriteString(" " + quoted(arg))
	}
	// Shells differ in what they read of other bytes.
	foreign := func(r rune) bool { return r < ' ' && r != '\t' || r > '~' }
	if text := b.String(); len(text) <= warmText && !strings.ContainsFunc(text, foreign) {
		return text
	}
	return ""
}

// quoted is a text as one word of sh, on one line: n is a line's end.
func quoted(text string) string {
	return "'" + strings.NewReplacer("'", `'\''`, "\n", `'"$n"'`).Replace(text) + "'"
}

// warm lets the supervisor use a sandbox for the attempts of a series.
func (s sandbox) warm(spec *supervise.Spec) {
	e := *spec.Enclosure
	of := s
	of.queues, of.attempt.Task.Env = true, nil
	script := fmt.Sprintf(receive, supervise.TaskFD, supervise.DoneFD)
	of.attempt.Task.Args = []string{"/bin/sh", "-c", script, "sh"}
	e.Args = of.arguments()
	of.begin(&e)
	e.Filter = nil
	spec.Warm = &supervise.Warm{Key: s.key, Task: s.line(), Enclosure: &e}
	spec.Limits.DiskBytes += s.copied // what is there already counts as if it were written
}

// placeInputs puts the inputs to their paths below the root: copies of the attempt's own, because
// nothing can be mounted into a sandbox that is there already.
func (s sandbox) placeInputs() error {
	for _, in := range s.attempt.Inputs {
		to := filepath.Join(s.attempt.WorkDir(), filepath.FromSlash(in.SandboxPath))
		own := strings.HasPrefix(in.HostPath, s.attempt.Dir+string(filepath.Separator))
		if own && os.Rename(in.HostPath, to) == nil {
			continue
		}
		if err := copyFile(in.HostPath, to); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// startInWarm starts an attempt in a sandbox that waits for one of its series.
func (a *Adapter) startInWarm(
	ctx context.Context, box sandbox, w *supervise.Warmed,
) (lrm.Process, error) {
	box.name = filepath.Base(w.Root)
	process, err := a.enter(ctx, box, w)
	if err != nil {
		w.Dismiss()
		return nil, fmt.Errorf("start in a warm sandbox: %w", err)
	}
	return process, nil
}

func (a *Adapter) enter(
	ctx context.Context, box sandbox, w *supervise.Warmed,
) (lrm.Process, error) {
	if err := moveRoot(w.Root, box.attempt.WorkDir(), box.host.held); err != nil {
		return nil, err
	}
	w.Root = box.attempt.WorkDir()
	if box.host.held {
		if err := scratch.Resize(w.Root, box.filesInMemory(), lrm.MaxEntries); err != nil {
			return nil, err
		}
	}
	if err := box.lay(); err != nil {
		return nil, err
	}
	its, err := a.host.groups.again(box.name, box.need())
	if err != nil {
		return nil, err
	}
	spec, err := a.spec(box, its, "")
	if err != nil {
		return nil, err
	}
	return w.Start(ctx, box.attempt.Dir, spec, a.hooks(box, its, ""))
}

// empty readies a sandbox for its next task: its root is empty, as it was in the beginning, and
// stands beside the run record. tmp is its directory for what is temporary, as it was laid out.
func (a *Adapter) empty(box sandbox, group group, tmp os.FileInfo) (root string, err error) {
	if group.starved() {
		return "", errors.New("it was short of memory")
	}
	work := box.attempt.WorkDir()
	if err := a.host.clear(work, tmp); err != nil {
		return "", err
	}
	root = filepath.Join(filepath.Dir(a.config.RecordPath), warmDir, box.name)
	if err := moveRoot(work, root, a.host.held); err != nil {
		return "", err
	}
	return root, nil
}

// clearWarm removes the roots that an earlier agent left.
func clearWarm(recordPath string) error {
	dir := filepath.Join(filepath.Dir(recordPath), warmDir)
	if err := lrm.RemoveTree(dir); err != nil {
		return fmt.Errorf("clear %s: %w", dir, err)
	}
	return os.MkdirAll(dir, 0o700)
}

// moveRoot moves a sandbox's root, which the sandbox does not see.
func moveRoot(from, to string, mounted bool) error {
	if !mounted {
		return os.Rename(from, to)
	}
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	if err := scratch.Move(from, to); err != nil {
		return errors.Join(err, os.Remove(to))
	}
	return os.Remove(from)
}

// dropRoot removes a root that moveRoot moved.
func dropRoot(root string) error {
	if root == "" {
		return nil
	}
	return errors.Join(scratch.Unmount(root), lrm.RemoveTree(root))
}

var errSpoiled = errors.New("the command changed its directories for good")

// clear removes what a task has left in its root. Nothing runs there any more. What the sandbox
// has mounted something on, here in sight as an empty directory, stays: it would be unmounted. So
// does what each task finds, which takes longer to make than to empty. tmp has to be there still.
func (h *host) clear(dir string, tmp os.FileInfo) error {
	if err := os.Chmod(dir, ownerAll); err != nil {
		return err
	}
	now, err := os.Lstat(filepath.Join(dir, tempDir))
	if err != nil || tmp == nil || !os.SameFile(now, tmp) || marked(dir) {
		return errors.Join(errSpoiled, err)
	}
	entries, err := os.ReadDir(dir)
	links, stay := h.links(), append(h.mountedOn(), startDir, lrm.SaveDir)
	for _, e := range entries {
		name, path := filepath.Join(dir, e.Name()), "/"+e.Name()
		target, isLink := links[path]
		has, _ := os.Readlink(name)
		switch {
		case isLink && has == target:
			delete(links, path)
		case e.IsDir() && slices.Contains(stay, path):
			err = errors.Join(err, clearDir(name))
		default:
			err = errors.Join(err, removeEntry(name, e))
		}
	}
	for path, target := range links {
		err = errors.Join(err, os.Symlink(target, filepath.Join(dir, path)))
	}
	return err
}

// links are the links of the system that bubblewrap makes in a root, and where they lead.
func (h *host) links() map[string]string {
	links := make(map[string]string)
	for _, p := range h.system {
		if p.host == "" {
			links[p.path] = p.link
		}
	}
	return links
}

// mountedOn are the directories in a sandbox's root that something of it hangs on.
func (h *host) mountedOn() []string {
	dirs := []string{tempDir, etcPath, "/proc", "/dev"}
	for _, p := range h.system {
		if p.host != "" {
			dirs = append(dirs, p.path)
		}
	}
	return dirs
}

// clearDir removes all that is in a directory.
func clearDir(dir string) error {
	if err := os.Chmod(dir, ownerAll); err != nil {
		return err
	}
	if marked(dir) {
		return errSpoiled
	}
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		err = errors.Join(err, removeEntry(filepath.Join(dir, e.Name()), e))
	}
	return err
}

// removeEntry removes what an attempt left in its root; a link itself.
func removeEntry(name string, e os.DirEntry) error {
	if !e.IsDir() {
		return os.Remove(name)
	}
	if err := os.Chmod(name, ownerAll); err != nil {
		return err
	}
	return lrm.RemoveTree(name)
}
