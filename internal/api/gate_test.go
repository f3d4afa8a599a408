package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/mrsmesh/mrsmesh/internal/api"
	"github.com/mrsmesh/mrsmesh/internal/api/apitest"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// link asks for one over the socket and gives the page's address and the code.
func link(t *testing.T, socket string, guest bool) (base, code string) {
	t.Helper()
	answer, body := do(t, overSocket(socket), ask{
		method: "POST", url: "http://localhost/api/v1/page-links", kind: jsonType,
		body: fmt.Sprintf(`{"guest": %v}`, guest),
	})
	var made view.PageLink
	if err := json.Unmarshal(body, &made); err != nil || answer.StatusCode != http.StatusCreated {
		t.Fatalf("POST /page-links = %d %s", answer.StatusCode, body)
	}
	base, code, found := strings.Cut(made.URL, "/#open=")
	if !found || made.ExpiresInMS != 60_000 {
		t.Fatalf("POST /page-links = %s, want a link with a code, good for 60 s", body)
	}
	return base, code
}

// browser is one that keeps its cookies.
type browser struct {
	*http.Client

	base string
	csrf string
}

// open lets it use a code.
func (b *browser) open(t *testing.T, code string) (reply, view.Problem) {
	t.Helper()
	answer, body := do(t, b.Client, ask{
		method: "POST", url: b.base + "/api/v1/session", kind: jsonType,
		body:   `{"code":"` + code + `"}`,
		header: map[string]string{"Origin": b.base, "Sec-Fetch-Site": "same-origin"},
	})
	var problem view.Problem
	var signed struct {
		CSRF    string    `json:"csrf"`
		Guest   bool      `json:"guest"`
		Expires time.Time `json:"expires"`
	}
	if err := json.Unmarshal(body, &problem); err != nil {
		t.Fatalf("POST /session: %s: %v", body, err)
	}
	if err := json.Unmarshal(body, &signed); err != nil {
		t.Fatalf("POST /session: %s: %v", body, err)
	}
	if answer.StatusCode == http.StatusOK {
		if b.csrf = signed.CSRF; b.csrf == "" || signed.Expires.IsZero() {
			t.Errorf("POST /session = %s, want csrf and expires", body)
		}
	}
	return answer, problem
}

// send asks as the page does, with what is changed.
func (b *browser) send(
	t *testing.T, method, path string, change map[string]string,
) (reply, string) {
	t.Helper()
	header := map[string]string{
		"Origin": b.base, "Sec-Fetch-Site": "same-origin", "X-Mrs-Csrf": b.csrf,
	}
	if method == http.MethodGet { // browsers send none then
		delete(header, "Origin")
	}
	maps.Copy(header, change)
	maps.DeleteFunc(header, func(_, value string) bool { return value == "" })
	answer, body := do(t, b.Client, ask{method: method, url: b.base + path, header: header})
	return answer, string(body)
}

func newBrowser(t *testing.T, base string) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &browser{Client: &http.Client{Jar: jar}, base: base}
}

// signIn opens a new link in a new browser.
func signIn(t *testing.T, socket string, guest bool) *browser {
	t.Helper()
	base, code := link(t, socket, guest)
	b := newBrowser(t, base)
	if answer, problem := b.open(t, code); answer.StatusCode != http.StatusOK {
		t.Fatalf("POST /session = %d %v", answer.StatusCode, problem)
	}
	return b
}

