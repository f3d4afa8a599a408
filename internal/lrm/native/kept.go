package native

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
)

// A kept state is one file: gVisor's image, the contents of the files in their order, what was
// printed, the description as JSON, and an end of 16 bytes: the description's length and keptMagic.
const (
	keptMagic      = "mrsgv001"
	keptEnd        = 8 + int64(len(keptMagic))
	mostKeptText   = 16 << 20 // bytes of a description
	mostKeptFiles  = 50_000
	keptFileMode   = 0o777
	keptImageName  = "checkpoint.img" // as gVisor calls it
	errKeptForeign = "the state was saved by another gVisor or on another kind of machine"
)

// errKept says that a state is none, or not whole.
var errKept = errors.New("the state is none of gVisor's, or was cut")

// kept describes a state.
type kept struct {
	Version string            // of runsc
	Machine string            // architecture, as Go names it
	System  map[string]string // digests of the site's own files that the command had open
	Image   int64             // bytes
	Files   []keptFile
	Stdout  int64 // bytes
	Stderr  int64 // bytes
}

// keptFile is a file, a directory or a link of the sandbox's root, parents first.
type keptFile struct {
	Path  string
	Mode  fs.FileMode
	Bytes int64     `json:",omitempty"`
	At    time.Time // of its last change
	Link  string    `json:",omitempty"`
}

// size is the number of bytes before the description; false means that they cannot be.
func (k *kept) size() (sum int64, ok bool) {
	parts := []int64{k.Image, k.Stdout, k.Stderr}
	for _, f := range k.Files {
		parts = append(parts, f.Bytes)
	}
	for _, n := range parts {
		if n < 0 || sum+n < sum {
			return 0, false
		}
		sum += n
	}
	return sum, true
}

// validate refuses what no state holds: paths out of the root, into the states' directory, or files
// of other kinds.
func (k *kept) validate() error {
	if len(k.Files) > mostKeptFiles {
		return fmt.Errorf("%w: more than %d files", errKept, mostKeptFiles)
	}
	for _, f := range k.Files {
		kind := f.Mode.Type()
		switch {
		case !filepath.IsLocal(f.Path) || f.Path != filepath.Clean(f.Path) || ofStates(f.Path):
			return fmt.Errorf("%w: path %q", errKept, f.Path)
		case kind != 0 && kind != fs.ModeDir && kind != fs.ModeSymlink,
			kind != 0 && f.Bytes != 0, (kind == fs.ModeSymlink) != (f.Link != ""):
			return fmt.Errorf("%w: %q is of another kind", errKept, f.Path)
		}
	}
	return nil
}

// ofStates reports whether a path leads to the directory for states.
func ofStates(path string) bool {
	first, _, _ := strings.Cut(path, string(filepath.Separator))
	return first == lrm.SaveName()
}

// readKept reads and checks a state's description.
func readKept(f io.ReaderAt, size int64) (k kept, err error) {
	end := make([]byte, keptEnd)
	if size < keptEnd {
		return k, errKept
	}
	if _, err = f.ReadAt(end, size-keptEnd); err != nil {
		return k, fmt.Errorf("read state: %w", err)
	}
	length := binary.BigEndian.Uint64(end)
	if string(end[8:]) != keptMagic || length > mostKeptText || int64(length) > size-keptEnd {
		return k, errKept
	}
	text := make([]byte, length)
	if _, err = f.ReadAt(text, size-keptEnd-int64(length)); err != nil {
		return k, fmt.Errorf("read state: %w", err)
	}
	if json.Unmarshal(text, &k) != nil {
		return kept{}, errKept
	}
	if sum, ok := k.size(); !ok || sum != size-keptEnd-int64(length) {
		return kept{}, errKept
	}
	return k, k.validate()
}

// packer writes a state.
type packer struct {
	to  io.Writer
	err error
}

// file appends a file, which must have the size that was described.
func (p *packer) file(f *os.File, bytes int64) {
	if p.err != nil {
		return
	}
	n, err := io.Copy(p.to, io.LimitReader(f, bytes))
	if err == nil && n != bytes {
		err = io.ErrUnexpectedEOF
	}
	p.err = err
}

// finish appends the description and the end.
func (p *packer) finish(k kept) error {
	text, err := json.Marshal(k)
	if err = errors.Join(p.err, err); err != nil {
		return err
	}
	if len(text) > mostKeptText {
		return errors.New("the command has too many files")
	}
	text = binary.BigEndian.AppendUint64(text, uint64(len(text)))
	_, err = p.to.Write(append(text, keptMagic...))
	return err
}

// listFiles lists what the sandbox's root holds, without the states.
func listFiles(root *os.Root) (files []keptFile, err error) {
	err = fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path == ".":
			return nil
		case ofStates(path):
			return fs.SkipDir
		case len(files) == mostKeptFiles:
			return fmt.Errorf("the command has more than %d files", mostKeptFiles)
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		mode := info.Mode() & (fs.ModeType | keptFileMode)
		f := keptFile{Path: path, Mode: mode, At: info.ModTime()}
		switch info.Mode().Type() {
		case 0:
			f.Bytes = info.Size()
		case fs.ModeDir:
		case fs.ModeSymlink:
			if f.Link, err = root.Readlink(path); err != nil {
				return err
			}
		default:
			return fmt.Errorf("%s is neither file nor directory nor link", path)
		}
		files = append(files, f)
		return nil
	})
	return files, err
}

// layFile puts one thing in its place in the root; content holds a file's bytes. Directories stay
// writable: finishDirs gives them their own modes.
func layFile(root *os.Root, f keptFile, content io.Reader) error {
	if f.Mode.IsDir() {
		return root.MkdirAll(f.Path, 0o700)
	}
	if f.Link != "" {
		return root.Symlink(f.Link, f.Path)
	}
	to, err := root.OpenFile(f.Path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(to, io.LimitReader(content, f.Bytes))
	if err == nil && n != f.Bytes {
		err = io.ErrUnexpectedEOF
	}
	if err = errors.Join(err, to.Chmod(f.Mode.Perm()), to.Close()); err != nil {
		return err
	}
	return root.Chtimes(f.Path, f.At, f.At)
}

// finishDirs gives directories their modes and times, the innermost first.
func finishDirs(root *os.Root, files []keptFile) error {
	for _, f := range slices.Backward(files) {
		if !f.Mode.IsDir() {
			continue
		}
		err := errors.Join(root.Chmod(f.Path, f.Mode.Perm()), root.Chtimes(f.Path, f.At, f.At))
		if err != nil {
			return err
		}
	}
	return nil
}

// emptyRoot removes all but the states.
func emptyRoot(root *os.Root) error {
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if ofStates(e.Name()) {
			continue
		}
		if err := root.RemoveAll(e.Name()); err != nil {
			return err
		}
	}
	return nil
}

// digestOf is the SHA-256 of a file of the system.
func digestOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
