package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/view"
)

// request stands for what a client sends below /api/v1, and what the agent is asked then.
type request struct {
	method, path, kind, body string

	asked string // of the backend; "" = nothing
	doing string // how its error begins
}

const jsonType = "application/json"

// sampleID is an ID that a job may have.
const sampleID = "aaaabbbbccccdddd"

// requests are all that ask the agent something.
func requests(t *testing.T) []request {
	t.Helper()
	job, path := marshal(t, view.FromJob(sampleJob())), "/jobs/"+sampleID
	log := "/tasks/" + sampleID + ".3/logs"
	return []request{
		{"GET", "/jobs", "", "", "jobs 1 before: prefix: 1000", "list jobs"},
		{"GET", "/jobs?limit=0", "", "", "jobs 1 before: prefix: 1", "list jobs"},
		{"GET", "/jobs?limit=10001", "", "", "jobs 1 before: prefix: 10000", "list jobs"},
		{
			"GET", "/jobs?limit=7&since=2020-01-01T00:00:00Z&prefix=aa&before=" + sampleID, "", "",
			"jobs 2020 before:" + sampleID + " prefix:aa 7", "list jobs",
		},
		{"POST", "/jobs", jsonType, job, "submit pi key:", "submit job"},
		{"GET", path, "", "", "job " + sampleID, "show job " + sampleID},
		{"DELETE", path, "", "", "cancel " + sampleID, "cancel job " + sampleID},
		{"POST", path + "/cancel", "", "", "cancel " + sampleID, "cancel job " + sampleID},
		{"POST", path + "/hold", "", "", "hold " + sampleID + " false", "hold job " + sampleID},
		{
			"POST", path + "/release", "", "", "hold " + sampleID + " true",
			"release job " + sampleID,
		},
		{"POST", path + "/forget", "", "", "forget " + sampleID, "forget job " + sampleID},
		{
			"DELETE", "/jobs?ended_before=2020-01-01T00:00:00Z", "", "",
			"forget before 2020-01-01T00:00:00Z", "forget jobs",
		},
		{"GET", path + "/tasks", "", "", "tasks " + sampleID + " 0 1000", "list tasks of " + sampleID},
		{
			"GET", path + "/tasks?from=5&limit=10001", "", "", "tasks " + sampleID + " 5 10000",
			"list tasks of " + sampleID,
		},
		{
			"GET", path + "/tasks?limit=-1", "", "", "tasks " + sampleID + " 0 1",
			"list tasks of " + sampleID,
		},
		{"GET", path + "/offers", "", "", "offers " + sampleID, "show offers of " + sampleID},
		{"GET", path + "/rounds", "", "", "rounds " + sampleID, "list rounds of " + sampleID},
		{"POST", "/plan", jsonType, job, "plan pi", "plan job"},
		{"GET", log, "", "", "log " + sampleID + ".3 stdout 0 false", "read log of " + sampleID + ".3"},
		{
			"GET", log + "?stream=stderr&offset=4&follow=true", "", "",
			"log " + sampleID + ".3 stderr 4 true", "read log of " + sampleID + ".3",
		},
		{
			"GET", log + "?follow=false", "", "", "log " + sampleID + ".3 stdout 0 false",
			"read log of " + sampleID + ".3",
		},
		{"PUT", "/data", "application/octet-stream", "x", "put tar: false x", "store data"},
		{"PUT", "/data", "application/x-tar; a=b", "x", "put tar: true x", "store data"},
		{"PUT", "/data", "application/x-executable", "x", "put program x", "store data"},
		{
			"PUT", "/data?encrypt=ABCDEFGHIJKLMNOP", "application/octet-stream", "x",
			"put encrypted ABCDEFGHIJKLMNOP tar: false x: false x", "store data",
		},
		{
			"PUT", "/data?encrypt=ABCDEFGHIJKLMNOP", "application/x-tar", "x",
			"put encrypted ABCDEFGHIJKLMNOP tar: true x: false x", "store data",
		},
		{
			"PUT", "/data?encrypt=ABCDEFGHIJKLMNOP", "application/x-executable", "x",
			"put encrypted ABCDEFGHIJKLMNOP tar: false x: true x", "store data",
		},
		{
			"GET", "/data/bfile?task=" + sampleID + ".3", "", "", "output " + sampleID + ".3 bfile",
			"read data bfile",
		},
		{"GET", "/data/bfile", "", "", "get bfile", "read data bfile"},
		{"HEAD", "/data/bfile", "", "", "stat bfile", "look at data bfile"},
		{"GET", "/sites", "", "", "sites", "list sites"},
		{"GET", "/status", "", "", "status", "show status"},
		{"GET", "/members", "", "", "members", "list members"},
		{"POST", "/members/far/admit", "", "", "admit far note:", "admit site"},
		{"POST", "/members/far/admit", jsonType, `{"note": "back"}`, "admit far note:back", "admit site"},
		{"POST", "/members/far/ban", jsonType, `{}`, "ban far note: false", "ban site"},
		{
			"POST", "/members/far/ban", jsonType, `{"note": "left", "keep_invitation": true}`,
			"ban far note:left true", "ban site",
		},
		{"POST", "/listen", jsonType, `{"addresses": ["/a", "/b"]}`, "listen [/a /b]", "listen"},
		{"POST", "/invites", "", "", "invite name: 24h0m0s 1 false", "invite"},
		{
			"POST", "/invites", jsonType, `{"for_seconds": 90}`,
			"invite name: 1m30s 1 false", "invite",
		},
		{
			"POST", "/invites", jsonType, `{"uses": 4, "name": "lab 3", "ask": true}`,
			"invite name:lab 3 24h0m0s 4 true", "invite",
		},
		{"GET", "/invites", "", "", "invites", "list invitations"},
		{"DELETE", "/invites/x", "", "", "revoke x", "revoke invitation"},
		{"DELETE", "/invites", "", "", "revoke all", "revoke invitations"},
		{"GET", "/given", "", "", "given", "list what was given"},
		{"GET", "/links", "", "", "links", "list links"},
		{"GET", "/neighbours", "", "", "neighbours", "list neighbours"},
		{"POST", "/links", jsonType, `{"token": "t"}`, "join domain t", "join domain"},
		{"POST", "/links/far/policy", jsonType, `{}`, "policy far []", "change policy"},
		{
			"POST", "/links/far/policy", jsonType,
			`{"give": 1, "take": 2, "tasks": 3, "kinds": ["wasm"], "closed": false}`,
			"policy far [wasm] 1 2 3 false", "change policy",
		},
		{"DELETE", "/links/far", "", "", "unlink far", "unlink"},
		{"POST", "/link-invites", "", "", "invite domain name: 24h0m0s", "invite domain"},
		{
			"POST", "/link-invites", jsonType, `{"for_seconds": 90, "name": "far"}`,
			"invite domain name:far 1m30s", "invite domain",
		},
		{"DELETE", "/link-invites/x", "", "", "withdraw x", "withdraw invitation"},
		{"POST", "/domain-key/rotate", "", "", "rotate from:", "rotate the domain's key"},
		{
			"POST", "/domain-key/rotate", jsonType, `{"from":"k"}`, "rotate from:k",
			"rotate the domain's key",
		},
		{"POST", "/check", "", "", "check", "check"},
		{"GET", "/reservations", "", "", "reservations", "list reservations"},
		{"GET", "/planning", "", "", "planning", "show planning"},
		{
			"PUT", "/planning", jsonType, `{"policy": "edf", "backfill": "easy"}`, "set planning edf easy",
			"change planning",
		},
		{"GET", "/configuration", "", "", "configuration", "show configuration"},
		{"POST", "/configuration/reload", "", "", "reload", "reload configuration"},
		{
			"PATCH", "/configuration", jsonType, `{"settings": {"owner.patience": "5m"}}`,
			"set map[owner.patience:5m]", "change configuration",
		},
		{"POST", "/pause", "", "", "pause 0s", "pause site"},
		{"POST", "/pause", jsonType, `{"for_seconds": 0}`, "pause 0s", "pause site"},
		{"POST", "/pause", jsonType, `{"for_seconds": 2.5}`, "pause 2.5s", "pause site"},
		{
			"POST", "/pause", jsonType, `{"after_checkpoint": true, "stop_after_seconds": 60}`,
			"leave 0s 1m0s", "pause site",
		},
		{"POST", "/resume", "", "", "resume", "resume site"},
		{"GET", "/fleet", "", "", "fleet after: 1000", "list fleet"},
		{"GET", "/fleet?limit=7&after=ada", "", "", "fleet after:ada 7", "list fleet"},
		{"GET", "/fleet?limit=0", "", "", "fleet after: 1", "list fleet"},
		{"GET", "/fleet?limit=10001", "", "", "fleet after: 10000", "list fleet"},
		{"GET", "/members/ada/status", "", "", "status at ada", "show status from afar"},
		{"POST", "/members/ada/pause", "", "", "pause at ada 0s false 0s", "pause site from afar"},
		{
			"POST", "/members/ada/pause", jsonType,
			`{"for_seconds": 2.5, "after_checkpoint": true, "stop_after_seconds": 60}`,
			"pause at ada 2.5s true 1m0s", "pause site from afar",
		},
		{"POST", "/members/ada/resume", "", "", "resume at ada", "resume site from afar"},
		{"POST", "/stop", "", "", "stop now: false", "stop site"},
		{"POST", "/stop", jsonType, `{"now": false}`, "stop now: false", "stop site"},
		{"POST", "/stop", jsonType, `{"now": true}`, "stop now: true", "stop site"},
	}
}

