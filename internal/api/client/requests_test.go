package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/internal/api/client"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// script is an agent that notes each request as a line, and answers as it is told.
type script struct {
	mu     sync.Mutex
	asked  []string         // guarded by mu
	answer http.HandlerFunc // called with mu: what it notes can be read after take
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // a body that breaks off is short
	words := []string{r.Method, strings.TrimPrefix(r.RequestURI, "/api/v1")}
	for _, word := range []string{r.Header.Get("Content-Type"), string(body)} {
		if word != "" {
			words = append(words, word)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, strings.Join(words, " "))
	s.answer(w, r)
}

// take gives the lines since the last time.
func (s *script) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := s.asked
	s.asked = nil
	return asked
}

// play serves it, and gives its address.
func play(t *testing.T, answer http.HandlerFunc) (*script, string) {
	t.Helper()
	s := &script{answer: answer}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return s, server.URL
}

// always answers with a status and a text.
func always(status int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	}
}

// only drops what a call answers but for its error.
func only(err error) (any, error) { return nil, err }

// of gives what a call answers as any.
func of[T any](v T, err error) (any, error) { return v, err }

// method is one call, the request it makes, and what it makes of an answer.
type method struct {
	call   func(ctx context.Context, c *client.Client) (any, error)
	asked  string
	status int
	answer string
	want   any
}

