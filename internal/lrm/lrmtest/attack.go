package lrmtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

func attackCases() []testCase {
	return []testCase{
		{name: "inputs cannot be changed", attack: true, test: testReadOnly},
		{name: "links and paths lead nowhere", attack: true, test: testEscape},
		{name: "links in inputs lead nowhere", attack: true, test: testInputLinks},
		{name: "files work as programs expect", attack: true, test: testTree},
		{name: "a program that panics", attack: true, test: testPanic},
		{name: "not a program", attack: true, test: testNoProgram},
		{name: "module missing", attack: true, test: testModuleMissing},
	}
}

func testReadOnly(t *testing.T, b *bench) {
	a := b.withInputs(t, "spoil", "/in/file.txt", "/in/dir/inner/x.txt", "/in/dir/inner", "/in/dir")
	a.OutputPaths = []string{"/out/x"}
	r := b.run(t, a)
	wantCause(t, r, grid.CauseNoOutput) // and nothing else
	for _, in := range []struct{ name, want string }{
		{"some-file", "of a file\n"}, {"some-dir/inner/x.txt", "of a directory\n"},
	} {
		got, err := os.ReadFile(filepath.Join(b.dir, "host", in.name))
		if err != nil || string(got) != in.want {
			t.Errorf("%s on the host = %q, %v", in.name, got, err)
		}
	}
}

func testEscape(t *testing.T, b *bench) {
	secret := b.putFile(t, "secret", "the owner's secret")
	relative, err := filepath.Rel(filepath.Join(b.dir, "attempt1", "work", "out"), secret)
	if err != nil {
		t.Fatal(err)
	}
	a := b.attempt(
		t, "link", secret, relative, "..", "../../../../../../../../etc/shadow", "/etc/shadow",
	)
	if !b.h.System {
		a.Task.Args = append(
			a.Task.Args, "../../../../../../../../etc/passwd", "/etc/passwd", "/proc/self/environ",
		)
	}
	a.OutputPaths = []string{"/out/link0", "/out/link1", "/out/link2"}
	r := b.run(t, a)
	wantCause(t, r, grid.CauseNoOutput)
	if got := Text(t, r.Stdout); got != "contained\n" {
		t.Errorf("stdout = %q", got)
	}
	if len(r.Outputs) != 0 {
		t.Errorf("outputs = %+v, want no links", r.Outputs)
	}
}

func testInputLinks(t *testing.T, b *bench) {
	secret := b.putFile(t, "secret", "the owner's secret")
	for _, args := range [][]string{
		{"cat", "/in/dir/abs"}, {"cat", "/in/dir/rel"}, {"cat", "/in/dir/up/secret"},
	} {
		a := b.withInputs(t, args...)
		dir := filepath.Join(b.dir, "host", "some-dir")
		_ = os.Symlink(secret, filepath.Join(dir, "abs"))
		_ = os.Symlink("../secret", filepath.Join(dir, "rel"))
		_ = os.Symlink("..", filepath.Join(dir, "up"))
		r := b.run(t, a)
		if strings.Contains(Text(t, r.Stdout), "secret") || r.Exit.Code == 0 {
			t.Errorf("%v: exit %d, stdout %q", args, r.Exit.Code, Text(t, r.Stdout))
		}
	}
}

func testTree(t *testing.T, b *bench) {
	a := b.attempt(t, "tree", "/out/t")
	a.OutputPaths = []string{"/out/t"}
	r := b.run(t, a)
	wantExit(t, r, 0)
	got, want := Text(t, r.Stdout), "/out/t/\n/out/t/a/\n/out/t/moved\n/out/t/moved2\n"
	if got != want {
		t.Errorf("tree = %q, want %q", got, want)
	}
	if len(r.Outputs) != 1 || r.Outputs[0].Bytes != int64(len("onetwo")+len("again")) {
		t.Errorf("outputs = %+v", r.Outputs)
	}
}

func testPanic(t *testing.T, b *bench) {
	r := b.run(t, b.attempt(t, "panic"))
	wantExit(t, r, 2)
	if got := Text(t, r.Stderr); !strings.Contains(got, "index out of range") {
		t.Errorf("stderr = %q", got)
	}
}

func testNoProgram(t *testing.T, b *bench) {
	if b.h.Module == "" {
		t.Skip("the adapter runs no modules")
	}
	for _, content := range []string{"", "#!/bin/sh\n", "\x00asm\x01\x00\x00\x00garbage"} {
		a := b.attempt(t, "exit", "0")
		a.ModulePath = b.putFile(t, "module", content)
		wantCause(t, b.run(t, a), grid.CauseBadWork)
	}
}

func testModuleMissing(t *testing.T, b *bench) {
	if b.h.Module == "" {
		t.Skip("the adapter runs no modules")
	}
	a := b.attempt(t, "exit", "0")
	a.ModulePath = filepath.Join(b.dir, "nowhere")
	r := b.run(t, a)
	wantCause(t, r, grid.CauseSandbox)
	if strings.Contains(r.Exit.Text, b.dir) {
		t.Errorf("text = %q tells the host's paths", r.Exit.Text)
	}
}
