package api_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

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

// want sends a request as the page does, and wants a status.
func (b *browser) want(t *testing.T, method, path string, status int) {
	t.Helper()
	if answer, text := b.send(t, method, "/api/v1"+path, nil); answer.StatusCode != status {
		t.Errorf("%s: %s %s = %d %s, want %d",
			b.base, method, path, answer.StatusCode, text, status)
	}
}

// events follows what happens, from the first line on.
func (b *browser) events(t *testing.T) *bufio.Scanner {
	t.Helper()
	request, err := http.NewRequestWithContext(
		t.Context(), http.MethodGet, b.base+"/api/v1/events", nil,
	)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := b.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = answer.Body.Close() })
	lines := bufio.NewScanner(answer.Body)
	if !lines.Scan() || lines.Text() != ": welcome" {
		t.Fatalf("GET /events = %d %s", answer.StatusCode, lines.Text())
	}
	return lines
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
	if answer, problem = b.open(t, code); answer.StatusCode != http.StatusOK {
		t.Errorf("again in the same browser = %d %+v", answer.StatusCode, problem)
	}
	b.want(t, "GET", "/status", http.StatusOK)
	thief := newBrowser(t, base)
	answer, problem = thief.open(t, code)
	if want := "the link was used already"; answer.StatusCode != http.StatusForbidden ||
		!strings.HasPrefix(problem.Detail, want) ||
		problem.Remedy != "make a new one: siteagent open" ||
		answer.Header.Get("Set-Cookie") != "" {
		t.Errorf("the link used twice = %d %+v, want 403 %s", answer.StatusCode, problem, want)
	}
	thief.want(t, "GET", "/status", http.StatusUnauthorized)
	b.want(t, "GET", "/status", http.StatusUnauthorized)
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
	answer, problem := b.open(t, strings.Repeat("x", 5<<10))
	if answer.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("a code of 5 KiB = %d %+v, want 413", answer.StatusCode, problem)
	}
	if answer, problem = b.open(t, good); answer.StatusCode != http.StatusOK {
		t.Errorf("a good link after guesses = %d %+v", answer.StatusCode, problem)
	}
	watch.move(12*time.Hour + time.Second)
	answer, text := b.send(t, "GET", "/api/v1/session", nil)
	if answer.StatusCode != http.StatusUnauthorized || !strings.Contains(text, "siteagent open") {
		t.Errorf("GET /session after 12 h = %d %s, want 401 and a remedy", answer.StatusCode, text)
	}
}

// TestSigningOutEndsWhatFlows signs out while events flow.
func TestSigningOutEndsWhatFlows(t *testing.T) {
	t.Parallel()
	socket, _ := serve(t, &spy{}, nil)
	b := signIn(t, socket, false)
	lines := b.events(t)
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
	first.want(t, "GET", "/status", http.StatusOK)
	second.want(t, "GET", "/status", http.StatusOK)
	// A cookie of that name which another program of this host has set is in nobody's way.
	u, err := url.Parse(second.base)
	if err != nil {
		t.Fatal(err)
	}
	name := "mrs-session-" + u.Port()
	u.Path = "/api/v1/status"
	first.Jar.SetCookies(u, []*http.Cookie{{Name: name, Value: "x", Path: "/api/v1/status"}})
	second.want(t, "GET", "/status", http.StatusOK)
	first.want(t, "DELETE", "/session", http.StatusNoContent)
	first.want(t, "GET", "/status", http.StatusUnauthorized)
	second.want(t, "GET", "/status", http.StatusOK)
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
	b.want(t, "GET", "/status", http.StatusOK)
	for _, authorization := range []string{"Bearer ", "Bearer", "Bearer x"} {
		answer, body := do(t, http.DefaultClient, ask{
			method: "GET", url: b.base + "/api/v1/status",
			header: map[string]string{"Authorization": authorization},
		})
		if answer.StatusCode != http.StatusUnauthorized {
			t.Errorf("Authorization %q = %d %s, want 401", authorization, answer.StatusCode, body)
		}
	}
	cancel()
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.base+"/", nil)
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
	err := json.Unmarshal(body, &made)
	if err != nil || answer.StatusCode != http.StatusCreated || made.ID == "" {
		t.Errorf("POST /jobs = %d %s", answer.StatusCode, body)
	}
}
