package tes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"reflect"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/mrsmesh/mrsmesh/internal/view"
)

// Fail answers a request with a problem.
type Fail func(w http.ResponseWriter, r *http.Request, err error)

// bases are the paths below which the operations are served: that of the specification, and the
// one of its first versions.
func bases() []string { return []string{"/ga4gh/tes/v1", "/v1"} }

// Mount serves the operations. Errors that fail gets are those of internal/view.
func (s *Tasks) Mount(router chi.Router, fail Fail) {
	bad := func(w http.ResponseWriter, r *http.Request, err error) { fail(w, r, badRequest(err)) }
	strict := NewStrictHandlerWithOptions(s, nil, StrictHTTPServerOptions{
		RequestErrorHandlerFunc: bad, ResponseErrorHandlerFunc: fail,
	})
	for _, base := range bases() {
		HandlerWithOptions(strict, ChiServerOptions{
			BaseURL: base, BaseRouter: router, ErrorHandlerFunc: bad,
			Middlewares: []MiddlewareFunc{func(next http.Handler) http.Handler {
				return checkBody(next, bad)
			}},
		})
	}
}

// checkBody bounds a task, and refuses keys that tasks do not have: ignoring a misspelt one would
// run another task than the intended one.
func checkBody(next http.Handler, bad Fail) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/tasks") {
			next.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxTaskBytes))
		if err == nil {
			decoder := json.NewDecoder(bytes.NewReader(body))
			decoder.DisallowUnknownFields()
			var task TesTask
			if err = decoder.Decode(&task); err == nil && decoder.More() {
				err = errors.New("more follows the task")
			}
		}
		if err != nil {
			bad(w, r, err)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	})
}

// badRequest is the problem of a request that could not be read.
func badRequest(err error) error {
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return err
	}
	problem := &view.Problem{
		Status: http.StatusBadRequest, Detail: err.Error(),
		Remedy: "the Task Execution Service 1.1 of GA4GH says what is expected",
	}
	if format, ok := errors.AsType[*InvalidParamFormatError](err); ok {
		problem.Field = format.ParamName
	}
	if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		problem.Field = kind.Field
		problem.Detail = fmt.Sprintf("want %s, have %s", kindOf(kind.Type), kind.Value)
	}
	if _, key, found := strings.Cut(err.Error(), "unknown field "); found {
		problem.Field = strings.Trim(key, `"`)
		problem.Detail = "a task has no such key"
		problem.Remedy = "correct it, or leave it out"
	}
	if wrong, ok := errors.AsType[*json.SyntaxError](err); ok {
		problem.Detail, problem.Remedy = "no JSON: "+wrong.Error(), "send the task as JSON"
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		problem.Detail, problem.Remedy = "the task ends too early", "send it whole, as JSON"
	}
	return problem
}

// kindOf says in words of JSON what a value must be.
func kindOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Slice:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Pointer:
		return kindOf(t.Elem())
	default:
		return "a number"
	}
}

// viewOf reads which view is asked for; nil or empty is MINIMAL.
func viewOf[V ~string](given *V) (View, error) {
	if given == nil || *given == "" {
		return ViewMINIMAL, nil
	}
	v := View(*given)
	if !v.Valid() {
		return "", invalid("view", "unknown: "+quoted(string(v)), "want MINIMAL, BASIC or FULL")
	}
	return v, nil
}

// storage lists what tasks read from and write to.
func (s *Tasks) storage() []string {
	storage := []string{}
	for _, dir := range s.shelves.names() {
		storage = append(storage, "file://"+dir)
	}
	for _, prefix := range s.web {
		storage = append(storage, prefix.String())
	}
	return storage
}

// GetServiceInfo answers GET /service-info.
func (s *Tasks) GetServiceInfo(
	context.Context, GetServiceInfoRequestObject,
) (GetServiceInfoResponseObject, error) {
	storage, known := s.storage(), parameters()
	info := GetServiceInfo200JSONResponse{
		Id: "org.mrsmesh.tes." + string(s.cfg.Domain), Name: s.cfg.Name, Version: s.cfg.Build,
		Storage: &storage, TesResourcesBackendParameters: &known,
		Type: TesServiceType{Group: "org.ga4gh", Artifact: Tes, Version: "1.1.0"},
	}
	info.Organization.Name, info.Organization.Url = "mrsmesh", "https://github.com/mrsmesh/mrsmesh"
	return info, nil
}

