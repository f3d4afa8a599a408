package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/api/session"
	"github.com/mrsmesh/mrsmesh/internal/view"
)

// signing signs browsers in and out.
type signing struct {
	book *session.Book
	now  func() time.Time
	door func(context.Context) (string, error) // HOST:PORT at which the page is served
	log  *slog.Logger
}

// MakePageLink answers POST /page-links.
func (s signing) MakePageLink(
	ctx context.Context, r MakePageLinkRequestObject,
) (MakePageLinkResponseObject, error) {
	guest := false
	if r.Body != nil {
		given(&guest, r.Body.Guest)
	}
	address, err := s.door(ctx)
	if err != nil {
		return nil, err
	}
	code := s.book.Link(s.now(), guest)
	return MakePageLink201JSONResponse{
		URL:         "http://" + address + "/#open=" + code,
		ExpiresInMS: session.LinkLasts.Milliseconds(),
	}, nil
}

// OpenSession answers POST /session.
func (s signing) OpenSession(
	ctx context.Context, r OpenSessionRequestObject,
) (OpenSessionResponseObject, error) {
	v := visitOf(ctx)
	if v.cookie == "" {
		return nil, notSignedIn() // by the socket or a token there is no browser
	}
	secret, opened, err := s.book.Open(s.now(), r.Body.Code, v.secret)
	if errors.Is(err, session.ErrUsed) {
		s.log.WarnContext(ctx, "a link to the page was used twice; its session was ended")
	}
	if err != nil {
		return nil, refusedCode(err)
	}
	return OpenSession200JSONResponse{
		Body:    shown(opened),
		Headers: OpenSession200ResponseHeaders{SetCookie: v.setCookie(secret, opened.Ends)},
	}, nil
}

// refusedCode tells a browser why its code opens nothing.
func refusedCode(err error) *view.Problem {
	problem := &view.Problem{
		Status: http.StatusForbidden, Detail: err.Error(), Field: "code",
		Remedy: "make a new one: siteagent open",
	}
	switch {
	case errors.Is(err, session.ErrUsed):
		problem.Detail += "; the browser that came first is signed out, in case it was not yours"
	case errors.Is(err, session.ErrGuessed):
		problem.Status = http.StatusTooManyRequests
	}
	return problem
}

// GetSession answers GET /session.
func (signing) GetSession(
	ctx context.Context, _ GetSessionRequestObject,
) (GetSessionResponseObject, error) {
	v := visitOf(ctx)
	if v.secret == "" {
		return nil, notSignedIn()
	}
	return GetSession200JSONResponse(shown(v.session)), nil
}

// EndSession answers DELETE /session.
func (s signing) EndSession(
	ctx context.Context, _ EndSessionRequestObject,
) (EndSessionResponseObject, error) {
	v := visitOf(ctx)
	if v.secret == "" {
		return nil, notSignedIn()
	}
	s.book.End(v.secret)
	return EndSession204Response{
		Headers: EndSession204ResponseHeaders{SetCookie: v.setCookie("", time.Time{})},
	}, nil
}

func shown(s session.Session) Session {
	return Session{Csrf: s.CSRF, Guest: s.Guest, Expires: s.Ends.UTC()}
}
