//go:build e2e

package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/api/web"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// fakeAgent serves the page and made answers, and notes what the page asks for.
type fakeAgent struct {
	*httptest.Server
	facts  *pageFacts
	events *view.EventLog
	guest  bool

	mu    sync.Mutex
	asked []asked // guarded by mu
	away  bool    // guarded by mu: nothing is answered, connections are cut

	expired bool // guarded by mu: no session is good
}

// asked is one request of the page.
type asked struct{ method, path, body string }

const (
	fakeCode   = "once"
	fakeSecret = "the-secret-of-the-session"
)

func newFakeAgent(t *testing.T, facts *pageFacts, guest bool) *fakeAgent {
	t.Helper()
	f := &fakeAgent{facts: facts, events: view.NewEventLog(1024, 1), guest: guest}
	mux := http.NewServeMux()
	mux.Handle("/", web.Handler())
	mux.HandleFunc("/api/v1/session", f.session)
	mux.HandleFunc("/api/v1/", f.answer)
	f.Server = httptest.NewServer(f.noted(mux))
	t.Cleanup(func() { f.CloseClientConnections(); f.Close() })
	return f
}

// noted writes down each request, or cuts the connection while the agent is away.
func (f *fakeAgent) noted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		f.mu.Lock()
		away := f.away
		f.asked = append(f.asked, asked{r.Method, r.URL.RequestURI(), string(body)})
		f.mu.Unlock()
		if away {
			panic(http.ErrAbortHandler)
		}
		next.ServeHTTP(w, r)
	})
}

// session opens, shows and ends the session, as the agent does.
func (f *fakeAgent) session(w http.ResponseWriter, r *http.Request) {
	answer := map[string]any{"csrf": fakeSecret, "guest": f.guest, "expires": view.At(time.Now())}
	switch r.Method {
	case http.MethodPost:
		var request struct{ Code string }
		if json.NewDecoder(r.Body).Decode(&request) != nil || request.Code != fakeCode {
			problem(w, http.StatusUnauthorized, "the link has been used", "run siteagent open")
			return
		}
		http.SetCookie(w, f.cookie("yes"))
	case http.MethodDelete:
		http.SetCookie(w, f.cookie(""))
		w.WriteHeader(http.StatusNoContent)
		return
	default:
		if !f.signedIn(r) {
			problem(w, http.StatusUnauthorized, "there is no session", "run siteagent open")
			return
		}
	}
	writeJSON(w, answer)
}

func (f *fakeAgent) cookie(value string) *http.Cookie {
	return &http.Cookie{
		Name: "mrs-session-" + f.URL[strings.LastIndex(f.URL, ":")+1:], Value: value, Path: "/",
		HttpOnly: true, SameSite: http.SameSiteStrictMode,
	}
}

func (f *fakeAgent) signedIn(r *http.Request) bool {
	c, err := r.Cookie(f.cookie("").Name)
	f.mu.Lock()
	defer f.mu.Unlock()
	return err == nil && c.Value == "yes" && !f.expired
}

// answer serves everything else of the interface, to those that are signed in.
func (f *fakeAgent) answer(w http.ResponseWriter, r *http.Request) {
	switch {
	case !f.signedIn(r):
		problem(w, http.StatusUnauthorized, "there is no session", "run siteagent open")
	case r.Method != http.MethodGet && r.Header.Get("X-Mrs-Csrf") != fakeSecret:
		problem(w, http.StatusForbidden, "the session's secret is missing", "reload the page")
	case r.Method == http.MethodGet:
		f.get(w, r)
	default:
		f.order(w, r)
	}
}

