package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers/legacy"

	"github.com/mrsmesh/mrsmesh/internal/api"
	"github.com/mrsmesh/mrsmesh/internal/api/apitest"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

var _ api.Backend = (*apitest.Agent)(nil)

func clock() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

const token = "0123456789abcdef"

// shortDir is a directory whose path leaves space for a socket's name.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "mrs") //nolint:usetesting // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// serving serves an agent on a socket until it is cancelled. What Serve said then comes last.
func serving(t *testing.T, agent api.Backend) (string, context.CancelFunc, <-chan error) {
	t.Helper()
	socket := filepath.Join(shortDir(t), "s")
	server, err := api.New(agent, api.Options{Socket: socket})
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx) }()
	return socket, cancel, served
}

// serve starts a server on both doors and gives the socket and the address.
func serve(t *testing.T, agent api.Backend, change func(*api.Options)) (string, string) {
	t.Helper()
	socket := filepath.Join(shortDir(t), "a", "s.sock")
	o := api.Options{
		Socket: socket, Listen: "127.0.0.1:0", Token: token, Heartbeat: 20 * time.Millisecond,
	}
	if change != nil {
		change(&o)
	}
	server, err := api.New(agent, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := server.Listen(ctx); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return socket, "http://" + server.Addr().String()
}

func overSocket(socket string) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
	}}
}

type ask struct {
	method, url, kind, body string
	header                  map[string]string
}

// reply is an answer that was read to its end.
type reply struct {
	StatusCode int
	Header     http.Header
}

func do(t *testing.T, client *http.Client, a ask) (reply, []byte) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), a.method, a.url, strings.NewReader(a.body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", a.kind)
	for name, value := range a.header {
		if name == "Host" {
			request.Host = value
		}
		request.Header.Set(name, value)
	}
	answer, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{StatusCode: answer.StatusCode, Header: answer.Header}, body
}

func sampleJob() grid.Job {
	return grid.Job{
		Spec: grid.Spec{
			Name: "pi", Kind: grid.KindWasm, Module: grid.Input{CID: "bmodule", Bytes: 7},
			Args: []string{"{{index}}"}, Env: []grid.EnvVar{{Name: "A", Value: "b"}},
			Inputs:  []grid.Input{{Path: "/in/a", CID: "bin", Bytes: 3, Dir: true}},
			Outputs: []grid.Output{{Path: "/out/r", To: "r-{{index}}"}},
			Need:    grid.Resources{MilliCPUs: 1000, MemoryBytes: 1 << 20, DiskBytes: 1 << 20, MFLOPS: 1000},
			Runtime: 90 * time.Second, TimeLimit: time.Hour, Weights: grid.DefaultWeights(),
			Window: grid.Window{NotBefore: clock(), Deadline: clock().Add(time.Hour)},
		},
		Count: 2, TTL: time.Second,
		Items: []grid.Item{
			{Value: "x", Inputs: []grid.Input{{Path: "/in/i", CID: "bx", Bytes: 1}}}, {Value: "y"},
		},
	}
}

