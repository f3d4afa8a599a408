package main

import (
	"io"
	"sync"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/jobfile"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// How often an upload tells how far it is.
const (
	drawEvery = 100 * time.Millisecond // on a terminal
	sayEvery  = 5 * time.Second        // elsewhere, a line each
)

// transfer shows how far an upload is, in bytes and percent.
type transfer struct {
	app   *app
	total int64

	mu     sync.Mutex // the connection reads on its own; guards what follows
	done   int64
	told   time.Time
	said   bool // a line was printed that stays
	screen redraw
}

// newTransfer is for everything that a job sends.
func (a *app) newTransfer(sources []jobfile.Source) *transfer {
	t := &transfer{app: a, told: time.Now()}
	for _, source := range sources {
		t.total += source.Bytes
	}
	return t
}

// reader counts what is read of one source.
func (t *transfer) reader(body io.Reader) io.Reader { return &countedReader{transfer: t, from: body} }

type countedReader struct {
	transfer *transfer
	from     io.Reader
}

// Read counts and passes on.
func (r *countedReader) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	r.transfer.add(int64(n))
	return n, err
}

func (t *transfer) add(n int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.done += n
	every := drawEvery
	if !t.app.terminal {
		every = sayEvery
	}
	if now := time.Now(); now.Sub(t.told) >= every {
		t.told = now
		t.draw("uploading " + ofTotal(t.done, t.total))
	}
}

// draw prints a line; mu is held.
func (t *transfer) draw(line string) {
	t.said = true
	if t.app.terminal {
		t.screen.print(t.app.err, []string{line}, t.app.columns())
		return
	}
	t.app.say("%s", line)
}

// end says what was sent where somebody watches, or was told that it takes long.
func (t *transfer) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.total > 0 && (t.app.terminal || t.said) {
		t.draw("uploaded " + grid.FormatBytes(t.total))
	}
}
