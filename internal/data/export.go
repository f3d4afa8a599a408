package data

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ipfs/go-cid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

const (
	fileMode    = 0o600 // of exported files
	programMode = 0o700 // of those with the x bit
	dirMode     = 0o700 // of exported directories
)

// Export copies what is held to a path that must not exist yet, its parent must:
// files with mode 0600, executable ones and directories with 0700. Names come from
// the maker of the data and are not trusted: nothing is written outside the path, and
// no link is followed below it. When it fails, it removes what it wrote.
func (s *Store) Export(ctx context.Context, c grid.CID, hostPath string) error {
	ctx, op, root, err := s.open(ctx, c)
	if err != nil {
		return fmt.Errorf("export data: %w", err)
	}
	defer op.end()
	n, err := s.node(root)
	if err != nil {
		return s.readError(c, err)
	}
	if n.kind == kindLeaf || n.kind == kindFile {
		err = s.exportFile(ctx, root, n, hostPath)
	} else {
		err = s.exportDir(ctx, root, hostPath)
	}
	if err != nil {
		return fmt.Errorf("export %s to %s: %w", c, hostPath, s.readError(c, err))
	}
	return nil
}

func (s *Store) exportFile(ctx context.Context, c cid.Cid, n node, hostPath string) error {
	f, err := os.OpenFile(hostPath, os.O_WRONLY|os.O_CREATE|os.O_EXCL, exportMode(n))
	if err != nil {
		return existsError(err)
	}
	err = copyFile(f, s.newFileReader(ctx, c))
	if err != nil {
		_ = os.Remove(hostPath)
	}
	return err
}

func (s *Store) exportDir(ctx context.Context, c cid.Cid, hostPath string) error {
	if err := os.Mkdir(hostPath, dirMode); err != nil {
		return existsError(err)
	}
	to, err := os.OpenRoot(hostPath)
	if err == nil {
		err = s.visit(ctx, c, exportVisitor{to: to})
		_ = to.Close()
	}
	if err != nil {
		_ = os.RemoveAll(hostPath) // made above
	}
	return err
}

func exportMode(n node) fs.FileMode {
	if n.executable {
		return programMode
	}
	return fileMode
}

func existsError(err error) error {
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: %w", errExists, err)
	}
	return writeError(err)
}

// copyFile fills and closes a new file.
func copyFile(f *os.File, from io.Reader) error {
	_, err := io.Copy(f, from)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil && !errors.Is(err, ErrNotHeld) && !errors.Is(err, context.Canceled) {
		return writeError(err)
	}
	return err
}

// exportVisitor writes below a directory.
type exportVisitor struct{ to *os.Root }

func (v exportVisitor) dir(name string) error {
	local, err := localName(name)
	if err != nil {
		return err
	}
	if err := v.to.Mkdir(local, dirMode); err != nil {
		return existsError(err)
	}
	return nil
}

func (v exportVisitor) file(name string, n node, content io.Reader) error {
	local, err := localName(name)
	if err != nil {
		return err
	}
	f, err := v.to.OpenFile(local, os.O_WRONLY|os.O_CREATE|os.O_EXCL, exportMode(n))
	if err != nil {
		return existsError(err)
	}
	return copyFile(f, content)
}

// localName refuses names that mean something else on this operating system.
func localName(name string) (string, error) {
	local, err := filepath.Localize(name)
	if err != nil {
		return "", fmt.Errorf("%w: %q is no file name on this system", ErrUnsupported, name)
	}
	return local, nil
}
