package jobfile

import (
	"archive/tar"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Source is content that a job needs: already stored, or a file or folder on this
// machine.
type Source struct {
	CID   grid.CID // already stored; the rest is empty then
	Root  string   // folder that must not be left
	Path  string   // inside Root, with the system's separators
	Dir   bool     // a folder: Open gives a tar stream
	Bytes int64    // size of the file, or of all files of the folder

	Executable bool // a file whose owner may run it
}

// ownerMayRun is the bit of a file's mode that travels with it.
const ownerMayRun = 0o100

// maxEntries bounds the files of one folder.
const maxEntries = 1_000_000

// entryError is something inside a folder that cannot be sent.
type entryError struct{ text, remedy string }

func (e *entryError) Error() string { return e.text }

// look examines a file or folder below root.
func look(root *os.Root, folder, name string) (Source, error) {
	info, err := root.Stat(name)
	if err != nil {
		return Source{}, err
	}
	source := Source{Root: folder, Path: name, Dir: info.IsDir(), Bytes: info.Size()}
	if !source.Dir {
		source.Executable = info.Mode()&ownerMayRun != 0
		if !info.Mode().IsRegular() {
			return source, &entryError{
				text: name + " is neither a file nor a folder", remedy: "name a file or a folder",
			}
		}
		file, wrong := root.Open(name)
		if wrong != nil {
			return source, wrong
		}
		return source, file.Close()
	}
	source.Bytes = 0
	err = walk(root, name, func(_ string, info fs.FileInfo) error {
		if !info.IsDir() {
			source.Bytes += info.Size()
		}
		return nil
	})
	return source, err
}

// walk visits a folder's files and folders in order. Links to files inside root
// count as the files; other links and special files are refused by name.
func walk(root *os.Root, name string, visit func(string, fs.FileInfo) error) error {
	entries := 0
	return fs.WalkDir(root.FS(), toSlash(name), func(at string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entries++; entries > maxEntries {
			return &entryError{
				text:   fmt.Sprintf("%s holds more than %d files", name, maxEntries),
				remedy: "pack them into one file",
			}
		}
		info, err := root.Stat(at)
		if err != nil && strings.Contains(err.Error(), "escapes") {
			return &entryError{
				text: at + " is a link out of the folder", remedy: "replace the link by what it names",
			}
		}
		if err != nil {
			return err
		}
		link := entry.Type()&fs.ModeSymlink != 0 && at != toSlash(name)
		switch {
		case link && info.IsDir():
			return &entryError{text: at + " is a link to a folder", remedy: "replace the link by the folder"}
		case !info.IsDir() && !info.Mode().IsRegular():
			return &entryError{text: at + " is neither a file nor a folder", remedy: "remove it"}
		}
		return visit(at, info)
	})
}

func toSlash(name string) string {
	return path.Clean(strings.ReplaceAll(name, string(os.PathSeparator), "/"))
}

// head is the first bytes of a file.
func (s Source) head(n int64) ([]byte, error) {
	body, err := s.Open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }() // only read from
	data, err := io.ReadAll(io.LimitReader(body, n))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", s.Path, err)
	}
	return data, nil
}

// Open gives the file's bytes, or the folder as a tar stream that is the same for
// the same content: names in order, no times, no owners. Nothing outside Root is
// read, whatever has changed since Resolve.
func (s Source) Open() (io.ReadCloser, error) {
	root, err := os.OpenRoot(s.Root)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", s.Root, err)
	}
	if !s.Dir {
		file, err := root.Open(s.Path)
		_ = root.Close() // the file stays open
		if err != nil {
			return nil, fmt.Errorf("open %s: %w", s.Path, err)
		}
		return file, nil
	}
	reader, writer := io.Pipe()
	go func() { // ends when the reader is read to its end or closed
		defer func() { _ = root.Close() }() // only read from
		_ = writer.CloseWithError(writeTar(writer, root, s.Path))
	}()
	return reader, nil
}

func writeTar(w io.Writer, root *os.Root, name string) error {
	out := tar.NewWriter(w)
	base := toSlash(name)
	err := walk(root, name, func(at string, info fs.FileInfo) error {
		inside := strings.TrimPrefix(strings.TrimPrefix(at, base), "/")
		if base == "." {
			inside = at
		}
		if inside == "" || inside == "." {
			return nil
		}
		return writeEntry(out, root, at, inside, info)
	})
	if err != nil {
		return fmt.Errorf("pack %s: %w", name, err)
	}
	if err := out.Close(); err != nil {
		return fmt.Errorf("pack %s: %w", name, err)
	}
	return nil
}

func writeEntry(out *tar.Writer, root *os.Root, at, inside string, info fs.FileInfo) error {
	header := &tar.Header{
		Typeflag: tar.TypeReg, Name: inside, Mode: 0o644, Size: info.Size(), Format: tar.FormatPAX,
	}
	if info.Mode()&ownerMayRun != 0 {
		header.Mode = 0o755
	}
	if info.IsDir() {
		header.Typeflag, header.Name, header.Mode, header.Size = tar.TypeDir, inside+"/", 0o755, 0
	}
	if err := out.WriteHeader(header); err != nil || info.IsDir() {
		return err
	}
	file, err := root.Open(at)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // only read from
	if _, err := io.CopyN(out, file, info.Size()); err != nil {
		return fmt.Errorf("%s changed while it was read: %w", at, err)
	}
	return nil
}