// TestALinkOpensThePageOnce signs in, comes back after a reload, and uses the link again, which
// ends the session: who holds a used link gets nothing, and who was robbed of one notices.
func TestALinkOpensThePageOnce(t *testing.T) {
	t.Parallel()
	socket, base := serve(t, apitest.New(clock), nil)
	at, code := link(t, socket, false)
	if at != base {
		t.Errorf("the link leads to %s, want %s", at, base)
	}
	b := newBrowser(t, base)
	answer, problem := b.open(t, code)
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("POST /session = %d %v", answer.StatusCode, problem)
	}
	cookie, err := http.ParseSetCookie(answer.Header.Get("Set-Cookie"))
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := strings.Cut(strings.TrimPrefix(base, "http://"), ":")
	if cookie.Name != "mrs-session-"+port || !cookie.HttpOnly || cookie.Path != "/" ||
		cookie.SameSite != http.SameSiteStrictMode || len(cookie.Value) != 43 {
		t.Errorf("Set-Cookie: %s", answer.Header.Get("Set-Cookie"))
	}
	again, text := b.send(t, "GET", "/api/v1/session", nil)
	if again.StatusCode != http.StatusOK || !strings.Contains(text, b.csrf) {
		t.Errorf("GET /session = %d %s, want csrf %s", again.StatusCode, text, b.csrf)
	}
	thief := newBrowser(t, base)
	answer, problem = thief.open(t, code)
	if want := "the link was used already"; answer.StatusCode != http.StatusForbidden ||
		!strings.HasPrefix(problem.Detail, want) ||
		problem.Remedy != "make a new one: siteagent open" ||
		answer.Header.Get("Set-Cookie") != "" {
		t.Errorf("the link used twice = %d %+v, want 403 %s", answer.StatusCode, problem, want)
	}
	for name, signed := range map[string]*browser{"thief": thief, "first": b} {
		if answer, text := signed.send(t, "GET", "/api/v1/status", nil); answer.StatusCode != 401 {
			t.Errorf("%s after that: GET /status = %d %s, want 401", name, answer.StatusCode, text)
		}
	}
}

// hand is a clock that is moved by hand.
type hand struct {
	mu  sync.Mutex
	now time.Time // guarded by mu
}

func (h *hand) read() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

func (h *hand) move(by time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = h.now.Add(by)
}

