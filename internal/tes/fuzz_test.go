package tes

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// someCID is a CID that is well-formed.
const someCID = "bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku"

// FuzzTask reads what anybody may send: whatever is taken becomes a valid job.
func FuzzTask(f *testing.F) {
	for _, seed := range []string{
		`{"executors":[{"image":"a","command":["ls"]}]}`,
		`{"executors":[{"image":"a","command":["sh","-c","x"],"env":{"A":"b"},"stdin":"/i",
		 "stdout":"/o","stderr":"/o","workdir":"/w/","ignore_error":true}],
		 "name":"n{{index}}","volumes":["/v"],
		 "inputs":[{"path":"/i","content":"x"},
		 {"path":"/d","url":"file:///x","type":"DIRECTORY"}],
		 "outputs":[{"path":"/o","url":"/x/y"},
		 {"path":"/w/*","path_prefix":"/w","url":"file:///x"}],
		 "resources":{"cpu_cores":2,"ram_gb":0.5,"disk_gb":1,
		 "backend_parameters":{"runtime":"90","x":""}}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var given TesTask
		if json.Unmarshal(text, &given) != nil {
			return
		}
		w, err := check(given, []string{"*"}, nil)
		if err != nil {
			return
		}
		again, err := check(w.task, []string{"*"}, nil)
		if err != nil || len(again.notes) > 0 {
			t.Fatalf("what was taken is not taken again: %v, %q", err, again.notes)
		}
		if again.script() != w.script() {
			t.Fatal("the script is another one")
		}
		inputs := make([]grid.Input, len(w.inputs))
		for i := range inputs {
			inputs[i].CID = someCID
		}
		job := w.job(grid.Input{CID: someCID}, inputs)
		if err := job.Validate(); err != nil {
			t.Fatalf("the job is not valid: %v", err)
		}
		for _, all := range []shelves{nil, newShelves([]string{"/x"})} {
			for _, out := range w.outputs {
				p, err := all.find("url", out.url)
				if err == nil && (!filepath.IsLocal(p.name) || p.shelf != "/x") {
					t.Fatalf("%q is at %+v", out.url, p)
				}
			}
		}
	})
}

// FuzzToken reads tokens of anybody; those that are taken are written in the same way again.
func FuzzToken(f *testing.F) {
	f.Add(token{time.Unix(1, 2), "abc"}.String())
	f.Add("eA")
	f.Fuzz(func(t *testing.T, text string) {
		at, err := readToken(text)
		if err != nil || text == "" {
			return
		}
		if again, err := readToken(at.String()); err != nil || again != at {
			t.Fatalf("%q is %+v, and then %+v: %v", text, at, again, err)
		}
	})
}

// FuzzRan reads what a task may have put in the place of its script's notes.
func FuzzRan(f *testing.F) {
	f.Add([]byte(""), 1)
	f.Add(bytes.Repeat([]byte("0.code"), 100), 2)
	f.Fuzz(func(t *testing.T, text []byte, executors int) {
		n := executors % 100
		list, _ := readRan(bytes.NewReader(text), n)
		if len(list) > max(n, 0) {
			t.Fatalf("%d logs of %d executors", len(list), n)
		}
		if _, err := json.Marshal(list); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzTree writes whatever a task's directory is said to be; nothing lands beside its place.
func FuzzTree(f *testing.F) {
	f.Add([]byte("../x"))
	f.Fuzz(func(t *testing.T, text []byte) {
		dir := t.TempDir()
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		out := target{path: "/o", url: "file://" + dir + "/place"}
		_, _ = delivery{}.tree(root, "place", out, bytes.NewReader(text))
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) != 1 || entries[0].Name() != "place" {
			t.Fatalf("beside the place: %v, %v", entries, err)
		}
	})
}

// A pattern of images fits as a regular expression with .* in place of each star does.
func TestPatternsOfImages(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.StringMatching(`[ab/:*]{0,6}`).Draw(t, "pattern")
		name := rapid.StringMatching(`[ab/:]{0,8}`).Draw(t, "name")
		quoted := strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, `.*`)
		want := regexp.MustCompile(`^` + quoted + `$`).MatchString(name)
		if got := matches(pattern, name); got != want {
			t.Errorf("%q fits %q: %v, want %v", pattern, name, got, want)
		}
	})
}

// Two words never quote alike, and a quoted one has no quote that is left open.
func TestWordsOfTheShell(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.String().Draw(t, "word")
		back, open := "", false
		for rest := quote(word); rest != ""; {
			switch {
			case rest[0] == '\'':
				open, rest = !open, rest[1:]
			case !open && strings.HasPrefix(rest, `\'`):
				back, rest = back+"'", rest[2:]
			case open:
				back, rest = back+rest[:1], rest[1:]
			default:
				t.Fatalf("%q is outside of quotes in %q", rest, quote(word))
			}
		}
		if open || back != word {
			t.Errorf("%q comes back as %q", word, back)
		}
	})
}

