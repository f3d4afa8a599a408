package backend

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// TaskLog reads what a task has printed: from the stored result when it has
// ended, else from the site that runs it.
func (b *Backend) TaskLog(
	ctx context.Context, task grid.TaskID, q view.LogQuery,
) (io.ReadCloser, error) {
	where, err := b.findLog(ctx, task, q.Stream)
	if err != nil {
		return nil, err
	}
	switch {
	case where.ended && where.cid == "":
		return io.NopCloser(eof{}), nil
	case where.ended:
		return b.storedLog(ctx, where, q.Offset)
	case where.site == "":
		return nil, fmt.Errorf("%w: the task has not started yet; its log begins when it runs",
			view.ErrConflict)
	default:
		return b.agent.OpenLog(ctx, where.site, where.attempt, q)
	}
}

type eof struct{}

// Read implements io.Reader: there is nothing.
func (eof) Read([]byte) (int, error) { return 0, io.EOF }

type logPlace struct {
	attempt grid.AttemptID
	site    grid.SiteID
	ended   bool
	cid     grid.CID // when it has ended and printed something
	key     grid.JobKey
}

func (b *Backend) findLog(ctx context.Context, task grid.TaskID, stream string) (logPlace, error) {
	if stream != "stdout" && stream != "stderr" {
		return logPlace{}, fmt.Errorf("%w: stream: want stdout or stderr, have %q",
			grid.ErrInvalid, stream)
	}
	t, key, err := b.findTask(ctx, task)
	if err != nil {
		return logPlace{}, err
	}
	attempt := grid.AttemptID{Task: t.Running(), Token: t.Token}
	where := logPlace{attempt: attempt, ended: t.Phase.Ended(), key: key}
	if t.Phase >= grid.PhaseRunning {
		where.site = t.Site
	}
	if t.Exit != nil && where.ended {
		where.cid = t.Exit.Stdout.CID
		if stream == "stderr" {
			where.cid = t.Exit.Stderr.CID
		}
	}
	return where, nil
}

func (b *Backend) storedLog(
	ctx context.Context, where logPlace, offset int64,
) (io.ReadCloser, error) {
	body, err := b.agent.OpenContent(ctx, where.key, where.cid)
	if err != nil {
		return nil, userError(err)
	}
	if _, err := io.CopyN(io.Discard, body, offset); err != nil && !errors.Is(err, io.EOF) {
		return nil, errors.Join(err, body.Close())
	}
	return body, nil
}