func methods() []method {
	const id, odd = grid.JobID("aaaabbbbccccdddd"), "a%2Fb"
	then := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	table := view.OfferTable{Round: 3}
	return []method{
		{func(ctx context.Context, c *client.Client) (any, error) {
			return of(c.Job(ctx, id))
		}, "GET /jobs/aaaabbbbccccdddd", 200, `{"spec":{"name":"n"}}`, view.JobDetail{
			Spec: view.JobSpec{Name: "n"},
		}},
		{func(ctx context.Context, c *client.Client) (any, error) {
			return of(c.Job(ctx, "a/b"))
		}, "GET /jobs/" + odd, 200, `{}`, view.JobDetail{}},
		{func(ctx context.Context, c *client.Client) (any, error) {
			return only(c.Forget(ctx, "a/b"))
		}, "POST /jobs/" + odd + "/forget", 204, "", nil},
		{func(ctx context.Context, c *client.Client) (any, error) {
			return of(c.ForgetEnded(ctx, then))
		}, "DELETE /jobs?ended_before=2026-01-02T03%3A04%3A05.000000006Z", 200, `{"jobs":4}`, 4},
		{func(ctx context.Context, c *client.Client) (any, error) {
			return of(c.Tasks(ctx, id, 7, 8))
		}, "GET /jobs/aaaabbbbccccdddd/tasks?from=7&limit=8", 200, `[{"index":7}]`, []view.TaskView{
			{Index: 7},
		}},
		{func(ctx context.Context, c *client.Client) (any, error) {
			return only(c.Cancel(ctx, "a/b"))
		}, "POST /jobs/" + odd + "/cancel", 204, "", nil},
		{func(ctx context.Context, c *client.Client) (any, error) {
			return only(c.Hold(ctx, "a/b"))
		}, "POST /jobs/" + odd + "/hold", 204, "", nil},
		{func(ctx context.Context, c *client.Client) (any, error) {
			return only(c.Release(ctx, "a/b"))
		}, "POST /jobs/" + odd + "/release", 204, "", nil},
		{
			func(ctx context.Context, c *client.Client) (any, error) {
				move := view.MoveRequest{Tasks: []uint32{3}, Restart: true}
				return only(c.Migrate(ctx, "a/b", move))
			}, "POST /jobs/" + odd + `/migrate application/json {"tasks":[3],"restart":true}`,
			202, "", nil,
		},
		{func(ctx context.Context, c *client.Client) (any, error) {
			return of(c.Offers(ctx, "a/b"))
		}, "GET /jobs/" + odd + "/offers", 200, `{"round":3}`, table},
		{func(ctx context.Context, c *client.Client) (any, error) {
			return of(c.Sites(ctx))
		}, "GET /sites?limit=1000", 200, `[{"name":"n"}]`, []view.SiteRow{{Name: "n"}}},
		{func(ctx context.Context, c *client.Client) (any, error) {
			return of(c.Status(ctx))
		}, "GET /status", 200, `{"name":"n"}`, view.AgentStatus{Name: "n"}},
		{func(ctx context.Context, c *client.Client) (any, error) {
			return of(c.Given(ctx))
		}, "GET /given", 200, `[{"date":"2026-03-02"}]`, []view.GivenDay{{Date: "2026-03-02"}}},
		{func(ctx context.Context, c *client.Client) (any, error) {
			return only(c.Pause(ctx, 1500*time.Millisecond))
		}, `POST /pause application/json {"for_seconds":1.5}`, 204, "", nil},
		{
			func(ctx context.Context, c *client.Client) (any, error) {
				return only(c.Leave(ctx, 1500*time.Millisecond, time.Minute))
			}, `POST /pause application/json ` +
				`{"after_checkpoint":true,"for_seconds":1.5,"stop_after_seconds":60}`, 204, "", nil,
		},
		{func(ctx context.Context, c *client.Client) (any, error) {
			return only(c.Resume(ctx))
		}, "POST /resume", 204, "", nil},
		{
			func(ctx context.Context, c *client.Client) (any, error) { return of(c.Fleet(ctx)) },
			"GET /fleet?limit=1000", 200, `[{"name":"n"}]`,
			[]view.FleetRow{{Name: "n"}},
		},
		{func(ctx context.Context, c *client.Client) (any, error) {
			return of(c.StatusAt(ctx, "a/b"))
		}, "GET /members/" + odd + "/status", 200, `{"name":"n"}`, view.AgentStatus{Name: "n"}},
		{
			func(ctx context.Context, c *client.Client) (any, error) {
				return of(c.PauseAt(ctx, "a/b", view.PauseOrder{
					Span: time.Second, Leave: true, StopAfter: time.Minute,
				}))
			}, "POST /members/" + odd + `/pause application/json ` +
				`{"after_checkpoint":true,"for_seconds":1,"stop_after_seconds":60}`, 200,
			`{"paused":true}`,
			view.AgentStatus{Paused: true},
		},
		{func(ctx context.Context, c *client.Client) (any, error) {
			return of(c.ResumeAt(ctx, "a/b"))
		}, "POST /members/" + odd + "/resume", 200, `{"name":"n"}`, view.AgentStatus{Name: "n"}},
		{func(ctx context.Context, c *client.Client) (any, error) {
			return only(c.Stop(ctx, true))
		}, `POST /stop application/json {"now":true}`, 202, "", nil},
		{func(ctx context.Context, c *client.Client) (any, error) {
			return of(c.Configuration(ctx))
		}, "GET /configuration", 200, `{"problem":"p"}`, view.Configuration{Problem: "p"}},
		{func(ctx context.Context, c *client.Client) (any, error) {
			return of(c.Reload(ctx))
		}, "POST /configuration/reload", 200, `{"problem":"p"}`, view.Configuration{Problem: "p"}},
		{
			func(ctx context.Context, c *client.Client) (any, error) {
				return of(c.PageLink(ctx, true))
			}, `POST /page-links application/json {"guest":true}`, 201, `{"url":"u"}`,
			view.PageLink{URL: "u"},
		},
		{func(ctx context.Context, c *client.Client) (any, error) {
			return of(c.PutData(ctx, false, strings.NewReader("x")))
		}, "PUT /data application/octet-stream x", 201, `{"cid":"b"}`, view.DataRef{CID: "b"}},
		{func(ctx context.Context, c *client.Client) (any, error) {
			return of(c.PutData(ctx, true, strings.NewReader("x")))
		}, "PUT /data application/x-tar x", 201, `{"cid":"b"}`, view.DataRef{CID: "b"}},
		{
			func(ctx context.Context, c *client.Client) (any, error) {
				return of(c.PutExecutable(ctx, strings.NewReader("x")))
			}, "PUT /data application/x-executable x", 201, `{"cid":"b"}`,
			view.DataRef{CID: "b"},
		},
		{
			func(ctx context.Context, c *client.Client) (any, error) {
				return of(c.PutEncrypted(ctx, "name", view.Upload{}, strings.NewReader("x")))
			}, "PUT /data?encrypt=name application/octet-stream x", 201, `{"cid":"b"}`,
			view.DataRef{CID: "b"},
		},
		{
			func(ctx context.Context, c *client.Client) (any, error) {
				u := view.Upload{Tar: true}
				return of(c.PutEncrypted(ctx, "name", u, strings.NewReader("x")))
			}, "PUT /data?encrypt=name application/x-tar x", 201, `{"cid":"b"}`,
			view.DataRef{CID: "b"},
		},
		{
			func(ctx context.Context, c *client.Client) (any, error) {
				u := view.Upload{Executable: true}
				return of(c.PutEncrypted(ctx, "name", u, strings.NewReader("x")))
			}, "PUT /data?encrypt=name application/x-executable x", 201, `{"cid":"b"}`,
			view.DataRef{CID: "b"},
		},
		{func(ctx context.Context, c *client.Client) (any, error) {
			return textOf(c.TaskLog(ctx, grid.TaskID{Job: id, Index: 2}, view.LogQuery{
				Stream: "stderr", Offset: 9, Follow: true,
			}))
		}, "GET /tasks/aaaabbbbccccdddd.2/logs?follow=true&offset=9&stream=stderr", 200, "text", "text"},
		{func(ctx context.Context, c *client.Client) (any, error) {
			return of(c.Members(ctx))
		}, "GET /members?limit=1000", 200, `{"domain":"d","sites":[]}`, view.Members{
			Domain: "d", Sites: []view.MemberRow{},
		}},
		{
			func(ctx context.Context, c *client.Client) (any, error) {
				return of(c.Admit(ctx, "a/b", "back"))
			}, "POST /members/" + odd + `/admit application/json {"note":"back"}`, 200, `{"member":true}`,
			view.MemberRow{Member: true},
		},
		{
			func(ctx context.Context, c *client.Client) (any, error) {
				return of(c.Ban(ctx, "a/b", "left", false))
			}, "POST /members/" + odd + `/ban application/json {"note":"left"}`, 200, `{"name":"n"}`,
			view.MemberRow{Name: "n"},
		},
		{
			func(ctx context.Context, c *client.Client) (any, error) {
				return of(c.Ban(ctx, "a/b", "", true))
			}, "POST /members/" + odd + `/ban application/json {"keep_invitation":true,"note":""}`,
			200,
			`{"revoked":[{"id":"i"}]}`,
			view.MemberRow{Revoked: []view.InviteRow{{ID: "i"}}},
		},
		{
			func(ctx context.Context, c *client.Client) (any, error) {
				return of(c.Invite(ctx, view.InviteTerms{
					Name: "lab 3", Span: time.Minute, Uses: 3, Ask: true,
				}))
			},
			`POST /invites application/json {"ask":true,"for_seconds":60,"name":"lab 3","uses":3}`, 201,
			`{"id":"i"}`,
			view.Invitation{ID: "i"},
		},
		{func(ctx context.Context, c *client.Client) (any, error) {
			return of(c.Invites(ctx))
		}, "GET /invites?limit=1000", 200, `[{"id":"i"}]`, []view.InviteRow{{ID: "i"}}},
		{func(ctx context.Context, c *client.Client) (any, error) {
			return of(c.Revoke(ctx, "a/b"))
		}, "DELETE /invites/" + odd, 200, `{"id":"i"}`, view.InviteRow{ID: "i"}},
		{func(ctx context.Context, c *client.Client) (any, error) {
			return of(c.RevokeAll(ctx))
		}, "DELETE /invites", 200, `[{"id":"i"}]`, []view.InviteRow{{ID: "i"}}},
		{
			func(ctx context.Context, c *client.Client) (any, error) {
				return of(c.Invite(ctx, view.InviteTerms{Span: time.Minute, Uses: 3}))
			}, `POST /invites application/json {"for_seconds":60,"uses":3}`, 201, `{"uses":3}`,
			view.Invitation{Uses: 3},
		},
		{func(ctx context.Context, c *client.Client) (any, error) {
			return only(c.Listen(ctx, []string{"/x"}))
		}, `POST /listen application/json {"addresses":["/x"]}`, 204, "", nil},
		{func(ctx context.Context, c *client.Client) (any, error) {
			return of(c.Links(ctx))
		}, "GET /links", 200, `{"holder":true}`, view.Links{Holder: true}},
		{
			func(ctx context.Context, c *client.Client) (any, error) {
				return of(c.InviteDomain(ctx, "far", time.Minute))
			}, `POST /link-invites application/json {"for_seconds":60,"name":"far"}`, 201,
			`{"id":"i"}`,
			view.LinkInvitation{ID: "i"},
		},
		{
			func(ctx context.Context, c *client.Client) (any, error) {
				return of(c.InviteDomain(ctx, "", time.Minute))
			}, `POST /link-invites application/json {"for_seconds":60}`, 201, `{"id":"i"}`,
			view.LinkInvitation{ID: "i"},
		},
		{func(ctx context.Context, c *client.Client) (any, error) {
			return only(c.WithdrawInvite(ctx, "a/b"))
		}, "DELETE /link-invites/" + odd, 204, "", nil},
		{
			func(ctx context.Context, c *client.Client) (any, error) {
				return of(c.JoinDomain(ctx, "t"))
			}, `POST /links application/json {"token":"t"}`, 201, `{"key":"k"}`,
			view.LinkRow{Key: "k"},
		},
		{
			func(ctx context.Context, c *client.Client) (any, error) {
				give := 5
				return of(c.SetLinkPolicy(ctx, "a/b", view.PolicyChange{Give: &give}))
			}, "POST /links/" + odd + `/policy application/json {"give":5}`, 200, `{"name":"n"}`,
			view.LinkRow{Name: "n"},
		},
		{func(ctx context.Context, c *client.Client) (any, error) {
			return only(c.Unlink(ctx, "a/b"))
		}, "DELETE /links/" + odd, 204, "", nil},
		{
			func(ctx context.Context, c *client.Client) (any, error) {
				return of(c.RotateKey(ctx, "k"))
			}, `POST /domain-key/rotate application/json {"from":"k"}`, 200, `{"key":"l"}`,
			view.Rotation{Key: "l"},
		},
		{
			func(ctx context.Context, c *client.Client) (any, error) {
				return of(c.RotateKey(ctx, ""))
			}, `POST /domain-key/rotate application/json {}`, 200, `{"number":2}`,
			view.Rotation{Number: 2},
		},
		{func(ctx context.Context, c *client.Client) (any, error) {
			return of(c.Check(ctx))
		}, "POST /check", 200, `{"reason":"r"}`, view.CheckResult{Reason: "r"}},
		{func(ctx context.Context, c *client.Client) (any, error) {
			return of(c.Reservations(ctx))
		}, "GET /reservations?limit=1000", 200, `[{"name":"n"}]`, []view.Reservation{{Name: "n"}}},
		{func(ctx context.Context, c *client.Client) (any, error) {
			return of(c.Planning(ctx))
		}, "GET /planning", 200, `{"policy":"edf"}`, view.Planning{Policy: "edf"}},
		{
			func(ctx context.Context, c *client.Client) (any, error) {
				return of(c.SetPlanning(ctx, view.Planning{Policy: "edf", Backfill: "easy"}))
			}, `PUT /planning application/json {"policy":"edf","backfill":"easy"}`, 200, `{"policy":"edf"}`,
			view.Planning{Policy: "edf"},
		},
	}
}

