package tes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// websites are those that tasks may read from: everything whose address begins with one of these,
// each an http or https URL. Without them a task could have the agent ask any server that it
// reaches, those of its own network, too.
type websites []*url.URL

// newWebsites leaves out what is no address; the settings were checked before.
func newWebsites(prefixes []string) websites {
	var all websites
	for _, prefix := range prefixes {
		if u, err := url.Parse(prefix); err == nil && u.Host != "" {
			all = append(all, u)
		}
	}
	return all
}

// onWeb reports whether an address is one of the web.
func onWeb(address string) bool {
	return strings.HasPrefix(address, "http://") || strings.HasPrefix(address, "https://")
}

// find says which address an input means, if tasks may read there.
func (all websites) find(field, address string) (*url.URL, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "":
		return nil, invalid(field, "not a URL: "+quoted(address), "write https://HOST/PATH")
	case u.User != nil:
		return nil, invalid(field, "holds a user or a password, which others would see",
			"copy the data to a file and name it as file:///PATH")
	case all.allow(u):
		return u, nil
	}
	remedy := "the owner of this agent can allow addresses with the setting tes.urls"
	if len(all) > 0 {
		var list []string
		for _, prefix := range all {
			list = append(list, prefix.String())
		}
		remedy = "allowed is everything below " + strings.Join(list, ", ")
	}
	return nil, invalid(field, quoted(address)+" is outside of what tasks may read", remedy)
}

// locate looks whether an input may be read. Its server is not asked before the task was answered.
func (all websites) locate(field string, in TesInput) error {
	if _, err := all.find(field+".url", *in.Url); err != nil {
		return err
	}
	if *in.Type == DIRECTORY {
		return invalid(field+".type", "servers of the web have no directories", "name each file")
	}
	return nil
}

// allow reports whether an address begins with one of the prefixes: by whole names, and without a
// way back.
func (all websites) allow(u *url.URL) bool {
	at := "/" + strings.TrimPrefix(u.Path, "/")
	if path.Clean(at) != strings.TrimSuffix(at, "/") && at != "/" {
		return false
	}
	for _, prefix := range all {
		top := "/" + strings.Trim(prefix.Path, "/")
		if u.Scheme == prefix.Scheme && strings.EqualFold(u.Host, prefix.Host) && below(at, top) {
			return true
		}
	}
	return false
}

// How an address is read.
const (
	webTries   = 3                // of an answer that is none, or breaks off
	webPause   = time.Second      // between them
	webSilence = 30 * time.Second // without a byte before it counts as broken
	webHops    = 5                // to other addresses that tasks may read
)

var (
	errAskAgain  = errors.New("the server does not answer as it should") // which may be over soon
	errLeadsAway = errors.New("it leads to what tasks may not read")
)

// fetch stores what an address has.
func (all websites) fetch(ctx context.Context, r room, address string) (grid.Input, error) {
	u, err := all.find("url", address)
	if err != nil {
		return grid.Input{}, err
	}
	for try := 1; ; try++ {
		ref, err := all.fetchOnce(ctx, r, u)
		if err == nil || !errors.Is(err, errAskAgain) || try == webTries {
			return inputOf(ref), err
		}
		select {
		case <-time.After(webPause):
		case <-ctx.Done():
			return grid.Input{}, ctx.Err()
		}
	}
}

func (all websites) fetchOnce(ctx context.Context, r room, u *url.URL) (view.DataRef, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return view.DataRef{}, err
	}
	silent := time.AfterFunc(webSilence, func() { stop(errAskAgain) })
	defer silent.Stop()
	client := http.Client{CheckRedirect: all.mayGoOn}
	answer, err := client.Do(request)
	if err != nil {
		if wrong, is := errors.AsType[*url.Error](err); is {
			err = wrong.Err // without the address, which is known
		}
		if errors.Is(err, errLeadsAway) {
			return view.DataRef{}, err
		}
		return view.DataRef{}, fmt.Errorf("%w: %w", errAskAgain, err)
	}
	defer func() { _ = answer.Body.Close() }() // only read from
	switch {
	case answer.StatusCode == http.StatusOK:
	case answer.StatusCode >= 500 || answer.StatusCode == http.StatusTooManyRequests:
		return view.DataRef{}, fmt.Errorf("%w: %s", errAskAgain, answer.Status)
	default:
		return view.DataRef{}, fmt.Errorf("the server answers %s", answer.Status)
	}
	body := &webBody{from: answer.Body, heard: func() { silent.Reset(webSilence) }}
	ref, err := r.PutData(ctx, false, body)
	if err != nil && body.broken != nil {
		err = fmt.Errorf("%w: %w", errAskAgain, body.broken)
	}
	return ref, err
}

// mayGoOn decides whether a server's reference to another address is followed.
func (all websites) mayGoOn(to *http.Request, via []*http.Request) error {
	switch {
	case !all.allow(to.URL):
		return fmt.Errorf("%w: %s", errLeadsAway, to.URL.Redacted())
	case len(via) > webHops:
		return fmt.Errorf("%w: more than %d references", errLeadsAway, webHops)
	default:
		return nil
	}
}

// webBody tells the failures of a server from those of the room, and that bytes come.
type webBody struct {
	from   io.Reader
	heard  func()
	broken error
}

func (b *webBody) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	if n > 0 {
		b.heard()
	}
	if err != nil && !errors.Is(err, io.EOF) {
		b.broken = err
	}
	return n, err
}
