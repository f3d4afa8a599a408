package native

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
)

// keepAgain is the time after which a state that could not be saved is tried once more.
const keepAgain = 5 * time.Second

// keeper runs a command under gVisor, as the first process of its namespaces, and saves it whole:
// gVisor stops and writes its memory, the keeper packs that with the files, and gVisor goes on from
// it.
type keeper struct {
	order   keepOrder
	version string
	root    *os.Root
	layout  []keptFile // of the root before the command's first step
	states  lrm.StateDir
	streams [2]*keptStream
	run     *keptRun
	runs    int
	wish    fs.FileInfo // the last one that was seen
	again   time.Time   // when to try once more to save for it; zero: it was done
	never   string      // why nothing is saved any more
}

// keep is the body of a keeper. It returns the command's exit code.
func keep(orderPath string) int {
	k, err := newKeeper(orderPath)
	if err != nil {
		fmt.Fprintln(os.Stderr, "sandbox:", err)
		return exitFailed
	}
	end := k.live()
	text, err := json.Marshal(end)
	if err == nil {
		err = os.WriteFile(keptPath(k.order.Dir), text, 0o600)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "sandbox:", err)
		return exitFailed
	}
	return end.Code
}

func newKeeper(orderPath string) (*keeper, error) {
	text, err := os.ReadFile(orderPath)
	if err != nil {
		return nil, err
	}
	k := &keeper{}
	if err = json.Unmarshal(text, &k.order); err != nil {
		return nil, err
	}
	version, err := exec.Command(k.order.Runsc, "--version").Output() //nolint:gosec,noctx // the owner's
	if err != nil {
		return nil, fmt.Errorf("ask runsc for its version: %w", err)
	}
	k.version = strings.TrimSpace(string(version))
	if k.root, err = os.OpenRoot(k.order.Work); err != nil {
		return nil, err
	}
	k.states = lrm.StateDirIn(k.order.Work)
	if k.layout, err = listFiles(k.root); err != nil {
		return nil, err
	}
	for i, name := range []string{"stdout", "stderr"} {
		k.streams[i] = &keptStream{left: k.order.Output, over: make(chan struct{})}
		k.streams[i].file, err = os.OpenFile(
			filepath.Join(k.order.Dir, name), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			return nil, err
		}
	}
	return k, nil
}

// live runs the command to its end.
func (k *keeper) live() keptEnding {
	if err := k.begin(); err != nil {
		return keptEnding{Code: exitFailed, Failed: err.Error()}
	}
	look := time.NewTicker(keepLook)
	defer look.Stop()
	for {
		select {
		case <-k.streams[0].over:
			return keptEnding{Code: exitFailed, Over: true}
		case <-k.streams[1].over:
			return keptEnding{Code: exitFailed, Over: true}
		case <-k.run.ended:
			k.run.drain()
			return keptEnding{Code: k.run.code, Over: k.streams[0].full || k.streams[1].full}
		case <-look.C:
			if !k.due() {
				continue
			}
			if err := k.save(); err != nil {
				return keptEnding{Code: exitFailed, Failed: err.Error()}
			}
		}
	}
}

// due reports whether a state is to be saved now.
func (k *keeper) due() bool {
	wish := k.states.Asked()
	if wish == nil {
		return false
	}
	if lrm.SameState(wish, k.wish) {
		return !k.again.IsZero() && time.Now().After(k.again)
	}
	k.wish = wish
	return true
}

// begin starts the command from the state that is there, or from its beginning.
func (k *keeper) begin() error {
	if k.states.Look() != nil {
		image, err := k.unpack()
		if err == nil {
			if err = k.start(image); err == nil {
				return os.RemoveAll(image)
			}
		}
		k.explain(err.Error() + "; the task begins anew")
		if err = k.states.Drop(); err != nil {
			return err
		}
	}
	if err := k.layOut(k.layout, nil); err != nil {
		return err
	}
	for _, s := range k.streams {
		if err := s.restart(nil, 0, k.order.Output); err != nil {
			return err
		}
	}
	return k.start("")
}

// layOut makes the root hold these files and nothing else but the states.
func (k *keeper) layOut(files []keptFile, content io.Reader) error {
	if err := emptyRoot(k.root); err != nil {
		return err
	}
	for _, f := range files {
		if content == nil {
			f.Bytes = 0 // before the first step there are only places for mounts
		}
		if err := layFile(k.root, f, content); err != nil {
			return err
		}
	}
	return finishDirs(k.root, files)
}

