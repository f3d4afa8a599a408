package main

import (
	"errors"
	"fmt"
	"os"
)

// busyChunk is written between two syncs.
const busyChunk = 8 << 20

// busyDisk is another program that writes to the agents' disk and syncs as fast as it can, so
// that what the agents sync has to wait.
type busyDisk struct {
	stop chan struct{}
	done chan error // one result
}

// makeBusy starts it; it writes into one new file of that directory, again and again.
func makeBusy(dir string) (*busyDisk, error) {
	f, err := os.CreateTemp(dir, "busy-")
	if err != nil {
		return nil, err
	}
	b := &busyDisk{stop: make(chan struct{}), done: make(chan error, 1)}
	go func() { b.done <- errors.Join(b.write(f), f.Close(), os.Remove(f.Name())) }()
	return b, nil
}

func (b *busyDisk) write(f *os.File) error {
	chunk := make([]byte, busyChunk)
	for {
		select {
		case <-b.stop:
			return nil
		default:
		}
		if _, err := f.WriteAt(chunk, 0); err != nil {
			return fmt.Errorf("keep the disk busy: %w", err)
		}
		if err := f.Sync(); err != nil {
			return fmt.Errorf("keep the disk busy: %w", err)
		}
	}
}

// end stops it and removes its file.
func (b *busyDisk) end() error {
	close(b.stop)
	return <-b.done
}
