package eval

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/mrsmesh/mrsmesh/pkg/workload"
)

// maxLine bounds a line of a log; those of the archive have some hundred bytes.
const maxLine = 1 << 20

// readLog reads a file in the Standard Workload Format, packed by gzip or not, whatever
// its name. Errors name the file, and the line where one is wrong.
func readLog(path string) (workload.Log, error) {
	file, err := os.Open(path)
	if err != nil {
		return workload.Log{}, fmt.Errorf("read log: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	log, err := readLines(file)
	if err != nil {
		return workload.Log{}, fmt.Errorf("read log %s: %w", path, err)
	}
	return log, nil
}

func readLines(file io.Reader) (workload.Log, error) {
	plain, err := unpack(file)
	if err != nil {
		return workload.Log{}, err
	}
	lines := bufio.NewScanner(plain)
	lines.Buffer(nil, maxLine)
	number := 0
	log, err := workload.ReadSWF(func(yield func([]byte) bool) {
		for lines.Scan() {
			if number++; !yield(lines.Bytes()) {
				return
			}
		}
	})
	switch failed := lines.Err(); {
	case errors.Is(failed, bufio.ErrTooLong):
		return workload.Log{}, fmt.Errorf("line %d: longer than %d bytes", number+1, maxLine)
	case failed != nil:
		return workload.Log{}, fmt.Errorf("after line %d: %w", number, failed)
	case err == nil && len(log.Records) == 0:
		return workload.Log{}, fmt.Errorf("no jobs in %d lines: want lines of 18 numbers", number)
	}
	return log, err
}

// unpack looks whether the file is packed, which its first bytes say.
func unpack(file io.Reader) (io.Reader, error) {
	buffered := bufio.NewReader(file)
	if magic, err := buffered.Peek(2); err != nil || !bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		return buffered, nil //nolint:nilerr // a file of one byte is not packed; other errors come again
	}
	plain, err := gzip.NewReader(buffered)
	if err != nil {
		return nil, fmt.Errorf("unpack: %w", err)
	}
	return plain, nil
}