// TestCodesThatOpenNothing tries an old one, wrong ones, and something that is too large.
func TestCodesThatOpenNothing(t *testing.T) {
	t.Parallel()
	watch := &hand{now: time.Now()}
	socket, base := serve(t, apitest.New(clock), func(o *api.Options) { o.Now = watch.read })
	_, code := link(t, socket, false)
	watch.move(61 * time.Second)
	b := newBrowser(t, base)
	if answer, problem := b.open(t, code); answer.StatusCode != http.StatusForbidden ||
		problem.Detail != "the link is too old" || problem.Field != "code" {
		t.Errorf("an old link = %d %+v", answer.StatusCode, problem)
	}
	_, good := link(t, socket, false)
	for i := range 11 {
		want := http.StatusForbidden
		if i == 10 {
			want = http.StatusTooManyRequests
		}
		if answer, problem := b.open(t, "guess"); answer.StatusCode != want {
			t.Errorf("guess %d = %d %+v, want %d", i, answer.StatusCode, problem, want)
		}
	}
	if answer, problem := b.open(t, strings.Repeat("x", 5<<10)); answer.StatusCode != 413 {
		t.Errorf("a code of 5 KiB = %d %+v, want 413", answer.StatusCode, problem)
	}
	if answer, problem := b.open(t, good); answer.StatusCode != http.StatusOK {
		t.Errorf("a good link after guesses = %d %+v", answer.StatusCode, problem)
	}
	watch.move(12*time.Hour + time.Second)
	if answer, text := b.send(t, "GET", "/api/v1/session", nil); answer.StatusCode != 401 ||
		!strings.Contains(text, "siteagent open") {
		t.Errorf("GET /session after 12 h = %d %s, want 401 and a remedy", answer.StatusCode, text)
	}
}

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
		if answer.StatusCode != 403 || !strings.Contains(text, `"field":"X-Mrs-Csrf"`) {
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
	}
	all := append(operations(t), [][2]string{
		{"GET", "/metrics"},
		{"GET", "/debug/pprof/"},
		{"GET", "/ga4gh/tes/v1/tasks"},
		{"POST", "/ga4gh/tes/v1/tasks"},
		{"GET", "/api/v1/status/"},
		{"GET", "/api/v1/jobs/"},
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
	if answer, text := b.send(t, "DELETE", "/api/v1/session", nil); answer.StatusCode != 204 {
		t.Errorf("a guest signs out: %d %s", answer.StatusCode, text)
	}
	if answer, text := b.send(t, "GET", "/api/v1/status", nil); answer.StatusCode != 401 {
		t.Errorf("a guest that signed out: %d %s", answer.StatusCode, text)
	}
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
	told := []view.Event{{ID: 1, Kind: "task", Job: sampleID, Text: "it printed: secret"}}
	socket, _ := serve(t, talkative{&spy{events: told}}, nil)
	for guest, secrets := range map[bool]int{false: 4, true: 0} {
		b := signIn(t, socket, guest)
		_, status := b.send(t, "GET", "/api/v1/status", nil)
		request, err := http.NewRequestWithContext(t.Context(), "GET", b.base+"/api/v1/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := b.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(answer.Body)
		event := ""
		for event == "" && lines.Scan() {
			event, _ = strings.CutPrefix(lines.Text(), "data: ")
			if event == lines.Text() {
				event = ""
			}
		}
		_ = answer.Body.Close()
		text := status + event
		if have := strings.Count(text, "secret"); have != secrets ||
			!strings.Contains(text, "attic") || !strings.Contains(event, sampleID) {
			t.Errorf("guest %v: %d secrets, want %d: %s", guest, have, secrets, text)
		}
	}
}

// TestSigningOutEndsWhatFlows signs out while events flow.
func TestSigningOutEndsWhatFlows(t *testing.T) {
	t.Parallel()
	socket, _ := serve(t, &spy{}, nil)
	b := signIn(t, socket, false)
	request, err := http.NewRequestWithContext(t.Context(), "GET", b.base+"/api/v1/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := b.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	if !lines.Scan() || lines.Text() != ": welcome" {
		t.Fatalf("GET /events = %d %s", answer.StatusCode, lines.Text())
	}
	out, text := b.send(t, "DELETE", "/api/v1/session", nil)
	if out.StatusCode != http.StatusNoContent ||
		!strings.Contains(out.Header.Get("Set-Cookie"), "Max-Age=0") {
		t.Errorf("DELETE /session = %d %s %v", out.StatusCode, text, out.Header)
	}
	for lines.Scan() { // it ends, or the test does not
		continue
	}
	u, err := url.Parse(b.base)
	if err != nil || len(b.Jar.Cookies(u)) != 0 {
		t.Errorf("cookies after signing out: %v, %v", b.Jar.Cookies(u), err)
	}
}

// TestTwoAgentsInOneBrowser signs in at two agents of one machine, whose cookies a browser sends
// to both, and out at one.
func TestTwoAgentsInOneBrowser(t *testing.T) {
	t.Parallel()
	one, _ := serve(t, apitest.New(clock), nil)
	two, _ := serve(t, apitest.New(clock), nil)
	first := signIn(t, one, false)
	base, code := link(t, two, false)
	second := &browser{Client: first.Client, base: base}
	if answer, problem := second.open(t, code); answer.StatusCode != http.StatusOK {
		t.Fatalf("the second agent: %d %v", answer.StatusCode, problem)
	}
	want := func(b *browser, status int) {
		t.Helper()
		if answer, text := b.send(t, "GET", "/api/v1/status", nil); answer.StatusCode != status {
			t.Errorf("%s: %d %s, want %d", b.base, answer.StatusCode, text, status)
		}
	}
	want(first, 200)
	want(second, 200)
	// A cookie of that name which another program of this host has set is in nobody's way.
	u, err := url.Parse(second.base)
	if err != nil {
		t.Fatal(err)
	}
	name := "mrs-session-" + u.Port()
	u.Path = "/api/v1/status"
	first.Jar.SetCookies(u, []*http.Cookie{{Name: name, Value: "x", Path: "/api/v1/status"}})
	want(second, 200)
	if answer, text := first.send(t, "DELETE", "/api/v1/session", nil); answer.StatusCode != 204 {
		t.Errorf("DELETE /session = %d %s", answer.StatusCode, text)
	}
	want(first, 401)
	want(second, 200)
}

// TestThePageItself is for anyone who reaches the address, and tells nothing.
func TestThePageItself(t *testing.T) {
	t.Parallel()
	agent := &spy{}
	socket, base := serve(t, agent, nil)
	const policy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; " +
		"img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; " +
		"frame-ancestors 'none'"
	answer, body := do(t, http.DefaultClient, ask{method: "GET", url: base + "/"})
	text := strings.ToLower(string(body))
	if answer.StatusCode != 200 || !strings.Contains(text, "<!doctype html>") ||
		answer.Header.Get("Content-Security-Policy") != policy ||
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
		{"POST", "/", "", 405},
		{"GET", "/", "evil.example", 421},
		{"GET", "/index.html", "", 401},
	} {
		header := map[string]string{}
		if c.host != "" {
			header["Host"] = c.host
		}
		answer, body := do(t, http.DefaultClient, ask{
			method: c.method, url: base + c.path, header: header,
		})
		if answer.StatusCode != c.status {
			t.Errorf("%s %s of %q = %d %s, want %d",
				c.method, c.path, c.host, answer.StatusCode, body, c.status)
		}
	}
	answer, _ = do(t, overSocket(socket), ask{method: "GET", url: "http://localhost/"})
	if answer.StatusCode != 404 {
		t.Errorf("GET / by the socket = %d, want 404", answer.StatusCode)
	}
	if asked := agent.take(); asked != "" {
		t.Errorf("the agent was asked %s", asked)
	}
}

// TestAnAgentWithoutAnAddress opens one when a link is asked for, keeps it, and closes it when it
// ends. There is no token with which it could be used.
func TestAnAgentWithoutAnAddress(t *testing.T) {
	t.Parallel()
	socket, cancel, served := serving(t, apitest.New(clock))
	b := signIn(t, socket, false)
	if again, _ := link(t, socket, false); again != b.base {
		t.Errorf("a second link leads to %s, want %s", again, b.base)
	}
	if answer, text := b.send(t, "GET", "/api/v1/status", nil); answer.StatusCode != 200 {
		t.Errorf("GET /status = %d %s", answer.StatusCode, text)
	}
	for _, authorization := range []string{"Bearer ", "Bearer", "Bearer x"} {
		answer, body := do(t, http.DefaultClient, ask{
			method: "GET", url: b.base + "/api/v1/status",
			header: map[string]string{"Authorization": authorization},
		})
		if answer.StatusCode != 401 {
			t.Errorf("Authorization %q = %d %s, want 401", authorization, answer.StatusCode, body)
		}
	}
	cancel()
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
	request, err := http.NewRequestWithContext(t.Context(), "GET", b.base+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := http.DefaultClient.Do(request); err == nil {
		_ = answer.Body.Close()
		t.Errorf("the address still answers: %d", answer.StatusCode)
	}
}

// TestASessionSubmits hands in a job as the page does.
func TestASessionSubmits(t *testing.T) {
	t.Parallel()
	agent := apitest.New(clock)
	socket, _ := serve(t, agent, nil)
	b := signIn(t, socket, false)
	answer, body := do(t, b.Client, ask{
		method: "POST", url: b.base + "/api/v1/jobs", kind: jsonType,
		body:   marshal(t, view.FromJob(sampleJob())),
		header: map[string]string{"X-Mrs-Csrf": b.csrf, "Origin": b.base},
	})
	var made struct {
		ID grid.JobID `json:"id"`
	}
	if err := json.Unmarshal(body, &made); err != nil || answer.StatusCode != 201 || made.ID == "" {
		t.Errorf("POST /jobs = %d %s", answer.StatusCode, body)
	}
}