func (f *fakeAgent) get(w http.ResponseWriter, r *http.Request) {
	f.facts.mu.Lock()
	defer f.facts.mu.Unlock()
	path := strings.TrimPrefix(r.URL.Path, "/api/v1")
	query := func(name string) int {
		n, _ := strconv.Atoi(r.URL.Query().Get(name))
		return n
	}
	switch {
	case path == "/events":
		f.facts.mu.Unlock()
		defer f.facts.mu.Lock()
		f.stream(w, r)
	case path == "/status":
		writeJSON(w, f.facts.status)
	case path == "/jobs":
		q := r.URL.Query()
		writeJSON(w, f.facts.page(q.Get("prefix"), q.Get("before"), query("limit")))
	case strings.HasSuffix(path, "/tasks"):
		tasks := f.facts.tasks(query("from"), query("limit"))
		for i := range tasks {
			if f.guest {
				tasks[i].Outputs = nil
			}
		}
		writeJSON(w, tasks)
	case strings.HasSuffix(path, "/rounds"):
		all := append(slices.Clone(f.facts.rounds), f.facts.offers)
		writeJSON(w, all[max(0, len(all)-query("limit")):])
	case strings.HasSuffix(path, "/offers"):
		writeJSON(w, f.facts.offers)
	case strings.HasSuffix(path, "/logs"):
		_, _ = io.WriteString(w, "printed to "+r.URL.Query().Get("stream")+"\n")
	case strings.HasPrefix(path, "/jobs/"):
		spec := view.JobSpec{Kind: "wasm", Count: 1}
		writeJSON(w, view.JobDetail{Spec: spec, Status: f.facts.jobs[0]})
	case path == "/sites":
		writeJSON(w, f.facts.sites)
	case path == "/fleet":
		writeJSON(w, f.facts.fleet)
	case path == "/neighbours":
		writeJSON(w, f.facts.neighbours)
	case path == "/members":
		writeJSON(w, f.facts.members)
	case path == "/given":
		writeJSON(w, f.facts.given)
	case path == "/configuration":
		writeJSON(w, f.facts.configuration)
	default:
		problem(w, http.StatusNotFound, "no such path: "+path, "")
	}
}

// stream sends the events from now on.
func (f *fakeAgent) stream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	after, _ := strconv.ParseUint(r.URL.Query().Get("after"), 10, 64)
	if r.URL.Query().Get("now") != "" {
		after = view.FromNow
	}
	text := ": welcome\n\n"
	for {
		if _, err := io.WriteString(w, text); err != nil {
			return
		}
		_ = http.NewResponseController(w).Flush()
		events, err := f.events.EventsAfter(r.Context(), after, 64)
		if err != nil {
			return
		}
		text = ""
		for _, e := range events {
			data, _ := json.Marshal(e)
			text += fmt.Sprintf("id: %d\nevent: %s\ndata: %s\n\n", e.ID, e.Kind, data)
			after = e.ID
		}
	}
}

// order does what is ordered, as far as it shows, and tells it as an event.
func (f *fakeAgent) order(w http.ResponseWriter, r *http.Request) {
	f.facts.mu.Lock()
	defer f.facts.mu.Unlock()
	path := strings.TrimPrefix(r.URL.Path, "/api/v1")
	switch {
	case path == "/pause":
		f.facts.status.Paused = true
	case path == "/resume":
		f.facts.status.Paused = false
	case path == "/plan":
		writeJSON(w, f.facts.offers)
		return
	case path == "/configuration":
		f.configure(w, r)
		return
	case path == "/members/12D3KooWoak/pause", path == "/members/12D3KooWoak/resume":
		oak := f.facts.fleet[1].Status
		oak.Paused, oak.PausedBy = strings.HasSuffix(path, "/pause"), "attic"
		writeJSON(w, oak)
		return
	case strings.HasPrefix(path, "/members/"):
		f.facts.members.Sites = f.facts.members.Sites[1:]
		writeJSON(w, view.MemberRow{})
		return
	case strings.HasPrefix(path, "/jobs/"):
		id, verb, _ := strings.Cut(strings.TrimPrefix(path, "/jobs/"), "/")
		f.facts.orderJob(grid.JobID(id), verb)
	default:
		problem(w, http.StatusNotFound, "no such path: "+path, "")
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// configure changes a setting, or refuses one value.
func (f *fakeAgent) configure(w http.ResponseWriter, r *http.Request) {
	var change struct{ Settings map[string]string }
	if err := json.NewDecoder(r.Body).Decode(&change); err != nil {
		problem(w, http.StatusBadRequest, err.Error(), "")
		return
	}
	for name, value := range change.Settings {
		if name == "owner.hours" && value == "never" {
			problem(w, http.StatusUnprocessableEntity,
				`hours "never": want days and times such as mon-fri 18:00-08:00`, "correct it")
			return
		}
		f.facts.set(name, value)
	}
	writeJSON(w, view.Configuration{File: "siteagent.yaml", Since: view.At(time.Now())})
}

// take returns what was asked since the last call.
func (f *fakeAgent) take() []asked {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := f.asked
	f.asked = nil
	return all
}

func (f *fakeAgent) setAway(away bool) {
	f.mu.Lock()
	f.away = away
	f.mu.Unlock()
	if away {
		f.CloseClientConnections()
	}
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the reader has gone if it fails
}

func problem(w http.ResponseWriter, status int, detail, remedy string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(view.Problem{
		Title: http.StatusText(status), Status: status, Detail: detail, Remedy: remedy,
	})
}
