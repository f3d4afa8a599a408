package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func ask(t *testing.T, method, path string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	Handler().ServeHTTP(w, r)
	return w
}

func read(t *testing.T, r io.Reader) []byte {
	t.Helper()
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestHeaders(t *testing.T) {
	for path, kind := range map[string]string{
		"/": "text/html; charset=utf-8", "/index.html": "text/html; charset=utf-8",
		"/assets/page.js":  "text/javascript; charset=utf-8",
		"/assets/page.css": "text/css; charset=utf-8",
	} {
		answer := ask(t, http.MethodGet, path)
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self' " +
				"'unsafe-inline'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; " +
				"form-action 'none'; frame-ancestors 'none'",
			"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
			"Cache-Control": "no-cache", "Vary": "Accept-Encoding", "Content-Type": kind,
		} {
			if got := answer.Header().Get(name); got != want {
				t.Errorf("%s: %s: %q, want %q", path, name, got, want)
			}
		}
		if answer.Code != http.StatusOK || len(read(t, answer.Body)) == 0 {
			t.Errorf("%s: %d, or nothing in it", path, answer.Code)
		}
	}
}

func TestWhatIsNotServed(t *testing.T) {
	for _, path := range []string{
		"/assets/", "/assets/../web.go", "/sources.sha256", "/licences/", "/page/package.json",
		"/index",
	} {
		if got := ask(t, http.MethodGet, path); got.Code != http.StatusNotFound {
			t.Errorf("GET %s: %d, want it not found", path, got.Code)
		}
	}
	got := ask(t, http.MethodPost, "/")
	if got.Code != http.StatusMethodNotAllowed || got.Header().Get("Allow") != "GET, HEAD" {
		t.Errorf("POST /: %d, allowed %q", got.Code, got.Header().Get("Allow"))
	}
}

func TestWhatTheBrowserHasIsNotSentAgain(t *testing.T) {
	first := ask(t, http.MethodGet, "/assets/page.js")
	tag := first.Header().Get("ETag")
	again := ask(t, http.MethodGet, "/assets/page.js", "If-None-Match", tag)
	if again.Code != http.StatusNotModified || len(read(t, again.Body)) > 0 {
		t.Errorf("with the tag %s: %d", tag, again.Code)
	}
	other := ask(t, http.MethodGet, "/assets/page.css", "If-None-Match", tag)
	if other.Code != http.StatusOK {
		t.Errorf("with another file's tag: %d", other.Code)
	}
}

func TestCompressed(t *testing.T) {
	plain := read(t, ask(t, http.MethodGet, "/assets/page.js").Body)
	for accepted, packed := range map[string]bool{
		"gzip, deflate, br": true, "br, gzip;q=0.5": true, "gzip;q=0": false, "gzip;q=0.0": false,
		"": false, "br": false, "identity": false,
	} {
		answer := ask(t, http.MethodGet, "/assets/page.js", "Accept-Encoding", accepted)
		if is := answer.Header().Get("Content-Encoding") == "gzip"; is != packed {
			t.Errorf("%q: compressed %t, want %t", accepted, is, packed)
			continue
		}
		var body io.Reader = answer.Body
		if packed {
			var err error
			if body, err = gzip.NewReader(answer.Body); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(read(t, body), plain) {
			t.Errorf("%q: another content", accepted)
		}
	}
}

// most bytes may the whole page take on the wire.
const most = 60_000

func TestSize(t *testing.T) {
	total := 0
	for _, a := range load() {
		total += len(a.packed)
	}
	if total > most {
		t.Errorf("the page takes %d bytes compressed, want at most %d", total, most)
	}
	t.Logf("%d bytes compressed", total)
}

// The names of SVG and of its parts are addresses that nobody asks.
var names = regexp.MustCompile(
	`http://www\.w3\.org/(2000/svg|1998/Math/MathML|1999/xhtml|1999/xlink)`)

// The page asks no other host: no address is in it, not even a comment's.
func TestNoOtherHost(t *testing.T) {
	address := regexp.MustCompile(`(?i)(https?:|wss?:|ftp:)?//[a-z0-9.-]+\.[a-z]{2,}[^\s"']*`)
	for name, a := range load() {
		for _, found := range address.FindAll(names.ReplaceAll(a.plain, nil), -1) {
			t.Errorf("dist%s has the address %s", name, found)
		}
	}
}

// The page in dist is built from the sources in page: a change of these without make page is
// found without node.
func TestDistFitsSources(t *testing.T) {
	written, err := os.ReadFile("dist/sources.sha256")
	if err != nil {
		t.Fatal(err)
	}
	built := map[string]string{}
	for line := range strings.Lines(string(written)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		built[name] = sum
	}
	present := sources(t)
	for _, name := range slices.Sorted(maps.Keys(present)) {
		if built[name] != present[name] {
			t.Errorf("page/%s is not as it was when dist was built: run make page and commit", name)
		}
		delete(built, name)
	}
	for name := range built {
		t.Errorf("dist was built from page/%s, which is gone: run make page and commit", name)
	}
}

// sources are the digests of what the page is built from, by name; the build has the same rule
// (page/vite.config.mjs).
func sources(t *testing.T) map[string]string {
	t.Helper()
	sums := map[string]string{}
	err := filepath.WalkDir("page", func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.Name() == "node_modules" || strings.HasPrefix(entry.Name(), "."):
			if entry.IsDir() {
				return filepath.SkipDir
			}
			return nil
		case entry.IsDir():
			return nil
		}
		text, err := os.ReadFile(file)
		sum := sha256.Sum256(text)
		sums[strings.TrimPrefix(filepath.ToSlash(file), "page/")] = hex.EncodeToString(sum[:])
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sums
}
