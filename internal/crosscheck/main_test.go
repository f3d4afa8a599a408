package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A mistake in a file of one system, or in a test of it, is found for that system alone.
func TestCheck(t *testing.T) {
	files := map[string]string{
		"go.mod":             "module example.org/m\n\ngo 1.26\n",
		"m.go":               "package m\n\nfunc F() int { return f() }\n",
		"f_linux.go":         "package m\n\nfunc f() int { return 1 }\n",
		"f_windows.go":       "package m\n\nfunc f() int { return \"1\" }\n",
		"f_darwin.go":        "package m\n\nfunc f() int { return 1 }\n",
		"f_darwin_test.go":   "package m\n\nvar _ = missing\n",
		"sub/f_freebsd.go":   "package sub\n\nfunc F() int { return 1 }\n",
		"sub/f_other.go":     "//go:build !freebsd\n\npackage sub\n",
		"sub/use/use_all.go": "package use\n\nimport \"example.org/m/sub\"\n\nvar _ = sub.F\n",
	}
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for target, want := range map[string][]string{
		"linux/arm64":   {"use_all.go"},
		"windows/amd64": {"f_windows.go", "use_all.go"},
		"darwin/arm64":  {"f_darwin_test.go", "use_all.go"},
		"freebsd/amd64": {"m.go"},
		"linux":         {"such as linux/arm64"},
	} {
		err := check(dir, target)
		if err == nil {
			t.Errorf("%s: no mistake was found, want %v", target, want)
			continue
		}
		for _, name := range want {
			if !strings.Contains(err.Error(), name) {
				t.Errorf("%s: found %v, want a mistake in %s", target, err, name)
			}
		}
		if strings.Contains(err.Error(), "f_windows.go") != (target == "windows/amd64") {
			t.Errorf("%s: found %v", target, err)
		}
	}
}
