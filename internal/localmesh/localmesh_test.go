package localmesh

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mrsmesh/mrsmesh/internal/config"
)

func TestConfigurationsAreReadBack(t *testing.T) {
	gifts := []Gift{
		{Name: "anna", Cores: 1, GFLOPS: 4, Memory: 1024},
		{Name: "ben", Cores: 2, GFLOPS: 12, Memory: 2048},
	}
	p := &Place{Dir: filepath.Join(os.TempDir(), "mrs-test-1234567890")}
	for _, a := range New(p, "", "home", gifts, nil).Agents {
		file := filepath.Join(t.TempDir(), "agent.yaml")
		a.file = file
		if err := a.writeConfig(); err != nil {
			t.Fatalf("%s: %v", a.Name, err)
		}
		read, err := config.LoadAgent(config.Sources{File: file, Required: true})
		if err != nil {
			t.Fatalf("%s: %v", a.Name, err)
		}
		if diff := cmp.Diff(a.Config, read, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: written and read back (-want +got):\n%s", a.Name, diff)
		}
	}
}

func TestOnlyWhatIsInsideIsDiscarded(t *testing.T) {
	outer := t.TempDir()
	p := &Place{Dir: filepath.Join(outer, "mrs-test-1")}
	inside, precious := p.File("state"), filepath.Join(outer, "mrs-test-12")
	for _, dir := range []string{inside, precious} {
		if err := os.MkdirAll(filepath.Join(dir, "data"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{precious, p.Dir, outer, p.File("../mrs-test-12"), "state", ""} {
		if err := p.Discard(path); !errors.Is(err, errLeftover) {
			t.Errorf("discard %q: %v, want a refusal", path, err)
		}
	}
	if _, err := os.Stat(precious); err != nil {
		t.Errorf("the strange directory is gone: %v", err)
	}
	if err := p.Discard(inside); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(inside); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what is inside: %v, want it gone", err)
	}
}

func TestOnlyItsOwnDirectoryIsRemoved(t *testing.T) {
	precious := filepath.Join(t.TempDir(), "precious")
	if err := os.Mkdir(precious, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := (&Place{Dir: precious}).Remove(); !errors.Is(err, errLeftover) {
		t.Errorf("remove of a strange directory: %v, want a refusal", err)
	}
	if _, err := os.Stat(precious); err != nil {
		t.Errorf("the strange directory is gone: %v", err)
	}
	t.Setenv("TMPDIR", t.TempDir())
	p, err := MakePlace("mrs-test-")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(p.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its own directory: %v, want it gone", err)
	}
}

func TestTheCommandLineOfAnExample(t *testing.T) {
	lines := 1
	e := Example{Name: "show", About: "Shows.", More: "more"}
	e.Flags = func(f *flag.FlagSet) func() error {
		f.SetOutput(io.Discard)
		f.IntVar(&lines, "lines", lines, "`number` of lines")
		return func() error {
			if lines < 1 {
				return errors.New("-lines: want at least 1")
			}
			return nil
		}
	}
	for _, c := range []struct {
		args string
		want options
		err  string // what the refusal says
	}{
		{"", options{}, ""},
		{"-v", options{verbose: true}, ""},
		{"-keep -lines 2", options{keep: true}, ""},
		{"-lines 0", options{}, "-lines"},
		{"-lines many", options{}, "-lines"},
		{"-x", options{}, "-x"},
		{"now", options{}, "now"},
		{"-h", options{}, flag.ErrHelp.Error()},
	} {
		got, err := e.parse(strings.Fields(c.args))
		switch {
		case c.err == "" && (err != nil || got != c.want):
			t.Errorf("%q: %+v, %v; want %+v", c.args, got, err, c.want)
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%q: %v, want a refusal that says %q", c.args, err, c.err)
		}
	}
}

func TestScreen(t *testing.T) {
	var said bytes.Buffer
	s := &Screen{out: &said, began: time.Now()}
	for range 100 { // within plainEvery of each other
		s.Progress("going on")
	}
	s.Progress("more")
	s.Detail("only with -v")
	s.Final("end")
	if got := said.String(); strings.Count(got, "\n") != 2 || strings.ContainsAny(got, "\r\x1b") ||
		!strings.HasSuffix(got, "\nend\n") {
		t.Errorf("plain output %q, want one line of progress and the end", got)
	}
	said.Reset()
	s = &Screen{out: &said, terminal: true, began: time.Now()}
	s.Progress("%s", strings.Repeat("x", 200))
	s.Final("end")
	want := clearLine + strings.Repeat("x", terminalCols) + clearLine + "end\n"
	if got := said.String(); got != want {
		t.Errorf("terminal output %q, want %q", got, want)
	}
}

func TestSleepersDiffer(t *testing.T) {
	one := Sleeper("one", time.Second, 4096)
	if !bytes.HasPrefix(one, []byte("\x00asm\x01\x00\x00\x00")) || len(one) < 4000 || len(one) > 4200 {
		t.Errorf("a module of %d bytes, want about 4096", len(one))
	}
	if !bytes.Equal(one, Sleeper("one", time.Second, 4096)) ||
		bytes.Equal(one, Sleeper("two", time.Second, 4096)) ||
		bytes.Equal(one, Sleeper("one", 2*time.Second, 4096)) {
		t.Error("a name and a time are not one module")
	}
}
