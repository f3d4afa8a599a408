package data

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var sampleTree = map[string]string{
	"a.txt":                 "alpha",
	"empty":                 "",
	"leer/":                 "",
	"sub/deep/er/file":      strings.Repeat("x", 600<<10),
	"sub/deep/empty/":       "",
	"sub/b.txt":             "alpha", // the same content twice
	"grüße/日本語 😀.txt":       "unicode",
	"name with 'quotes' \"": "odd",
}

// sampleDirs are the directories of sampleTree.
func withDirs(files map[string]string) map[string]string {
	out := make(map[string]string)
	for name, content := range files {
		out[name] = content
		for dir := filepath.Dir(strings.TrimSuffix(name, "/")); dir != "."; dir = filepath.Dir(dir) {
			out[dir+"/"] = ""
		}
	}
	return out
}

type tarFileEntry struct {
	name     string
	kind     byte
	content  string
	linkname string
}

func tarOf(t testing.TB, entries ...tarFileEntry) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, e := range entries {
		if e.kind == 0 {
			e.kind = tar.TypeReg
		}
		h := &tar.Header{
			Name: e.name, Typeflag: e.kind, Size: int64(len(e.content)), Mode: 0o644, Linkname: e.linkname,
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, e.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestDirectoryRoundTrip(t *testing.T) {
	a, b := newSite(t, nil), newSite(t, nil)
	b.knows(a)
	ref, err := a.AddDir(within(t), writeTree(t, sampleTree))
	if err != nil {
		t.Fatal(err)
	}
	var content int64
	for _, text := range sampleTree {
		content += int64(len(text))
	}
	if !ref.Dir || ref.Bytes != content {
		t.Errorf("Ref = %+v, want a directory of %d bytes", ref, content)
	}
	mustFetch(t, b.Store, ref.CID, a.id)
	to := filepath.Join(t.TempDir(), "out")
	if err = b.Export(within(t), ref.CID, to); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(withDirs(sampleTree), readTree(t, to)); diff != "" {
		t.Errorf("exported tree (-want +got):\n%s", diff)
	}
	info, err := os.Stat(filepath.Join(to, "a.txt"))
	if err != nil || info.Mode().Perm() != fileMode {
		t.Errorf("exported file has mode %v, %v; want %o", info.Mode(), err, fileMode)
	}
	if err = b.Export(within(t), ref.CID, to); !errors.Is(err, errExists) {
		t.Errorf("export onto an existing path: %v, want ErrExists", err)
	}

	again, err := b.AddDir(within(t), to) // what was exported is the same directory
	if err != nil || again != ref {
		t.Errorf("AddDir of the export = %+v, %v; want %+v", again, err, ref)
	}
	r, err := b.Tar(within(t), ref.CID)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	fromTar, err := a.AddTar(within(t), r) // and so is its tar stream
	if err != nil || fromTar != ref {
		t.Errorf("AddTar of Tar = %+v, %v; want %+v", fromTar, err, ref)
	}
}

func TestAddTarEqualsAddDir(t *testing.T) {
	a := newSite(t, nil)
	want, err := a.AddDir(within(t), writeTree(t, map[string]string{"x/y": "1", "z": "2", "e/": ""}))
	if err != nil {
		t.Fatal(err)
	}
	// Another order, as tar -C dir -c . writes it.
	got, err := a.AddTar(within(t), bytes.NewReader(tarOf(t,
		tarFileEntry{name: "./", kind: tar.TypeDir}, tarFileEntry{name: "./z", content: "2"},
		tarFileEntry{name: "./e/", kind: tar.TypeDir}, tarFileEntry{name: "./x/y", content: "1"},
	)))
	if err != nil || got != want {
		t.Errorf("AddTar = %+v, %v; want %+v", got, err, want)
	}
}

func TestLargeDirectoryIsSplit(t *testing.T) {
	a, b := newSite(t, nil), newSite(t, nil)
	b.knows(a)
	files := make([]tarFileEntry, 0, 4500)
	for i := range cap(files) {
		files = append(files, tarFileEntry{
			name: fmt.Sprintf("file-%06d-with-a-long-name", i), content: fmt.Sprint(i % 50),
		})
	}
	ref, err := a.AddTar(within(t), bytes.NewReader(tarOf(t, files...)))
	if err != nil {
		t.Fatal(err)
	}
	root, _ := parseCID(ref.CID)
	n, err := a.node(root)
	if err != nil || n.kind != kindShard {
		t.Fatalf("root is of kind %d, %v; want a shard", n.kind, err)
	}
	mustFetch(t, b.Store, ref.CID, a.id)
	r, err := b.Tar(within(t), ref.CID)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	in, count := tar.NewReader(r), 0
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Name != files[count].name {
			t.Fatalf("entry %d is %q, want %q", count, h.Name, files[count].name)
		}
		count++
	}
	if count != len(files) {
		t.Errorf("%d entries, want %d", count, len(files))
	}
}

func TestAddDirRefuses(t *testing.T) {
	a := newSite(t, nil)
	t.Run("symbolic link", func(t *testing.T) {
		dir := writeTree(t, map[string]string{"sub/a": "1"})
		if err := os.Symlink("/etc/passwd", filepath.Join(dir, "sub", "link")); err != nil {
			t.Skipf("no symbolic links here: %v", err)
		}
		_, err := a.AddDir(within(t), dir)
		wantRefusal(t, err, "sub/link", "symbolic link")
		link := filepath.Join(t.TempDir(), "top")
		if err = os.Symlink(dir, link); err != nil {
			t.Fatal(err)
		}
		_, err = a.AddDir(within(t), link)
		wantRefusal(t, err, link, "symbolic link")
	})
	t.Run("socket", func(t *testing.T) {
		dir, err := os.MkdirTemp("", "mrs") //nolint:usetesting // the path of a socket must be short
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = os.RemoveAll(dir) }()
		l, err := new(net.ListenConfig).Listen(t.Context(), "unix", filepath.Join(dir, "s"))
		if err != nil {
			t.Skipf("no unix sockets here: %v", err)
		}
		defer func() { _ = l.Close() }()
		_, err = a.AddDir(within(t), dir)
		wantRefusal(t, err, "/s", "socket")
	})
	t.Run("file", func(t *testing.T) {
		_, err := a.AddDir(within(t), filepath.Join(writeTree(t, map[string]string{"a": ""}), "a"))
		wantRefusal(t, err, "/a", "want a directory")
	})
	t.Run("name", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "bad\xff"), nil, 0o600); err != nil {
			t.Skipf("this file system has only UTF-8 names: %v", err)
		}
		_, err := a.AddDir(within(t), dir)
		wantRefusal(t, err, "bad", "UTF-8")
	})
	if roots := a.Roots(); len(roots) != 0 {
		t.Errorf("refused directories left roots %v", roots)
	}
}

