package lrm

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// laid is an attempt whose directory is laid out.
func laid(t *testing.T) Attempt {
	t.Helper()
	a := Attempt{Dir: t.TempDir()}
	if err := PrepareDir(a); err != nil {
		t.Fatal(err)
	}
	return a
}

// put writes a file of the sandbox.
func put(t *testing.T, a Attempt, name, text string) {
	t.Helper()
	path := filepath.Join(a.WorkDir(), name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Before the program starts there are the directories above its inputs and outputs, which are
// the owner's alone, and nothing else.
func TestWhatIsLaidOut(t *testing.T) {
	a := Attempt{
		Dir: filepath.Join(t.TempDir(), "new"),
		Inputs: []Bind{
			{SandboxPath: "/in/a/file"}, {SandboxPath: "/top"}, {SandboxPath: "/up/../x/y"},
		},
		OutputPaths: []string{"/out/b/c/file", "/top2", "relative/file"},
	}
	for range 2 { // also when it is there already
		if err := PrepareDir(a); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	if err := filepath.WalkDir(a.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode() != fs.ModeDir|0o700 && runtime.GOOS != "windows" {
			t.Errorf("%s is %s", path, info.Mode())
		}
		got = append(got, filepath.ToSlash(strings.TrimPrefix(path, a.Dir)))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"", "/work", "/work/ckpt", "/work/in", "/work/in/a", "/work/out", "/work/out/b",
		"/work/out/b/c", "/work/relative", "/work/x",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("laid out (-want +got):\n%s", diff)
	}
	for name, spoil := range map[string]func(*Attempt) error{
		"a file in place of it": func(a *Attempt) error {
			return os.WriteFile(a.WorkDir(), nil, 0o600)
		},
		"a file above an output": func(a *Attempt) error {
			a.OutputPaths = []string{"/file/x"}
			if err := os.Mkdir(a.WorkDir(), 0o700); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(a.WorkDir(), "file"), nil, 0o600)
		},
	} {
		bad := Attempt{Dir: t.TempDir()}
		if err := spoil(&bad); err != nil {
			t.Fatal(err)
		}
		if err := PrepareDir(bad); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// An output's name is a path below the sandbox's root, however it is written.
func TestNamesInTheSandbox(t *testing.T) {
	for path, want := range map[string]string{
		"/a/b": "a/b", "a": "a", "/": ".", "": ".", "/../a": "a", "/a//./b/..": "a", "../..": ".",
	} {
		if got := sandboxName(path); got != want {
			t.Errorf("%q is %q, want %q", path, got, want)
		}
	}
}

// An output of many parts is as large as its files, the sum of them; the root is one, too.
func TestTheSizeOfAnOutput(t *testing.T) {
	a := laid(t)
	a.OutputPaths = []string{"/", "/o", "/o/x", "/o/deep/y", "/o/x/z", "/o/none"}
	put(t, a, "o/x", "123")
	put(t, a, "o/deep/y", "45678")
	put(t, a, "beside", "9")
	files, missing := collectOutputs(a)
	host := func(name string) string { return filepath.Join(a.WorkDir(), name) }
	want := []File{
		{SandboxPath: "/", HostPath: a.WorkDir(), Bytes: 9, Dir: true},
		{SandboxPath: "/o", HostPath: host("o"), Bytes: 8, Dir: true},
		{SandboxPath: "/o/x", HostPath: host("o/x"), Bytes: 3},
		{SandboxPath: "/o/deep/y", HostPath: host("o/deep/y"), Bytes: 5},
	}
	if diff := cmp.Diff(want, files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if want := []string{"/o/x/z", "/o/none"}; !slices.Equal(missing, want) {
		t.Errorf("missing %v, want %v", missing, want)
	}
}

// Outputs that are larger than the disk of their attempt end it for that, and none of them is
// stored, though they take next to nothing of it; what ended otherwise has ended so.
func TestOutputsThatAreLargerThanTheDisk(t *testing.T) {
	a := laid(t)
	a.OutputPaths = []string{"/", "/o", "/o/x", "/o/x", "/y"}
	a.Limits.DiskBytes = 1 << 20
	sparse := func(name string, size int64) {
		t.Helper()
		put(t, a, name, "")
		if err := os.Truncate(filepath.Join(a.WorkDir(), name), size); err != nil {
			t.Fatal(err)
		}
	}
	sparse("o/x", a.Limits.DiskBytes-1)
	sparse("y", 1)
	exit, files := EndWith(a, grid.Exit{Cause: grid.CauseExited})
	if exit.Cause != grid.CauseExited || len(files) != len(a.OutputPaths) {
		t.Errorf("as large as it may be: %+v, %d outputs", exit, len(files))
	}
	sparse("y", 2)
	for _, c := range []struct{ ended, want grid.Exit }{
		{grid.Exit{Cause: grid.CauseExited, Code: 3}, grid.Exit{
			Cause: grid.CauseDisk, Text: "left outputs of 1.0 MiB; it may write 1.0 MiB",
		}},
		{grid.Exit{Cause: grid.CauseMemory}, grid.Exit{Cause: grid.CauseMemory}},
	} {
		exit, files = EndWith(a, c.ended)
		if diff := cmp.Diff(c.want, exit); diff != "" || files != nil {
			t.Errorf("%d outputs (-want +got):\n%s", len(files), diff)
		}
	}
}

// A tree is whole up to its limits: one entry more, or one that is neither file nor directory,
// or that cannot be read, makes it none that is kept.
func TestTheSizeOfATree(t *testing.T) {
	plain := fstest.MapFS{
		"d/a": {Data: []byte("12")}, "d/e/b": {Data: []byte("345")}, "f": {Data: []byte("6")},
	}
	odd := fstest.MapFS{"d/a": {Data: []byte("12")}, "d/pipe": {Mode: fs.ModeNamedPipe | 0o600}}
	for _, c := range []struct {
		files fs.FS
		name  string
		most  int
		bytes int64
		whole bool
	}{
		{plain, "d", 4, 5, true},
		{plain, "d", 3, 0, false},
		{plain, ".", 6, 6, true},
		{plain, ".", 5, 0, false},
		{plain, "none", 9, 0, false},
		{odd, "d", 9, 0, false},
	} {
		bytes, whole := treeSize(c.files, c.name, c.most)
		if whole != c.whole || whole && bytes != c.bytes {
			t.Errorf("%q of at most %d: %d bytes, %v, want %d, %v",
				c.name, c.most, bytes, whole, c.bytes, c.whole)
		}
	}
}

// What is cut is cut between letters, and says that it was.
func TestLongTextsAreCut(t *testing.T) {
	const most = maxExitText - 3
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"a\xffb", "a?b"},
		{strings.Repeat("ü", maxExitText/2), strings.Repeat("ü", maxExitText/2)},
		{strings.Repeat("ü", maxExitText/2) + "x", strings.Repeat("ü", most/2) + "..."},
		{"x" + strings.Repeat("ü", maxExitText/2), "x" + strings.Repeat("ü", most/2) + "..."},
	} {
		if got := ExitText(c.text); got != c.want {
			t.Errorf("%.10q of %d bytes becomes %d bytes, want %d",
				c.text, len(c.text), len(got), len(c.want))
		}
	}
}
