package powercut

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// files follows the names below the root and the open files while a program runs.
type files struct {
	root string
	tape *Tape
	now  map[*node]map[string]*node // of directories: the names as the program sees them
	size map[*node]int64
	open map[int]*opened
}

// opened is an open file.
type opened struct {
	node   *node
	path   string
	at     int64
	append bool
}

// newFiles takes what is there as durable.
func newFiles(root string) (*files, error) {
	f := &files{
		root: filepath.Clean(root), now: make(map[*node]map[string]*node), size: make(map[*node]int64),
		open: make(map[int]*opened),
	}
	top, err := f.load(f.root)
	f.tape = &Tape{root: top}
	return f, err
}

func (f *files) load(path string) (*node, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		data, wrong := os.ReadFile(path)
		n := &node{base: data}
		f.size[n] = int64(len(data))
		return n, wrong
	}
	n := f.newDir()
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	n.kept = make(map[string]*node)
	for _, e := range entries {
		child, err := f.load(filepath.Join(path, e.Name()))
		if err != nil {
			return nil, err
		}
		n.kept[e.Name()], f.now[n][e.Name()] = child, child
	}
	return n, nil
}

func (f *files) newDir() *node {
	n := &node{dir: true}
	f.now[n] = make(map[string]*node)
	return n
}

func (f *files) add(e event) { f.tape.events = append(f.tape.events, e) }

// find gives the directory that a path is in, its name there, and what it stands for.
func (f *files) find(path string) (dir *node, name string, n *node) {
	if path == f.root {
		return nil, "", f.tape.root
	}
	rest, below := strings.CutPrefix(path, f.root+string(filepath.Separator))
	if !below {
		return nil, "", nil
	}
	n = f.tape.root
	for name = range strings.SplitSeq(rest, string(filepath.Separator)) {
		if dir = n; dir == nil || !dir.dir {
			return nil, "", nil
		}
		n = f.now[dir][name]
	}
	return dir, name, n
}

// name lets a path stand for something else, or for nothing.
func (f *files) name(path string, target *node) {
	dir, name, _ := f.find(path)
	if dir == nil {
		return
	}
	if target == nil {
		delete(f.now[dir], name)
	} else {
		f.now[dir][name] = target
	}
	f.add(event{kind: named, node: dir, name: name, target: target})
}

func (f *files) opens(fd int, path string, create, truncate, appends bool) {
	dir, _, n := f.find(path)
	if n == nil && (dir == nil || !create) {
		return // elsewhere
	}
	if n == nil {
		n = &node{}
		f.name(path, n)
	}
	if truncate {
		f.truncate(n, 0)
	}
	f.open[fd] = &opened{node: n, path: path, append: appends}
}

func (f *files) truncate(n *node, size int64) {
	f.size[n] = size
	f.add(event{kind: truncated, node: n, at: size})
}

// writes takes down a write; at is -1 where the open file says it.
func (f *files) writes(fd int, at int64, data []byte) {
	file := f.open[fd]
	if file == nil {
		return
	}
	if at < 0 {
		if file.append {
			file.at = f.size[file.node]
		}
		at = file.at
		file.at += int64(len(data))
	}
	f.size[file.node] = max(f.size[file.node], at+int64(len(data)))
	f.add(event{kind: wrote, node: file.node, at: at, data: data})
}

// path makes a path absolute; fd is the directory it is relative to, if it is below the root.
func (f *files) path(fd int, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	if file := f.open[fd]; file != nil {
		return filepath.Join(file.path, path)
	}
	return fmt.Sprintf("relative:%s", path) // the program's own directory lies elsewhere
}