func marshal(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// fullAgent has something to show at every path.
func fullAgent(t *testing.T) (*apitest.Agent, grid.JobID, grid.CID) {
	t.Helper()
	agent := apitest.New(clock)
	id, err := agent.Submit(t.Context(), sampleJob(), "")
	if err != nil {
		t.Fatal(err)
	}
	code, distance := 7, 0.5
	agent.Set(id, 1, func(task *view.TaskView) {
		*task = view.TaskView{
			ID: task.ID, Index: 1, Phase: view.PhaseFailed, Site: "12D3KooWother", Distance: &distance,
			Token:   2,
			Started: view.At(clock()), Ended: view.At(clock()), Code: &code, Cause: "exited",
			Progress: &view.Progress{DoneBytes: 1, TotalBytes: 2},
			Promise:  &view.PromiseView{State: "late", EndLateSeconds: 26, Text: "ended 26s late"},
			Outputs:  []view.OutputView{{Path: "/out/r", To: "r-1", CID: "bout", Bytes: 4}},
			Attempts: []view.AttemptView{
				{Token: 1, Site: "12D3KooWself", Distance: 0.4, Cause: "lease over"},
			},
		}
	})
	kept := 0.97
	reserve := grid.Job{
		Spec: grid.Spec{
			Kind: grid.KindReservation, Runtime: time.Hour, Weights: grid.DefaultWeights(),
			Window: grid.Window{At: clock().Add(time.Hour)},
		},
		Count: 1, TTL: time.Second,
	}
	held, err := agent.Submit(t.Context(), reserve, "")
	if err != nil {
		t.Fatal(err)
	}
	agent.Set(held, 0, func(task *view.TaskView) {
		task.Phase, task.Site, task.SiteName = view.PhaseHeld, "12D3KooWother", "other"
		task.Kept, task.Planned = &kept, view.At(reserve.Spec.Window.At)
	})
	bound := sampleJob()
	bound.Spec.Reservation = held
	if _, err := agent.Submit(t.Context(), bound, ""); err != nil {
		t.Fatal(err)
	}
	offer := grid.Offer{
		ID: 1, Site: "12D3KooWother", Parts: grid.Parts{X: 1, Distance: 1, Run: time.Second}, TasksNow: 1,
	}
	refusal := grid.Refusal{Reason: grid.ReasonMemory, Never: true, Want: 4 << 30, Have: 2 << 30}
	agent.Table = view.OfferTable{
		Asked: view.At(clock()), Round: 1, Members: 2, Answered: 2,
		Counterfactuals: view.Counterfactuals([]grid.Refusal{refusal}),
		Rows: []view.OfferRow{
			view.FromOffer(offer, "other", 1), view.FromRefusal("12D3KooWself", "self", refusal),
		},
	}
	ref := agent.Store([]byte("hello"), false)
	agent.Print(string(id)+".0", "stdout", "printed")
	return agent, id, ref.CID
}

// TestEveryOperationAnswersAsSpecified calls every operation of openapi.yaml and
// holds request and answer against it.
func TestEveryOperationAnswersAsSpecified(t *testing.T) {
	t.Parallel()
	spec, err := openapi3.NewLoader().LoadFromFile("openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err = spec.Validate(t.Context()); err != nil {
		t.Fatal(err)
	}
	router, err := legacy.NewRouter(spec)
	if err != nil {
		t.Fatal(err)
	}
	agent, id, cid := fullAgent(t)
	socket, _ := serve(t, agent, nil)
	client := overSocket(socket)
	job, path := marshal(t, view.FromJob(sampleJob())), "/jobs/"+string(id)
	calls := []struct {
		method, path, kind, body string
		status                   int
	}{
		{"GET", "/jobs", "", "", 200},
		{"POST", "/jobs", "application/json", job, 201},
		{"GET", path, "", "", 200},
		{"GET", "/jobs?limit=1&since=2020-01-01T00:00:00Z&prefix=" + string(id)[:4], "", "", 200},
		{"POST", path + "/forget", "", "", 409},
		{"DELETE", "/jobs?ended_before=2020-01-01T00:00:00Z", "", "", 200},
		{"DELETE", "/jobs", "", "", 400},
		{"GET", path + "/tasks?from=0&limit=5", "", "", 200},
		{"GET", path + "/offers", "", "", 200},
		{"GET", path + "/rounds?limit=5", "", "", 200},
		{"GET", path + "/rounds?after=99", "", "", 404},
		{"POST", "/plan", "application/json", job, 200},
		{"GET", "/tasks/" + string(id) + ".0/logs?stream=stdout&offset=2", "", "", 200},
		{"PUT", "/data", "application/octet-stream", "bytes", 201},
		{"PUT", "/data", "application/x-tar", "tar", 201},
		{"GET", "/data/" + string(cid), "", "", 200},
		{"HEAD", "/data/" + string(cid), "", "", 200},
		{"GET", "/sites", "", "", 200},
		{"GET", "/status", "", "", 200},
		{"GET", "/given", "", "", 200},
		{"POST", "/invites", "application/json", `{"for_seconds": 60, "uses": 2}`, 201},
		{"POST", "/invites", "", "", 201},
		{"POST", "/invites", "application/json", `{"for": 60}`, 400},
		{"POST", "/invites", "application/json", `{"uses": 0}`, 400},
		{"GET", "/invites", "", "", 200},
		{"DELETE", "/invites/test0", "", "", 200},
		{"DELETE", "/invites/test0", "", "", 404},
		{"DELETE", "/invites/", "", "", 404}, // it does not mean all of them
		{"POST", "/domain-key/rotate", "", "", 200},
		{"POST", "/domain-key/rotate", "application/json", `{"from": "k"}`, 200},
		{"POST", "/domain-key/rotate", "application/json", `{"to": "k"}`, 400},
		{"GET", "/links", "", "", 200},
		{"GET", "/neighbours", "", "", 200},
		{"POST", "/link-invites", "application/json", `{"for_seconds": 60, "name": "far"}`, 201},
		{"POST", "/link-invites", "", "", 201},
		{"POST", "/link-invites", "application/json", `{"for": 60}`, 400},
		{"DELETE", "/link-invites/test", "", "", 204},
		{"DELETE", "/link-invites/none", "", "", 404},
		{"POST", "/links", "application/json", `{"token": "mrslink1.test"}`, 201},
		{"POST", "/links", "application/json", `{"token": "other"}`, 409},
		{"GET", "/links", "", "", 200},
		{"POST", "/links/far/policy", "application/json", `{"give": 30}`, 200},
		{"POST", "/links/near/policy", "application/json", `{"give": 30}`, 404},
		{"DELETE", "/links/far", "", "", 204},
		{"DELETE", "/links/far", "", "", 404},
		{"POST", "/listen", "application/json", `{"addresses": ["/ip4/0.0.0.0/tcp/0"]}`, 204},
		{"POST", "/listen", "application/json", `{}`, 400},
		{"POST", "/listen", "", "", 400},
		{"POST", "/members/12D3KooWother/ban", "application/json", `{"note": "left"}`, 200},
		{"GET", "/members", "", "", 200},
		{"POST", "/members/12D3KooWother/admit", "", "", 200},
		{"POST", "/members/12D3KooWother/ban", "application/json", `{"reason": "left"}`, 400},
		{"POST", "/members/12D3KooWother/admit", "application/json", `{"keep_invitation": 1}`, 400},
		{"DELETE", "/invites", "", "", 200},
		{"POST", "/members/no%20site/ban", "", "", 404},
		{"POST", "/check", "", "", 200},
		{"GET", "/reservations", "", "", 200},
		{"GET", "/planning", "", "", 200},
		{"GET", "/configuration", "", "", 200},
		{"POST", "/configuration/reload", "", "", 200},
		{"PATCH", "/configuration", "application/json", `{"settings": {"colour": "red"}}`, 422},
		{"PATCH", "/configuration", "application/json", `{"settings": {}}`, 400},
		{"POST", "/page-links", "", "", 201},
		{"POST", "/page-links", "application/json", `{"guest": true}`, 201},
		{"POST", "/session", "application/json", `{"code": "x"}`, 401}, // a browser comes by TCP
		{"GET", "/session", "", "", 401},
		{"DELETE", "/session", "", "", 401},
		{"PUT", "/planning", "application/json", `{"policy": "edf", "backfill": "easy"}`, 200},
		{"PUT", "/planning", "application/json", `{"policy": "best", "backfill": "easy"}`, 400},
		{"PUT", "/planning", "application/json", `{"policy": "edf"}`, 400},
		{"POST", "/pause", "application/json", `{"for_seconds": 60}`, 204},
		{"GET", "/status", "", "", 200},
		{"POST", "/pause", "", "", 204},
		{"POST", "/resume", "", "", 204},
		{"GET", "/fleet", "", "", 200},
		{"GET", "/members/open/status", "", "", 200},
		{"GET", "/members/shut/status", "", "", 403},
		{"POST", "/members/open/pause", "application/json", `{"for_seconds": 60}`, 200},
		{"POST", "/members/shut/pause", "", "", 403},
		{"POST", "/members/open/resume", "", "", 200},
		{"POST", path + "/migrate", "application/json", `{"tasks": [0], "restart": true}`, 409},
		{"POST", path + "/migrate", "application/json", `{"task": 0}`, 400},
		{"POST", path + "/hold", "", "", 409},
		{"POST", path + "/release", "", "", 409},
		{"POST", path + "/cancel", "", "", 204},
		{"DELETE", path, "", "", 204},
		{"POST", "/stop", "application/json", `{"now": false}`, 202},
		{"POST", "/stop", "", "", 409},
		{"POST", "/recover", "application/json", `{"without": ["attic"]}`, 409},
		{"GET", "/jobs/nosuchjob", "", "", 404},
		{"GET", "/jobs/aaaaaaaaaaaaaaaa/offers", "", "", 404},
		{"GET", "/data/bnone", "", "", 404},
		{"PUT", "/data", "text/plain", "x", 415},
		{"GET", path + "/tasks?from=x", "", "", 400},
		{"GET", "/tasks/" + string(id) + "/logs?stream=tty", "", "", 400},
	}
	served := map[string]bool{"GET /events": true} // TestEvents
	for _, c := range calls {
		url := "http://localhost/api/v1" + c.path
		request := httptest.NewRequest(c.method, url, strings.NewReader(c.body))
		request.URL.Scheme, request.URL.Host = "", ""
		route, params, err := router.FindRoute(request)
		if err != nil {
			t.Fatalf("%s %s: %v", c.method, c.path, err)
		}
		served[route.Method+" "+route.Path] = true
		answer, body := do(t, client, ask{method: c.method, url: url, kind: c.kind, body: c.body})
		if answer.StatusCode != c.status {
			t.Errorf("%s %s = %d %s, want %d", c.method, c.path, answer.StatusCode, body, c.status)
		}
		input := &openapi3filter.ResponseValidationInput{
			RequestValidationInput: &openapi3filter.RequestValidationInput{
				Request: request, PathParams: params, Route: route,
				Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc},
			},
			Status: answer.StatusCode, Header: answer.Header,
			Options: &openapi3filter.Options{IncludeResponseStatus: true, MultiError: true},
		}
		input.SetBodyBytes(body)
		if c.method == http.MethodHead {
			continue
		}
		if err := openapi3filter.ValidateResponse(t.Context(), input); err != nil {
			t.Errorf("%s %s: the answer is not as specified: %v\n%s", c.method, c.path, err, body)
		}
	}
	for path, item := range spec.Paths.Map() {
		for method := range item.Operations() {
			if !served[method+" "+path] {
				t.Errorf("%s %s is specified and not tested", method, path)
			}
		}
	}
}

