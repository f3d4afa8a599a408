package api

import (
	"bytes"
	_ "embed" // openapi.yaml
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/pprof"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// basePath is the path below which the interface of openapi.yaml is served.
const basePath = "/api/v1"

// routes is everything that is served, without locks.
func (s *Server) routes() http.Handler {
	router := chi.NewRouter()
	router.NotFound(func(w http.ResponseWriter, r *http.Request) {
		s.fail(w, r, &view.Problem{Status: http.StatusNotFound, Detail: "no such path: " + r.URL.Path})
	})
	router.MethodNotAllowed(func(w http.ResponseWriter, r *http.Request) {
		s.fail(w, r, &view.Problem{
			Status: http.StatusMethodNotAllowed, Detail: r.Method + " is not served here",
		})
	})
	router.Use(s.limitBody)
	s.addHealth(router)
	router.Get(basePath+"/openapi.yaml", serveSpecification)
	router.Get(basePath+"/", s.serveReference)
	if s.options.Tasks != nil {
		s.options.Tasks.Mount(router, s.fail)
	}
	badRequest := func(w http.ResponseWriter, r *http.Request, err error) {
		s.fail(w, r, asBadRequest(err))
	}
	strict := NewStrictHandlerWithOptions(
		&handlers{backend: s.backend, heartbeat: s.options.Heartbeat, signing: signing{
			book: &s.book, now: s.options.Now, door: s.openDoor, log: s.options.Logger,
		}}, nil,
		StrictHTTPServerOptions{RequestErrorHandlerFunc: badRequest, ResponseErrorHandlerFunc: s.fail},
	)
	return HandlerWithOptions(strict, ChiServerOptions{
		BaseURL: basePath, BaseRouter: router, ErrorHandlerFunc: badRequest,
	})
}

func (s *Server) addHealth(router chi.Router) {
	router.Get("/livez", func(w http.ResponseWriter, _ *http.Request) { writeText(w, "ok\n") })
	router.Get("/readyz", func(w http.ResponseWriter, r *http.Request) {
		if s.options.Ready == nil {
			writeText(w, "ok\n")
			return
		}
		if err := s.options.Ready(r.Context()); err != nil {
			s.fail(w, r, &view.Problem{Status: http.StatusServiceUnavailable, Detail: err.Error()})
			return
		}
		writeText(w, "ok\n")
	})
	if s.options.Metrics != nil {
		router.Method(http.MethodGet, "/metrics", s.options.Metrics)
	}
	if s.options.Debug {
		router.HandleFunc("/debug/pprof/*", pprof.Index)
		router.HandleFunc("/debug/pprof/profile", pprof.Profile)
		router.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		router.HandleFunc("/debug/pprof/trace", pprof.Trace)
	}
}

func writeText(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, text) // the reader has gone if it fails
}

//go:embed openapi.yaml
var specification []byte

// serveSpecification serves what clients are made from.
func serveSpecification(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/yaml")
	_, _ = w.Write(specification) // the reader has gone if it fails
}

// serveReference serves the specification for people.
func (s *Server) serveReference(w http.ResponseWriter, r *http.Request) {
	page, err := s.reference()
	if err != nil {
		s.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; "+
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	_, _ = w.Write(page) // the reader has gone if it fails
}

// limitBody bounds what a request may carry. A JSON body is read as a whole and
// refused when it holds a key that the specification does not know: ignoring a
// misspelt key would run another job than the intended one.
func (s *Server) limitBody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			r.Body = http.MaxBytesReader(w, r.Body, s.options.MaxUpload)
			next.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxJSONBytes))
		if err == nil && len(body) > 0 {
			err = checkKeys(r.URL.Path, body)
		}
		if err != nil {
			s.fail(w, r, asBadRequest(err))
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	})
}

// checkKeys refuses keys that the request's schema does not have.
func checkKeys(path string, body []byte) error {
	var into any
	switch strings.TrimPrefix(path, basePath) {
	case "/jobs", "/plan":
		into = &JobSpec{}
	case "/pause":
		into = &PauseRequest{}
	case "/stop":
		into = &StopRequest{}
	case "/invites":
		into = &InviteRequest{}
	case "/links":
		into = &JoinDomainRequest{}
	case "/link-invites":
		into = &LinkInviteRequest{}
	case "/domain-key/rotate":
		into = &RotateRequest{}
	case "/page-links":
		into = &PageLinkRequest{}
	case "/session":
		into = &SessionRequest{}
	case "/configuration":
		into = &ConfigurationChange{}
	default:
		if into = requestBelow(path); into == nil {
			return nil
		}
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return fmt.Errorf("read body: %w", err)
	}
	return nil
}

