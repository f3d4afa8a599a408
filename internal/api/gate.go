package api

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/api/session"
	"github.com/mrsmesh/mrsmesh/internal/api/web"
	"github.com/mrsmesh/mrsmesh/internal/view"
)

const (
	sessionPath = basePath + "/session"
	csrfHeader  = "X-Mrs-Csrf"

	// of a request to sign in, which anyone on this machine may send
	maxSignIn   = 4 << 10
	signInReads = 5 * time.Second
)

// answerPolicy keeps all answers, such as what jobs wrote, from being anything but data in a
// browser. The page's files have a policy of their own.
const answerPolicy = "default-src 'none'; frame-ancestors 'none'; sandbox"

// gate stands before each request over TCP: the page itself and the probes of health are for
// anyone, everything else wants the bearer token or the session of a browser.
type gate struct {
	token string // empty: none is good
	book  *session.Book
	now   func() time.Time
	page  http.Handler
	inner http.Handler
}

// locked puts the gate and the check of Host before a handler.
func (s *Server) locked(inner http.Handler) http.Handler {
	return checkHost(&gate{
		token: s.options.Token, book: &s.book, now: s.options.Now,
		page: web.Handler(), inner: inner,
	})
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Security-Policy", answerPolicy)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.Header().Set("Cross-Origin-Resource-Policy", "same-origin")
	path := r.URL.Path
	switch {
	case path == "/livez" || path == "/readyz":
		g.inner.ServeHTTP(w, r)
	case path == "/" || strings.HasPrefix(path, "/assets/"):
		g.page.ServeHTTP(w, r) // static files, which tell nothing of the agent
	case r.Header.Get("Authorization") == "" && (path == sessionPath || hasSession(r)):
		g.bySession(w, r)
	case g.isToken(r.Header.Get("Authorization")):
		g.inner.ServeHTTP(w, r)
	default:
		w.Header().Set("WWW-Authenticate", "Bearer")
		writeProblem(w, &view.Problem{
			Status: http.StatusUnauthorized, Detail: "the bearer token is missing or wrong",
			Field:  "Authorization",
			Remedy: "send the token that the agent keeps in its state directory (MRS_TOKEN)",
		})
	}
}

// isToken compares digests, so that how long it takes tells nothing.
func (g *gate) isToken(authorization string) bool {
	want := sha256.Sum256([]byte("Bearer " + g.token))
	have := sha256.Sum256([]byte(authorization))
	return g.token != "" && subtle.ConstantTimeCompare(have[:], want[:]) == 1
}

// bySession lets a browser through that is signed in, or wants to be, as far as its session goes.
func (g *gate) bySession(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	if err := checkOrigin(r); err != nil {
		writeProblem(w, err)
		return
	}
	v := visit{cookie: cookieName(r)}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	leave, found := g.enter(r, &v, cancel)
	defer leave()
	if r.Method == http.MethodPost && r.URL.Path == sessionPath {
		// not every writer has deadlines
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(signInReads))
		r.Body = http.MaxBytesReader(w, r.Body, maxSignIn)
	} else {
		if !found {
			writeProblem(w, notSignedIn())
			return
		}
		if err := v.may(r); err != nil {
			writeProblem(w, err)
			return
		}
		var end context.CancelFunc
		ctx, end = context.WithDeadline(ctx, v.session.Ends) // a stream of events ends, too
		defer end()
	}
	g.inner.ServeHTTP(w, r.WithContext(context.WithValue(ctx, visitKey{}, v)))
}

// enter finds the session of a request. Another program at a loopback address may have set cookies
// of the same name, so all are tried.
func (g *gate) enter(r *http.Request, v *visit, out func()) (leave func(), found bool) {
	for _, cookie := range r.CookiesNamed(v.cookie) {
		s, leave, found := g.book.Enter(g.now(), cookie.Value, out)
		if found {
			v.secret, v.session = cookie.Value, s
			return leave, true
		}
	}
	return func() {}, false
}

// visit has all that is known of a browser that asks.
type visit struct {
	cookie  string // its name
	secret  string // empty: it is not signed in
	session session.Session
}

type visitKey struct{}

// visitOf is the visit that a request belongs to; the zero value for those by token or socket.
func visitOf(ctx context.Context) visit {
	v, _ := ctx.Value(visitKey{}).(visit)
	return v
}