func wantRefusal(t *testing.T, err error, texts ...string) {
	t.Helper()
	if !errors.Is(err, ErrUnsupported) {
		t.Errorf("error = %v, want ErrUnsupported", err)
		return
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("error %q lacks %q", err, text)
		}
	}
}

func TestAddTarRefuses(t *testing.T) {
	a := newSite(t, func(c *Config) { c.Limits = Limits{Files: 10, Bytes: 1000, Depth: 4} })
	many := make([]tarFileEntry, 11)
	for i := range many {
		many[i] = tarFileEntry{name: fmt.Sprint(i)}
	}
	tests := []struct {
		name    string
		entries []tarFileEntry
		want    error
	}{
		{"absolute", []tarFileEntry{{name: "/etc/passwd"}}, ErrUnsupported},
		{"parent", []tarFileEntry{{name: "../x"}}, ErrUnsupported},
		{"inner parent", []tarFileEntry{{name: "a/../../x"}}, ErrUnsupported},
		{"inner dot", []tarFileEntry{{name: "a/./x"}}, ErrUnsupported},
		{"double slash", []tarFileEntry{{name: "a//x"}}, ErrUnsupported},
		{
			"symbolic link",
			[]tarFileEntry{{name: "x", kind: tar.TypeSymlink, linkname: "/etc"}},
			ErrUnsupported,
		},
		{
			"hard link",
			[]tarFileEntry{{name: "a"}, {name: "x", kind: tar.TypeLink, linkname: "a"}},
			ErrUnsupported,
		},
		{"device", []tarFileEntry{{name: "x", kind: tar.TypeChar}}, ErrUnsupported},
		{"pipe", []tarFileEntry{{name: "x", kind: tar.TypeFifo}}, ErrUnsupported},
		{"twice", []tarFileEntry{{name: "x"}, {name: "./x"}}, ErrUnsupported},
		{"file and directory", []tarFileEntry{{name: "x"}, {name: "x/y"}}, ErrUnsupported},
		{"directory and file", []tarFileEntry{{name: "x/y"}, {name: "x"}}, ErrUnsupported},
		{"long name", []tarFileEntry{{name: strings.Repeat("n", 256)}}, ErrTooLarge},
		{"too many", many, ErrTooLarge},
		{"too deep", []tarFileEntry{{name: "1/2/3/4/5/6"}}, ErrTooLarge},
		{
			"too large",
			[]tarFileEntry{
				{name: "a", content: strings.Repeat("x", 600)}, {name: "b", content: strings.Repeat("x", 600)},
			},
			ErrTooLarge,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := a.AddTar(within(t), bytes.NewReader(tarOf(t, tt.entries...)))
			if !errors.Is(err, tt.want) {
				t.Errorf("AddTar = %v, want %v", err, tt.want)
			}
		})
	}
	t.Run("no tar", func(t *testing.T) {
		if _, err := a.AddTar(
			within(t), bytes.NewReader(noise(1, 2048)),
		); !errors.Is(err, ErrUnsupported) {
			t.Errorf("AddTar = %v, want ErrUnsupported", err)
		}
	})
	t.Run("cut short", func(t *testing.T) {
		whole := tarOf(t, tarFileEntry{name: "a", content: strings.Repeat("x", 900)})
		if _, err := a.AddTar(within(t), bytes.NewReader(whole[:1000])); err == nil {
			t.Error("AddTar of half a file succeeded")
		}
	})
}

