package main

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/mrsmesh/mrsmesh/internal/jobmap"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// sinks are where the results of a map go.
type sinks struct {
	folder *os.Root     // the present directory, for what comes back
	out    *os.Root     // of --results
	log    *os.File     // of --joblog
	logged map[int]bool // numbers of tasks that the log has
}

// ownerFile in a directory of results says whose they are.
const ownerFile = "job"

// open opens the sinks, for a job that is not submitted yet or for one to go on with.
func (m *mapping) open(id grid.JobID) error {
	var err error
	if m.folder, err = os.OpenRoot("."); err != nil {
		return fmt.Errorf("open the present directory: %w", err)
	}
	if m.results != "" {
		if m.out, err = openFolder(m.results); err != nil {
			return usage("--results: %w", err)
		}
		if err = m.checkOwner(id); err != nil {
			return err
		}
	}
	if m.joblog == "" {
		return nil
	}
	return m.openLog(id)
}

// openLog opens the log of tasks, to go on with it or to begin it.
func (m *mapping) openLog(id grid.JobID) error {
	const flags = os.O_RDWR | os.O_CREATE | os.O_APPEND
	var err error
	// For the user alone: commands may hold what others should not read.
	if m.log, err = os.OpenFile(filepath.Clean(m.joblog), flags, 0o600); err != nil {
		return usage("--joblog: %w", err)
	}
	var whole int64
	if m.logged, whole, err = jobmap.ReadLog(m.log); err != nil {
		return usage("--joblog %s: %w", m.joblog, err)
	}
	if id == "" && len(m.logged) > 0 {
		return usage("--joblog: %s has the tasks of another job; name another file", m.joblog)
	}
	if err = m.log.Truncate(whole); err == nil && whole == 0 {
		_, err = m.log.WriteString(jobmap.LogHeader)
	}
	return err
}

// close closes the sinks. What was written is written: each write tells its own errors.
func (s *sinks) close() {
	for _, root := range []*os.Root{s.folder, s.out} {
		if root != nil {
			_ = root.Close()
		}
	}
	if s.log != nil {
		_ = s.log.Close()
	}
}

// checkOwner refuses a directory that has results of another job.
func (m *mapping) checkOwner(id grid.JobID) error {
	data, err := m.out.ReadFile(ownerFile)
	owner := strings.TrimSpace(string(data))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return usage("--results: %w", err)
	case owner != string(id):
		return usage("--results: %s has the results of job %s; name another directory", m.results,
			owner)
	}
	return nil
}

// own notes whose results a directory has.
func (m *mapping) own(id grid.JobID) error {
	if m.out == nil {
		return nil
	}
	if err := m.out.WriteFile(ownerFile, []byte(id+"\n"), 0o644); err != nil {
		return fmt.Errorf("--results: %w; job %s goes on, `%s` follows it again", err, id,
			m.again(id))
	}
	return nil
}

// disown frees the directory of results of a job that was refused: it has none.
func (m *mapping) disown(v view.JobView) error {
	if m.out == nil || v.Phase != view.PhaseRefused {
		return nil
	}
	return m.out.Remove(ownerFile)
}

// isWritten reports whether a task was handled before this command began.
func (m *mapping) isWritten(t view.TaskView) bool {
	number := int(t.Index) + 1
	if m.out == nil {
		return m.logged[number]
	}
	_, err := m.out.Stat(filepath.Join(strconv.Itoa(number), "exit"))
	return err == nil && (m.log == nil || m.logged[number])
}

// write writes what a task has left: first the files that come back, then what it has
// printed. It gives the last line of its standard error.
func (m *mapping) write(ctx context.Context, t view.TaskView) (string, error) {
	for _, out := range t.Outputs {
		var err error
		if out.Path == jobmap.Gathered && m.spec.Kind == grid.KindCommand.String() {
			err = m.writeGathered(ctx, t.ID, out)
		} else if out.To != "" {
			err = m.app.writeOutput(ctx, m.folder, t.ID, out)
		}
		if err != nil {
			return "", fmt.Errorf("write what it returns: %w", err)
		}
	}
	if m.out != nil {
		return m.writeResults(ctx, t)
	}
	var last lastLine
	err := m.copyStream(ctx, t, "stdout", m.app.out)
	if err == nil {
		err = m.copyStream(ctx, t, "stderr", io.MultiWriter(m.app.err, &last))
	}
	return last.String(), err
}

func (m *mapping) copyStream(ctx context.Context, t view.TaskView, name string,
	to io.Writer,
) error {
	if t.Started.IsZero() {
		return nil // it has printed nothing, and no site has it
	}
	if isSilent(t, name) {
		return nil
	}
	task := grid.TaskID{Job: m.job, Index: t.Index}
	if _, err := m.app.copyPart(ctx, task, view.LogQuery{Stream: name}, to); err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	return nil
}