// may refuses what a session does not allow: to change anything without the word that only its
// page knows, and to a guest nearly everything.
func (v visit) may(r *http.Request) *view.Problem {
	path, known := strings.CutPrefix(r.URL.Path, basePath)
	signsOut := r.Method == http.MethodDelete && r.URL.Path == sessionPath
	// An address that was written in an odd way may be routed in another way than it reads here.
	looks := r.Method == http.MethodGet && known && r.URL.RawPath == "" && shownToGuests(path)
	if v.session.Guest && !looks && !signsOut {
		return &view.Problem{
			Status: http.StatusForbidden, Remedy: "sign in as the owner: siteagent open",
			Detail: "a guest may look at the mesh, and change nothing",
		}
	}
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return nil
	}
	have := []byte(r.Header.Get(csrfHeader))
	if subtle.ConstantTimeCompare(have, []byte(v.session.CSRF)) != 1 {
		return &view.Problem{
			Status: http.StatusForbidden, Detail: "the session's word is missing or wrong",
			Field: csrfHeader, Remedy: "send the csrf that GET " + sessionPath + " tells",
		}
	}
	return nil
}

// shownToGuests lists what a guest may look at: the site, its domain, what it gave, and its jobs
// with their tasks, sites and rounds. Jobs are shown in the forms of guest.go, which say how far
// they are and never what they compute. A job in full (/jobs/ID), its logs, its data, plans and
// settings are not on the list, and a path that is not is closed.
func shownToGuests(path string) bool {
	switch path {
	case "/session", "/status", "/sites", "/members", "/given", "/jobs", "/events":
		return true
	}
	below, isJob := strings.CutPrefix(path, "/jobs/")
	id, part, _ := strings.Cut(below, "/")
	if _, err := jobID(id); err != nil || !isJob {
		return false
	}
	switch part {
	case "tasks", "offers", "rounds":
		return true
	default:
		return false
	}
}

// checkOrigin refuses what another page has a browser send. A page of the same host and another
// port counts as another one, though the browser sends it our cookie.
func checkOrigin(r *http.Request) *view.Problem {
	origin, own := r.Header.Get("Origin"), "http://"+r.Host
	site := r.Header.Get("Sec-Fetch-Site")
	if (origin == "" || origin == own) && site != "cross-site" && site != "same-site" {
		return nil
	}
	field := "Origin"
	if origin == "" || origin == own {
		field = "Sec-Fetch-Site"
	}
	return &view.Problem{
		Status: http.StatusForbidden, Detail: "another page sent this request", Field: field,
		Remedy: "use the agent's own page: siteagent open",
	}
}

// cookieName has the port in it that the browser uses, as cookies do not part ports: agents on one
// machine, or behind tunnels from several, keep apart.
func cookieName(r *http.Request) string {
	_, port, err := net.SplitHostPort(r.Host)
	if err != nil {
		port = "80"
	}
	return "mrs-session-" + port
}

func hasSession(r *http.Request) bool {
	_, err := r.Cookie(cookieName(r))
	return err == nil
}

func notSignedIn() *view.Problem {
	return &view.Problem{
		Status: http.StatusUnauthorized, Detail: "this browser is not signed in, or no longer",
		Remedy: "sign in with a new link: siteagent open",
	}
}

// setCookie gives the header that keeps a secret in the browser until a time; the zero time takes
// it back.
func (v visit) setCookie(secret string, until time.Time) string {
	c := http.Cookie{ //nolint:gosec // G124: without Secure, as loopback addresses have no TLS
		Name: v.cookie, Value: secret, Path: "/", HttpOnly: true,
		SameSite: http.SameSiteStrictMode, Expires: until,
	}
	if until.IsZero() {
		c.MaxAge = -1
	}
	return c.String()
}

// openDoor makes sure that there is a door on TCP, and returns its address.
func (s *Server) openDoor(ctx context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tcp != nil {
		return s.tcp.String(), nil
	}
	listener, err := listenLoopback(ctx, "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	select {
	case s.late <- door{listener: listener, handler: s.locked(s.inner)}:
		s.tcp = listener.Addr()
		return s.tcp.String(), nil
	case <-ctx.Done():
		_ = listener.Close() // nobody knows of it
		return "", fmt.Errorf("open a door for the page: %w", ctx.Err())
	}
}
