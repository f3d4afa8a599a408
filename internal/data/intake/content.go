package intake

import (
	"context"
	"io"
	"math"
	"os"

	"github.com/mrsmesh/mrsmesh/internal/crypt"
	"github.com/mrsmesh/mrsmesh/internal/data"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Content is a file or a directory that is to be taken in.
type Content struct {
	File       *os.File    // nil: the directory. It is read from its begin, whatever its offset
	Executable bool        // the file is stored with the x bit
	Dir        string      // a directory as data.Store.AddDir takes it, or crypt.Pack with a key
	Key        grid.JobKey // that it is encrypted with; empty: it is in the clear
}

// Here stores content without a process, under the name that Take would give it.
func Here(ctx context.Context, store Store, c Content) (data.Ref, error) {
	from, end, err := c.open()
	if err != nil {
		return data.Ref{}, err
	}
	defer end()
	return store.Add(ctx, from)
}

// open says what a graph is built from. end is to be called afterwards; the file stays open.
func (c Content) open() (from data.Source, end func(), err error) {
	end = func() {}
	switch {
	case c.File != nil: // at its own offset: the agent and the process share the file's
		from.Content, from.Executable = io.NewSectionReader(c.File, 0, math.MaxInt64), c.Executable
	case c.Key == "":
		from.Dir = c.Dir
	default:
		packed, wrong := crypt.Pack(c.Dir)
		if wrong != nil {
			return from, end, wrong
		}
		from.Content, end = packed, func() { _ = packed.Close() } // only read from
	}
	if c.Key == "" {
		return from, end, nil
	}
	if from.Content, err = crypt.Encrypt(c.Key, from.Content); err != nil {
		end()
		return from, nil, err
	}
	return from, end, nil
}
