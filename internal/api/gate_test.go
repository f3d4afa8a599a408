package api_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/mrsmesh/mrsmesh/internal/api"
	"github.com/mrsmesh/mrsmesh/internal/view"
)

// TestOtherPagesGetNowhere has a browser that is signed in send what other pages make it send.
func TestOtherPagesGetNowhere(t *testing.T) {
	t.Parallel()
	agent := &spy{}
	socket, base := serve(t, agent, nil)
	b := signIn(t, socket, false)
	_, port, _ := strings.Cut(strings.TrimPrefix(base, "http://"), ":")
	sent := func(site string) map[string]string { return map[string]string{"Sec-Fetch-Site": site} }
	for _, c := range []struct {
		method, path string
		change       map[string]string
		status       int
		field        string
	}{
		{"POST", "/resume", map[string]string{"Origin": "https://evil.example"}, 403, "Origin"},
		{"POST", "/resume", map[string]string{"Origin": "null"}, 403, "Origin"},
		{"POST", "/resume", map[string]string{"Origin": "http://127.0.0.1:1"}, 403, "Origin"},
		{"POST", "/resume", map[string]string{"Origin": "http://localhost:" + port}, 403, "Origin"},
		{"POST", "/resume", sent("cross-site"), 403, "Sec-Fetch-Site"},
		{"POST", "/resume", sent("same-site"), 403, "Sec-Fetch-Site"},
		{"POST", "/resume", map[string]string{"X-Mrs-Csrf": ""}, 403, "X-Mrs-Csrf"},
		{"POST", "/resume", map[string]string{"X-Mrs-Csrf": "x"}, 403, "X-Mrs-Csrf"},
		{"GET", "/status", map[string]string{"Origin": "https://evil.example"}, 403, "Origin"},
		{"GET", "/status", sent("cross-site"), 403, "Sec-Fetch-Site"},
		{"GET", "/events", sent("same-site"), 403, "Sec-Fetch-Site"},
		{"POST", "/session", map[string]string{"Origin": "https://evil.example"}, 403, "Origin"},
		{"POST", "/session", sent("cross-site"), 403, "Sec-Fetch-Site"},
		{"DELETE", "/session", map[string]string{"X-Mrs-Csrf": ""}, 403, "X-Mrs-Csrf"},
		{"GET", "/status", map[string]string{"Host": "evil.example"}, 421, "Host"},
		{"POST", "/session", map[string]string{"Host": "evil.example"}, 421, "Host"},
	} {
		answer, text := b.send(t, c.method, "/api/v1"+c.path, c.change)
		if answer.StatusCode != c.status || !strings.Contains(text, `"field":"`+c.field+`"`) ||
			answer.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s %s with %v = %d %s, want %d and %s",
				c.method, c.path, c.change, answer.StatusCode, text, c.status, c.field)
		}
	}
	if asked := agent.take(); asked != "" {
		t.Errorf("the agent was asked %s", asked)
	}
	for _, c := range []struct{ method, path, asked string }{
		{"POST", "/api/v1/resume", "resume"}, {"GET", "/api/v1/status", "status"},
	} {
		answer, text := b.send(t, c.method, c.path, nil)
		if asked := agent.take(); answer.StatusCode >= 300 || asked != c.asked {
			t.Errorf("the own page: %s = %d %s; asked %q", c.path, answer.StatusCode, text, asked)
		}
		if !strings.Contains(answer.Header.Get("Content-Security-Policy"), "sandbox") ||
			answer.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v, want an answer that is nothing but data", c.path, answer.Header)
		}
	}
}

// operations are all that openapi.yaml has, as METHOD and a path with names filled in.
func operations(t *testing.T) [][2]string {
	t.Helper()
	spec, err := openapi3.NewLoader().LoadFromFile("openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	filled := strings.NewReplacer(
		"{id}", sampleID, "{cid}", "bfile", "{site}", "far", "{name}", "far",
	)
	var all [][2]string
	for path, item := range spec.Paths.Map() {
		for method := range item.Operations() {
			all = append(all, [2]string{method, "/api/v1" + filled.Replace(path)})
		}
	}
	slices.SortFunc(all, func(a, b [2]string) int { return strings.Compare(a[1]+a[0], b[1]+b[0]) })
	return all
}

// TestNothingChangesByTheCookieAlone sends each request that could change something without the
// word of the session. A new one is covered when it is specified.
func TestNothingChangesByTheCookieAlone(t *testing.T) {
	t.Parallel()
	agent, tried := &spy{}, 0
	socket, _ := serve(t, agent, nil)
	b := signIn(t, socket, false)
	for _, o := range append(operations(t), [2]string{"POST", "/ga4gh/tes/v1/tasks"}) {
		if o[0] == "GET" || o[0] == "HEAD" || o == [2]string{"POST", "/api/v1/session"} {
			continue // the code is for that
		}
		tried++
		answer, text := b.send(t, o[0], o[1], map[string]string{"X-Mrs-Csrf": ""})
		if answer.StatusCode != http.StatusForbidden ||
			!strings.Contains(text, `"field":"X-Mrs-Csrf"`) {
			t.Errorf("%s %s = %d %s, want 403 and X-Mrs-Csrf", o[0], o[1], answer.StatusCode, text)
		}
	}
	if asked := agent.take(); asked != "" || tried < 30 {
		t.Errorf("after %d requests the agent was asked %s", tried, asked)
	}
}

