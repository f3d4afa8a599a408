package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// PutData stores a file's bytes, or a directory as a tar stream.
func (c *Client) PutData(ctx context.Context, tar bool, body io.Reader) (view.DataRef, error) {
	in := call{
		method: http.MethodPut, path: "/data", kind: "application/octet-stream", body: source{body},
	}
	if tar {
		in.kind = "application/x-tar"
	}
	return ask[view.DataRef](ctx, c, in, nil)
}

// PutExecutable stores a file's bytes with its x bit.
func (c *Client) PutExecutable(ctx context.Context, body io.Reader) (view.DataRef, error) {
	in := call{
		method: http.MethodPut, path: "/data", kind: "application/x-executable", body: source{body},
	}
	return ask[view.DataRef](ctx, c, in, nil)
}

// PutEncrypted stores content for the job whose key has a name, encrypted.
func (c *Client) PutEncrypted(
	ctx context.Context, name string, u view.Upload, body io.Reader,
) (view.DataRef, error) {
	in := call{
		method: http.MethodPut, path: "/data", kind: "application/octet-stream", body: source{body},
		query: url.Values{"encrypt": {name}},
	}
	switch {
	case u.Tar:
		in.kind = "application/x-tar"
	case u.Executable:
		in.kind = "application/x-executable"
	}
	return ask[view.DataRef](ctx, c, in, nil)
}

// GetOutput opens what a task has left, as GetData does with data. The caller closes it.
func (c *Client) GetOutput(
	ctx context.Context, task string, out view.OutputView,
) (view.DataRef, io.ReadCloser, error) {
	if !out.Encrypted {
		return c.GetData(ctx, out.CID)
	}
	return c.getData(ctx, out.CID, url.Values{"task": {task}})
}

// GetData opens stored data: a file's bytes, or a tar stream when the reference
// says it is a directory. The caller closes it.
func (c *Client) GetData(ctx context.Context, cid grid.CID) (view.DataRef, io.ReadCloser, error) {
	return c.getData(ctx, cid, nil)
}

func (c *Client) getData(
	ctx context.Context, cid grid.CID, query url.Values,
) (view.DataRef, io.ReadCloser, error) {
	answer, err := c.do(ctx, call{
		method: http.MethodGet, path: "/data/" + url.PathEscape(string(cid)), query: query,
	})
	if err != nil {
		return view.DataRef{}, nil, err
	}
	ref, err := refOf(cid, answer.Header)
	if err != nil {
		_ = answer.Body.Close() // the answer is of no use
		return ref, nil, err
	}
	return ref, answer.Body, nil
}

// StatData says what is behind a CID.
func (c *Client) StatData(ctx context.Context, cid grid.CID) (view.DataRef, error) {
	answer, err := c.do(ctx, call{
		method: http.MethodHead, path: "/data/" + url.PathEscape(string(cid)),
	})
	if err != nil {
		return view.DataRef{}, err
	}
	_ = answer.Body.Close() // HEAD has none
	return refOf(cid, answer.Header)
}

func refOf(cid grid.CID, header http.Header) (view.DataRef, error) {
	bytes, err := strconv.ParseInt(header.Get("Mrs-Bytes"), 10, 64)
	if err != nil || bytes < 0 {
		return view.DataRef{}, fmt.Errorf("read answer of agent: size %q is no number",
			header.Get("Mrs-Bytes"))
	}
	return view.DataRef{
		CID: cid, Bytes: bytes, Dir: header.Get("Mrs-Dir") == "true",
		Executable: header.Get("Mrs-Executable") == "true",
	}, nil
}

// TaskLog reads one stream of a task from an offset. The caller closes it.
func (c *Client) TaskLog(
	ctx context.Context, task grid.TaskID, q view.LogQuery,
) (io.ReadCloser, error) {
	query := url.Values{
		"stream": {q.Stream}, "offset": {strconv.FormatInt(q.Offset, 10)},
		"follow": {strconv.FormatBool(q.Follow)},
	}
	answer, err := c.do(ctx, call{
		method: http.MethodGet, path: "/tasks/" + url.PathEscape(task.String()) + "/logs", query: query,
	})
	if err != nil {
		return nil, err
	}
	return answer.Body, nil
}
