package data

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// errDiffers means that files are not what their identifier says.
var errDiffers = errors.New("the files differ from their content identifier")

// Compare reports whether what lies at a path is, byte for byte, what a content identifier names,
// as Export has written it: the same files and directories and no others, executable or not. Each
// block that it reads for that is checked against its hash. The error wraps errDiffers where it is
// not.
func (s *Store) Compare(ctx context.Context, c grid.CID, hostPath string) error {
	ctx, op, root, err := s.open(ctx, c)
	if err != nil {
		return fmt.Errorf("compare data: %w", err)
	}
	defer op.end()
	in, err := os.OpenRoot(filepath.Dir(hostPath))
	if err != nil {
		return fmt.Errorf("compare data: %w", err)
	}
	defer func() { _ = in.Close() }() // only read from
	v := &comparing{in: in, top: filepath.Base(hostPath)}
	if err = s.visit(ctx, root, v); err == nil {
		err = v.noOthers()
	}
	if err != nil {
		return fmt.Errorf("compare %s with %s: %w", hostPath, c, s.readError(c, err))
	}
	return nil
}

// comparing is told of all that should be there.
type comparing struct {
	in    *os.Root
	top   string // the name of what is compared
	found int    // files and directories below it
}

func (v *comparing) path(name string) (string, error) {
	if name == "" {
		return v.top, nil
	}
	v.found++
	local, err := localName(name)
	return filepath.Join(v.top, local), err
}

func (v *comparing) dir(name string) error {
	path, err := v.path(name)
	if err != nil {
		return err
	}
	info, err := v.in.Lstat(path)
	if err != nil || !info.IsDir() {
		return fmt.Errorf("%w: %s is no directory", errDiffers, path)
	}
	return nil
}

func (v *comparing) file(name string, n node, content io.Reader) error {
	path, err := v.path(name)
	if err != nil {
		return err
	}
	info, err := v.in.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() != n.bytes ||
		n.executable != (info.Mode().Perm()&0o100 != 0) {
		return fmt.Errorf("%w: %s is missing, or of another size or kind", errDiffers, path)
	}
	f, err := v.in.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only read from
	return sameBytes(path, f, content)
}

// sameBytes compares two texts to their ends.
func sameBytes(path string, have, want io.Reader) error {
	const size = 64 << 10
	one, other := make([]byte, size), make([]byte, size)
	for {
		n, errWant := io.ReadFull(want, one)
		m, errHave := io.ReadFull(have, other)
		for _, err := range []error{errWant, errHave} {
			if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				return err
			}
		}
		switch {
		case !bytes.Equal(one[:n], other[:m]):
			return fmt.Errorf("%w: %s has other bytes", errDiffers, path)
		case n < size:
			return nil // both have ended
		}
	}
}

// noOthers wants no entry below a directory that was not named.
func (v *comparing) noOthers() error {
	found := 0
	err := fs.WalkDir(v.in.FS(), v.top, func(path string, _ fs.DirEntry, err error) error {
		if path != v.top {
			found++
		}
		return err
	})
	if err == nil && found != v.found {
		err = fmt.Errorf("%w: %d files and directories, want %d", errDiffers, found, v.found)
	}
	return err
}
