package crypt

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// A directory is encrypted as one tar stream, so that not even the names in it can be read.

// The modes of files that are laid out, and the bit of a mode that travels.
const (
	fileMode    = 0o600
	programMode = 0o700
	folderMode  = 0o700
	ownerMayRun = 0o100
)

// Pack gives a directory as a tar stream: regular files and directories, by name, content and
// whether the owner may run it. Everything else in it is an error. It must be closed.
func Pack(folder string) (io.ReadCloser, error) {
	info, err := os.Lstat(folder)
	if err != nil {
		return nil, fmt.Errorf("pack: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("pack %s: no directory", folder)
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, fmt.Errorf("pack: %w", err)
	}
	r, w := io.Pipe()
	go func() { // ends when the reader is read to its end or closed
		err := pack(root, w)
		_ = root.Close() // only read from
		w.CloseWithError(err)
	}()
	return r, nil
}

func pack(root *os.Root, w io.Writer) error {
	out := tar.NewWriter(w)
	err := fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && name != "." {
			err = packEntry(root, out, name, entry)
		}
		if err != nil {
			return fmt.Errorf("pack %s: %w", name, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return out.Close()
}

func packEntry(root *os.Root, out *tar.Writer, name string, entry fs.DirEntry) error {
	if entry.IsDir() {
		return out.WriteHeader(&tar.Header{
			Typeflag: tar.TypeDir, Name: name + "/", Mode: folderMode, Format: tar.FormatPAX,
		})
	}
	if !entry.Type().IsRegular() {
		return errors.New("only regular files and directories are taken")
	}
	f, err := root.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only read from
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() { // exchanged meanwhile
		return errors.New("no longer a regular file")
	}
	header := &tar.Header{
		Typeflag: tar.TypeReg, Name: name, Mode: fileMode, Size: info.Size(), Format: tar.FormatPAX,
	}
	if info.Mode()&ownerMayRun != 0 {
		header.Mode = programMode
	}
	if err = out.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.CopyN(out, f, info.Size())
	return err
}

// Unpack lays a tar stream out as a new directory: files with mode 0600, those that their owner may
// run and directories with 0700. Names are not trusted: nothing is written outside the directory,
// and no link is made or followed. What the entries together take is bounded by mostBytes, holes
// counted, and their number by what a stream so long can hold. When it fails, nothing is left.
func Unpack(packed io.Reader, folder string, mostBytes int64) (err error) {
	if err = os.Mkdir(folder, folderMode); err != nil {
		return fmt.Errorf("lay out: %w", err)
	}
	root, err := os.OpenRoot(folder)
	if err == nil {
		err = unpack(root, packed, mostBytes)
		_ = root.Close() // nothing is left to write
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(folder)) // made above
	}
	return nil
}

func unpack(root *os.Root, packed io.Reader, left int64) error {
	in := tar.NewReader(packed)
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			// What follows the archive is read, too: only at its end is a stream known to be whole.
			_, err = io.Copy(io.Discard, packed)
			return err
		}
		if err != nil {
			return notTar(err)
		}
		if left -= h.Size; h.Size < 0 || left < 0 {
			return fmt.Errorf("%w: its files are larger than it is", ErrDamaged)
		}
		if err = unpackEntry(root, h, in); err != nil {
			return err
		}
	}
}

// notTar keeps errors of what is read apart from those of the archive.
func notTar(err error) error {
	if errors.Is(err, tar.ErrHeader) || errors.Is(err, tar.ErrFieldTooLong) ||
		errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: no directory: %w", ErrDamaged, err)
	}
	return err
}

func unpackEntry(root *os.Root, h *tar.Header, content io.Reader) error {
	name := filepath.FromSlash(strings.TrimSuffix(strings.TrimPrefix(h.Name, "./"), "/"))
	if (name == "" || name == ".") && h.Typeflag == tar.TypeDir {
		return nil
	}
	if !filepath.IsLocal(name) || name != filepath.Clean(name) || name == "." {
		return fmt.Errorf("%w: the name %q leads out of the directory", ErrDamaged, h.Name)
	}
	switch h.Typeflag {
	case tar.TypeDir:
		return root.MkdirAll(name, folderMode)
	case tar.TypeReg:
		if err := root.MkdirAll(filepath.Dir(name), folderMode); err != nil {
			return err
		}
		mode := fs.FileMode(fileMode)
		if h.Mode&ownerMayRun != 0 {
			mode = programMode
		}
		f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("%w: %q is named twice", ErrDamaged, h.Name)
		}
		if err != nil {
			return err
		}
		_, err = io.Copy(f, content)
		return errors.Join(notTar(err), f.Close())
	default:
		return fmt.Errorf("%w: %q is neither a file nor a directory", ErrDamaged, h.Name)
	}
}
