package jobfile_test

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/internal/jobfile"
)

// entry is one file of a tar stream.
type entry struct {
	Name    string
	Kind    byte
	Mode    int64
	Content string
}

func entries(t *testing.T, source jobfile.Source) (all []entry) {
	t.Helper()
	body, err := source.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = body.Close() }() // only read from
	for reader := tar.NewReader(body); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if !header.ModTime.IsZero() && !header.ModTime.Equal(time.Unix(0, 0)) || header.Uid != 0 ||
			header.Uname != "" || header.Format != tar.FormatPAX && header.Format != tar.FormatUSTAR {
			t.Errorf("%s says more of its file than it may: %+v", header.Name, header)
		}
		content, err := io.ReadAll(reader)
		if err != nil || header.Size != int64(len(content)) {
			t.Fatalf("%s: %d bytes of %d: %v", header.Name, len(content), header.Size, err)
		}
		all = append(all, entry{header.Name, header.Typeflag, header.Mode, string(content)})
	}
}

// A folder travels as its folders and files in order, links to files as the files, with the bit
// that lets the owner run them and nothing else of their modes, whichever way it is named.
func TestAFolderInFull(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		"s/a/deep/f": "1234", "s/b": "22", "s/run": "#!", "s/link": "-> ../far", "far": "far away",
		"s/empty": "", "s/c/x": "-> ../run",
	})
	for name, mode := range map[string]fs.FileMode{"s/run": 0o700, "s/b": 0o611, "s/a": 0o700} {
		if err := os.Chmod(filepath.Join(dir, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	want := []entry{
		{"a/", tar.TypeDir, 0o755, ""},
		{"a/deep/", tar.TypeDir, 0o755, ""},
		{"a/deep/f", tar.TypeReg, 0o644, "1234"},
		{"b", tar.TypeReg, 0o644, "22"},
		{"c/", tar.TypeDir, 0o755, ""},
		{"c/x", tar.TypeReg, 0o755, "#!"},
		{"empty", tar.TypeReg, 0o644, ""},
		{"link", tar.TypeReg, 0o644, "far away"},
		{"run", tar.TypeReg, 0o755, "#!"},
	}
	size := 0
	for _, e := range want {
		size += len(e.Content)
	}
	text := "command: [x]\ninputs: [{path: /a, from: ./s/}]\n"
	plan, err := jobfile.Load([]byte(text), dir, options())
	if err != nil {
		t.Fatal(err)
	}
	got := plan.Sources
	if diff := cmp.Diff([]jobfile.Source{
		{Root: dir, Path: "s", Dir: true, Bytes: int64(size)},
	}, got); diff != "" {
		t.Errorf("the folder (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, entries(t, got[0])); diff != "" {
		t.Errorf("its stream (-want +got):\n%s", diff)
	}
	// By a name that may lead anywhere the folder itself must not be left.
	if err := os.Remove(filepath.Join(dir, "s/link")); err != nil {
		t.Fatal(err)
	}
	want = slices.DeleteFunc(want, func(e entry) bool { return e.Name == "link" })
	inner := filepath.Join(dir, "s", "a")
	for _, from := range []string{"../../s", filepath.Join(dir, "s")} {
		text := []byte("command: [x]\ninputs: [{path: /a, from: " + from + "}]\n")
		outside := options()
		if plan, err := jobfile.Load(text, inner, outside); err == nil ||
			!strings.Contains(err.Error(), "--allow-outside") {
			t.Errorf("%s: %+v, %v", from, plan, err)
		}
		outside.AllowOutside = true
		plan, err := jobfile.Load(text, inner, outside)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]jobfile.Source{
			{Root: filepath.Join(dir, "s"), Path: ".", Dir: true, Bytes: int64(size - len("far away"))},
		}, plan.Sources); diff != "" {
			t.Errorf("%s (-want +got):\n%s", from, diff)
		}
		if diff := cmp.Diff(want, entries(t, plan.Sources[0])); diff != "" {
			t.Errorf("%s: its stream (-want +got):\n%s", from, diff)
		}
	}
}

// What has gone, or has become another thing since, is an error that names it, and never less
// than was announced.
func TestSourcesThatChange(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		"f": "1", "s/1": "1", "loop": "-> loop", "gone": "-> none", "l/g": "-> none",
	})
	read := func(s jobfile.Source) string {
		body, err := s.Open()
		if err != nil {
			return err.Error()
		}
		defer func() { _ = body.Close() }() // only read from
		_, err = io.ReadAll(body)
		return fmt.Sprint(err)
	}
	missing := filepath.Join(dir, "none")
	lost := "no such file or directory"
	for want, s := range map[string]jobfile.Source{
		"open " + missing + ": open " + missing + ": " + lost: {Root: missing, Path: "f"},
		"open none: openat none: " + lost:                     {Root: dir, Path: "none"},
		"pack none: statat none: " + lost:                     {Root: dir, Path: "none", Dir: true},
		"pack l: statat l/g: " + lost:                         {Root: dir, Path: "l", Dir: true},
		"<nil>":                                               {Root: dir, Path: "s", Dir: true},
	} {
		if got := read(s); got != want {
			t.Errorf("%+v: %s, want %s", s, got, want)
		}
	}
	for text, want := range map[string]string{
		"loop": "inputs[0].from: loop cannot be read: ", "gone": "no such file or folder: gone",
		"l": "no such file or folder: l;", "/dev/null": "null is neither a file nor a folder; name a",
		"f/x": "inputs[0].from: f/x cannot be read: ",
	} {
		body := "command: [x]\ninputs: [{path: /a, from: " + text + "}]"
		anywhere := options()
		anywhere.AllowOutside = true
		_, err := jobfile.Load([]byte(body), dir, anywhere)
		if got := fmt.Sprint(err); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	_, err := jobfile.Load([]byte("command: [x]"), missing, options())
	if !errors.Is(err, fs.ErrNotExist) ||
		!strings.HasPrefix(err.Error(), "open folder of the job file: ") {
		t.Errorf("a job file in no folder: %v", err)
	}
	_, err = jobfile.Load([]byte("command: [x]\nruntime: 5"), missing, options())
	var all jobfile.Errors
	if !errors.Is(err, fs.ErrNotExist) || !errors.As(err, &all) {
		t.Errorf("a wrong job file in no folder: %v", err)
	}
}
