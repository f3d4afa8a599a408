package tes_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/tes"
)

// mountPoints are about directories that tasks may change, which the specification does not have.
func mountPoints() []point {
	return []point{
		{"what a task changes in a mount is carried back", func(t *testing.T, l *live) {
			l.fillMount(t, "mounts/one")
			id := l.create(t, l.changes("mounts/one", "echo new >new; mkdir empty deep; "+
				"echo d >deep/d; echo changed >same.next && mv same.next changed; "+
				"chmod +x program; rm -r gone"))
			l.await(t, id, tes.COMPLETE)
			l.wantMount(t, "mounts/one", "new", "new\n", "deep/d", "d\n", "changed", "changed\n",
				"same", "same", "gone/x", "", "gone", "")
			for name, want := range map[string]fs.FileMode{"empty": fs.ModeDir, "program": 0o100} {
				info, err := os.Stat(filepath.Join(l.files, "mounts/one", name))
				if err != nil || info.Mode()&want == 0 {
					t.Errorf("%s: %v %v, want %s", name, info, err, want)
				}
			}
		}},
		{"a task that fails has its changes carried back as well", func(t *testing.T, l *live) {
			l.fillMount(t, "mounts/failed")
			id := l.create(t, l.changes("mounts/failed", "echo why >changed; exit 3"))
			l.await(t, id, tes.EXECUTORERROR)
			l.wantMount(t, "mounts/failed", "changed", "why\n")
		}},
		{"what others did in a mount meanwhile stays", func(t *testing.T, l *live) {
			l.fillMount(t, "mounts/shared")
			id := l.create(t, l.changes("mounts/shared",
				"echo mine >mine; rm gone/x; test -e /none || sleep 2"))
			l.await(t, id, tes.RUNNING)
			l.put(t, "mounts/shared/same", "of another")
			l.put(t, "mounts/shared/gone/y", "of another")
			if err := os.Remove(filepath.Join(l.files, "mounts/shared/changed")); err != nil {
				t.Error(err)
			}
			l.await(t, id, tes.COMPLETE)
			l.wantMount(t, "mounts/shared", "mine", "mine\n", "same", "of another",
				"gone/y", "of another", "gone/x", "", "changed", "")
		}},
		{"an output may lie in a mount, and an input may not", func(t *testing.T, l *live) {
			l.fillMount(t, "mounts/nested")
			request := l.changes("mounts/nested", "echo result >result")
			request["outputs"] = []any{task{"path": "/work/store/result", "url": l.url("result")}}
			l.await(t, l.create(t, request), tes.COMPLETE)
			if got := l.read(t, "result"); got != "result\n" {
				t.Errorf("it is %q", got)
			}
			request["inputs"] = append(request["inputs"].([]any),
				task{"path": "/work/store/x", "content": ""})
			status, text := l.post(t, request)
			refused(t, status, text, 400, "inputs[1].path")
		}},
		{"a directory that is no mount stays as it is", func(t *testing.T, l *live) {
			l.fillMount(t, "mountsnot")
			id := l.create(t, l.changes("mountsnot", "echo x >new; rm -f same; true"))
			l.await(t, id, tes.COMPLETE)
			l.wantMount(t, "mountsnot", "new", "", "same", "same")
		}},
	}
}

// fillMount makes a directory with some files.
func (l *live) fillMount(t *testing.T, dir string) {
	t.Helper()
	for _, name := range []string{"same", "changed", "program", "gone/x"} {
		l.put(t, dir+"/"+name, filepath.Base(name))
	}
}

// changes is a task that runs a command in a directory.
func (l *live) changes(dir, command string) task {
	return runs("cd /work/store && "+command, "inputs", []any{
		task{"path": "/work/store", "url": l.url(dir), "type": "DIRECTORY"},
	})
}

// wantMount wants files with this content, each after its name; without content none.
func (l *live) wantMount(t *testing.T, dir string, files ...string) {
	t.Helper()
	for i := 0; i < len(files); i += 2 {
		text, err := os.ReadFile(filepath.Join(l.files, dir, files[i]))
		if err != nil && !errors.Is(err, fs.ErrNotExist) || string(text) != files[i+1] {
			t.Errorf("%s is %q (%v), want %q", files[i], text, err, files[i+1])
		}
	}
}
