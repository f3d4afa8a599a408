package tes

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Sizes of pages.
const (
	defaultPage = 256
	maxPage     = 2047
	// maxPageBytes ends a page early, after the task with which it is larger.
	maxPageBytes = 4 << 20
)

// query says which tasks are listed.
type query struct {
	prefix string            // of the name
	state  TesState          // empty = any
	tags   map[string]string // which a task has; an empty value fits every one
	size   int
	token  token // where the page begins
}

// token names the last task on a page. The next page has those that are older, so that
// no task is shown twice or left out when others come or go.
type token struct {
	at time.Time
	id string
}

// String is the token in a page.
func (t token) String() string {
	return base64.RawURLEncoding.EncodeToString(
		fmt.Appendf(nil, "%d %s", t.at.UnixNano(), t.id))
}

// readToken reads a token. Empty means the first page.
func readToken(text string) (token, error) {
	if text == "" {
		return token{}, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	at, id, found := strings.Cut(string(raw), " ")
	nanos, wrong := strconv.ParseInt(at, 10, 64)
	if err != nil || wrong != nil || !found || id == "" {
		return token{}, invalid("page_token", "not a token of this list: "+quoted(text),
			"take next_page_token of the page before, or leave it out for the first page")
	}
	return token{time.Unix(0, nanos).UTC(), id}, nil
}

// queryOf reads the parameters of a list.
func queryOf(p ListTasksParams) (q query, err error) {
	q.size = defaultPage
	if p.NamePrefix != nil {
		q.prefix = *p.NamePrefix
	}
	if p.State != nil && *p.State != "" {
		if q.state = *p.State; !q.state.Valid() {
			return q, invalid("state", "unknown: "+quoted(string(q.state)), "write it as in QUEUED")
		}
	}
	if p.PageSize != nil && *p.PageSize != 0 {
		if q.size = int(*p.PageSize); q.size < 0 || q.size > maxPage {
			return q, invalid("page_size", fmt.Sprintf("want 1 to %d, have %d", maxPage, q.size),
				"leave it out for 256")
		}
	}
	var keys, values []string
	if p.TagKey != nil {
		keys = *p.TagKey
	}
	if p.TagValue != nil {
		values = *p.TagValue
	}
	if len(values) > len(keys) {
		return q, invalid("tag_value", "there are more values than keys", "give a tag_key for each")
	}
	q.tags = map[string]string{}
	for i, key := range keys {
		q.tags[key] = ""
		if i < len(values) {
			q.tags[key] = values[i]
		}
	}
	if p.PageToken != nil {
		q.token, err = readToken(*p.PageToken)
	}
	return q, err
}

// fits reports whether a task, which needs the service's mu, is wanted.
func (q query) fits(e *entry) bool {
	if q.state != "" && e.state != q.state || !strings.HasPrefix(e.name, q.prefix) {
		return false
	}
	for key, want := range q.tags {
		if have, there := e.tags[key]; !there || want != "" && have != want {
			return false
		}
	}
	return true
}

// page lists tasks, the newest first, and says where the next page begins; empty = there is none.
func (s *Tasks) page(q query) (list []*entry, next string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range slices.Backward(s.order) {
		if q.token.id != "" && e.compare(q.token.at, q.token.id) >= 0 || !q.fits(e) {
			continue
		}
		if len(list) == q.size {
			at := list[len(list)-1]
			return list, token{at.created, at.id}.String()
		}
		list = append(list, e)
	}
	return list, ""
}