// requestBelow has the form of a request's body at a path with a name in it; nil = any.
func requestBelow(path string) any {
	switch {
	case strings.HasPrefix(path, basePath+"/members/") && strings.HasSuffix(path, "/ban"):
		return &BanRequest{}
	case strings.HasPrefix(path, basePath+"/members/") && strings.HasSuffix(path, "/pause"):
		return &PauseRequest{}
	case strings.HasPrefix(path, basePath+"/members/"):
		return &DecisionRequest{}
	case strings.HasPrefix(path, basePath+"/links/"):
		return &view.PolicyChange{}
	case strings.HasPrefix(path, basePath+"/jobs/") && strings.HasSuffix(path, "/migrate"):
		return &MoveRequest{}
	default:
		return nil
	}
}

// checkHost lets only requests through that were meant for a loopback address:
// a page of a name that resolves to 127.0.0.1 sends that name.
func checkHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		if !isLoopback(strings.Trim(host, "[]")) {
			writeProblem(w, &view.Problem{
				Status: http.StatusMisdirectedRequest, Detail: "the request was meant for another host",
				Field:  "Host",
				Remedy: "use the agent's address, such as http://127.0.0.1:4800",
			})
			return
		}
		next.ServeHTTP(w, r)
	})
}

// fail answers with a problem. What is our own fault is logged too.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	problem := asProblem(err)
	if problem.Status >= http.StatusInternalServerError {
		s.options.Logger.WarnContext(r.Context(), "request failed",
			"method", r.Method, "path", r.URL.Path, "status", problem.Status, "error", err)
	}
	writeProblem(w, problem)
}

func writeProblem(w http.ResponseWriter, problem *view.Problem) {
	out := *problem
	if out.Title == "" {
		out.Title = http.StatusText(out.Status)
	}
	if out.Type == "" {
		out.Type = "about:blank"
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(out.Status)
	_ = json.NewEncoder(w).Encode(out) // the reader has gone if it fails
}

// asBadRequest is the problem of a request that could not be read.
func asBadRequest(err error) *view.Problem {
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return asProblem(err)
	}
	problem := &view.Problem{
		Status: http.StatusBadRequest, Detail: err.Error(),
		Remedy: "GET /api/v1/openapi.yaml says what is expected",
	}
	if format, ok := errors.AsType[*InvalidParamFormatError](err); ok {
		problem.Field = format.ParamName
	}
	if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		problem.Field = kind.Field
	}
	if _, key, found := strings.Cut(err.Error(), "unknown field "); found {
		problem.Field = strings.Trim(key, `"`)
	}
	return problem
}

// asProblem finds the status that belongs to a backend's error.
func asProblem(err error) *view.Problem {
	if problem, ok := errors.AsType[*view.Problem](err); ok {
		return problem
	}
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &view.Problem{
			Status: http.StatusRequestEntityTooLarge, Detail: err.Error(),
			Remedy: "send at most " + grid.FormatBytes(tooLarge.Limit),
		}
	}
	problem := &view.Problem{Status: http.StatusInternalServerError, Detail: err.Error()}
	for _, known := range []struct {
		cause  error
		status int
	}{
		{view.ErrNotFound, http.StatusNotFound},
		{view.ErrDenied, http.StatusForbidden},
		{view.ErrConflict, http.StatusConflict},
		{view.ErrTooLarge, http.StatusRequestEntityTooLarge},
		{view.ErrBusy, http.StatusServiceUnavailable},
		{grid.ErrInvalid, http.StatusBadRequest},
	} {
		if errors.Is(err, known.cause) {
			problem.Status = known.status
			break
		}
	}
	if problem.Status == http.StatusBadRequest {
		problem.Field, problem.Remedy = fieldOf(err), "correct it and send the request again"
	}
	return problem
}

// fieldOf is the field that a validation error of pkg/grid names: the words
// between "invalid: " and the next colon.
func fieldOf(err error) string {
	_, rest, found := strings.Cut(err.Error(), grid.ErrInvalid.Error()+": ")
	field, _, named := strings.Cut(rest, ": ")
	if !found || !named || len(field) > 64 {
		return ""
	}
	return field
}