// Sizes in gigabytes are rounded up to bytes; nothing asked for means the defaults.
func TestAmounts(t *testing.T) {
	t.Parallel()
	cores, ram, none := int32(3), 0.1, 0.0
	got, err := amountsOf(&TesResources{CpuCores: &cores, RamGb: &ram, DiskGb: &none})
	if err != nil {
		t.Fatal(err)
	}
	want := grid.Resources{
		MilliCPUs: 3000, MFLOPS: 3 * coreMFLOPS, MemoryBytes: 1e8, DiskBytes: defaultDisk,
	}
	if got.need != want || got.runtime != defaultRuntime || got.limit != 0 {
		t.Errorf("got %+v, want %+v", got, want)
	}
	parameters := map[string]string{"RUNTIME": "90", "Limit": "2h"}
	got, err = amountsOf(&TesResources{BackendParameters: &parameters})
	if err != nil || got.runtime != 90*time.Second || got.limit != 2*time.Hour {
		t.Errorf("got %+v, %v", got, err)
	}
}

// stored gives directories out.
type stored map[grid.CID][]byte

// GetData implements room.
func (s stored) GetData(_ context.Context, cid grid.CID) (view.DataRef, io.ReadCloser, error) {
	return view.DataRef{CID: cid, Dir: true}, io.NopCloser(bytes.NewReader(s[cid])), nil
}

// PutData implements room.
func (s stored) PutData(context.Context, bool, io.Reader) (view.DataRef, error) {
	return view.DataRef{}, view.ErrBusy
}

// PutExecutable implements room.
func (s stored) PutExecutable(context.Context, io.Reader) (view.DataRef, error) {
	return view.DataRef{}, view.ErrBusy
}

// packed is a directory with files, each after its name; a name that ends with / is a directory.
func packed(files ...string) []byte {
	var b bytes.Buffer
	archive := tar.NewWriter(&b)
	for i := 0; i+1 < len(files); i += 2 {
		header := tar.Header{Name: files[i], Size: int64(len(files[i+1])), Mode: 0o644}
		if strings.HasSuffix(files[i], "/") {
			header.Typeflag = tar.TypeDir
		}
		_ = archive.WriteHeader(&header)         // to memory
		_, _ = archive.Write([]byte(files[i+1])) // to memory
	}
	_ = archive.Close() // to memory
	return b.Bytes()
}

// FuzzCarry carries back whatever a site says that a task has made of a directory; what is beside
// the directory stays as it was.
func FuzzCarry(f *testing.F) {
	f.Add(packed("a", "1", "../beside", "x"), packed("b", "2"))
	f.Add(packed("a/", "", "a/b", "1", "c", "d"), packed("a", "now a file", "../beside", "x"))
	f.Add(packed("a", "1"), []byte("no archive"))
	f.Add(packed("out/beside", ""), packed("out/beside", "x"))
	f.Fuzz(func(t *testing.T, before, after []byte) {
		dir := t.TempDir()
		mount, beside := filepath.Join(dir, "shelf", "mount"), filepath.Join(dir, "beside")
		if err := os.MkdirAll(mount, 0o700); err != nil {
			t.Fatal(err)
		}
		for _, file := range []string{beside, filepath.Join(mount, "..", "beside")} {
			if err := os.WriteFile(file, []byte("as it was"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink(dir, filepath.Join(mount, "out")); err != nil {
			t.Fatal(err)
		}
		d := delivery{
			room:    stored{"before": before, "after": after},
			shelves: newShelves([]string{filepath.Join(dir, "shelf")}),
		}
		_ = d.carryOne(t.Context(), mount, "before", "after")
		for _, file := range []string{beside, filepath.Join(mount, "..", "beside")} {
			if text, err := os.ReadFile(file); err != nil || string(text) != "as it was" {
				t.Fatalf("%s is %q: %v", file, text, err)
			}
		}
	})
}