// writeResults writes a task's directory of results as a whole.
func (m *mapping) writeResults(ctx context.Context, t view.TaskView) (string, error) {
	var last lastLine
	name := strconv.Itoa(int(t.Index) + 1)
	if _, err := m.out.Stat(filepath.Join(name, "exit")); err == nil {
		return "", nil // the log alone is missing
	}
	if _, err := m.out.Lstat(name); err == nil {
		return "", fmt.Errorf("%s is there already; move it away", filepath.Join(m.results, name))
	}
	temporary := ".mrs-" + rand.Text()[:12]
	if err := m.out.Mkdir(temporary, 0o755); err != nil {
		return "", err
	}
	err := m.writeStream(ctx, t, temporary, "stdout", io.Discard)
	if err == nil {
		err = m.writeStream(ctx, t, temporary, "stderr", &last)
	}
	if err == nil {
		text := strconv.Itoa(exitOf(t)) + "\n"
		err = m.out.WriteFile(filepath.Join(temporary, "exit"), []byte(text), 0o644)
	}
	if err == nil {
		err = m.out.Rename(temporary, name)
	}
	if err != nil {
		return "", errors.Join(err, m.out.RemoveAll(temporary)) // made above
	}
	return last.String(), nil
}

func (m *mapping) writeStream(ctx context.Context, t view.TaskView, dir, name string,
	also io.Writer,
) error {
	file, err := m.out.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(m.copyStream(ctx, t, name, io.MultiWriter(file, also)), file.Close())
}

// exitOf is a task's exit code, -1 if it has none.
func exitOf(t view.TaskView) int {
	if t.Code == nil {
		return -1
	}
	return *t.Code
}

// logEnded adds a task to the log.
func (m *mapping) logEnded(t view.TaskView) error {
	if m.log == nil || m.logged[int(t.Index)+1] {
		return nil
	}
	e := jobmap.LogEntry{
		Number: int(t.Index) + 1, Host: nameOf(t.SiteName, t.Site), Start: t.Started.Time,
		Code: exitOf(t), Command: m.commandOf(t), Send: m.bytesSent(t.Index),
	}
	if !t.Started.IsZero() {
		e.Run = t.Ended.Sub(t.Started.Time)
	}
	if t.Cause == grid.CauseSignal.String() {
		e.Signal = e.Code - 128
	}
	for _, out := range t.Outputs {
		e.Receive += out.Bytes
	}
	if _, err := m.log.WriteString(e.Line()); err != nil {
		return fmt.Errorf("write --joblog: %w", err)
	}
	return nil
}

// bytesSent is the size of all that a task is given.
func (m *mapping) bytesSent(index uint32) int64 {
	var sum int64
	count := func(inputs []view.InputSpec) {
		for _, in := range inputs {
			sum += in.Bytes
		}
	}
	count(m.spec.Inputs)
	if m.spec.Module != nil {
		sum += m.spec.Module.Bytes
	}
	if int(index) < len(m.spec.Items) {
		count(m.spec.Items[index].Inputs)
	}
	return sum
}

// writeGathered puts each file of a directory that came back in its place below the
// present directory, whole or not at all. Nothing is written through a link.
func (m *mapping) writeGathered(ctx context.Context, task string, out view.OutputView) error {
	ref, body, err := m.app.client.GetOutput(ctx, task, out)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }() // only read from
	if !ref.Dir {
		return errors.New("it is no directory")
	}
	return eachEntry(body, func(name string, header *tar.Header, body io.Reader) error {
		return placeEntry(m.folder, name, header, body)
	})
}

func placeEntry(root *os.Root, name string, header *tar.Header, body io.Reader) error {
	switch header.Typeflag {
	case tar.TypeDir:
		return makeParents(root, filepath.Join(name, "x"))
	case tar.TypeReg:
		if err := makeParents(root, name); err != nil {
			return err
		}
		temporary := filepath.Join(filepath.Dir(name), ".mrs-"+rand.Text()[:12])
		ref := view.DataRef{Bytes: header.Size, Executable: header.Mode&0o100 != 0}
		return placeFile(root, temporary, name, body, ref)
	default:
		return errors.New("neither a file nor a directory")
	}
}

// lastLine keeps the end of what is written to it.
type lastLine struct{ end []byte }

// maxLastLine bounds it, in bytes.
const maxLastLine = 1024

// Write keeps what may belong to the last line.
func (l *lastLine) Write(p []byte) (int, error) {
	l.end = append(l.end, p[max(len(p)-maxLastLine, 0):]...)
	l.end = bytes.Clone(l.end[max(len(l.end)-maxLastLine, 0):])
	return len(p), nil
}

// String is the last line that is not empty.
func (l *lastLine) String() string {
	text := strings.TrimSpace(string(l.end))
	return strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}
