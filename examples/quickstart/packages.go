package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// sourcePackage is a package directory of the standard library.
type sourcePackage struct {
	name  string // import path
	dir   string
	bytes int64 // of its .go files
}

// largestPackage leaves out the one or two packages that the others would
// wait for at the end.
const largestPackage = 2 << 20 // bytes

// findPackages gives the n largest packages of the standard library, the largest
// first, so that the short tasks fill the gaps at the end.
func findPackages(ctx context.Context, n int) ([]sourcePackage, error) {
	goroot, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("go env GOROOT: %w; is the go command on the PATH?", err)
	}
	root := filepath.Join(strings.TrimSpace(string(goroot)), "src")
	all, err := packagesBelow(root)
	if err != nil {
		return nil, fmt.Errorf("read the standard library's source in %s: %w", root, err)
	}
	if len(all) < n {
		return nil, fmt.Errorf("%s holds %d packages of at most 2 MiB, want %d; install Go with its "+
			"source, or give -tasks",
			root, len(all), n)
	}
	return all[:n], nil
}

func packagesBelow(root string) ([]sourcePackage, error) {
	sizes := make(map[string]int64)
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && leftOut(name):
			return fs.SkipDir
		case !isSource(entry):
			return nil
		}
		info, err := entry.Info()
		if err == nil {
			sizes[path.Dir(name)] += info.Size()
		}
		return err
	})
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller says what was read
	}
	var all []sourcePackage
	for name, size := range sizes {
		if name != "." && size <= largestPackage {
			all = append(
				all, sourcePackage{name: name, dir: filepath.Join(root, filepath.FromSlash(name)), bytes: size},
			)
		}
	}
	slices.SortFunc(all, func(a, b sourcePackage) int {
		return cmp.Or(cmp.Compare(b.bytes, a.bytes), cmp.Compare(a.name, b.name))
	})
	return all, nil
}

// leftOut names what is no part of the library: the go command's own source,
// which not every installation has, copies of other modules, and data of tests.
func leftOut(name string) bool {
	base := path.Base(name)
	return name == "cmd" || base == "vendor" || base == "testdata" || name != "." &&
		strings.ContainsRune("._", rune(base[0]))
}

func isSource(entry fs.DirEntry) bool {
	return entry.Type().IsRegular() && path.Ext(entry.Name()) == ".go"
}

// pack puts the package's .go files, and nothing below it, into a tar archive
// that is the same on every machine.
func (p sourcePackage) pack() (*bytes.Buffer, error) {
	entries, err := os.ReadDir(p.dir)
	if err != nil {
		return nil, fmt.Errorf("read package %s: %w", p.name, err)
	}
	archive := &bytes.Buffer{}
	w := tar.NewWriter(archive)
	for _, entry := range entries {
		if !isSource(entry) {
			continue
		}
		source, err := os.ReadFile(filepath.Join(p.dir, entry.Name()))
		if err != nil {
			return nil, fmt.Errorf("read package %s: %w", p.name, err)
		}
		header := &tar.Header{
			Typeflag: tar.TypeReg, Name: entry.Name(), Mode: 0o644, Size: int64(len(source)),
		}
		if err = w.WriteHeader(header); err == nil {
			_, err = w.Write(source)
		}
		if err != nil {
			return nil, fmt.Errorf("pack package %s: %w", p.name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("pack package %s: %w", p.name, err)
	}
	return archive, nil
}
