// Package web serves the agent's page: static files that a build has put into dist and that are
// part of the program. It knows nothing of the agent; what the page shows and orders, it asks of
// the interface beside it, with a session of its own. page has the sources, and make page builds
// them; dist/sources.sha256 says from which, so that a test finds a page that is out of date on a
// machine without node.
package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"
)

//go:embed dist/index.html dist/assets
var dist embed.FS

// policy lets the page load and ask nothing but this agent, and lets no other page frame it.
// Styles stand in attributes: how long a bar is.
const policy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; " +
	"img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; " +
	"frame-ancestors 'none'"

// asset is one file of the page, as it is sent.
type asset struct {
	kind   string // its content type
	tag    string // its ETag
	plain  []byte
	packed []byte // compressed by gzip
}

// Handler serves the page at / and its files below /assets/. They need no authentication:
// nothing in them is of this agent. Everything else is not found.
func Handler() http.Handler {
	assets := load()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := r.URL.Path
		if name == "/" {
			name = "/index.html"
		}
		a, known := assets[name]
		switch {
		case !known:
			http.NotFound(w, r)
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, r.Method+" is not served here", http.StatusMethodNotAllowed)
		default:
			a.serve(w, r)
		}
	})
}

// load reads and compresses all files once. They are part of the program, so that nothing here
// can fail.
func load() map[string]asset {
	assets := map[string]asset{}
	err := fs.WalkDir(dist, "dist", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		plain, err := dist.ReadFile(file)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(plain)
		assets[strings.TrimPrefix(file, "dist")] = asset{
			kind: kindOf(file), tag: `"` + hex.EncodeToString(sum[:16]) + `"`,
			plain: plain, packed: pack(plain),
		}
		return nil
	})
	if err != nil {
		panic("page is not in the program: " + err.Error())
	}
	return assets
}

// kindOf is a file's content type. The system's own table may have been changed by anybody.
func kindOf(file string) string {
	switch path.Ext(file) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	default:
		return "application/octet-stream"
	}
}

// pack compresses by gzip.
func pack(plain []byte) []byte {
	var packed bytes.Buffer
	w, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression) // the level is a valid one
	_, _ = w.Write(plain)                                      // to memory, which does not fail
	_ = w.Close()
	return packed.Bytes()
}

// serve sends a file, or says that the browser has it. Its name stays when it changes, so that a
// browser asks each time.
func (a asset) serve(w http.ResponseWriter, r *http.Request) {
	body, tag := a.plain, a.tag
	h := w.Header()
	if takesGzip(r.Header.Values("Accept-Encoding")) {
		body, tag = a.packed, strings.TrimSuffix(a.tag, `"`)+`-gzip"`
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("Vary", "Accept-Encoding")
	h.Set("ETag", tag)
	h.Set("Cache-Control", "no-cache")
	h.Set("Content-Type", a.kind)
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}

// takesGzip reports whether a client that accepts these encodings takes gzip.
func takesGzip(accepted []string) bool {
	for part := range strings.SplitSeq(strings.Join(accepted, ","), ",") {
		name, weight, _ := strings.Cut(strings.TrimSpace(part), ";")
		if strings.TrimSpace(name) == "gzip" {
			return strings.Trim(strings.TrimPrefix(strings.TrimSpace(weight), "q="), "0.") != "" ||
				weight == ""
		}
	}
	return false
}
