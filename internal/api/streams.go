package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// The content types of data.
const (
	typeFile       = "application/octet-stream"
	typeExecutable = "application/x-executable" // a file with the x bit
	typeTar        = "application/x-tar"
)

// stream is an answer whose body is copied as it comes and flushed chunk by
// chunk. When the source breaks off, so does the connection: a reader must not
// take half a file for a whole one.
type stream struct {
	headers map[string]string
	length  int64 // of the body; below 0 = unknown
	body    io.ReadCloser
}

// Bytes that are copied of a stream at a time.
const (
	firstChunk   = 4 << 10
	largestChunk = 64 << 10
)

func (s stream) write(w http.ResponseWriter) error {
	defer func() { _ = s.body.Close() }() // only read from
	for name, value := range s.headers {
		w.Header().Set(name, value)
	}
	if s.length >= 0 {
		w.Header().Set("Content-Length", strconv.FormatInt(s.length, 10))
	}
	w.WriteHeader(http.StatusOK)
	control := http.NewResponseController(w)
	if s.length < 0 {
		_ = control.Flush() // a follower wants to know that it is connected
	}
	buffer := make([]byte, firstChunk)
	for {
		n, err := s.body.Read(buffer)
		if n > 0 {
			_ = control.SetWriteDeadline(time.Now().Add(writeTimeout)) // not every writer has deadlines
			if _, wrong := w.Write(buffer[:n]); wrong != nil {
				panic(http.ErrAbortHandler)
			}
			_ = control.Flush()
		}
		if n == len(buffer) && n < largestChunk {
			buffer = make([]byte, 2*n) // most logs are short
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			panic(http.ErrAbortHandler)
		}
	}
}

// VisitGetDataResponse writes stored data.
func (s stream) VisitGetDataResponse(w http.ResponseWriter) error { return s.write(w) }

// VisitGetLogsResponse writes a log.
func (s stream) VisitGetLogsResponse(w http.ResponseWriter) error { return s.write(w) }

// PutData answers PUT /data.
func (h *handlers) PutData(
	ctx context.Context, r PutDataRequestObject,
) (PutDataResponseObject, error) {
	kind, _, _ := mime.ParseMediaType(r.ContentType) // what cannot be parsed is none of the two
	if r.Body == nil || (kind != typeFile && kind != typeExecutable && kind != typeTar) {
		return nil, &view.Problem{
			Status: http.StatusUnsupportedMediaType, Detail: "this content type cannot be stored",
			Field: "Content-Type",
			Remedy: "use application/octet-stream for a file, " + typeExecutable +
				" for a program, application/x-tar for a directory",
		}
	}
	var ref view.DataRef
	var err error
	switch name := r.Params.Encrypt; {
	case name != nil:
		u := view.Upload{Tar: kind == typeTar, Executable: kind == typeExecutable}
		ref, err = h.backend.PutEncrypted(ctx, *name, u, r.Body)
	case kind == typeExecutable:
		ref, err = h.backend.PutExecutable(ctx, r.Body)
	default:
		ref, err = h.backend.PutData(ctx, kind == typeTar, r.Body)
	}
	if err != nil {
		return nil, fmt.Errorf("store data: %w", err)
	}
	return PutData201JSONResponse(ref), nil
}

func cidOf(text string) (grid.CID, error) {
	cid := grid.CID(text)
	if cid.Validate() != nil {
		return "", &view.Problem{
			Status: http.StatusNotFound, Detail: fmt.Sprintf("no data %q", text), Field: "cid",
		}
	}
	return cid, nil
}

// GetData answers GET /data/{cid}.
func (h *handlers) GetData(
	ctx context.Context, r GetDataRequestObject,
) (GetDataResponseObject, error) {
	cid, err := cidOf(r.Cid)
	if err != nil {
		return nil, err
	}
	ref, body, err := h.openData(ctx, cid, r.Params.Task)
	if err != nil {
		return nil, fmt.Errorf("read data %s: %w", cid, err)
	}
	answer := stream{headers: dataHeaders(ref), length: ref.Bytes, body: body}
	if ref.Dir {
		answer.length = -1 // a tar stream is longer than what it holds
	}
	return answer, nil
}

// openData opens stored data, or what a task has left.
func (h *handlers) openData(
	ctx context.Context, cid grid.CID, task *string,
) (view.DataRef, io.ReadCloser, error) {
	if task == nil {
		return h.backend.GetData(ctx, cid)
	}
	id, err := grid.ParseTaskID(*task)
	if err != nil {
		return view.DataRef{}, nil, &view.Problem{
			Status: http.StatusNotFound, Detail: fmt.Sprintf("no task %q", *task), Field: "task",
			Remedy: "write JOB.INDEX",
		}
	}
	return h.backend.GetOutput(ctx, id, cid)
}

func dataHeaders(ref view.DataRef) map[string]string {
	kind := typeFile
	if ref.Dir {
		kind = typeTar
	}
	return map[string]string{
		"Content-Type": kind, "X-Content-Type-Options": "nosniff",
		"Mrs-Bytes": strconv.FormatInt(ref.Bytes, 10), "Mrs-Dir": strconv.FormatBool(ref.Dir),
		"Mrs-Executable": strconv.FormatBool(ref.Executable),
	}
}

