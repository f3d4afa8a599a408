// Package mesh is a client of the agent that runs on this machine: it stores files, submits jobs,
// waits for them and fetches what they leave. sdk/examples/countwords uses it; docs/submit.md,
// section "From a program", says the same for other languages.
//
// What the agent refuses is a *Problem, which says what is wrong and what to do; errors.Is tells
// ErrInvalid, ErrNotFound, ErrDenied, ErrConflict, ErrTooLarge and ErrBusy apart. ErrUnreachable
// means that no agent answers.
package mesh

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/mrsmesh/mrsmesh/internal/api/client"
	"github.com/mrsmesh/mrsmesh/internal/config"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// What the agent tells has the fields of its OpenAPI document.
type (
	// ID names a job.
	ID = grid.JobID
	// Status tells how a job is.
	Status = view.JobView
	// Task is one task of a job.
	Task = view.TaskView
	// Site is one that the agent knows.
	Site = view.SiteRow
	// Data is a file or directory that the agent holds.
	Data = view.DataRef
	// Problem says what the agent refuses, and why.
	Problem = view.Problem
)

// The kinds of errors.
var (
	ErrUnreachable = client.ErrUnreachable
	ErrInvalid     = grid.ErrInvalid
	ErrNotFound    = view.ErrNotFound
	ErrDenied      = view.ErrDenied
	ErrConflict    = view.ErrConflict
	ErrTooLarge    = view.ErrTooLarge
	ErrBusy        = view.ErrBusy
)

// Mesh is the way to the agent. It is safe for concurrent use.
type Mesh struct{ client *client.Client }

// Open takes the address as the command submit does: from MRS_ADDR and MRS_TOKEN, from its file of
// settings, or the socket of this user's agent. It does not connect.
func Open() (*Mesh, error) {
	c, err := config.LoadSubmit(config.Sources{
		File: config.SubmitFile(os.LookupEnv), Env: os.LookupEnv,
	})
	if err != nil {
		return nil, fmt.Errorf("open mesh: %w", err)
	}
	return OpenAt(c.Addr, string(c.Token))
}

// OpenAt takes the path of the agent's socket, or http://HOST:PORT with the token that the file
// api.token in its state directory holds. It does not connect.
func OpenAt(addr, token string) (*Mesh, error) {
	c, err := client.New(addr, token)
	if err != nil {
		return nil, fmt.Errorf("open mesh: %w", err)
	}
	return &Mesh{client: c}, nil
}

// Close ends idle connections.
func (m *Mesh) Close() { m.client.Close() }

// Sites are those that the agent knows, itself among them.
func (m *Mesh) Sites(ctx context.Context) ([]Site, error) { return m.client.Sites(ctx) }

// Put stores what a reader gives as a file.
func (m *Mesh) Put(ctx context.Context, content io.Reader) (Data, error) {
	return m.client.PutData(ctx, false, content)
}

// PutText stores a text as a file.
func (m *Mesh) PutText(ctx context.Context, text string) (Data, error) {
	return m.Put(ctx, strings.NewReader(text))
}

// PutFile stores a file of this machine, with its x bit.
func (m *Mesh) PutFile(ctx context.Context, path string) (Data, error) {
	file, err := os.Open(path)
	if err != nil {
		return Data{}, fmt.Errorf("put file: %w", err)
	}
	defer func() { _ = file.Close() }() // only read from
	info, err := file.Stat()
	switch {
	case err != nil:
		return Data{}, fmt.Errorf("put file: %w", err)
	case !info.Mode().IsRegular():
		return Data{}, fmt.Errorf("put file: %w: %s is no regular file", ErrInvalid, path)
	case info.Mode()&0o111 != 0:
		return m.client.PutExecutable(ctx, file)
	default:
		return m.client.PutData(ctx, false, file)
	}
}

// Get opens what is stored: a file's bytes, or a directory as a tar archive. The caller closes it.
func (m *Mesh) Get(ctx context.Context, data Data) (io.ReadCloser, error) {
	_, body, err := m.client.GetData(ctx, data.CID)
	return body, err
}