func TestSubmittedJobArrivesWhole(t *testing.T) {
	t.Parallel()
	agent := apitest.New(clock)
	socket, _ := serve(t, agent, nil)
	want := sampleJob()
	answer, body := do(t, overSocket(socket), ask{
		method: "POST", url: "http://localhost/api/v1/jobs", kind: "application/json", body: marshal(t, view.FromJob(want)),
	})
	if answer.StatusCode != http.StatusCreated {
		t.Fatalf("POST /jobs = %d %s", answer.StatusCode, body)
	}
	got, _ := agent.Job0()
	if a, b := marshal(t, view.FromJob(want)), marshal(t, view.FromJob(got)); a != b {
		t.Errorf("job arrived as\n%s\nwant\n%s", b, a)
	}
}

func TestBadJobsAreNamed(t *testing.T) {
	t.Parallel()
	socket, _ := serve(t, apitest.New(clock), nil)
	for name, c := range map[string]struct{ body, field string }{
		"unknown key":  {`{"kind":"wasm","runtime":5}`, "runtime"},
		"wrong type":   {`{"count":"many"}`, "count"},
		"no module":    {`{"kind":"wasm","count":1,"ttl_seconds":1,"runtime_seconds":1}`, "cid"},
		"bad ttl":      {`{"kind":"wasm","count":1,"ttl_seconds":1e9,"runtime_seconds":1}`, "ttl"},
		"not json":     {`{`, ""},
		"unknown kind": {`{"kind":"docker","count":1}`, `kind "docker"`},
	} {
		answer, body := do(t, overSocket(socket), ask{
			method: "POST", url: "http://localhost/api/v1/jobs", kind: "application/json", body: c.body,
		})
		var problem view.Problem
		if err := json.Unmarshal(body, &problem); err != nil ||
			answer.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %d %s %v", name, answer.StatusCode, body, err)
		}
		if problem.Field != c.field || problem.Remedy == "" {
			t.Errorf("%s: field %q, want %q; remedy %q", name, problem.Field, c.field, problem.Remedy)
		}
	}
}