// TestAGuestOnlyLooks sends every request with the session of a guest. A new one is refused until
// it is listed here and at the gate.
func TestAGuestOnlyLooks(t *testing.T) {
	t.Parallel()
	agent := &spy{}
	socket, _ := serve(t, agent, func(o *api.Options) {
		o.Debug, o.Metrics = true, http.NotFoundHandler()
	})
	b := signIn(t, socket, true)
	may := []string{
		"GET /session", "GET /status", "GET /sites", "GET /members", "GET /given", "GET /jobs",
		"GET /jobs/" + sampleID + "/tasks", "GET /jobs/" + sampleID + "/offers",
		"GET /jobs/" + sampleID + "/rounds",
	}
	all := append(operations(t), [][2]string{
		{"GET", "/metrics"},
		{"GET", "/debug/pprof/"},
		{"GET", "/ga4gh/tes/v1/tasks"},
		{"POST", "/ga4gh/tes/v1/tasks"},
		{"GET", "/api/v1/status/"},
		{"GET", "/api/v1/jobs/"},
		{"GET", "/api/v1/jobs/x/tasks"},
		{"GET", "/api/v1/jobs/" + sampleID + "/tasks/"},
		{"GET", "/api/v1/jobs/" + sampleID + "/tasks/0"},
		{"GET", "/api/v1/jobs/" + sampleID + "%2Ftasks"},
		{"GET", "/api/v1/jobs//" + sampleID + "/tasks"},
		{"HEAD", "/api/v1/jobs/" + sampleID + "/tasks"},
		{"GET", "/api/v1//configuration"},
		{"HEAD", "/api/v1/status"},
	}...)
	for _, o := range all {
		name := o[0] + " " + strings.TrimPrefix(o[1], "/api/v1")
		switch name {
		case "GET /events", "POST /session", "DELETE /session": // below, and in other tests
			continue
		}
		answer, text := b.send(t, o[0], o[1], nil)
		asked := agent.take()
		if slices.Contains(may, name) {
			if answer.StatusCode != http.StatusOK {
				t.Errorf("%s = %d %s, want 200", name, answer.StatusCode, text)
			}
			continue
		}
		if answer.StatusCode != http.StatusForbidden || asked != "" ||
			o[0] != "HEAD" && !strings.Contains(text, "a guest may look") {
			t.Errorf("%s = %d %s, the agent was asked %q; want 403",
				name, answer.StatusCode, text, asked)
		}
	}
	b.want(t, "DELETE", "/session", http.StatusNoContent)
	b.want(t, "GET", "/status", http.StatusUnauthorized)
}

// talkative has a status with all that is for the owner alone.
type talkative struct{ *spy }

func (t talkative) Status(ctx context.Context) (view.AgentStatus, error) {
	status, err := t.spy.Status(ctx)
	status.Name = "attic"
	status.Configuration = &view.Configuration{File: "/home/ada/secret.yaml"}
	status.Notices = []view.Notice{{Text: "secret"}}
	status.Owner = &view.OwnerView{How: "watched", Hook: "/home/ada/secret"}
	return status, err
}

// TestAGuestSeesNothingOfTheOwners compares what a guest and an owner are shown.
func TestAGuestSeesNothingOfTheOwners(t *testing.T) {
	t.Parallel()
	told := []view.Event{{ID: 1, Kind: "running", Job: sampleID, Text: "it printed: secret"}}
	socket, _ := serve(t, talkative{&spy{events: told}}, nil)
	for guest, secrets := range map[bool]int{false: 4, true: 0} {
		b := signIn(t, socket, guest)
		_, status := b.send(t, "GET", "/api/v1/status", nil)
		event, lines := "", b.events(t)
		for event == "" && lines.Scan() {
			if data, found := strings.CutPrefix(lines.Text(), "data: "); found {
				event = data
			}
		}
		text := status + event
		if have := strings.Count(text, "secret"); have != secrets ||
			!strings.Contains(text, "attic") || !strings.Contains(event, sampleID) {
			t.Errorf("guest %v: %d secrets, want %d: %s", guest, have, secrets, text)
		}
	}
}

// TestThePageItself is for anyone who reaches the address, and tells nothing.
func TestThePageItself(t *testing.T) {
	t.Parallel()
	agent := &spy{}
	socket, base := serve(t, agent, nil)
	answer, body := do(t, http.DefaultClient, ask{method: "GET", url: base + "/"})
	text := strings.ToLower(string(body))
	if answer.StatusCode != http.StatusOK || !strings.Contains(text, "<!doctype html>") ||
		!strings.Contains(answer.Header.Get("Content-Security-Policy"), "frame-ancestors 'none'") ||
		answer.Header.Get("X-Content-Type-Options") != "nosniff" ||
		answer.Header.Get("Referrer-Policy") != "no-referrer" {
		t.Errorf("GET / = %d %v %s", answer.StatusCode, answer.Header, body)
	}
	for _, c := range []struct {
		method, path, host string
		status             int
	}{
		{"GET", "/assets/none.js", "", 404},
		{"GET", "/assets/../../api/v1/status", "", 404},
		{"GET", "/", "evil.example", 421},
		{"GET", "/index.html", "", 401},
	} {
		header := map[string]string{}
		if c.host != "" {
			header["Host"] = c.host
		}
		other, text := do(t, http.DefaultClient, ask{
			method: c.method, url: base + c.path, header: header,
		})
		if other.StatusCode != c.status {
			t.Errorf("%s %s of %q = %d %s, want %d",
				c.method, c.path, c.host, other.StatusCode, text, c.status)
		}
	}
	answer, _ = do(t, overSocket(socket), ask{method: "GET", url: "http://localhost/"})
	if answer.StatusCode != http.StatusNotFound {
		t.Errorf("GET / by the socket = %d, want 404", answer.StatusCode)
	}
	if asked := agent.take(); asked != "" {
		t.Errorf("the agent was asked %s", asked)
	}
}
