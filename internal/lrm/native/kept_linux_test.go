package native

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/lrm/supervise"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// packedState is a state of a directory with a file, a link and an empty directory.
func packedState(t testing.TB) []byte {
	t.Helper()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	err = errors.Join(
		root.Mkdir("empty", 0o700), root.Mkdir("tmp", 0o755),
		root.WriteFile("file", []byte("content"), 0o640),
		root.Symlink("file", "link"), root.MkdirAll("ckpt/deep", 0o700),
		root.Chtimes("file", time.Unix(1, 2), time.Unix(1, 2)),
	)
	if err != nil {
		t.Fatal(err)
	}
	files, err := listFiles(root)
	if err != nil {
		t.Fatal(err)
	}
	var state bytes.Buffer
	state.WriteString("imagecontentoutputerr")
	p := packer{to: &state}
	if err := p.finish(kept{
		Version: "v", Machine: "m", Image: 5, Files: files, Stdout: 6, Stderr: 3,
	}); err != nil {
		t.Fatal(err)
	}
	return state.Bytes()
}

// What was packed is laid out as it was, without the states' own directory.
func TestAStateIsLaidOutAsItWas(t *testing.T) {
	t.Parallel()
	state := packedState(t)
	d, err := readKept(bytes.NewReader(state), int64(len(state)))
	if err != nil {
		t.Fatal(err)
	}
	k := &keeper{}
	dir := t.TempDir()
	put(t, filepath.Join(dir, "stray"), "of the start")
	if k.root, err = os.OpenRoot(dir); err != nil {
		t.Fatal(err)
	}
	if err = k.layOut(d.Files, bytes.NewReader(state[d.Image:])); err != nil {
		t.Fatal(err)
	}
	again, err := listFiles(k.root)
	if err != nil {
		t.Fatal(err)
	}
	for i := range again { // the time of a link is nobody's
		if again[i].Mode.Type() == fs.ModeSymlink {
			again[i].At, d.Files[i].At = time.Time{}, time.Time{}
		}
		again[i].At, d.Files[i].At = again[i].At.UTC(), d.Files[i].At.UTC()
	}
	same(t, "files", again, d.Files)
	if got := holds(t, filepath.Join(dir, "file")); got != "content" {
		t.Errorf("the file holds %q", got)
	}
}

// A state comes from another site: what it lays out stays in the root, and gVisor, which mounts the
// directory for temporary files, finds no link there.
func TestAStateLeadsNowhereElse(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	put(t, filepath.Join(outside, "secret"), "the owner's")
	link := func(path string) keptFile {
		return keptFile{Path: path, Mode: fs.ModeSymlink, Link: outside}
	}
	temp := keptFile{Path: "tmp", Mode: fs.ModeDir | 0o700}
	for name, files := range map[string][]keptFile{
		"no directory":      {},
		"a link":            {link("tmp")},
		"a file":            {{Path: "tmp", Mode: 0o600}},
		"a link below":      {temp, link("a"), {Path: "a/secret", Mode: 0o600}},
		"a link as its own": {link("tmp"), temp},
		"a mode by a link":  {temp, link("a"), {Path: "a/", Mode: fs.ModeDir}},
	} {
		k := &keeper{}
		var err error
		if k.root, err = os.OpenRoot(t.TempDir()); err != nil {
			t.Fatal(err)
		}
		if err = k.layOut(files, strings.NewReader("")); err == nil {
			t.Errorf("%s: laid out", name)
		}
	}
	if got := holds(t, filepath.Join(outside, "secret")); got != "the owner's" {
		t.Errorf("the secret is %q", got)
	}
	if info, err := os.Stat(outside); err != nil || info.Mode().Perm() == 0 {
		t.Errorf("its directory is %v, %v", info, err)
	}
}

// Paths out of the root or into the states' directory, other kinds of files and sizes that do not
// add up are refused.
func TestForeignStatesAreRefused(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]keptFile{
		"out of the root": {Path: "../x"}, "absolute": {Path: "/x"}, "not clean": {Path: "a/../b"},
		"a state": {Path: "ckpt/state"}, "a device": {Path: "x", Mode: fs.ModeDevice},
		"a directory with content": {Path: "x", Mode: fs.ModeDir, Bytes: 1},
		"a link to nothing":        {Path: "x", Mode: fs.ModeSymlink},
		"too large":                {Path: "x", Bytes: 1},
		"less than nothing":        {Path: "x", Bytes: -1},
	} {
		var state bytes.Buffer
		p := packer{to: &state}
		if err := p.finish(kept{Files: []keptFile{f}}); err != nil {
			t.Fatal(err)
		}
		_, err := readKept(bytes.NewReader(state.Bytes()), int64(state.Len()))
		if !errors.Is(err, errKept) {
			t.Errorf("%s: %v", name, err)
		}
	}
	whole := packedState(t)
	for n := range whole {
		if _, err := readKept(bytes.NewReader(whole[:n]), int64(n)); err == nil {
			t.Fatalf("a state cut to %d of %d bytes is taken", n, len(whole))
		}
	}
}