func TestAddStopsWithItsContext(t *testing.T) {
	a := newSite(t, nil)
	ctx, cancel := context.WithCancel(within(t))
	endless := readerFunc(func(p []byte) (int, error) { cancel(); return len(p), nil })
	if _, err := a.AddFile(ctx, endless); !errors.Is(err, context.Canceled) {
		t.Errorf("AddFile = %v, want the context's error", err)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// FuzzAddTar: whatever comes in, AddTar gives an error or a directory that comes
// out again as the same directory.
func FuzzAddTar(f *testing.F) {
	f.Add(tarOf(
		f, tarFileEntry{name: "a/b", content: "hello"}, tarFileEntry{name: "c/", kind: tar.TypeDir},
	))
	f.Add(tarOf(f, tarFileEntry{name: "../a"}, tarFileEntry{
		name: "l", kind: tar.TypeSymlink, linkname: "/",
	}))
	f.Add([]byte{})
	s, err := openLocal(Config{
		Dir: f.TempDir(), Allow: everybody, Limits: Limits{Files: 50, Bytes: 1 << 20, Depth: 8},
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = s.log.close() })
	f.Fuzz(func(t *testing.T, stream []byte) {
		ref, err := s.AddTar(t.Context(), bytes.NewReader(stream))
		if err != nil {
			return
		}
		r, err := s.Tar(t.Context(), ref.CID)
		if err != nil {
			t.Fatalf("Tar: %v", err)
		}
		again, err := s.AddTar(t.Context(), r)
		_ = r.Close()
		if err != nil || again != ref {
			t.Errorf("round trip = %+v, %v; want %+v", again, err, ref)
		}
		if err := s.forget(ref.CID); err != nil {
			t.Errorf("Forget: %v", err)
		}
	})
}