func textOf(body io.ReadCloser, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	defer body.Close()
	text, err := io.ReadAll(body)
	return string(text), err
}

// TestEveryMethodIsOneRequest holds each method against the request it makes, what it makes of
// the answer, and of a refusal.
func TestEveryMethodIsOneRequest(t *testing.T) {
	t.Parallel()
	for _, m := range methods() {
		agent, address := play(t, always(m.status, m.answer))
		got, err := m.call(t.Context(), connect(t, address, token))
		if diff := cmp.Diff(m.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", m.asked, err, diff)
		}
		if diff := cmp.Diff([]string{m.asked}, agent.take()); diff != "" {
			t.Errorf("%s: requests (-want +got):\n%s", m.asked, diff)
		}
		_, address = play(t, always(http.StatusConflict, ""))
		if _, err := m.call(t.Context(), connect(t, address, token)); !errors.Is(err, view.ErrConflict) {
			t.Errorf("%s: a refusal gives %v, want %v", m.asked, err, view.ErrConflict)
		}
	}
}

// TestWhatAnAgentMayAnswerBesides gives answers that no agent should.
func TestWhatAnAgentMayAnswerBesides(t *testing.T) {
	t.Parallel()
	problem := func(status int, kind, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", kind)
			always(status, text)(w, r)
		}
	}
	const kind = "application/problem+json"
	tea := `{"status":404,"title":"Tea","detail":"no tea","remedy":"wait"}`
	for _, c := range []struct {
		answer http.HandlerFunc
		want   string
	}{
		{problem(418, kind, tea), "{Type: Title:Tea Status:418 Detail:no tea Field: Remedy:wait}"},
		{
			problem(418, kind+"; charset=utf-8", tea),
			"{Type: Title:Tea Status:418 Detail:no tea Field: Remedy:wait}",
		},
		{
			problem(418, "text/plain", tea),
			"{Type: Title:I'm a teapot Status:418 Detail: Field: Remedy:}",
		},
		{problem(400, kind, "{"), "{Type: Title:Bad Request Status:400 Detail: Field: Remedy:}"},
	} {
		_, address := play(t, c.answer)
		_, err := connect(t, address, token).Status(t.Context())
		refused, is := errors.AsType[*view.Problem](err)
		if !is || fmt.Sprintf("%+v", *refused) != c.want {
			t.Errorf("the error is %+v, want %s", refused, c.want)
		}
	}
	_, address := play(t, always(200, `{"name":`))
	_, err := connect(t, address, token).Status(t.Context())
	if !errors.Is(err, io.ErrUnexpectedEOF) ||
		!strings.HasPrefix(err.Error(), "read answer of agent: ") {
		t.Errorf("half an answer gives %v", err)
	}
}