func TestTCPDoorIsLocked(t *testing.T) {
	t.Parallel()
	_, base := serve(t, apitest.New(clock), nil)
	bearer := "Bearer " + token
	for name, c := range map[string]struct {
		path   string
		header map[string]string
		status int
	}{
		"token":       {"/api/v1/jobs", map[string]string{"Authorization": bearer}, 200},
		"no token":    {"/api/v1/jobs", nil, 401},
		"wrong token": {"/api/v1/jobs", map[string]string{"Authorization": bearer + "x"}, 401},
		"rebound name": {
			"/api/v1/jobs", map[string]string{"Authorization": bearer, "Host": "evil.example"}, 421,
		},
		"localhost": {
			"/api/v1/jobs", map[string]string{"Authorization": bearer, "Host": "localhost:1"}, 200,
		},
		"ipv6": {
			"/api/v1/jobs", map[string]string{"Authorization": bearer, "Host": "[::1]:1"}, 200,
		},
		"other host": {
			"/api/v1/jobs", map[string]string{"Authorization": bearer, "Host": "192.0.2.1:1"}, 421,
		},
		"no port": {
			"/api/v1/jobs", map[string]string{"Authorization": bearer, "Host": "[::1]"}, 200,
		},
		"probe":         {"/livez", nil, 200},
		"ready":         {"/readyz", nil, 200},
		"no pprof":      {"/debug/pprof/", map[string]string{"Authorization": bearer}, 404},
		"no such path":  {"/api/v2/jobs", map[string]string{"Authorization": bearer}, 404},
		"probe rebound": {"/livez", map[string]string{"Host": "evil.example"}, 421},
	} {
		answer, body := do(t, http.DefaultClient, ask{
			method: "GET", url: base + c.path, header: c.header,
		})
		if answer.StatusCode != c.status {
			t.Errorf("%s: %d %s, want %d", name, answer.StatusCode, body, c.status)
		}
		if c.status == http.StatusMisdirectedRequest && string(body) != misdirected {
			t.Errorf("%s: %s, want %s", name, body, misdirected)
		}
		if c.status == http.StatusUnauthorized && (string(body) != locked ||
			answer.Header.Get("WWW-Authenticate") != "Bearer") {
			t.Errorf("%s: %s %v, want %s", name, body, answer.Header, locked)
		}
	}
}

