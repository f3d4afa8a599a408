package view

import (
	"errors"
	"fmt"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// What a backend answers when it cannot do what was asked. Wrap them with %w;
// the API turns them into HTTP status codes. Input that makes no sense is
// grid.ErrInvalid.
var (
	ErrNotFound = errors.New("not found")            // 404: no such job, task or data
	ErrDenied   = errors.New("denied")               // 403: not yours, or switched off by the owner
	ErrConflict = errors.New("conflict")             // 409: not possible in the present state
	ErrTooLarge = errors.New("too large")            // 413: over a limit or a quota
	ErrBusy     = errors.New("temporarily too busy") // 503: try again later
)

// Problem is an error of the API as RFC 9457 has it (application/problem+json),
// with the field that is wrong and what to do about it.
type Problem struct {
	Type   string `json:"type,omitempty"`   // about:blank
	Title  string `json:"title"`            // the HTTP status in words
	Status int    `json:"status"`           // the HTTP status code
	Detail string `json:"detail,omitempty"` // what happened, for a person
	Field  string `json:"field,omitempty"`  // which part of the request is wrong
	Remedy string `json:"remedy,omitempty"` // what to do
}

// Error is the problem in one line.
func (p *Problem) Error() string {
	text := p.Detail
	if text == "" {
		text = p.Title
	}
	if p.Field != "" {
		text = p.Field + ": " + text
	}
	if p.Remedy != "" {
		text = fmt.Sprintf("%s (%s)", text, p.Remedy)
	}
	return text
}

// Unwrap is the sentinel that belongs to the status, so that errors.Is works on
// both sides of the wire.
func (p *Problem) Unwrap() error {
	switch p.Status {
	case 400:
		return grid.ErrInvalid
	case 401, 403:
		return ErrDenied
	case 404:
		return ErrNotFound
	case 409:
		return ErrConflict
	case 413:
		return ErrTooLarge
	case 503:
		return ErrBusy
	default:
		return nil
	}
}
