package data

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
)

// readDir stores the files below a host directory and fills in the tree.
func (b *builder) readDir(hostDir string) error {
	info, err := os.Lstat(hostDir)
	if err != nil {
		return fmt.Errorf("read directory: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("%w: %s is a %s, want a directory",
			ErrUnsupported, hostDir, typeName(info.Mode()))
	}
	host, err := os.OpenRoot(hostDir)
	if err != nil {
		return fmt.Errorf("read directory: %w", err)
	}
	defer func() { _ = host.Close() }()
	return fs.WalkDir(host.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("read directory: %w", err)
		}
		if name == "." {
			return nil
		}
		if err := b.hostEntry(host, name, entry); err != nil {
			return fmt.Errorf("%s: %w", path.Join(hostDir, name), err)
		}
		return nil
	})
}

func (b *builder) hostEntry(host *os.Root, name string, entry fs.DirEntry) error {
	if entry.IsDir() {
		return b.enterDir(name)
	}
	if !entry.Type().IsRegular() {
		return fmt.Errorf("%w: a %s; only regular files and directories are taken",
			ErrUnsupported, typeName(entry.Type()))
	}
	f, err := host.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() { // exchanged meanwhile
		return fmt.Errorf("%w: no longer a regular file", ErrUnsupported)
	}
	return b.enterFile(name, f, info.Mode()&ownerMayRun != 0)
}

func typeName(m fs.FileMode) string {
	switch {
	case m.IsRegular():
		return "regular file"
	case m.IsDir():
		return "directory"
	case m&fs.ModeSymlink != 0:
		return "symbolic link"
	case m&fs.ModeSocket != 0:
		return "socket"
	case m&fs.ModeNamedPipe != 0:
		return "named pipe"
	case m&fs.ModeDevice != 0:
		return "device"
	default:
		return "special file"
	}
}

// readTar stores the files of a tar stream and fills in the tree.
func (b *builder) readTar(r io.Reader) error {
	in := tar.NewReader(r)
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w: read tar: %w", ErrUnsupported, err)
		}
		if err := b.tarEntry(h, in); err != nil {
			return fmt.Errorf("tar entry %q: %w", h.Name, err)
		}
	}
}

func (b *builder) tarEntry(h *tar.Header, content io.Reader) error {
	name := strings.TrimPrefix(h.Name, "./")
	switch h.Typeflag {
	case tar.TypeDir:
		name = strings.TrimSuffix(name, "/")
		if name == "" || name == "." {
			return nil
		}
		return b.enterDir(name)
	case tar.TypeReg:
		return b.enterFile(name, content, h.Mode&ownerMayRun != 0)
	default:
		return fmt.Errorf("%w: type %q; only regular files and directories are taken",
			ErrUnsupported, h.Typeflag)
	}
}

// enterDir makes a directory and its missing parents.
func (b *builder) enterDir(name string) error {
	_, err := b.treeAt(name)
	return err
}

// enterFile stores one file at a path that is not taken.
func (b *builder) enterFile(name string, content io.Reader, executable bool) error {
	dir, base := path.Split(name)
	if err := checkName(base); err != nil {
		return err
	}
	parent, err := b.treeAt(strings.TrimSuffix(dir, "/"))
	if err != nil {
		return err
	}
	if parent.files[base] != nil || parent.dirs[base] != nil {
		return fmt.Errorf("%w: the path is named twice", ErrUnsupported)
	}
	if err = b.count(); err != nil {
		return err
	}
	link, err := b.file(content, executable)
	if err != nil {
		return err
	}
	parent.files[base] = link
	return nil
}

// treeAt is the directory at a clean relative path, made where missing.
func (b *builder) treeAt(name string) (*tree, error) {
	at := b.top
	if name == "" {
		return at, nil
	}
	parts := strings.Split(name, "/")
	if len(name) > maxPathBytes || len(parts) > b.limits.Depth {
		return nil, fmt.Errorf("%w: path of %d bytes and %d levels, the most is %d and %d",
			ErrTooLarge, len(name), len(parts), maxPathBytes, b.limits.Depth)
	}
	for _, part := range parts {
		if err := checkName(part); err != nil {
			return nil, err
		}
		if at.files[part] != nil {
			return nil, fmt.Errorf("%w: %q is a file and a directory", ErrUnsupported, part)
		}
		if at.dirs[part] == nil {
			if err := b.count(); err != nil {
				return nil, err
			}
			at.dirs[part] = newTree()
		}
		at = at.dirs[part]
	}
	return at, nil
}