// An attempt ends as its keeper tells: what became of its states stands in the text, a
// command that cannot go on where it was saved moves, and other failures are the site's.
func TestWhatAKeeperTells(t *testing.T) {
	t.Parallel()
	ended := supervise.Report{Cause: grid.CauseExited}
	for name, c := range map[string]struct {
		told    keptEnding
		own     supervise.Report
		starved bool
		want    supervise.Report
	}{
		"well": {keptEnding{}, ended, false, ended},
		"with a note": {
			keptEnding{Note: "so"},
			ended, false,
			supervise.Report{Cause: grid.CauseExited, Text: "so"},
		},
		"a code and a note": {
			keptEnding{Code: 129, Note: "so"},
			supervise.Report{Cause: grid.CauseExited, Code: 129},
			false,
			supervise.Report{
				Cause: grid.CauseExited, Code: 129, Text: "killed by signal 1 (hangup); so",
			},
		},
		"too much printed": {
			keptEnding{Over: true, Code: 1},
			supervise.Report{Cause: grid.CauseExited, Code: 1},
			false,
			supervise.Report{
				Cause: grid.CauseOutput, Text: "printed more than 16.0 MiB to one stream",
			},
		},
		"not begun": {
			keptEnding{Code: 1, Failed: "why"}, ended, false, supervise.Report{
				Cause: grid.CauseSandbox, Text: "the sandbox could not be made or was killed: why",
			},
		},
		"starved": {
			keptEnding{Code: 1, Failed: "why"}, ended, true, supervise.Report{
				Cause: grid.CauseMemory, Text: "wanted more than its 3.0 MiB of memory",
			},
		},
		"not gone on": {
			keptEnding{Code: 1, Failed: "why", Ran: true, Note: "so"},
			ended, false,
			supervise.Report{Cause: grid.CauseStopped, Text: "not to go on here: why; so"},
		},
		"stopped meanwhile": {
			keptEnding{},
			supervise.Report{Cause: grid.CauseStopped, Text: "moved"},
			false,
			supervise.Report{Cause: grid.CauseStopped, Text: "moved"},
		},
	} {
		s := boxed(t, GVisor)
		told, err := json.Marshal(c.told)
		if err != nil {
			t.Fatal(err)
		}
		put(t, keptPath(s.attempt.Dir), string(told))
		e := ending{
			attempt: s.attempt, sandbox: GVisor, starved: c.starved,
			end: supervise.Ending{Report: c.own},
		}
		if got := e.report(); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// Why runsc failed is in its log, whatever else is there, and named without the host's paths.
func TestWhyGVisorFailed(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 2*mostKeptWords)
	for log, want := range map[string]string{
		"": "", "I1125 all is well\n": "", "{\n{}\n": "",
		`{"msg":"a","level":"warning"}`:                                     "",
		"x\n" + `{"msg":"loading: a \"/home/me/x\"\nmore","level":"error"}`: "loading: a",
		"F1125 FATAL ERROR: it broke:\n":                                    "it broke",
		`{"msg":"` + long[:999] + `","level":"error"}`:                      long[:mostGVisorLine],
	} {
		if got := failureIn(listen(strings.NewReader(log + "\x00after"))); got != want {
			t.Errorf("%.60q: %q, want %q", log, got, want)
		}
	}
	if got := listen(strings.NewReader(long)); len(got) != mostKeptWords {
		t.Errorf("%d bytes of a log are kept", len(got))
	}
}

// A stream keeps what is printed up to its limit, after what was printed before.
func TestAStreamIsKeptUpToItsLimit(t *testing.T) {
	t.Parallel()
	f, err := os.Create(filepath.Join(t.TempDir(), "stdout"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := &keptStream{file: f, limit: 10, over: make(chan struct{})}
	s.take(strings.NewReader("of another"))
	if s.full {
		t.Error("it is full when it holds what it may")
	}
	if err := s.restart(strings.NewReader("before, and more"), 6); err != nil {
		t.Fatal(err)
	}
	s.take(strings.NewReader(" now"))
	s.take(strings.NewReader("too much"))
	s.take(strings.NewReader("still"))
	if got := holds(t, f.Name()); got != "before now" || s.size.Load() != 10 || !s.full {
		t.Errorf("it holds %q, %d bytes", got, s.size.Load())
	}
	<-s.over
}

// A keeper is the first process of its namespaces: it ends all that it sees.
func TestAKeeperRunsNowhereElse(t *testing.T) {
	t.Parallel()
	if _, err := newKeeper(); err == nil || errors.Is(err, os.ErrNotExist) {
		t.Errorf("a keeper among other processes: %v", err)
	}
}

func FuzzReadKept(f *testing.F) {
	f.Add(packedState(f))
	f.Add([]byte(keptMagic))
	f.Fuzz(func(t *testing.T, state []byte) {
		d, err := readKept(bytes.NewReader(state), int64(len(state)))
		if err != nil {
			return
		}
		if sum, ok := d.size(); !ok || sum > int64(len(state)) {
			t.Errorf("a state of %d bytes describes %d", len(state), sum)
		}
		for _, file := range d.Files {
			if !filepath.IsLocal(file.Path) || ofStates(file.Path) {
				t.Errorf("path %q", file.Path)
			}
		}
	})
}
