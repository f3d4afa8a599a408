package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/data"
)

// The names of the figures for content that is durable when it is acknowledged.
const (
	figSmall = "result of 500 bytes stored, on disk"
	figMany  = "16 results at the same time, all on disk"
	figLarge = "result of 16 MiB stored, on disk"
)

const largeResult = 16 << 20

// measureContent stores results as a site does, each beside the disk's own time for as many
// bytes in one file.
func (b *bench) measureContent(ctx context.Context) error {
	pair, err := newMeshPair(ctx, b.dir)
	if err != nil {
		return fmt.Errorf("content: %w", err)
	}
	defer pair.close()
	//nolint:contextcheck // the store has a life of its own, which Close ends
	store, err := data.Open(data.Config{
		Dir: filepath.Join(b.dir, "content"), Allow: pair.a.Allowed,
	}, pair.a.Host())
	if err != nil {
		return fmt.Errorf("content: %w", err)
	}
	defer func() { _ = store.Close() }() // it is thrown away
	c := content{store: store, dir: b.dir}
	var raw, small, many, rawLarge, large sample
	err = b.repeat(200, 10*time.Second, func() error {
		return errors.Join(
			timed(&raw, func() error { return c.file(500) }),
			timed(&small, func() error { return c.add(ctx, c.next(500)) }),
			timed(&many, func() error { return c.together(ctx, 16) }),
		)
	})
	if err == nil {
		err = b.repeat(20, 10*time.Second, func() error {
			return errors.Join(
				timed(&rawLarge, func() error { return c.file(largeResult) }),
				timed(&large, func() error { return c.add(ctx, c.next(largeResult)) }),
			)
		})
	}
	if err != nil {
		return fmt.Errorf("content: %w", err)
	}
	one := raw.in(time.Millisecond).P50
	b.add(spanned(figSmall, small, time.Millisecond)).against("write + fsync of one file", one)
	b.add(spanned(figMany, many, time.Millisecond)).against("write + fsync of one file", one)
	b.add(spanned(figLarge, large, time.Millisecond)).
		against("write + fsync of one file", rawLarge.in(time.Millisecond).P50)
	return nil
}

// content makes results that differ.
type content struct {
	store *data.Store
	dir   string
	n     uint64
}

func (c *content) next(size int) io.Reader {
	c.n++
	var seed [32]byte
	binary.LittleEndian.PutUint64(seed[:], c.n)
	noise := make([]byte, size)
	_, _ = rand.NewChaCha8(seed).Read(noise) // it never fails
	return bytes.NewReader(noise)
}

func (c *content) add(ctx context.Context, r io.Reader) error {
	_, err := c.store.AddFile(ctx, r)
	return err
}

// together stores several small results concurrently.
func (c *content) together(ctx context.Context, n int) error {
	var wait sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		result := c.next(500)
		wait.Go(func() { errs[i] = c.add(ctx, result) })
	}
	wait.Wait()
	return errors.Join(errs...)
}

// file writes as many bytes to a new file and waits for the disk.
func (c *content) file(size int) error {
	f, err := os.CreateTemp(c.dir, "raw-")
	if err != nil {
		return err
	}
	_, err = io.Copy(f, c.next(size))
	return errors.Join(err, f.Sync(), f.Close(), os.Remove(f.Name()))
}
