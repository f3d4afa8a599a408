package main

import (
	"archive/tar"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/mrsmesh/mrsmesh/internal/view"
)

// writeOutput fetches one output and puts it in its place atomically:
// under a temporary name first, then renamed. No part of its path may be a link.
func (a *app) writeOutput(
	ctx context.Context, root *os.Root, task string, out view.OutputView,
) error {
	to := filepath.Clean(filepath.FromSlash(out.To))
	if !filepath.IsLocal(to) || to == "." {
		return errors.New(
			"the path leads out of the folder; fetch it with `submit get --to DIR` after correcting the job",
		)
	}
	if err := makeParents(root, to); err != nil {
		return err
	}
	ref, body, err := a.client.GetOutput(ctx, task, out)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }() // only read from
	temporary := filepath.Join(filepath.Dir(to), ".mrs-"+rand.Text()[:12])
	if ref.Dir {
		return placeFolder(root, temporary, to, body)
	}
	return placeFile(root, temporary, to, body, ref)
}

// makeParents makes the folders above a path and refuses links among them.
func makeParents(root *os.Root, to string) error {
	parts := strings.Split(to, string(filepath.Separator))
	for i := range parts {
		at := filepath.Join(parts[:i+1]...)
		info, err := root.Lstat(at)
		last := i == len(parts)-1
		switch {
		case errors.Is(err, fs.ErrNotExist) && !last:
			if wrong := root.Mkdir(at, 0o755); wrong != nil {
				return wrong
			}
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return err
		case info.Mode()&fs.ModeSymlink != 0:
			return fmt.Errorf("%s is a link, and outputs are never written through links; remove it", at)
		case last && !info.Mode().IsRegular():
			return fmt.Errorf(
				"%s is there already and is no file; move it away or use `submit get --to DIR`", at,
			)
		}
	}
	return nil
}

func placeFile(root *os.Root, temporary, to string, body io.Reader, ref view.DataRef) error {
	if err := writeFile(root, temporary, body, ref.Bytes, modeOf(ref.Executable)); err != nil {
		return errors.Join(err, root.Remove(temporary))
	}
	return root.Rename(temporary, to)
}

// modeOf is the mode of a new file, from which the user's umask takes.
func modeOf(executable bool) fs.FileMode {
	if executable {
		return 0o755
	}
	return 0o644
}

func writeFile(root *os.Root, name string, body io.Reader, size int64, mode fs.FileMode) error {
	file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	n, err := io.Copy(file, body)
	if err == nil && n != size {
		err = fmt.Errorf("have %d bytes, want %d", n, size)
	}
	return errors.Join(err, file.Close())
}

// placeFolder unpacks a tar stream. The folder must not be there yet: replacing
// one would remove what somebody else put there.
func placeFolder(root *os.Root, temporary, to string, body io.Reader) error {
	if _, err := root.Lstat(to); err == nil {
		return errors.New("the folder is there already; move it away or use `submit get --to DIR`")
	}
	if err := root.Mkdir(temporary, 0o755); err != nil {
		return err
	}
	err := unpack(root, temporary, body)
	if err == nil {
		err = root.Rename(temporary, to)
	}
	if err != nil {
		return errors.Join(err, root.RemoveAll(temporary)) // made above
	}
	return nil
}

// unpack writes the files and folders of a tar stream below a folder and refuses
// everything else.
func unpack(root *os.Root, folder string, body io.Reader) error {
	return eachEntry(body, func(name string, header *tar.Header, body io.Reader) error {
		return unpackEntry(root, filepath.Join(folder, name), header, body)
	})
}

// eachEntry does something with each entry of a tar stream, unless its name leads out of the
// folder that was packed.
func eachEntry(
	packed io.Reader, do func(name string, header *tar.Header, body io.Reader) error,
) error {
	reader := tar.NewReader(packed)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("unpack: %w", err)
		}
		name := filepath.FromSlash(path.Clean(header.Name))
		if !filepath.IsLocal(name) {
			return fmt.Errorf("unpack: %q leads out of the folder", header.Name)
		}
		if err := do(name, header, reader); err != nil {
			return fmt.Errorf("unpack %s: %w", name, err)
		}
	}
}

func unpackEntry(root *os.Root, at string, header *tar.Header, body io.Reader) error {
	switch header.Typeflag {
	case tar.TypeDir:
		return root.MkdirAll(at, 0o755)
	case tar.TypeReg:
		if err := root.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return err
		}
		return writeFile(root, at, body, header.Size, modeOf(header.Mode&0o100 != 0))
	default:
		return errors.New("neither a file nor a folder")
	}
}
