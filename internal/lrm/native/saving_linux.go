package native

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// keepAgain is the time after which a state that could not be saved is tried once more.
	keepAgain = 5 * time.Second
	// gvisorRoot is the sandbox's root as gVisor's file server has it.
	gvisorRoot = "/root/"
	// keptMargin is space for what describes a state and its files.
	keptMargin = 1 << 20
)

// save saves the command. An error means that it runs no more; what only keeps a state from being
// saved is explained.
func (k *keeper) save() error {
	k.again = time.Time{}
	if k.never != "" {
		k.explain(k.never)
		return nil
	}
	if err := k.control(k.run, "pause", gvisorName).Run(); err != nil {
		return nil //nolint:nilerr // what cannot be paused has ended, which live sees
	}
	seen, problem := k.look()
	if problem == "" {
		return k.stopAndGoOn(seen)
	}
	k.explain(problem)
	k.again = time.Now().Add(keepAgain)
	if out, err := k.control(k.run, "resume", gvisorName).CombinedOutput(); err != nil {
		return k.goBack("gVisor cannot let the command go on: " + firstLine(string(out)))
	}
	return nil
}

// stopAndGoOn saves a paused command. gVisor ends when it has written its image, and also when it
// could not: then the command begins from the state before, and is saved no more.
func (k *keeper) stopAndGoOn(d kept) error {
	image, err := os.MkdirTemp(k.order.Dir, "image-")
	if err != nil {
		return k.goBack("there is no place for its image")
	}
	defer os.RemoveAll(image)
	out, err := k.control(k.run, "checkpoint", "--image-path", image, gvisorName).CombinedOutput()
	k.run.clear()
	if err != nil {
		_ = os.RemoveAll(image) // a full disk may be why
		return k.goBack("gVisor cannot save the command: " + firstLine(string(out)))
	}
	packed, begun := false, error(nil)
	// the new state is the state only once the command goes on from it
	err = k.states.Put(0, func(f *os.File) error {
		if wrong := k.pack(f, image, d); wrong != nil {
			return wrong
		}
		packed, begun = true, k.start(image)
		return begun
	})
	if !packed {
		begun = k.start(image)
	}
	if begun != nil {
		return k.goBack(begun.Error())
	}
	if err != nil {
		k.explain(firstLine(err.Error()))
		k.again = time.Now().Add(keepAgain)
	}
	return nil
}

// goBack begins from the state before, or anew, and saves no more.
func (k *keeper) goBack(why string) error {
	k.run.clear()
	k.never = why + "; it is not saved any more"
	before, note := k.states.Look() != nil, k.note
	k.note = ""
	err := k.begin()
	switch {
	case k.note != "":
		k.note = why + "; " + k.note
	case before:
		k.note = why + "; the task went on from its state before"
	default:
		k.note = why + "; the task began anew"
	}
	if note != "" {
		k.note = note + "; " + k.note
	}
	k.explain(k.never)
	return err
}

// look looks at the paused command: which files of the system it has open, whether it can be saved
// and whether its state has space.
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
		k.digest(d.System, path)
	}
	if err := k.room(memory); err != nil {
		problem = firstLine(err.Error())
	}
	return d, problem
}

// digest notes a file of the system that the command has open.
func (k *keeper) digest(files map[string]string, path string) {
	if _, known := files[path]; known ||
		!strings.HasPrefix(path, "usr/") && !strings.HasPrefix(path, "lib") {
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

// room refuses a state of so much memory that the task's disk, or the site's, has no space for,
// beside the files and the state before, which stays until the new one is good.
func (k *keeper) room(memory int64) error {
	files, err := listFiles(k.root)
	if err != nil {
		return err
	}
	state, used := memory+keptMargin, int64(0)
	for _, f := range files {
		used += f.Bytes
	}
	state += used
	for _, s := range k.streams {
		state += s.size.Load()
	}
	need := used + state
	if before := k.states.Look(); before != nil {
		need += before.Size()
	}
	if lacks := need - k.order.Disk; lacks > 0 {
		return fmt.Errorf("the task's disk has no space for its state: %d bytes more", lacks)
	}
	var disk unix.Statfs_t
	if err := unix.Statfs(k.order.Dir, &disk); err != nil {
		return err
	}
	// the image, and the state that it becomes a part of
	free := int64(disk.Bavail) * int64(disk.Bsize) //nolint:unconvert // Bsize is not always one
	if free < memory+state {
		return errors.New("the site's disk has no space for the command's state")
	}
	return nil
}

// pack packs the image, the files and what was printed.
func (k *keeper) pack(to io.Writer, image string, d kept) (err error) {
	if d.Files, err = listFiles(k.root); err != nil {
		return err
	}
	from, err := os.Open(filepath.Join(image, keptImageName))
	if err != nil {
		return err
	}
	defer from.Close()
	info, err := from.Stat()
	if err != nil {
		return err
	}
	if err := k.room(info.Size()); err != nil {
		return err
	}
	p := &packer{to: to}
	d.Image = info.Size()
	p.file(from, d.Image)
	for _, file := range d.Files {
		p.inRoot(k.root, file)
	}
	d.Stdout, d.Stderr = p.stream(k.streams[0]), p.stream(k.streams[1])
	return p.finish(d)
}

// inRoot appends a file of the root, if it is one.
func (p *packer) inRoot(root *os.Root, file keptFile) {
	if !file.Mode.IsRegular() || p.err != nil {
		return
	}
	from, err := root.Open(file.Path)
	if err != nil {
		p.err = err
		return
	}
	defer from.Close()
	p.file(from, file.Bytes)
}

// stream appends what was printed, and tells its size.
func (p *packer) stream(s *keptStream) int64 {
	size := s.size.Load()
	if p.err == nil {
		_, p.err = s.file.Seek(0, io.SeekStart)
	}
	p.file(s.file, size)
	return size
}