// send sends it over the socket.
func (r request) send(t *testing.T, socket string) (reply, string) {
	t.Helper()
	answer, body := do(t, overSocket(socket), ask{
		method: r.method, url: "http://localhost/api/v1" + r.path, kind: r.kind, body: r.body,
	})
	return answer, string(body)
}

// TestWhatTheAgentIsAsked holds each request against the words that reach the agent: what a
// client leaves out has its default, and what it asks for too much of is bounded. Nothing in an
// answer is null: a list of nothing is an empty one.
func TestWhatTheAgentIsAsked(t *testing.T) {
	t.Parallel()
	agent := &spy{}
	socket, _ := serve(t, agent, nil)
	null := regexp.MustCompile(`(^|[:,\[])null`)
	for _, r := range requests(t) {
		answer, body := r.send(t, socket)
		if asked := agent.take(); answer.StatusCode >= 300 || asked != r.asked {
			t.Errorf("%s %s %s = %d %s; the agent was asked %q, want %q",
				r.method, r.path, r.body, answer.StatusCode, body, asked, r.asked)
		}
		if null.MatchString(body) {
			t.Errorf("%s %s: the answer has a null in it: %s", r.method, r.path, body)
		}
	}
}

// TestTheAgentsErrorIsTheAnswer lets the agent fail at each request: the answer says what was
// tried and why it failed.
func TestTheAgentsErrorIsTheAnswer(t *testing.T) {
	t.Parallel()
	agent := &spy{err: fmt.Errorf("no place: %w", view.ErrBusy)}
	socket, _ := serve(t, agent, nil)
	for _, r := range requests(t) {
		answer, body := r.send(t, socket)
		want := fmt.Sprintf(`{"type":"about:blank","title":"Service Unavailable","status":503,`+
			`"detail":"%s: no place: %v"}`+"\n", r.doing, view.ErrBusy)
		if r.method == http.MethodHead {
			want = ""
		}
		if answer.StatusCode != http.StatusServiceUnavailable || body != want {
			t.Errorf("%s %s = %d %s, want 503 %s", r.method, r.path, answer.StatusCode, body, want)
		}
	}
}

