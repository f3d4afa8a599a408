package tes

import (
	"archive/tar"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// delivery writes the outputs of a task.
type delivery struct {
	room    room
	shelves shelves
	work    work
	found   map[string]view.OutputView // by their path
	before  []grid.Input               // the inputs as they were, in the order of the task's
}

// maxNames bounds how many files of directories a task's log names.
const maxNames = 10_000

// deliver writes each output that the task has left, and returns what it wrote and what it could
// not. An output that is not there is no error here: the job's end says so.
func (d delivery) deliver(ctx context.Context) ([]TesOutputFileLog, error) {
	written := []TesOutputFileLog{}
	var errs []error
	for i, out := range d.work.outputs {
		found, there := d.found[out.found(i)]
		if !there {
			continue
		}
		logs, err := d.one(ctx, out, found)
		written = append(written, logs...)
		if err != nil {
			errs = append(errs, fmt.Errorf("output %s: %s", out.path, reason(err)))
		}
	}
	return written[:min(len(written), maxNames)], errors.Join(errs...)
}

func (d delivery) one(
	ctx context.Context, out target, found view.OutputView,
) ([]TesOutputFileLog, error) {
	to, err := d.shelves.find("url", out.url)
	if err != nil {
		return nil, err
	}
	root, err := to.open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // each file was closed before
	ref, body, err := d.room.GetData(ctx, found.CID)
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }() // only read from
	if ref.Dir {
		return d.tree(root, to.name, out, body)
	}
	n, err := writeFile(root, to.name, body, ref.Executable)
	if err != nil {
		return nil, err
	}
	return []TesOutputFileLog{
		{Path: out.path, Url: out.url, SizeBytes: strconv.FormatInt(n, 10)},
	}, nil
}

// tree writes the files of a directory. Inputs that stand in it are left out: what is seen of them
// there are the places that they were put on.
func (d delivery) tree(
	root *os.Root, to string, out target, body io.Reader,
) (logs []TesOutputFileLog, err error) {
	inside := out.path
	if out.prefix != "" {
		inside = out.prefix
	}
	if err := root.MkdirAll(filepath.FromSlash(to), 0o755); err != nil {
		return nil, err
	}
	archive := tar.NewReader(body)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return logs, nil
		}
		if err != nil {
			return logs, err
		}
		name := strings.TrimSuffix(header.Name, "/")
		if name == "" {
			continue // the directory itself
		}
		if !fs.ValidPath(name) {
			return logs, fmt.Errorf("the name %s leads out of the directory", quoted(header.Name))
		}
		p := path.Join(inside, name)
		switch {
		case out.prefix == "" && d.work.standsIn(p):
		case header.Typeflag == tar.TypeDir:
			err = root.MkdirAll(filepath.FromSlash(path.Join(to, name)), 0o755)
		case header.Typeflag == tar.TypeReg:
			var n int64
			n, err = writeFile(root, path.Join(to, name), archive, header.Mode&mayRun != 0)
			logs = append(logs, TesOutputFileLog{
				Path: p, Url: joinURL(out.url, name), SizeBytes: strconv.FormatInt(n, 10),
			})
		}
		if err != nil {
			return logs, err
		}
	}
}

// joinURL is the address of a file below a directory's.
func joinURL(address, name string) string {
	if strings.Contains(address, "://") {
		name = (&url.URL{Path: name}).EscapedPath()
	}
	return strings.TrimSuffix(address, "/") + "/" + name
}

// writeFile puts a file in its place in one step.
func writeFile(root *os.Root, name string, body io.Reader, executable bool) (n int64, err error) {
	mode := fs.FileMode(0o644)
	if executable {
		mode = 0o755
	}
	dir, base := path.Split(name)
	if dir != "" {
		if err = root.MkdirAll(filepath.FromSlash(path.Clean(dir)), 0o755); err != nil {
			return 0, err
		}
	}
	temporary := filepath.FromSlash(dir + "." + base[:min(len(base), 64)] + "." + rand.Text())
	f, err := root.OpenFile(temporary, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return 0, err
	}
	n, err = io.Copy(f, body)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = root.Rename(temporary, filepath.FromSlash(name))
	}
	if err != nil {
		_ = root.Remove(temporary) // what is wrong is said already
	}
	return n, err
}
