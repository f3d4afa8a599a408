package tes

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// maxMountNames bounds the files and directories of one mount.
const maxMountNames = 200_000

// mountSource names the data of a mount at a site, which the script copies to its place.
func mountSource(input int) string { return fmt.Sprintf("%s/in/%d", ownDir, input) }

// mountsOf lists the inputs of a task that are directories which tasks may change.
func (s *Tasks) mountsOf(task TesTask) (list []int) {
	if task.Inputs == nil {
		return nil
	}
	for i, in := range *task.Inputs {
		if in.Url == nil || literal(in) || in.Type != nil && *in.Type == FILE || onWeb(*in.Url) {
			continue
		}
		p, err := s.mounts.find("url", *in.Url)
		if err != nil {
			continue
		}
		if info, err := p.stat(); err == nil && info.IsDir() {
			list = append(list, i)
		}
	}
	return list
}

// mount adds what copies a mount to its place, where the executors may change it.
func (w *work) mount(b *strings.Builder, input int) {
	from, to := mountSource(input), quote(w.inputs[input])
	fmt.Fprintf(b, "mkdir -p %s && cp -R %s/. %s/ && chmod -R u+rwX %s || exit %d\n",
		to, from, to, to, ownFailure)
}

// isMount reports whether an input is a directory that the task may change.
func (w *work) isMount(input int) bool { return slices.Contains(w.mounts, input) }

// standsIn reports whether a path is that of an input which stays as it is, or lies in one.
func (w *work) standsIn(p string) bool {
	for i, in := range w.inputs {
		if !w.isMount(i) && below(p, in) {
			return true
		}
	}
	return false
}

// carry brings what a task has changed in its mounts to where they are: files that are new or
// different, and those that are gone. What others did there meanwhile stays.
func (d delivery) carry(ctx context.Context) error {
	var errs []error
	for _, i := range d.work.mounts {
		found, there := d.found[d.work.inputs[i]]
		if before := d.before[i].CID; there && found.CID != before {
			address := *(*d.work.task.Inputs)[i].Url
			if err := d.carryOne(ctx, address, before, found.CID); err != nil {
				errs = append(errs, fmt.Errorf("inputs[%d]: what the task changed in the "+
					"directory cannot be carried back: %s", i, reason(err)))
			}
		}
	}
	return errors.Join(errs...)
}

func (d delivery) carryOne(ctx context.Context, address string, before, after grid.CID) error {
	to, err := d.shelves.find("url", address)
	if err != nil {
		return err
	}
	was, err := d.survey(ctx, before)
	if err != nil {
		return err
	}
	is, err := d.survey(ctx, after)
	if err != nil {
		return err
	}
	root, err := to.open()
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // each file was closed before
	err = d.walk(ctx, after, func(header *tar.Header, name string, body io.Reader) error {
		if old, there := was[name]; there && old == is[name] {
			return nil
		}
		p := path.Join(to.name, name)
		if header.Typeflag == tar.TypeDir {
			return root.MkdirAll(filepath.FromSlash(p), 0o755)
		}
		_, wrong := writeFile(root, p, body, header.Mode&mayRun != 0)
		return wrong
	})
	if err != nil {
		return err
	}
	return removeGone(root, to.name, was, is)
}

// removeGone removes what was there before and is no more. A directory in which something else is
// stays.
func removeGone(root *os.Root, top string, was, is map[string]string) error {
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(was))) {
		if _, there := is[name]; there {
			continue
		}
		err := root.Remove(filepath.FromSlash(path.Join(top, name)))
		if err != nil && was[name] != "" && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// survey has what each file of a directory holds, as a digest; a directory has none.
func (d delivery) survey(ctx context.Context, cid grid.CID) (map[string]string, error) {
	names := map[string]string{}
	return names, d.walk(ctx, cid, func(header *tar.Header, name string, body io.Reader) error {
		if len(names) >= maxMountNames {
			return fmt.Errorf("more than %d files", maxMountNames)
		}
		names[name] = ""
		if header.Typeflag == tar.TypeDir {
			return nil
		}
		sum := sha256.New()
		if _, err := io.Copy(sum, body); err != nil {
			return err
		}
		names[name] = fmt.Sprint(header.Mode&mayRun != 0, string(sum.Sum(nil)))
		return nil
	})
}

// walk calls a function for each file and directory of a stored directory.
func (d delivery) walk(
	ctx context.Context, cid grid.CID, each func(*tar.Header, string, io.Reader) error,
) error {
	ref, body, err := d.room.GetData(ctx, cid)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }() // only read from
	if !ref.Dir {
		return errors.New("it is a directory no more")
	}
	for archive := tar.NewReader(body); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name := strings.TrimSuffix(header.Name, "/")
		if name == "" || header.Typeflag != tar.TypeDir && header.Typeflag != tar.TypeReg {
			continue
		}
		if !fs.ValidPath(name) {
			return fmt.Errorf("the name %s leads out of the directory", quoted(header.Name))
		}
		if err := each(header, name, archive); err != nil {
			return err
		}
	}
}
