package tes

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// mayRun is the x bit of a file's owner.
const mayRun = 0o100

// locate looks whether the files that a task reads are there, and may be read, and where it
// writes to. It fills in the type of inputs that name none.
func (all shelves) locate(given TesTask, w *work, web websites) error {
	for i := range w.inputs {
		in, field := &(*w.task.Inputs)[i], fmt.Sprintf("inputs[%d]", i)
		if literal(*in) {
			continue
		}
		if onWeb(*in.Url) {
			if err := web.locate(field, *in); err != nil {
				return err
			}
			continue
		}
		typed := (*given.Inputs)[i].Type != nil
		if err := all.locateInput(field, in, typed); err != nil {
			return err
		}
	}
	for i, out := range w.outputs {
		field := fmt.Sprintf("outputs[%d].url", i)
		p, err := all.find(field, out.url)
		if err != nil {
			return err
		}
		if p.name == "." && out.prefix == "" && *(*w.task.Outputs)[i].Type == FILE {
			return invalid(field, "names a directory", "name the file")
		}
		if err = p.within(); err != nil {
			return invalid(field, "cannot be written: "+reason(err), "choose another place")
		}
	}
	return nil
}

func (all shelves) locateInput(field string, in *TesInput, typed bool) error {
	p, err := all.find(field+".url", *in.Url)
	if err != nil {
		return err
	}
	info, err := p.stat()
	if err != nil {
		return invalid(field+".url", "cannot be read: "+reason(err), "name a file that is there")
	}
	found := typeFound(info)
	if !typed {
		in.Type = &found
	}
	if *in.Type != found {
		return invalid(field+".type", "what is there is a "+string(found), "write "+string(found))
	}
	if !info.IsDir() && !info.Mode().IsRegular() {
		return invalid(field+".url", "neither a file nor a directory", "name one")
	}
	return nil
}

func typeFound(info fs.FileInfo) TesFileType {
	if info.IsDir() {
		return DIRECTORY
	}
	return FILE
}

// reason is an error without the path of this machine, which the user has named in other words.
func reason(err error) string {
	if wrong, ok := errors.AsType[*fs.PathError](err); ok {
		return wrong.Err.Error()
	}
	return err.Error()
}

// put stores an input.
func put(
	ctx context.Context, r room, all shelves, web websites, in TesInput,
) (grid.Input, error) {
	if literal(in) {
		ref, err := r.PutData(ctx, false, strings.NewReader(*in.Content))
		return inputOf(ref), err
	}
	if onWeb(*in.Url) {
		return web.fetch(ctx, r, *in.Url)
	}
	p, err := all.find("url", *in.Url)
	if err != nil {
		return grid.Input{}, err
	}
	root, err := p.open()
	if err != nil {
		return grid.Input{}, err
	}
	defer func() { _ = root.Close() }() // only read from
	if *in.Type == DIRECTORY {
		return putTree(ctx, r, root, p.name, false)
	}
	return putFile(ctx, r, root, p.name)
}

func inputOf(ref view.DataRef) grid.Input {
	return grid.Input{CID: ref.CID, Bytes: ref.Bytes, Dir: ref.Dir}
}

func putFile(ctx context.Context, r room, root *os.Root, name string) (grid.Input, error) {
	f, info, err := openFile(root, name)
	if err != nil {
		return grid.Input{}, err
	}
	defer func() { _ = f.Close() }() // only read from
	var ref view.DataRef
	if info.Mode()&mayRun != 0 {
		ref, err = r.PutExecutable(ctx, f)
	} else {
		ref, err = r.PutData(ctx, false, f)
	}
	return inputOf(ref), err
}

// openFile opens a regular file. What is none is not opened: a pipe would wait.
func openFile(root *os.Root, name string) (*os.File, fs.FileInfo, error) {
	name = filepath.FromSlash(name)
	info, err := root.Stat(name)
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%s: not a regular file", name)
	}
	f, err := root.Open(name)
	return f, info, err
}

// putMount stores a directory in which others may be at work.
func putMount(ctx context.Context, r room, all shelves, address string) (grid.Input, error) {
	p, err := all.find("url", address)
	if err != nil {
		return grid.Input{}, err
	}
	root, err := p.open()
	if err != nil {
		return grid.Input{}, err
	}
	defer func() { _ = root.Close() }() // only read from
	return putTree(ctx, r, root, p.name, true)
}

// putTree stores a directory. Links to files in it are followed as far as they stay on the shelf.
// What disappears while it is read may do so in one that is busy.
func putTree(
	ctx context.Context, r room, root *os.Root, name string, busy bool,
) (grid.Input, error) {
	read, write := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		archive := tar.NewWriter(write)
		err := pack(ctx, archive, root, name, busy)
		if err == nil {
			err = archive.Close()
		}
		_ = write.CloseWithError(err) // always nil
	}()
	ref, err := r.PutData(ctx, true, read)
	_ = read.CloseWithError(io.ErrClosedPipe) // always nil
	<-done
	return inputOf(ref), err
}

func pack(
	ctx context.Context, archive *tar.Writer, root *os.Root, top string, busy bool,
) error {
	return fs.WalkDir(root.FS(), top, func(name string, entry fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if busy && name != top && errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || name == top {
			return err
		}
		inside := strings.TrimPrefix(name, top+"/")
		if entry.IsDir() {
			return archive.WriteHeader(&tar.Header{
				Typeflag: tar.TypeDir, Name: inside + "/", Mode: 0o755,
			})
		}
		err = packFile(archive, root, name, inside)
		switch {
		case busy && errors.Is(err, fs.ErrNotExist):
			return nil
		case busy && errors.Is(err, io.EOF): // it became shorter: the whole is read again
			return errors.Join(view.ErrBusy, err)
		}
		return err
	})
}

func packFile(archive *tar.Writer, root *os.Root, name, inside string) error {
	f, info, err := openFile(root, name)
	if err != nil {
		return fmt.Errorf("%s: %w", path.Base(name), err)
	}
	defer func() { _ = f.Close() }() // only read from
	err = archive.WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg, Name: inside, Size: info.Size(), Mode: int64(info.Mode().Perm()),
	})
	if err == nil {
		_, err = io.CopyN(archive, f, info.Size())
	}
	return err
}
