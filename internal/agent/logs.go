package agent

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// logRequest opens a log stream: one line of JSON. What follows from the other
// side is the log's bytes, until the attempt has ended or the reader leaves.
type logRequest struct {
	Attempt string `json:"attempt"` // JOB.INDEX#TOKEN
	Stream  string `json:"stream"`  // stdout or stderr
	Offset  int64  `json:"offset"`
	Follow  bool   `json:"follow"`
}

const (
	maxLogRequest = 1 << 10
	logPoll       = 100 * time.Millisecond
)

// OpenLog reads the log of an attempt at the site that runs it, this one or another.
func (a *Agent) OpenLog(
	ctx context.Context, at grid.SiteID, id grid.AttemptID, q view.LogQuery,
) (io.ReadCloser, error) {
	request := logRequest{Attempt: id.String(), Stream: q.Stream, Offset: q.Offset, Follow: q.Follow}
	if at == a.mesh.Self() {
		return a.localLog(ctx, id, request), nil
	}
	return a.remoteLog(ctx, at, request)
}

// localLog reads the log of an attempt on this machine.
func (a *Agent) localLog(ctx context.Context, id grid.AttemptID, request logRequest) io.ReadCloser {
	reader, writer := io.Pipe()
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(a.ctx, func() { //nolint:contextcheck // the agent may end unread
		writer.CloseWithError(io.EOF)
	})
	a.spawn(func() {
		defer stop()
		writer.CloseWithError(a.copyLog(ctx, writer, id, request))
	})
	return logReader{reader, cancel}
}

type logReader struct {
	io.ReadCloser
	cancel context.CancelFunc
}

// Close ends the reading and what feeds it.
func (r logReader) Close() error {
	r.cancel()
	return r.ReadCloser.Close()
}

func (a *Agent) remoteLog(
	ctx context.Context, site grid.SiteID, request logRequest,
) (io.ReadCloser, error) {
	stream, err := a.mesh.OpenLog(ctx, site)
	if err != nil {
		return nil, fmt.Errorf("%w: the site that runs it cannot be asked: %w", view.ErrBusy, err)
	}
	line, err := json.Marshal(request)
	if err == nil {
		_, err = stream.Write(append(line, '\n'))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("ask for the log: %w", err), stream.Close())
	}
	return stream, nil
}

// serveLog answers a peer that asks for the log of an attempt of its own, or of an owner for whom
// it may act.
func (a *Agent) serveLog(from grid.SiteID, stream io.ReadWriteCloser) {
	line, err := bufio.NewReader(io.LimitReader(stream, maxLogRequest)).ReadBytes('\n')
	var request logRequest
	if err == nil {
		err = json.Unmarshal(line, &request)
	}
	id, idErr := grid.ParseAttemptID(request.Attempt)
	if err = errors.Join(err, idErr); err != nil {
		a.reports.count("log_request_invalid")
		return
	}
	if !a.awake() {
		return
	}
	allowed := false
	err = a.site.ask(a.ctx, func() {
		owner, known := a.siteMachine.Submitter(id)
		allowed = known && slices.Contains(a.heeding.members(owner), from)
	})
	if err != nil || !allowed {
		a.reports.count("log_request_denied")
		return
	}
	ctx, cancel := context.WithCancel(a.ctx)
	defer cancel()
	gone := make(chan struct{})
	go func() { // ends with the stream
		defer close(gone)
		defer cancel()
		awaitEnd(stream)
	}()
	if err := a.copyLog(ctx, stream, id, request); err != nil {
		a.log.Debug("a log was not read to its end", "attempt", id.String(), "error", err)
	}
	_ = stream.Close() // nothing is left to say
	<-gone
}

// awaitEnd reads a stream on which nothing more is expected until its other side
// leaves.
func awaitEnd(stream io.Reader) {
	buffer := make([]byte, 64)
	for {
		_, err := stream.Read(buffer)
		var slow interface{ Timeout() bool }
		if err != nil && (!errors.As(err, &slow) || !slow.Timeout()) {
			return
		}
	}
}

// copyLog copies the stream of an attempt on this machine from its file; when
// following, until the attempt is discarded or has ended.
func (a *Agent) copyLog(
	ctx context.Context, to io.Writer, id grid.AttemptID, request logRequest,
) error {
	job, ok := a.work.find(id)
	if !ok {
		return nil
	}
	path := lrm.Attempt{Dir: job.dir}.StdoutPath()
	if request.Stream == "stderr" {
		path = lrm.Attempt{Dir: job.dir}.StderrPath()
	}
	var f *os.File
	defer func() { _ = f.Close() }() // nothing was printed: there is none
	tick := time.NewTicker(logPoll)
	defer tick.Stop()
	for {
		over := !request.Follow || a.work.over(id)
		if f == nil {
			var err error
			if f, err = openLog(path, request.Offset); err != nil {
				return err
			}
		}
		if f != nil {
			if _, err := io.Copy(to, f); err != nil {
				return fmt.Errorf("copy the log: %w", err)
			}
		}
		if over {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		case <-a.ctx.Done():
			return nil
		}
	}
}

// openLog opens the file of a stream where it is to be read from; nil: nothing was printed yet.
func openLog(path string, offset int64) (*os.File, error) {
	f, err := openRegular(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if _, err := f.Seek(max(0, offset), io.SeekStart); err != nil {
		return nil, errors.Join(fmt.Errorf("read the log: %w", err), f.Close())
	}
	return f, nil
}

// openRegular opens a file that a job wrote: never through a link, and nothing
// that is no plain file.
func openRegular(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|plainFileOnly, 0)
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("open %s: not a regular file", path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
