package eval

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/mrsmesh/mrsmesh/pkg/workload"
)

// maxLine bounds a line of a file; those of the archives have some hundred bytes.
const maxLine = 1 << 20

// readLog reads a file in the Standard Workload Format, packed by gzip or not, whatever
// its name. Errors name the file, and the line where one is wrong.
func readLog(path string) (workload.Log, error) {
	var log workload.Log
	err := readPlain(path, "log", func(lines iter.Seq[[]byte]) (err error) {
		number := 0
		log, err = workload.ReadSWF(counted(lines, &number))
		if err == nil && len(log.Records) == 0 {
			return fmt.Errorf("no jobs in %d lines: want lines of 18 numbers", number)
		}
		return err
	})
	return log, err
}

// readEvents reads an event_trace of the Failure Trace Archive in the same way.
func readEvents(path string) ([]workload.Node, error) {
	var nodes []workload.Node
	err := readPlain(path, "events", func(lines iter.Seq[[]byte]) (err error) {
		nodes, err = workload.ReadEvents(lines)
		return err
	})
	return nodes, err
}

// readSpeeds reads a table of the speeds of hosts in the same way.
func readSpeeds(path string) (workload.Speeds, error) {
	var speeds workload.Speeds
	err := readPlain(path, "speeds", func(lines iter.Seq[[]byte]) (err error) {
		speeds, err = workload.ReadSpeeds(lines)
		return err
	})
	return speeds, err
}

// readPlain hands the lines of a file to a reader. A failure of the file counts before what
// the reader makes of the lines that it got.
func readPlain(path, what string, read func(lines iter.Seq[[]byte]) error) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("read %s: %w", what, err)
	}
	defer func() { _ = file.Close() }() // it was only read
	if err := readLines(file, read); err != nil {
		return fmt.Errorf("read %s %s: %w", what, path, err)
	}
	return nil
}

func readLines(file io.Reader, read func(lines iter.Seq[[]byte]) error) error {
	plain, err := unpack(file)
	if err != nil {
		return err
	}
	scanner := bufio.NewScanner(plain)
	scanner.Buffer(nil, maxLine)
	number := 0
	err = read(counted(func(yield func([]byte) bool) {
		for scanner.Scan() {
			if !yield(scanner.Bytes()) {
				return
			}
		}
	}, &number))
	switch failed := scanner.Err(); {
	case errors.Is(failed, bufio.ErrTooLong):
		return fmt.Errorf("line %d: longer than %d bytes", number+1, maxLine)
	case failed != nil:
		return fmt.Errorf("after line %d: %w", number, failed)
	}
	return err
}

// counted counts the lines that were asked for.
func counted(lines iter.Seq[[]byte], number *int) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for line := range lines {
			if *number++; !yield(line) {
				return
			}
		}
	}
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

// writeLines writes each line with its end.
func writeLines(out *bufio.Writer, lines iter.Seq[[]byte]) error {
	for line := range lines {
		if _, err := out.Write(line); err != nil {
			return err
		}
		if err := out.WriteByte('\n'); err != nil {
			return err
		}
	}
	return nil
}
