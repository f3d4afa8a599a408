package backend

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/mrsmesh/mrsmesh/internal/crypt"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// withKey fills in the key of an encrypted job.
func (b *Backend) withKey(job grid.Job) (grid.Job, error) {
	if !job.Spec.Encrypted {
		return job, nil
	}
	var err error
	job.Encryption.Key, err = b.agent.JobKey(job.Encryption.Name)
	return job, err
}

// PutEncrypted stores content for the job whose key has a name, encrypted.
func (b *Backend) PutEncrypted(
	ctx context.Context, name string, u view.Upload, body io.Reader,
) (view.DataRef, error) {
	key, err := b.agent.JobKey(name)
	if err != nil {
		return view.DataRef{}, err
	}
	ref, err := b.keep(b.agent.AddEncrypted(ctx, key, body, u.Executable))
	ref.Dir = u.Tar // it is stored as one file
	return ref, err
}

// GetOutput opens what a task has left. What an encrypted job's has is opened with its key.
func (b *Backend) GetOutput(
	ctx context.Context, task grid.TaskID, cid grid.CID,
) (view.DataRef, io.ReadCloser, error) {
	left, key, err := b.leftBy(ctx, task, cid)
	if err != nil {
		return view.DataRef{}, nil, err
	}
	if key == "" {
		return b.GetData(ctx, cid)
	}
	if err = b.agent.Bring(ctx, cid); err != nil {
		return view.DataRef{}, nil, userError(err)
	}
	ref, err := b.StatData(ctx, cid)
	if err != nil {
		return ref, nil, err
	}
	if ref.Bytes, err = b.plainBytes(ctx, ref); err != nil {
		return ref, nil, userError(err)
	}
	ref.Dir = left.Dir
	body, err := b.agent.OpenContent(ctx, key, cid)
	return ref, body, userError(err)
}

// leftBy finds what a task has left by its content, and the key of the task's job.
func (b *Backend) leftBy(
	ctx context.Context, task grid.TaskID, cid grid.CID,
) (grid.Produced, grid.JobKey, error) {
	t, key, err := b.findTask(ctx, task)
	if err != nil {
		return grid.Produced{}, "", err
	}
	if t.Exit != nil {
		left := []grid.Produced{t.Exit.Stdout, t.Exit.Stderr}
		for _, p := range append(left, t.Exit.Outputs...) {
			if p.CID == cid {
				return p, key, nil
			}
		}
	}
	return grid.Produced{}, "",
		fmt.Errorf("%w: task %s has not left %s", view.ErrNotFound, task, cid)
}

// plainBytes is the size that stored content has when it is opened.
func (b *Backend) plainBytes(ctx context.Context, ref view.DataRef) (int64, error) {
	body, err := b.data.Cat(ctx, ref.CID)
	if err != nil {
		return 0, err
	}
	head, err := io.ReadAll(io.LimitReader(body, crypt.HeadBytes))
	if err = errors.Join(err, body.Close()); err != nil {
		return 0, fmt.Errorf("read data: %w", err)
	}
	return crypt.PlainBytes(head, ref.Bytes)
}
