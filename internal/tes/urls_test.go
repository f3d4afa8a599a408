package tes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/view"
)

// wall is a room that keeps the last file, or refuses it.
type wall struct {
	room
	text    string
	refuses error
}

func (w *wall) PutData(_ context.Context, _ bool, body io.Reader) (view.DataRef, error) {
	text, err := io.ReadAll(body)
	if err = errors.Join(w.refuses, err); err != nil {
		return view.DataRef{}, err
	}
	w.text = string(text)
	return view.DataRef{CID: "bweb", Bytes: int64(len(text))}, nil
}

// Tasks read below the addresses that the owner names, and nowhere else.
func TestAddressesThatTasksMayRead(t *testing.T) {
	t.Parallel()
	all := newWebsites([]string{"https://data.example.org/public/", "http://lab:8080"})
	for address, allowed := range map[string]bool{
		"https://data.example.org/public/a.txt":         true,
		"https://data.example.org/public/deep/a?v=2":    true,
		"https://DATA.example.org/public/":              true,
		"http://lab:8080/any/thing":                     true,
		"http://lab:8080":                               true,
		"http://data.example.org/public/a.txt":          false, // not by https
		"https://data.example.org/publication/a":        false,
		"https://data.example.org/public/../private":    false,
		"https://data.example.org/public/%2e%2e/secret": false,
		"https://data.example.org/":                     false,
		"https://data.example.org.evil.net/public/a":    false,
		"https://me:secret@data.example.org/public/a":   false,
		"http://lab/any":                                false,
		"http://lab:80801/any":                          false,
		"http:///x":                                     false,
		"http://%zz/x":                                  false,
	} {
		if _, err := all.find("url", address); (err == nil) != allowed {
			t.Errorf("%s: %v, want allowed: %t", address, err, allowed)
		}
	}
	if _, err := newWebsites(nil).find("url", "http://lab/x"); !says(err, "tes.urls") {
		t.Errorf("none allowed: %v", err)
	}
	if _, err := all.find("url", "http://x/"); !says(err, "https://data.example.org/public/") {
		t.Errorf("what is allowed is not said: %v", err)
	}
}

func says(err error, word string) bool { return err != nil && strings.Contains(err.Error(), word) }

// What a server has is stored; one that fails is asked again, and where it leads to is looked at.
func TestReadingFromAServer(t *testing.T) {
	t.Parallel()
	asked := map[string]int{} // one request at a time
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked[r.URL.Path]++
		switch r.URL.Path {
		case "/open/text":
			_, _ = io.WriteString(w, "hello")
		case "/open/tired": // once
			if asked[r.URL.Path] == 1 {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			_, _ = io.WriteString(w, "awake")
		case "/open/breaks":
			w.Header().Set("Content-Length", "10")
			_, _ = io.WriteString(w, "half")
		case "/open/on":
			http.Redirect(w, r, "/open/text", http.StatusFound)
		case "/open/out":
			http.Redirect(w, r, "/secret", http.StatusFound)
		case "/open/round":
			http.Redirect(w, r, "/open/round", http.StatusFound)
		case "/secret":
			_, _ = io.WriteString(w, "secret")
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	all, room := newWebsites([]string{server.URL + "/open"}), &wall{}
	for at, want := range map[string]string{
		"/open/text": "hello", "/open/tired": "awake", "/open/on": "hello",
	} {
		in, err := all.fetch(t.Context(), room, server.URL+at)
		if err != nil || room.text != want || in.Bytes != int64(len(want)) {
			t.Errorf("%s: %q, %+v, %v", at, room.text, in, err)
		}
	}
	for at, want := range map[string]string{
		"/open/none": "404", "/open/breaks": "unexpected EOF", "/open/out": "may not read",
		"/open/round": "more than 5 references", "/secret": "outside of what tasks may read",
	} {
		if _, err := all.fetch(t.Context(), room, server.URL+at); !says(err, want) {
			t.Errorf("%s: %v, want %s", at, err, want)
		}
	}
	if asked["/open/breaks"] != webTries || asked["/open/none"] != 1 || asked["/secret"] != 0 {
		t.Errorf("asked %v", asked)
	}
	room.refuses = fmt.Errorf("no space: %w", view.ErrTooLarge)
	_, err := all.fetch(t.Context(), room, server.URL+"/open/text")
	if !errors.Is(err, view.ErrTooLarge) {
		t.Errorf("a full room: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err = all.fetch(ended, room, server.URL+"/open/text"); err == nil {
		t.Error("it is read after its end")
	}
}
