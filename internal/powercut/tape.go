package powercut

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
)

// Role is the environment variable that tells a test that it is the recorded program.
const Role = "POWERCUT_DIR"

// ackFD is the descriptor to which a recorded program writes what it gives as durable.
const ackFD = 3

// node is a file or a directory, whatever its names.
type node struct {
	dir  bool
	base []byte           // a file as it was when the recording began
	kept map[string]*node // a directory, likewise
}

// event is one thing that happened, in the order of the tape.
type event struct {
	kind   kind
	node   *node // what it concerns; of a name: the directory
	name   string
	target *node // what the name stands for from now on; nil = nothing
	at     int64 // where was written, or the size of a truncated file
	data   []byte
	covers int // of a sync: events before this one are durable
	text   string
}

type kind uint8

const (
	wrote kind = iota
	truncated
	named
	synced
	acked
)

// Tape has all that a program did.
type Tape struct {
	root   *node
	events []event
}

// Len is the number of points at which the power may fail, less one: Cut takes 0 to Len.
func (t *Tape) Len() int { return len(t.events) }

// Syncs lists the points right before and right behind each sync.
func (t *Tape) Syncs() []int {
	var points []int
	for i, e := range t.events {
		if e.kind == synced {
			points = append(points, i, i+1)
		}
	}
	return slices.Compact(points)
}

// Acked lists what was given as durable before a point.
func (t *Tape) Acked(point int) []string {
	var texts []string
	for _, e := range t.events[:point] {
		if e.kind == acked {
			texts = append(texts, e.text)
		}
	}
	return texts
}

// Cut lays out in dir, which must be there and empty, what the disk may hold when the
// power fails at a point. Seed 0 loses all that was not synced, 1 nothing; any other
// chooses by chance.
func (t *Tape) Cut(dir string, point int, seed uint64) error {
	c := cut{events: t.events[:point], durable: make(map[*node]int), seed: seed}
	c.random = rand.New(rand.NewPCG(seed, uint64(point))) //nolint:gosec // chance, no secret
	for i, e := range c.events {
		if e.kind == synced {
			c.durable[e.node] = max(c.durable[e.node], min(e.covers, i))
		}
	}
	return c.layOut(t.root, dir)
}

type cut struct {
	events  []event
	durable map[*node]int // events before this one survive
	random  *rand.Rand
	seed    uint64
}

// survives decides on something that was not synced.
func (c cut) survives() bool {
	return c.seed == 1 || c.seed > 1 && c.random.IntN(2) == 0
}

func (c cut) layOut(n *node, path string) error {
	names := c.names(n)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		child, to := names[name], filepath.Join(path, name)
		var err error
		if child.dir {
			if err = os.Mkdir(to, 0o700); err == nil {
				err = c.layOut(child, to)
			}
		} else {
			err = os.WriteFile(to, c.content(child), 0o600)
		}
		if err != nil {
			return fmt.Errorf("lay out what is left: %w", err)
		}
	}
	return nil
}

// names are the names in a directory. Of those a name had since the last sync any may
// have come to the disk.
func (c cut) names(dir *node) map[string]*node {
	names := maps.Clone(dir.kept)
	if names == nil {
		names = make(map[string]*node)
	}
	for i, e := range c.events {
		if e.kind != named || e.node != dir || (i >= c.durable[dir] && !c.survives()) {
			continue
		}
		if e.target == nil {
			delete(names, e.name)
		} else {
			names[e.name] = e.target
		}
	}
	return names
}

const sector = 512 // bytes that a disk writes whole

// content gives the bytes of a file.
func (c cut) content(file *node) []byte {
	data := slices.Clone(file.base)
	for i, e := range c.events {
		if e.node != file || (e.kind != wrote && e.kind != truncated) {
			continue
		}
		part := e.data
		if i >= c.durable[file] {
			if !c.survives() {
				continue
			}
			if c.seed > 1 && c.random.IntN(4) == 0 && len(part) > sector { // torn
				part = part[:sector*c.random.IntN(len(part)/sector)]
			}
		}
		if e.kind == truncated {
			data = resized(data, e.at)
			continue
		}
		data = resized(data, max(int64(len(data)), e.at+int64(len(part))))
		copy(data[e.at:], part)
	}
	return data
}

func resized(data []byte, size int64) []byte {
	if size <= int64(len(data)) {
		return data[:size]
	}
	return append(data, make([]byte, size-int64(len(data)))...)
}