// CreateTask answers POST /tasks.
func (s *Tasks) CreateTask(
	ctx context.Context, r CreateTaskRequestObject,
) (CreateTaskResponseObject, error) {
	id, err := s.create(ctx, *r.Body)
	if err != nil {
		return nil, err
	}
	return CreateTask200JSONResponse{Id: id}, nil
}

// CancelTask answers POST /tasks/{id}:cancel.
func (s *Tasks) CancelTask(
	_ context.Context, r CancelTaskRequestObject,
) (CancelTaskResponseObject, error) {
	if err := s.cancel(r.Id); err != nil {
		return nil, err
	}
	return CancelTask200JSONResponse{}, nil
}

// answer is a JSON document; in the view MINIMAL it has keys that the generated types lack.
type answer struct{ value any }

func (a answer) write(w http.ResponseWriter) error {
	text, err := json.Marshal(a.value)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, err = w.Write(text)
	return err
}

// VisitGetTaskResponse writes a task.
func (a answer) VisitGetTaskResponse(w http.ResponseWriter) error { return a.write(w) }

// VisitListTasksResponse writes a page of tasks.
func (a answer) VisitListTasksResponse(w http.ResponseWriter) error { return a.write(w) }

// Clients of version 1.0 ask at oldServiceInfo for the service's facts, which were fewer then:
// among the tasks, none of which has an ID with a hyphen.
const oldServiceInfo = "service-info"

// GetTask answers GET /tasks/{id}.
func (s *Tasks) GetTask(
	ctx context.Context, r GetTaskRequestObject,
) (GetTaskResponseObject, error) {
	v, err := viewOf(r.Params.View)
	if err != nil {
		return nil, err
	}
	if r.Id == oldServiceInfo {
		doc := "tasks run at the sites of the domain " + string(s.cfg.Domain)
		return answer{map[string]any{"name": s.cfg.Name, "doc": doc, "storage": s.storage()}}, nil
	}
	e, err := s.find(r.Id)
	if err != nil {
		return nil, err
	}
	shown, err := s.show(ctx, e, v)
	if err != nil {
		return nil, err
	}
	return answer{shown}, nil
}

// ListTasks answers GET /tasks.
func (s *Tasks) ListTasks(
	ctx context.Context, r ListTasksRequestObject,
) (ListTasksResponseObject, error) {
	v, err := viewOf(r.Params.View)
	if err != nil {
		return nil, err
	}
	q, err := queryOf(r.Params)
	if err != nil {
		return nil, err
	}
	list, next := s.page(q)
	tasks, size := []json.RawMessage{}, 0
	for i, e := range list {
		shown, err := s.show(ctx, e, v)
		if errors.Is(err, fs.ErrNotExist) {
			continue // it was dropped meanwhile
		}
		if err != nil {
			return nil, err
		}
		text, err := json.Marshal(shown)
		if err != nil {
			return nil, err
		}
		tasks = append(tasks, text)
		if size += len(text); size > maxPageBytes && i < len(list)-1 {
			next = token{e.created, e.id}.String()
			break
		}
	}
	page := map[string]any{"tasks": tasks}
	if next != "" {
		page["next_page_token"] = next
	}
	return answer{page}, nil
}

// show is a task in a view.
func (s *Tasks) show(ctx context.Context, e *entry, v View) (any, error) {
	if v == ViewMINIMAL {
		return minimal{ID: e.id, State: s.stateNow(e)}, nil
	}
	r, err := s.store.load(e.id)
	if err != nil {
		return nil, err
	}
	task, state, logs := r.Task, s.stateNow(e), withNotes([]TesTaskLog{}, r.Notes)
	switch {
	case r.End != nil:
		state, logs = r.End.State, r.End.Logs
	case r.JobID != "":
		tasks, err := s.backend.Tasks(ctx, r.JobID, 0, 1)
		if err != nil && !errors.Is(err, view.ErrNotFound) { // forgotten: the task ends soon
			return nil, fmt.Errorf("show task %s: %w", e.id, err)
		}
		for _, t := range tasks {
			logs = withNotes(logsOf(r.JobID, s.cfg.Domain, t), r.Notes)
		}
	}
	task.Id, task.State, task.Logs, task.CreationTime = &e.id, &state, &logs, timeOf(r.Created)
	if v == ViewBASIC {
		return basic(task), nil
	}
	return task, nil
}