// TestDataWithoutASize refuses an answer that does not say how much it is.
func TestDataWithoutASize(t *testing.T) {
	t.Parallel()
	for size, want := range map[string]string{
		"":   `read answer of agent: size "" is no number`,
		"x":  `read answer of agent: size "x" is no number`,
		"-1": `read answer of agent: size "-1" is no number`, "0": "",
		"9223372036854775807": "",
	} {
		_, address := play(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Mrs-Bytes", size)
			w.Header().Set("Mrs-Executable", "true")
		})
		c := connect(t, address, token)
		ref, stat := c.StatData(t.Context(), "b/c")
		same, body, get := c.GetData(t.Context(), "b/c")
		if body != nil {
			_ = body.Close()
		}
		if ref != same || textOfError(stat) != want || textOfError(get) != want {
			t.Errorf("size %q: StatData = %+v, %v; GetData = %+v, %v; want %q", size, ref, stat, same, get,
				want)
		}
		if want == "" &&
			(ref.CID != "b/c" || fmt.Sprint(ref.Bytes) != size || !ref.Executable || ref.Dir) {
			t.Errorf("size %q: %+v", size, ref)
		}
	}
}

func textOfError(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// jobsOf are as many jobs, whose IDs are numbers.
func jobsOf(from, n int) string {
	rows := make([]string, n)
	for i := range rows {
		rows[i] = fmt.Sprintf(`{"id":"%d"}`, from+i)
	}
	return "[" + strings.Join(rows, ",") + "]"
}

// TestJobsComePageByPage asks an agent that has 2500 jobs for some of them.
func TestJobsComePageByPage(t *testing.T) {
	t.Parallel()
	const have = 2500
	since := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	for _, c := range []struct {
		query view.JobQuery
		jobs  int
		asked []string
	}{
		{view.JobQuery{}, 2500, []string{
			"limit=1000", "before=999&limit=1000", "before=1999&limit=1000",
		}},
		{view.JobQuery{Limit: 7}, 7, []string{"limit=7"}},
		{view.JobQuery{Limit: 1000}, 1000, []string{"limit=1000"}},
		{view.JobQuery{Limit: 1500}, 1500, []string{"limit=1000", "before=999&limit=500"}},
		{view.JobQuery{Limit: 3000}, 2500, []string{
			"limit=1000", "before=999&limit=1000", "before=1999&limit=1000",
		}},
		{view.JobQuery{Before: "1499"}, 1000, []string{
			"before=1499&limit=1000", "before=2499&limit=1000",
		}},
		{view.JobQuery{Prefix: "a"}, 1000, []string{"limit=1000&prefix=a"}},
		{view.JobQuery{Since: since, Limit: 1}, 1, []string{
			"limit=1&since=2026-01-02T03%3A04%3A05.000000006Z",
		}},
	} {
		agent, address := play(t, func(w http.ResponseWriter, r *http.Request) {
			var from, limit int
			if before := r.FormValue("before"); before != "" {
				_, _ = fmt.Sscan(before, &from)
				from++
			}
			_, _ = fmt.Sscan(r.FormValue("limit"), &limit)
			_, _ = io.WriteString(w, jobsOf(from, min(limit, have-from)))
		})
		jobs, err := connect(t, address, token).Jobs(t.Context(), c.query)
		if err != nil || len(jobs) != c.jobs || jobs[len(jobs)-1].ID == jobs[0].ID && len(jobs) > 1 {
			t.Errorf("Jobs(%+v) gives %d jobs, %v, want %d", c.query, len(jobs), err, c.jobs)
		}
		for i := range c.asked {
			c.asked[i] = "GET /jobs?" + c.asked[i]
		}
		if diff := cmp.Diff(c.asked, agent.take()); diff != "" {
			t.Errorf("Jobs(%+v): requests (-want +got):\n%s", c.query, diff)
		}
	}
	_, address := play(t, always(http.StatusConflict, ""))
	jobs, err := connect(t, address, token).Jobs(t.Context(), all)
	if !errors.Is(err, view.ErrConflict) {
		t.Errorf("a refusal gives %v, %v", jobs, err)
	}
}

// TestAllTasksComePageByPage asks for the tasks of arrays of several sizes.
func TestAllTasksComePageByPage(t *testing.T) {
	t.Parallel()
	for have, asked := range map[int][]string{
		3: {"from=0"}, 999: {"from=0"}, 1000: {"from=0", "from=1000"}, 1001: {"from=0", "from=1000"},
	} {
		agent, address := play(t, func(w http.ResponseWriter, r *http.Request) {
			var from int
			_, _ = fmt.Sscan(r.FormValue("from"), &from)
			rows := make([]string, min(1000, have-from))
			for i := range rows {
				rows[i] = fmt.Sprintf(`{"index":%d}`, from+i)
			}
			_, _ = io.WriteString(w, "["+strings.Join(rows, ",")+"]")
		})
		tasks, err := connect(t, address, token).AllTasks(t.Context(), "j")
		if err != nil || len(tasks) != have {
			t.Errorf("%d tasks: AllTasks gives %d, %v", have, len(tasks), err)
		}
		for i := range tasks {
			if tasks[i].Index != uint32(i) {
				t.Fatalf("%d tasks: task %d is at %d", have, tasks[i].Index, i)
			}
		}
		for i := range asked {
			asked[i] = "GET /jobs/j/tasks?" + asked[i] + "&limit=1000"
		}
		if diff := cmp.Diff(asked, agent.take()); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
	}
	endless, address := play(t, always(http.StatusOK, "["+strings.Repeat("{},", 999)+"{}]"))
	tasks, err := connect(t, address, token).AllTasks(t.Context(), "j")
	if pages := len(endless.take()); err != nil || len(tasks) != grid.MaxTasks || pages != 100 {
		t.Errorf("of an endless job %d tasks on %d pages, %v", len(tasks), pages, err)
	}
	_, address = play(t, always(http.StatusConflict, ""))
	_, err = connect(t, address, token).AllTasks(t.Context(), "j")
	if !errors.Is(err, view.ErrConflict) {
		t.Errorf("a refusal gives %v", err)
	}
}

// TestWhereTheTokenGoes sends it over TCP, and not over the socket, whose owner is the user.
func TestWhereTheTokenGoes(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "mrs") //nolint:usetesting // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	var sent []string
	handler := &script{answer: func(w http.ResponseWriter, r *http.Request) {
		sent = append(sent, r.Header.Get("Authorization"))
		_, _ = io.WriteString(w, "[]")
	}}
	local := &httptest.Server{Listener: listener, Config: &http.Server{Handler: handler}}
	local.Start()
	remote := httptest.NewServer(handler)
	for _, c := range []struct{ addr, token string }{
		{remote.URL, token},
		{remote.URL, ""},
		{path, token},
		{"unix:" + path, token},
		{remote.URL + "/below?q=1", token},
	} {
		if _, err := connect(t, c.addr, c.token).Sites(t.Context()); err != nil {
			t.Errorf("%s: %v", c.addr, err)
		}
	}
	handler.take()
	t.Cleanup(local.Close)
	t.Cleanup(remote.Close)
	want := []string{"Bearer " + token, "", "", "", "Bearer " + token}
	if diff := cmp.Diff(want, sent); diff != "" {
		t.Errorf("tokens (-want +got):\n%s", diff)
	}
	for addr, want := range map[string]string{
		"": "want the path of", "unix:s": "want the path of", "https://x": "want the path of",
		"http://": "want http://HOST:PORT", "http:///x": "want http://HOST:PORT",
		"http://a b": "want http://HOST:PORT",
	} {
		if _, err := client.New(addr, ""); !errors.Is(err, grid.ErrInvalid) ||
			!strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), fmt.Sprintf("%q", addr)) {
			t.Errorf("New(%q): %v, want %s", addr, err, want)
		}
	}
}