// StatData answers HEAD /data/{cid}.
func (h *handlers) StatData(
	ctx context.Context, r StatDataRequestObject,
) (StatDataResponseObject, error) {
	cid, err := cidOf(r.Cid)
	if err != nil {
		return nil, err
	}
	ref, err := h.backend.StatData(ctx, cid)
	if err != nil {
		return nil, fmt.Errorf("look at data %s: %w", cid, err)
	}
	return StatData200Response{Headers: StatData200ResponseHeaders{
		MrsBytes: &ref.Bytes, MrsDir: &ref.Dir, MrsExecutable: &ref.Executable,
	}}, nil
}

// GetLogs answers GET /tasks/{id}/logs.
func (h *handlers) GetLogs(
	ctx context.Context, r GetLogsRequestObject,
) (GetLogsResponseObject, error) {
	task, err := grid.ParseTaskID(r.Id)
	if err != nil {
		return nil, &view.Problem{
			Status: http.StatusNotFound, Detail: fmt.Sprintf("no task %q", r.Id), Field: "id",
			Remedy: "write JOB or JOB.INDEX",
		}
	}
	query, err := logQuery(r.Params)
	if err != nil {
		return nil, err
	}
	body, err := h.backend.TaskLog(ctx, task, query)
	if err != nil {
		return nil, fmt.Errorf("read log of %s: %w", task, err)
	}
	headers := map[string]string{"Content-Type": typeFile, "X-Content-Type-Options": "nosniff"}
	return stream{headers: headers, length: -1, body: body}, nil
}

func logQuery(params GetLogsParams) (view.LogQuery, error) {
	q := view.LogQuery{Stream: "stdout"}
	if params.Stream != nil {
		q.Stream = string(*params.Stream)
	}
	if q.Stream != "stdout" && q.Stream != "stderr" {
		return q, fmt.Errorf("%w: stream: want stdout or stderr, have %q", grid.ErrInvalid, q.Stream)
	}
	if params.Offset != nil {
		q.Offset = *params.Offset
	}
	if q.Offset < 0 {
		return q, fmt.Errorf("%w: offset: want at least 0, have %d", grid.ErrInvalid, q.Offset)
	}
	q.Follow = params.Follow != nil && *params.Follow
	return q, nil
}

// maxEvents bounds the events taken from the backend at a time: all that is
// ever held for one reader.
const maxEvents = 256

// eventStream writes events as they happen until the reader goes or the server
// stops.
type eventStream struct {
	ctx       context.Context //nolint:containedctx // the generated Visit has no context argument
	events    Events
	after     uint64
	heartbeat time.Duration
	wordless  bool // without the events' texts, which quote what tasks print
}

// StreamEvents answers GET /events.
func (h *handlers) StreamEvents(
	ctx context.Context, r StreamEventsRequestObject,
) (StreamEventsResponseObject, error) {
	out := eventStream{
		ctx: ctx, events: h.backend, heartbeat: h.heartbeat, wordless: visitOf(ctx).session.Guest,
	}
	switch {
	case r.Params.LastEventID != nil:
		out.after = *r.Params.LastEventID
	case r.Params.After != nil:
		out.after = *r.Params.After
	case r.Params.Now != nil && *r.Params.Now:
		out.after = view.FromNow
	}
	return out, nil
}

// VisitStreamEventsResponse writes until the context ends.
func (s eventStream) VisitStreamEventsResponse(w http.ResponseWriter) error {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	text := []byte(": welcome\n\n")
	after := s.after
	for s.ctx.Err() == nil {
		if writeChunk(w, text) != nil {
			break // the reader has gone
		}
		events, err := s.next(after)
		switch {
		case s.ctx.Err() != nil:
			continue
		case errors.Is(err, context.DeadlineExceeded):
			text = []byte(": heartbeat\n\n")
			continue
		case err != nil:
			panic(http.ErrAbortHandler)
		}
		if text, err = formatEvents(events, s.wordless); err != nil {
			panic(http.ErrAbortHandler)
		}
		if len(events) > 0 {
			after = events[len(events)-1].ID
		}
	}
	return nil //nolint:nilerr // what ends the loop is the reader or the server
}

func (s eventStream) next(after uint64) ([]view.Event, error) {
	ctx, cancel := context.WithTimeout(s.ctx, s.heartbeat)
	defer cancel()
	return s.events.EventsAfter(ctx, after, maxEvents)
}

func formatEvents(events []view.Event, wordless bool) ([]byte, error) {
	var out []byte
	for _, event := range events {
		if wordless {
			event.Text = ""
		}
		data, err := json.Marshal(event)
		if err != nil {
			return nil, fmt.Errorf("write event: %w", err)
		}
		out = fmt.Appendf(out, "id: %d\nevent: %s\ndata: %s\n\n", event.ID, event.Kind, data)
	}
	return out, nil
}

func writeChunk(w http.ResponseWriter, text []byte) error {
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Now().Add(writeTimeout)) // not every writer has deadlines
	if _, err := w.Write(text); err != nil {
		return fmt.Errorf("write events: %w", err)
	}
	if err := control.Flush(); err != nil {
		return fmt.Errorf("flush events: %w", err)
	}
	return nil
}