// unpack lays out the state that is there, and gives the directory of its image.
func (k *keeper) unpack() (image string, err error) {
	f, err := k.states.Open()
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	d, err := readKept(f, info.Size())
	if err != nil {
		return "", err
	}
	if err = k.fits(d); err != nil {
		return "", err
	}
	if image, err = os.MkdirTemp(k.order.Dir, "image-"); err != nil {
		return "", err
	}
	to, err := os.OpenFile(filepath.Join(image, keptImageName), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	_, err = io.CopyN(to, f, d.Image)
	if err = errors.Join(err, to.Close()); err != nil {
		return "", err
	}
	if err = k.layOut(d.Files, f); err != nil {
		return "", fmt.Errorf("lay out the state's files: %w", err)
	}
	return image, errors.Join(
		k.streams[0].restart(f, d.Stdout, k.order.Output),
		k.streams[1].restart(f, d.Stderr, k.order.Output),
	)
}

// fits refuses a state that this machine cannot go on from, or that the task has no room for.
func (k *keeper) fits(d kept) error {
	if d.Version != k.version || d.Machine != runtime.GOARCH {
		return errors.New(errKeptForeign)
	}
	for path, want := range d.System {
		if have, err := digestOf(filepath.Clean("/" + path)); err != nil || have != want {
			return fmt.Errorf("the state's command uses %s, which this site has not, or another one", path)
		}
	}
	var files int64
	for _, f := range d.Files {
		files += f.Bytes
	}
	if files > k.order.Disk || d.Stdout > k.order.Output || d.Stderr > k.order.Output {
		return errors.New("the state holds more than the task may have")
	}
	return nil
}

// start starts the command from an image, or from its beginning.
func (k *keeper) start(image string) error {
	k.runs++
	r := &keptRun{
		ended: make(chan struct{}), root: filepath.Join(k.order.Dir, "runsc", strconv.Itoa(k.runs)),
	}
	args := []string{"run"}
	if image != "" {
		args = []string{"restore", "--image-path", image}
	}
	args = append(args, "--bundle", bundleDir(k.order.Dir), gvisorName)
	if err := r.start(k.runsc(r.root, image == "", args...), k.streams); err != nil {
		return err
	}
	for {
		select {
		case <-r.ended:
			r.drain()
			if said := r.said(); r.code == gvisorFailed && strings.Contains(said, "running container") {
				return fmt.Errorf("gVisor cannot start it: %s", said)
			}
			k.run = r
			return nil
		case <-time.After(keepLook):
			out, err := k.runsc(r.root, true, "state", gvisorName).Output()
			if err == nil && bytes.Contains(out, []byte(`"status": "running"`)) {
				k.run = r
				return nil
			}
		}
	}
}

// runsc is one of its commands. It says on its command line that it is run by no root, but for
// restoring, where the bundle says so.
func (k *keeper) runsc(root string, rootless bool, args ...string) *exec.Cmd {
	all := []string{"--root", root, "--log", gvisorLog(k.order.Dir), "--allow-flag-override"}
	for _, f := range k.order.Flags {
		if f != "--rootless" || rootless {
			all = append(all, f)
		}
	}
	cmd := exec.Command(k.order.Runsc, append(all, args...)...) //nolint:gosec,noctx // the owner's
	cmd.Env = []string{}
	return cmd
}

func (k *keeper) explain(why string) { _ = k.states.Explain(why) }

// save saves the command. An error means that it runs no more; what only keeps a state from being
// saved is explained.
func (k *keeper) save() error {
	k.again = time.Time{}
	if k.never != "" {
		k.explain(k.never)
		return nil
	}
	if k.runsc(k.run.root, true, "pause", gvisorName).Run() != nil {
		return nil // it ends
	}
	seen, problem := k.look()
	if problem != "" {
		k.explain(problem)
		k.again = time.Now().Add(keepAgain)
		if err := k.runsc(k.run.root, true, "resume", gvisorName).Run(); err != nil {
			return fmt.Errorf("let it go on: %w", err)
		}
		return nil
	}
	return k.stopAndGoOn(seen)
}

// stopAndGoOn saves a paused command. gVisor ends when it has written its image, and also when it
// could not: then the command begins from the state before, and is saved no more.
func (k *keeper) stopAndGoOn(d kept) error {
	image, err := os.MkdirTemp(k.order.Dir, "image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(image)
	out, err := k.runsc(k.run.root, true, "checkpoint", "--image-path", image, gvisorName).
		CombinedOutput()
	// what is paused does not even end
	_ = k.runsc(k.run.root, true, "resume", gvisorName).Run()
	_ = k.runsc(k.run.root, true, "kill", gvisorName, "KILL").Run()
	<-k.run.ended
	k.run.drain()
	reap()
	if err != nil {
		return k.goBack("gVisor cannot save the command: " + firstLine(out))
	}
	packed := filepath.Join(k.order.Dir, "packed")
	if err = k.pack(packed, image, d); err != nil {
		k.explain(err.Error())
		k.again = time.Now().Add(keepAgain)
	}
	if wrong := k.start(image); wrong != nil {
		return k.goBack(wrong.Error())
	}
	if err == nil {
		if err = k.put(packed); err != nil {
			k.explain(err.Error())
		}
	}
	return nil
}

// put makes a packed state the one that is there. The command runs on meanwhile.
func (k *keeper) put(packed string) error {
	from, err := os.Open(packed)
	if err != nil {
		return err
	}
	defer os.Remove(packed)
	defer from.Close()
	return k.states.Put(0, func(f *os.File) error {
		_, err := io.Copy(f, from)
		return err
	})
}

// goBack begins from the state before, or anew, and saves no more.
func (k *keeper) goBack(why string) error {
	k.never = why + "; it is not saved any more"
	err := k.begin()
	k.explain(k.never)
	return err
}

// look looks at the paused command: which files of the system it has open, whether it can be saved
// and whether there is room for its state.
func (k *keeper) look() (d kept, problem string) {
	d = kept{Version: k.version, Machine: runtime.GOARCH, System: map[string]string{}}
	links, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	var memory int64
	for _, link := range links {
		target, err := os.Readlink(link)
		if err != nil {
			continue
		}
		if strings.HasPrefix(target, "/memfd:runsc-memory") {
			var st unix.Stat_t
			if unix.Stat(link, &st) == nil {
				memory = max(memory, st.Blocks*512) //nolint:mnd // the unit of blocks
			}
			continue
		}
		path, inside := strings.CutPrefix(target, gvisorRoot)
		if !inside {
			continue
		}
		if strings.HasSuffix(path, " (deleted)") {
			return d, "the command has a file open that it has removed, which gVisor cannot save"
		}
		k.note(d.System, path)
	}
	need, err := k.room(memory)
	if err != nil {
		return d, err.Error()
	}
	if need > 0 {
		return d, fmt.Sprintf("the task's disk has no space for its state: %d bytes more", need)
	}
	return d, ""
}

// gvisorFailed is the exit code of runsc when it, rather than its command, failed.
const gvisorFailed = 128

// gvisorRoot is where gVisor's file server has the sandbox's root.
const gvisorRoot = "/root/"

// note notes a file of the system that the command has open.
func (k *keeper) note(files map[string]string, path string) {
	if _, known := files[path]; known || !strings.HasPrefix(path, "usr/") && !strings.HasPrefix(path, "lib") {
		return
	}
	host := "/" + path
	if info, err := os.Stat(host); err != nil || !info.Mode().IsRegular() {
		return
	}
	if sum, err := digestOf(host); err == nil {
		files[path] = sum
	}
}

// room reports how many bytes a state lacks, at most 0 if there is room. The state before may have
// to make room for it.
func (k *keeper) room(memory int64) (int64, error) {
	files, err := listFiles(k.root)
	if err != nil {
		return 0, err
	}
	used := int64(0)
	for _, f := range files {
		used += f.Bytes
	}
	need := memory + used + 1<<20 // what describes it
	for _, s := range k.streams {
		need += s.size
	}
	before := int64(0)
	if info := k.states.Look(); info != nil {
		before = info.Size()
	}
	if lacks := used + need - k.order.Disk; lacks > 0 || used+before+need <= k.order.Disk {
		return lacks, nil
	}
	return 0, k.states.Drop()
}

// pack packs the image, the files and what was printed.
func (k *keeper) pack(to, image string, d kept) (err error) {
	f, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if d.Files, err = listFiles(k.root); err != nil {
		return err
	}
	p := &packer{to: f}
	if d.Image, err = p.path(filepath.Join(image, keptImageName)); err != nil {
		return err
	}
	for _, file := range d.Files {
		if !file.Mode.IsRegular() {
			continue
		}
		from, err := k.root.Open(file.Path)
		if err != nil {
			return err
		}
		p.file(from, file.Bytes)
		from.Close()
	}
	sizes := [2]int64{}
	for i, s := range k.streams {
		if _, err = s.file.Seek(0, io.SeekStart); err != nil {
			return err
		}
		p.file(s.file, s.size)
		sizes[i] = s.size
	}
	d.Stdout, d.Stderr = sizes[0], sizes[1]
	return p.finish(d)
}

// path appends a file as it is, and tells its size.
func (p *packer) path(name string) (int64, error) {
	f, err := os.Open(name)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	p.file(f, info.Size())
	return info.Size(), p.err
}

// keptRun is one run of gVisor, from the command's start or from a state to the next.
type keptRun struct {
	root  string // of runsc
	cmd   *exec.Cmd
	code  int
	ended chan struct{}
	dried []chan struct{}
	words *keptStream
}

// start starts it with pipes that end with it.
func (r *keptRun) start(cmd *exec.Cmd, streams [2]*keptStream) error {
	stdin, nobody, err := os.Pipe() // nobody's file: a device of the machine could be told things
	if err != nil {
		return err
	}
	nobody.Close()
	defer stdin.Close()
	cmd.Stdin = stdin
	for i, s := range streams {
		read, write, err := os.Pipe()
		if err != nil {
			return err
		}
		defer write.Close()
		dry := make(chan struct{})
		r.dried = append(r.dried, dry)
		go func() {
			defer close(dry)
			defer read.Close()
			s.take(read)
		}()
		if i == 0 {
			cmd.Stdout = write
		} else {
			cmd.Stderr = write
		}
	}
	r.cmd, r.words = cmd, streams[1]
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() {
		defer close(r.ended)
		_ = cmd.Wait()
		r.code = exitFailed
		if s := cmd.ProcessState; s != nil && s.Exited() {
			r.code = s.ExitCode()
		}
	}()
	return nil
}

// drain waits until all that was printed is kept.
func (r *keptRun) drain() {
	for _, dry := range r.dried {
		<-dry
	}
}

// said is what a run that did not begin said last.
func (r *keptRun) said() string {
	text := make([]byte, 4<<10) //nolint:mnd // a few lines
	n, _ := r.words.file.ReadAt(text, max(r.words.size-int64(len(text)), 0))
	return lastLine(text[:n])
}

// keptStream is what a command prints, kept in a file up to a limit.
type keptStream struct {
	file *os.File
	size int64
	left int64
	full bool
	over chan struct{} // closed when it is full
}

// restart makes the stream hold what was printed before.
func (s *keptStream) restart(from io.Reader, bytes, limit int64) error {
	if err := s.file.Truncate(0); err != nil {
		return err
	}
	if _, err := s.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	s.size, s.left = bytes, limit-bytes
	if bytes == 0 {
		return nil
	}
	_, err := io.CopyN(s.file, from, bytes)
	return err
}

// take keeps what is printed, and drops what is too much.
func (s *keptStream) take(from io.Reader) {
	block := make([]byte, 64<<10) //nolint:mnd // as a pipe holds
	for {
		n, err := from.Read(block)
		fits := min(int64(n), s.left)
		wrote, wrong := s.file.WriteAt(block[:fits], s.size)
		s.size, s.left = s.size+int64(wrote), s.left-int64(wrote)
		if (fits < int64(n) || wrong != nil) && !s.full {
			s.full = true
			close(s.over)
		}
		if err != nil {
			return
		}
	}
}

// reap takes leave of what gVisor left to this namespace's first process. No command of the
// keeper's own runs.
func reap() {
	for {
		pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
		if pid <= 0 && !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

func firstLine(text []byte) string {
	line, _, _ := bytes.Cut(bytes.TrimSpace(text), []byte("\n"))
	return string(line[:min(len(line), 200)]) //nolint:mnd // enough to know it
}

func lastLine(text []byte) string {
	text = bytes.TrimSpace(text)
	line := text[bytes.LastIndexByte(text, '\n')+1:]
	return string(line[:min(len(line), 200)]) //nolint:mnd // enough to know it
}