const (
	locked = `{"type":"about:blank","title":"Unauthorized","status":401,` +
		`"detail":"the bearer token is missing or wrong","field":"Authorization",` +
		`"remedy":"send the token that the agent keeps in its state directory (MRS_TOKEN)"}` + "\n"
	misdirected = `{"type":"about:blank","title":"Misdirected Request","status":421,` +
		`"detail":"the request was meant for another host","field":"Host",` +
		`"remedy":"use the agent's address, such as http://127.0.0.1:4800"}` + "\n"
)

func TestOptionalPaths(t *testing.T) {
	t.Parallel()
	socket, _ := serve(t, apitest.New(clock), func(o *api.Options) {
		o.Debug = true
		o.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "mrs_up 1\n")
		})
		o.Ready = func(context.Context) error { return errors.New("no peers yet") }
	})
	for path, want := range map[string]string{
		"/metrics":                        "200 mrs_up 1",
		"/debug/pprof/":                   "200 <html>",
		"/debug/pprof/heap":               "200 ",
		"/debug/pprof/symbol":             "200 num_symbols: 1",
		"/debug/pprof/trace?seconds=0.01": "200 ",
		"/debug/pprof/profile?seconds=1":  "200 ",
		"/readyz": `503 {"type":"about:blank","title":"Service Unavailable","status":503,` +
			`"detail":"no peers yet"}`,
		"/livez":               "200 ok\n",
		"/api/v1/openapi.yaml": "200 openapi: 3.0.3\n",
		"/api/v1/":             "200 <!doctype html>",
	} {
		answer, body := do(t, overSocket(socket), ask{method: "GET", url: "http://localhost" + path})
		if got := fmt.Sprintf("%d %s", answer.StatusCode, body); !strings.HasPrefix(got, want) {
			t.Errorf("%s = %s, want %s", path, got, want)
		}
	}
}

// TestUploadsAreBounded sends as much as is taken, and a byte more.
func TestUploadsAreBounded(t *testing.T) {
	t.Parallel()
	socket, _ := serve(t, apitest.New(clock), func(o *api.Options) { o.MaxUpload = 10 })
	put := request{method: "PUT", path: "/data", kind: "application/octet-stream"}
	post := request{method: "POST", path: "/resume", kind: jsonType}
	for _, c := range []struct {
		request
		bytes  int
		status int
		text   string
	}{
		{put, 10, 201, `"bytes":10`},
		{put, 11, 413, `"remedy":"send at most 10 B"`},
		{post, 64<<20 + 1, 413, `"remedy":"send at most 64.0 MiB"`},
	} {
		c.body = strings.Repeat("x", c.bytes)
		answer, body := c.send(t, socket)
		if answer.StatusCode != c.status || !strings.Contains(body, c.text) {
			t.Errorf("%s of %d bytes = %d %s, want %d with %s", c.method, c.bytes, answer.StatusCode, body,
				c.status, c.text)
		}
	}
}
