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
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
)

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
	note    string      // what the end is to tell besides the command's
}

// keep is the body of a keeper. It returns the command's exit code.
func keep() int {
	k, err := newKeeper()
	if err != nil {
		fmt.Fprintln(os.Stderr, "sandbox:", err)
		return exitFailed
	}
	end := k.live()
	end.Note = k.note
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

func newKeeper() (*keeper, error) {
	if os.Getpid() != 1 { // it ends all processes that it sees
		return nil, errors.New("a keeper is the first process of its namespaces")
	}
	text, err := os.ReadFile(keepName)
	if err != nil {
		return nil, err
	}
	k := &keeper{}
	if err = json.Unmarshal(text, &k.order); err != nil {
		return nil, err
	}
	//nolint:gosec,noctx // the owner has installed it; all here ends with the keeper
	version, err := exec.Command(k.order.Runsc, "--version").Output()
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
		k.streams[i] = &keptStream{limit: k.order.Output, over: make(chan struct{})}
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
			k.run.clear()
			return keptEnding{
				Code: k.run.code, Over: k.streams[0].full || k.streams[1].full, Failed: k.run.words,
			}
		case <-look.C:
			if !k.due() {
				continue
			}
			if err := k.save(); err != nil {
				return keptEnding{Code: exitFailed, Failed: err.Error(), Ran: true}
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
	there := k.states.Look() != nil
	if there {
		image, err := k.unpack()
		if err == nil {
			err = k.start(image)
		}
		if image != "" {
			_ = os.RemoveAll(image)
		}
		if err == nil {
			return nil
		}
		k.note = err.Error() + "; the task began anew"
		k.explain(k.note)
	}
	if err := k.layOut(k.layout, nil); err != nil {
		return err
	}
	for _, s := range k.streams {
		if err := s.restart(nil, 0); err != nil {
			return err
		}
	}
	if err := k.start(""); err != nil || !there {
		return err // where nothing runs, the state may be good
	}
	return k.states.Drop()
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
	if err := finishDirs(k.root, files); err != nil {
		return err
	}
	// gVisor mounts this one, and would follow a link out of the root
	if info, err := k.root.Lstat(strings.TrimPrefix(tempDir, "/")); err != nil || !info.IsDir() {
		return fmt.Errorf("%w: %s is no directory", errKept, tempDir)
	}
	return nil
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
		return image, err
	}
	_, err = io.CopyN(to, f, d.Image)
	if err = errors.Join(err, to.Close()); err != nil {
		return image, err
	}
	if err = k.layOut(d.Files, f); err != nil {
		return image, fmt.Errorf("lay out the state's files: %w", err)
	}
	return image, errors.Join(k.streams[0].restart(f, d.Stdout), k.streams[1].restart(f, d.Stderr))
}

// fits refuses a state that this machine cannot go on from, or that is larger than the task may be.
func (k *keeper) fits(d kept) error {
	if d.Version != k.version || d.Machine != runtime.GOARCH {
		return errors.New(errKeptForeign)
	}
	for path, want := range d.System {
		if have, err := digestOf(filepath.Clean("/" + path)); err != nil || have != want {
			return fmt.Errorf("the state's command uses another %s than this site has", path)
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

// start starts the command from an image, or from its beginning. It has started when gVisor says
// that it runs: before, it may still fail, and nothing may be saved.
func (k *keeper) start(image string) error {
	k.runs++
	r, log, err := newRun(k.order.Dir, k.runs)
	if err != nil {
		return err
	}
	args := []string{"run"}
	if image != "" {
		args = []string{"restore", "--image-path", image}
	}
	args = append(args, "--bundle", bundleDir(k.order.Dir), "--pid-file", r.started(), gvisorName)
	if err := r.start(k.runsc(r, r.log(), image == "", args...), log, k.streams); err != nil {
		return err
	}
	for {
		select {
		case <-r.ended:
			k.run = r
			if r.words == "" { // it was quick
				return nil
			}
			r.clear()
			return fmt.Errorf("gVisor cannot start it: %s", r.words)
		case <-time.After(keepLook):
			out, err := k.control(r, "state", gvisorName).Output()
			if err == nil && bytes.Contains(out, []byte(`"status": "running"`)) {
				k.run = r
				return nil
			}
		}
	}
}

// control is a command that looks at or steers a run.
func (k *keeper) control(r *keptRun, args ...string) *exec.Cmd {
	return k.runsc(r, gvisorLog(k.order.Dir), true, args...)
}

// runsc is one of its commands. It says on its command line that it is run by no root, but for
// restoring, where the bundle says so.
func (k *keeper) runsc(r *keptRun, log string, rootless bool, args ...string) *exec.Cmd {
	all := []string{"--root", r.root, "--log", log, "--allow-flag-override"}
	for _, f := range k.order.Flags {
		if f != "--rootless" || rootless {
			all = append(all, f)
		}
	}
	if k.order.Tells {
		all = append(all, "--panic-log", r.crash())
	}
	cmd := exec.Command(k.order.Runsc, append(all, args...)...) //nolint:gosec,noctx // the owner's
	cmd.Env = []string{}
	return cmd
}

func (k *keeper) explain(why string) { _ = k.states.Explain(why) }
