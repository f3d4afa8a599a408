package lrm

import (
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// PrepareDir lays out the attempt's directory: the sandbox's root with the
// parent directories of inputs and outputs, and the directory for its state.
func PrepareDir(a Attempt) error {
	if err := os.MkdirAll(a.WorkDir(), 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(a.WorkDir())
	if err != nil {
		return err
	}
	defer root.Close()
	parents := make([]string, 0, len(a.Inputs)+len(a.OutputPaths))
	for _, b := range a.Inputs {
		parents = append(parents, path.Dir(b.SandboxPath))
	}
	for _, out := range a.OutputPaths {
		parents = append(parents, path.Dir(out))
	}
	for _, dir := range parents {
		if err := root.MkdirAll(sandboxName(dir), 0o700); err != nil {
			return err
		}
	}
	return prepareSaving(root, a)
}

// collectOutputs finds what the attempt wrote. An output is missing when it was
// not written, when a symbolic link leads to it, or when it holds anything but
// files and directories: to store such a thing would follow it out of the
// sandbox.
func collectOutputs(a Attempt) (files []File, missing []string) {
	root, err := os.OpenRoot(a.WorkDir())
	if err != nil {
		return nil, a.OutputPaths
	}
	defer root.Close()
	for _, out := range a.OutputPaths {
		f, ok := collect(root, sandboxName(out))
		if !ok {
			missing = append(missing, out)
			continue
		}
		f.SandboxPath, f.HostPath = out, filepath.Join(a.WorkDir(), filepath.FromSlash(sandboxName(out)))
		files = append(files, f)
	}
	return files, missing
}

func collect(root *os.Root, name string) (File, bool) {
	var prefix string
	var info fs.FileInfo
	for part := range strings.SplitSeq(name, "/") {
		prefix = path.Join(prefix, part)
		var err error
		if info, err = root.Lstat(prefix); err != nil || info.Mode()&fs.ModeSymlink != 0 {
			return File{}, false
		}
	}
	if info.Mode().IsRegular() {
		return File{Bytes: info.Size()}, true
	}
	if !info.IsDir() {
		return File{}, false
	}
	bytes, ok := treeSize(root.FS(), name, MaxEntries)
	return File{Bytes: bytes, Dir: true}, ok
}

// treeSize sums the files below name and reports whether there is nothing but
// files and directories, and not too much of them to be stored.
func treeSize(in fs.FS, name string, most int) (bytes int64, plain bool) {
	plain = true
	entries := 0
	err := fs.WalkDir(in, name, func(below string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entries++; entries > most || strings.Count(below, "/") > MaxDepth {
			plain = false
			return fs.SkipAll
		}
		info, err := d.Info()
		switch {
		case err != nil:
			return err
		case info.Mode().IsRegular():
			bytes += info.Size()
		case !info.IsDir():
			plain = false
		}
		return nil
	})
	return bytes, plain && err == nil
}

// StreamFile is the file of a stream as a Result names it: no file if nothing
// was printed.
func StreamFile(hostPath string) File {
	info, err := os.Lstat(hostPath)
	if err != nil || info.Size() == 0 {
		return File{}
	}
	return File{HostPath: hostPath, Bytes: info.Size()}
}

// sandboxName is a sandbox path as a name below the sandbox's root.
func sandboxName(sandboxPath string) string {
	name := strings.TrimPrefix(path.Clean("/"+sandboxPath), "/")
	if name == "" {
		return "."
	}
	return name
}

const maxExitText = 1 << 10

// ExitText shortens a text to what grid.Exit may hold.
func ExitText(text string) string {
	text = strings.ToValidUTF8(text, "?")
	if len(text) <= maxExitText {
		return text
	}
	return strings.ToValidUTF8(text[:maxExitText-3], "") + "..."
}

// EndWith collects what an attempt has left, and is its end with that. Outputs that are larger than
// its disk are not collected, however little of it they take: files may have holes, and to store
// them takes as long as if they had none.
func EndWith(a Attempt, exit grid.Exit) (grid.Exit, []File) {
	files, missing := collectOutputs(a)
	bytes := together(files)
	if most := a.Limits.OrDefault().DiskBytes; bytes > most {
		if exit.Cause == grid.CauseExited {
			exit.Cause, exit.Code = grid.CauseDisk, 0
			exit.Text = fmt.Sprintf("left outputs of %s; it may write %s",
				grid.FormatBytes(bytes), grid.FormatBytes(most))
		}
		return exit, nil
	}
	return endOf(exit, missing), files
}

// together sums, in bytes, outputs that are not part of each other.
func together(files []File) int64 {
	var bytes int64
	for i, f := range files {
		part := func(of File) bool {
			return of.Dir && strings.HasPrefix(f.HostPath, strings.TrimSuffix(of.HostPath, "/")+"/")
		}
		again := func(of File) bool { return of.HostPath == f.HostPath }
		if !slices.ContainsFunc(files, part) && !slices.ContainsFunc(files[:i], again) {
			bytes += min(f.Bytes, math.MaxInt64-bytes)
		}
	}
	return bytes
}

// endOf is the end of an attempt by its own doing, with the outputs that are missing named.
// One that ended well otherwise has failed for that.
func endOf(exit grid.Exit, missing []string) grid.Exit {
	if exit.Cause == grid.CauseExited && len(missing) > 0 {
		note := "not written: " + strings.Join(missing, ", ")
		if exit.Text != "" {
			note = exit.Text + "; " + note
		}
		if exit.Text = note; exit.Code == 0 {
			exit.Cause = grid.CauseNoOutput
		}
	}
	exit.Text = ExitText(exit.Text)
	return exit
}
