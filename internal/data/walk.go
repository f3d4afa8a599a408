package data

import (
	"context"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/ipfs/go-cid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// visitor is told of the entries of a directory, parents first, by relative path.
// The path of a root that is a file is empty.
type visitor interface {
	dir(name string) error
	file(name string, n node, content io.Reader) error
}

// visit walks a graph and reads its files. It bounds the number of entries and
// their bytes, because a small graph can repeat itself without end.
func (s *Store) visit(ctx context.Context, root cid.Cid, v visitor) error {
	w := &visitWalk{s: s, v: v, limits: s.cfg.Limits}
	return w.entry(ctx, "", root, 0)
}

type visitWalk struct {
	s       *Store
	v       visitor
	limits  Limits
	entries int
	bytes   int64
}

func (w *visitWalk) entry(ctx context.Context, name string, c cid.Cid, depth int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if w.entries++; w.entries > w.limits.Files+1 || depth > w.limits.Depth+1 ||
		len(name) > maxPathBytes {
		return fmt.Errorf("%w: more than %d entries, %d levels or a path of %d bytes",
			ErrTooLarge, w.limits.Files, w.limits.Depth, maxPathBytes)
	}
	n, err := w.s.node(c)
	if err != nil {
		return err
	}
	if n.kind == kindLeaf || n.kind == kindFile {
		if w.bytes = addSizes(w.bytes, n.bytes); w.bytes > w.limits.Bytes {
			return fmt.Errorf("%w: more than %s", ErrTooLarge, grid.FormatBytes(w.limits.Bytes))
		}
		return w.v.file(name, n, w.s.newFileReader(ctx, c))
	}
	if name != "" {
		if err = w.v.dir(name); err != nil {
			return err
		}
	}
	entries, err := w.s.entries(n)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := w.entry(ctx, path.Join(name, e.name), e.c, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// dirEntry is one entry of a directory.
type dirEntry struct {
	name string
	c    cid.Cid
}

const maxShardDepth = 32 // of a directory that is split

// entries lists a directory, ascending by name. A name that is not allowed or
// comes twice is refused.
func (s *Store) entries(n node) ([]dirEntry, error) {
	if n.kind != kindDir && n.kind != kindShard {
		return nil, fmt.Errorf("%w: not a directory", ErrUnsupported)
	}
	out, err := s.appendEntries(nil, n, 0)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(out, func(a, b dirEntry) int { return strings.Compare(a.name, b.name) })
	for i := 1; i < len(out); i++ {
		if out[i].name == out[i-1].name {
			return nil, fmt.Errorf("%w: directory names %q twice", ErrUnsupported, out[i].name)
		}
	}
	return out, nil
}

// appendEntries adds the entries of a directory and of the shards below it.
func (s *Store) appendEntries(out []dirEntry, n node, depth int) ([]dirEntry, error) {
	for _, l := range n.links {
		if len(l.Name) < n.prefix || depth > maxShardDepth || len(out) >= s.cfg.Limits.Files {
			return nil, fmt.Errorf("%w: directory with malformed or too many entries", ErrUnsupported)
		}
		name := l.Name[n.prefix:]
		if n.kind == kindShard && name == "" {
			child, err := s.shard(l.Cid)
			if err != nil {
				return nil, err
			}
			if out, err = s.appendEntries(out, child, depth+1); err != nil {
				return nil, err
			}
			continue
		}
		if err := checkName(name); err != nil {
			return nil, err
		}
		out = append(out, dirEntry{name: name, c: l.Cid})
	}
	return out, nil
}

// shard reads a part of a split directory.
func (s *Store) shard(c cid.Cid) (node, error) {
	n, err := s.node(c)
	if err == nil && n.kind != kindShard {
		err = fmt.Errorf("%w: directory shard %s is none", ErrUnsupported, c)
	}
	return n, err
}

// describe is the kind and the content size of a graph that is wholly here. Each
// distinct directory is read once.
func (s *Store) describe(c cid.Cid) (Ref, error) {
	sizes := make(map[cid.Cid]int64)
	var measure func(c cid.Cid, depth int) (bytes int64, dir bool, err error)
	measure = func(c cid.Cid, depth int) (int64, bool, error) {
		if known, ok := sizes[c]; ok {
			return known, true, nil
		}
		if depth > s.cfg.Limits.Depth+1 {
			return 0, false, fmt.Errorf("%w: more than %d directories within one another",
				ErrTooLarge, s.cfg.Limits.Depth)
		}
		if c.Type() == cid.Raw { // its size is known without reading it
			d, err := digestOf(c)
			if err != nil {
				return 0, false, err
			}
			n, _ := s.blocks.size(d)
			return n, false, nil
		}
		n, err := s.node(c)
		if err != nil || n.kind == kindFile {
			return n.bytes, false, err
		}
		entries, err := s.entries(n)
		if err != nil {
			return 0, false, err
		}
		var total int64
		for _, e := range entries {
			bytes, _, err := measure(e.c, depth+1)
			if err != nil {
				return 0, false, err
			}
			total = addSizes(total, bytes)
		}
		sizes[c] = total
		return total, true, nil
	}
	bytes, dir, err := measure(c, 0)
	ref := Ref{CID: gridCID(c), Bytes: bytes, Dir: dir}
	if err == nil && !dir && c.Type() != cid.Raw {
		n, wrong := s.node(c)
		ref.Executable, err = n.executable, wrong
	}
	return ref, err
}
