package wasm

import (
	"io"
)

// printed is an output stream that remembers what was written to it: it is a part of the state, so
// that an attempt that goes on has printed all that the task has.
type printed struct {
	to    io.Writer
	text  []byte
	limit int64
	over  bool // more was printed than is remembered: the attempt is being ended for that
}

// Write implements io.Writer.
func (p *printed) Write(text []byte) (int, error) {
	if p.over = p.over || int64(len(p.text))+int64(len(text)) > p.limit; !p.over {
		p.text = append(p.text, text...)
	}
	return p.to.Write(text)
}

// replay prints what an earlier attempt has.
func (p *printed) replay(from io.Reader) error {
	_, err := io.Copy(p, from)
	return err
}
