package tes

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// maxNotes bounds what is read of the script's notes, in files.
const maxNotes = 5 * maxList

// readRan reads the script's notes: the executors that have ended, in their order. What a task
// may have put in their place is read as nothing.
func readRan(r io.Reader, executors int) ([]TesExecutorLog, error) {
	notes, err := readNotes(r)
	list := []TesExecutorLog{}
	for i := range executors {
		code, wrong := strconv.ParseInt(strings.TrimSpace(notes[fmt.Sprintf("%d.code", i)]), 10, 32)
		if wrong != nil {
			break // it was not begun, or did not end
		}
		note := func(name string) *string {
			text, there := notes[fmt.Sprintf("%d.%s", i, name)]
			if !there {
				return nil
			}
			return &text
		}
		list = append(list, TesExecutorLog{
			ExitCode: int32(code), StartTime: moment(note("start")), EndTime: moment(note("end")),
			Stdout: note("stdout"), Stderr: note("stderr"),
		})
	}
	return list, err
}

// readNotes reads a tar of small files.
func readNotes(r io.Reader) (map[string]string, error) {
	notes := map[string]string{}
	archive := tar.NewReader(r)
	for range maxNotes {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return notes, nil
		}
		if err != nil {
			return notes, err
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		text, err := io.ReadAll(io.LimitReader(archive, tailBytes))
		if err != nil {
			return notes, err
		}
		notes[strings.TrimPrefix(header.Name, "./")] = strings.ToValidUTF8(string(text), "\uFFFD")
	}
	return notes, nil
}

// moment is a time that a script noted, nil if it is none.
func moment(text *string) *string {
	if text == nil {
		return nil
	}
	at, err := time.Parse(time.RFC3339, strings.TrimSpace(*text))
	if err != nil {
		return nil
	}
	out := at.UTC().Format(time.RFC3339)
	return &out
}