// TestRequestsThatNeverReachTheAgent holds against the whole problem that answers them.
func TestRequestsThatNeverReachTheAgent(t *testing.T) {
	t.Parallel()
	agent := &spy{}
	socket, _ := serve(t, agent, nil)
	list := "a job's id has 16 characters; list the jobs to see them"
	const again, see = "correct it and send the request again",
		"GET /api/v1/openapi.yaml says what is expected"
	noJob := view.Problem{Status: 404, Detail: `no job "x"`, Field: "id", Remedy: list}
	unknown := func(key string) view.Problem {
		return view.Problem{
			Status: 400, Field: key, Remedy: see, Detail: `read body: json: unknown field "` + key + `"`,
		}
	}
	stream := "/tasks/" + sampleID + "/logs?"
	for _, c := range []struct {
		request
		want view.Problem
	}{
		{request{method: "GET", path: "/jobs?before=x"}, noJob},
		{request{method: "GET", path: "/jobs/x"}, noJob},
		{request{method: "DELETE", path: "/jobs/x"}, noJob},
		{request{method: "POST", path: "/jobs/x/cancel"}, noJob},
		{request{method: "POST", path: "/jobs/x/forget"}, noJob},
		{request{method: "GET", path: "/jobs/x/tasks"}, noJob},
		{request{method: "GET", path: "/jobs/x/offers"}, noJob},
		{request{method: "GET", path: "/jobs/x/rounds"}, noJob},
		{request{method: "GET", path: "/data/X"}, view.Problem{
			Status: 404, Detail: `no data "X"`, Field: "cid",
		}},
		{request{method: "GET", path: "/tasks/x/logs"}, view.Problem{
			Status: 404, Detail: `no task "x"`, Field: "id", Remedy: "write JOB or JOB.INDEX",
		}},
		{request{method: "GET", path: stream + "stream=tty"}, view.Problem{
			Status: 400, Field: "stream", Remedy: again,
			Detail: `invalid: stream: want stdout or stderr, have "tty"`,
		}},
		{request{method: "GET", path: stream + "offset=-1"}, view.Problem{
			Status: 400, Field: "offset", Remedy: again,
			Detail: `invalid: offset: want at least 0, have -1`,
		}},
		{request{method: "POST", path: "/pause", body: `{"for_seconds": -2}`}, view.Problem{
			Status: 400, Field: "for_seconds", Remedy: again,
			Detail: `invalid: for_seconds: want at least 0, have -2`,
		}},
		{request{method: "POST", path: "/pause", body: `{"for": 2}`}, unknown("for")},
		{request{method: "POST", path: "/members/x/pause", body: `{"for": 2}`}, unknown("for")},
		{
			request{method: "POST", path: "/members/x/pause", body: `{"for_seconds": -2}`},
			view.Problem{
				Status: 400, Field: "for_seconds", Remedy: again,
				Detail: `invalid: for_seconds: want at least 0, have -2`,
			},
		},
		{request{method: "POST", path: "/stop", body: `{"at": 2}`}, unknown("at")},
		{request{method: "POST", path: "/plan", body: `{"sort": 2}`}, unknown("sort")},
		{request{method: "POST", path: "/jobs", body: `{"sort": 2}`}, unknown("sort")},
		{request{method: "POST", path: "/invites", body: `{"for": 2}`}, unknown("for")},
		{request{method: "POST", path: "/page-links", body: `{"for": 2}`}, unknown("for")},
		{request{method: "POST", path: "/session", body: `{"for": 2}`}, unknown("for")},
		{request{method: "PATCH", path: "/configuration", body: `{"for": 2}`}, unknown("for")},
		{request{method: "POST", path: "/links", body: `{"tokens": "t"}`}, unknown("tokens")},
		{request{method: "POST", path: "/links/x/policy", body: `{"gives": 2}`}, unknown("gives")},
		{request{method: "POST", path: "/link-invites", body: `{"for": 2}`}, unknown("for")},
		{request{method: "POST", path: "/members/x/ban", body: `{"why": 2}`}, unknown("why")},
		{request{method: "POST", path: "/stop", body: `{"now": 2}`}, view.Problem{
			Status: 400, Field: "now", Remedy: see, Detail: "read body: json: cannot unmarshal number " +
				"into Go struct field StopRequest.now of type bool",
		}},
		{request{method: "POST", path: "/stop", body: `x`}, view.Problem{
			Status: 400, Remedy: see,
			Detail: "read body: invalid character 'x' looking for beginning of value",
		}},
		{request{method: "GET", path: "/jobs?limit=x"}, view.Problem{
			Status: 400, Field: "limit", Remedy: see, Detail: "Invalid format for parameter limit: " +
				"error binding string parameter: strconv.ParseInt: parsing \"x\": invalid syntax",
		}},
		{request{method: "PUT", path: "/data", kind: "text/plain", body: "x"}, view.Problem{
			Status: 415, Field: "Content-Type", Detail: "this content type cannot be stored",
			Remedy: "use application/octet-stream for a file, application/x-executable for a program, " +
				"application/x-tar for a directory",
		}},
		{request{method: "GET", path: "/nothing"}, view.Problem{
			Status: 404, Detail: "no such path: /api/v1/nothing",
		}},
		{request{method: "PATCH", path: "/jobs"}, view.Problem{
			Status: 405, Detail: "PATCH is not served here",
		}},
	} {
		if c.kind == "" && c.body != "" {
			c.kind = jsonType
		}
		c.want.Type, c.want.Title = "about:blank", http.StatusText(c.want.Status)
		answer, body := c.send(t, socket)
		var got view.Problem
		if err := json.Unmarshal([]byte(body), &got); err != nil || got != c.want ||
			answer.StatusCode != c.want.Status {
			t.Errorf("%s %s %.20s = %d %s %v, want %+v", c.method, c.path, c.body, answer.StatusCode,
				body, err, c.want)
		}
		if kind := answer.Header.Get("Content-Type"); kind != "application/problem+json" {
			t.Errorf("%s %s: a problem of type %q", c.method, c.path, kind)
		}
		if asked := agent.take(); asked != "" {
			t.Errorf("%s %s: the agent was asked %q", c.method, c.path, asked)
		}
	}
}
