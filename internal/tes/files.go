package tes

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// shelf is a directory of this machine that tasks may read and write.
type shelf string

// shelves are all of them.
type shelves []shelf

// newShelves orders directories so that the innermost comes first.
func newShelves(dirs []string) shelves {
	var all shelves
	for _, dir := range dirs {
		all = append(all, shelf(path.Clean(filepath.ToSlash(dir))))
	}
	slices.SortFunc(all, func(a, b shelf) int { return len(b) - len(a) })
	return all
}

// place is a file or directory on a shelf.
type place struct {
	shelf shelf
	name  string // relative to the shelf, clean; "." is the shelf itself
}

// find says which place an address means: file:///PATH, or the path alone.
func (all shelves) find(field, address string) (place, error) {
	p, err := pathOf(field, address)
	if err != nil {
		return place{}, err
	}
	for _, s := range all {
		if below(p, string(s)) {
			name := strings.TrimPrefix(strings.TrimPrefix(p, string(s)), "/")
			return place{s, cmp.Or(name, ".")}, nil
		}
	}
	remedy := "the owner of this agent can allow a directory with the setting tes.files"
	if len(all) > 0 {
		remedy = "allowed is everything below " + strings.Join(all.names(), ", ")
	}
	return place{}, invalid(field,
		quoted(address)+" is outside of the directories that tasks may use", remedy)
}

func (all shelves) names() []string {
	var list []string
	for _, s := range all {
		list = append(list, string(s))
	}
	return list
}

// pathOf is the path that an address means on this machine.
func pathOf(field, address string) (string, error) {
	if strings.HasPrefix(address, "/") {
		return path.Clean(address), nil
	}
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return "", invalid(field, "not a URL: "+quoted(address), "write %25 for a percent sign")
	case u.Scheme != "file":
		return "", invalid(field, "this agent does not transfer from or to "+quoted(address),
			"copy the data to a file and name it as file:///PATH")
	case u.Host != "" && u.Host != "localhost", !strings.HasPrefix(u.Path, "/"):
		return "", invalid(field, "want a file of this machine, have "+quoted(address),
			"write file:///PATH")
	case strings.ContainsRune(u.Path, 0):
		return "", invalid(field, "the path holds a zero byte", "leave it out")
	default:
		return path.Clean(u.Path), nil
	}
}

// open opens the shelf: nothing that is reached through it lies outside, whatever links there are.
func (p place) open() (*os.Root, error) {
	root, err := os.OpenRoot(filepath.FromSlash(string(p.shelf)))
	if err != nil {
		return nil, fmt.Errorf("open a directory of tes.files: %w", err)
	}
	return root, nil
}

// stat looks at what is there.
func (p place) stat() (fs.FileInfo, error) {
	root, err := p.open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // nothing was written
	return root.Stat(filepath.FromSlash(p.name))
}

// within reports an error if links lead from the shelf to somewhere else. The place need not be
// there.
func (p place) within() error {
	root, err := p.open()
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // nothing was written
	name := p.name
	for {
		_, err := root.Stat(filepath.FromSlash(name))
		if err == nil || name == "." || !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		name = path.Dir(name)
	}
}
