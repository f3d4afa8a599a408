package hostinfo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"
)

// diskName is the file that is written and read; one that a crash left is
// overwritten and removed by the next measurement.
const diskName = "diskrate.tmp"

const (
	diskMost  = 32 << 20               // bytes written
	diskTrial = 1 << 20                // bytes written first, to see how many more take how long
	diskSpan  = 400 * time.Millisecond // of writing, and of reading again
	diskBlock = 256 << 10
	diskSpare = 256 << 20 // bytes that must be free: a disk that is nearly full is left alone
)

// errDiskFull says that there is too little free space to measure a disk.
var errDiskFull = errors.New("less than 256 MiB are free")

// measureDisk measures the rate of the disk below dir, in bit/s: the lower one of
// writing, with the data on the disk at the end, and of reading it back. It writes
// one file of at most 32 MiB, smaller where the disk is slow, and removes it; both
// together take at most a second unless the disk stalls. Where the system
// cannot be made to read from the disk again, writing alone counts.
func measureDisk(ctx context.Context, dir string, freeBytes int64) (bps int64, err error) {
	if freeBytes >= 0 && freeBytes < diskSpare {
		return 0, fmt.Errorf("measure disk: %w", errDiskFull)
	}
	f, err := os.OpenFile(filepath.Join(dir, diskName), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return 0, fmt.Errorf("measure disk: %w", err)
	}
	defer func() {
		err = errors.Join(err, f.Close(), os.Remove(f.Name()))
	}()
	written, write, err := writeDisk(ctx, f)
	if err != nil {
		return 0, fmt.Errorf("measure disk: write: %w", err)
	}
	rate := write
	if forget(f) {
		read, err := readDisk(ctx, f, written)
		if err != nil {
			return 0, fmt.Errorf("measure disk: read: %w", err)
		}
		rate = min(rate, read)
	}
	return inBits(rate), nil
}

// inBits is a rate of byte/s in bit/s, at least 1.
func inBits(rate float64) int64 {
	const bits = 8
	return max(int64(rate*bits), 1)
}

// writeDisk writes a little, and then as much as goes in diskSpan at that rate:
// bytes written and byte/s.
func writeDisk(ctx context.Context, f *os.File) (int64, float64, error) {
	block := make([]byte, diskBlock) // nothing that a file system could compress
	noise := rand.NewChaCha8([32]byte{})
	_, _ = noise.Read(block) // never fails
	trial, err := writeSynced(ctx, f, block, diskTrial)
	if err != nil {
		return 0, 0, err
	}
	more := moreAfter(trial)
	if more == 0 {
		return diskTrial, diskTrial / trial.Seconds(), nil
	}
	took, err := writeSynced(ctx, f, block, more)
	return diskTrial + more, float64(more) / took.Seconds(), err
}

// moreAfter returns the bytes that go in what is left of diskSpan after a trial that took so
// long: whole blocks, and 0 where that is less than the trial was.
func moreAfter(trial time.Duration) int64 {
	left := diskSpan - trial
	more := int64(diskTrial * left.Seconds() / trial.Seconds())
	if more = min(more, diskMost-diskTrial) / diskBlock * diskBlock; more < diskTrial {
		return 0
	}
	return more
}

// writeSynced appends so many bytes, whole blocks, and waits until they are on the disk.
func writeSynced(
	ctx context.Context, f *os.File, block []byte, bytes int64,
) (time.Duration, error) {
	began := time.Now()
	for n := range bytes / diskBlock {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		block[n%diskBlock]++ // no two blocks are the same
		if _, err := f.Write(block); err != nil {
			return 0, err
		}
	}
	err := f.Sync()
	return max(time.Since(began), 1), err
}

// readDisk reads the file again for diskSpan at most: byte/s.
func readDisk(ctx context.Context, f *os.File, bytes int64) (float64, error) {
	block := make([]byte, diskBlock)
	began := time.Now()
	n := int64(0)
	for n < bytes && time.Since(began) < diskSpan {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		got, err := f.ReadAt(block, n)
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if n += int64(got); got == 0 {
			return 0, io.ErrUnexpectedEOF
		}
	}
	return float64(n) / max(time.Since(began), 1).Seconds(), nil
}
