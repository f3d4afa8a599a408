package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/mrsmesh/mrsmesh/internal/crypt"
	"github.com/mrsmesh/mrsmesh/internal/data"
	"github.com/mrsmesh/mrsmesh/internal/p2p"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// Content of an encrypted job is encrypted whenever it is in the data room, here and elsewhere. In
// the clear it lies in the directories of attempts alone, and in what users ask for. A job in the
// clear has no key, and all of this leaves its content as it is.

// JobKey is the key of an own job, by its name.
func (a *Agent) JobKey(name string) (grid.JobKey, error) {
	own, err := a.mesh.PrivateKey()
	if err != nil {
		return "", err
	}
	return crypt.Derive(own, name)
}

// addressed gives what a machine wants sent. An award of an encrypted job gets the job's key,
// encrypted for the site that it goes to and nobody else.
func (a *Agent) addressed(e step.Send) (protocol.Message, error) {
	award, is := e.Message.(protocol.Award)
	if !is || e.Key == "" {
		return e.Message, nil
	}
	site, err := p2p.KeyOf(e.To)
	if err != nil {
		return nil, err
	}
	award.Key, err = crypt.Wrap(e.Key, site)
	return award, err
}

// address is addressed that reports why nothing is sent.
func (a *Agent) address(e step.Send) (protocol.Message, bool) {
	m, err := a.addressed(e)
	if err != nil {
		a.reports.count("key_not_sent")
		a.log.Warn("an encrypted job cannot be given to a site", "site", string(e.To), "error", err)
		return nil, false
	}
	return m, true
}

// openKey opens the key that an award has brought; none of a job in the clear.
func (a *Agent) openKey(wrapped []byte) (grid.JobKey, error) {
	if len(wrapped) == 0 {
		return "", nil
	}
	own, err := a.mesh.PrivateKey()
	if err != nil {
		return "", err
	}
	key, err := crypt.Unwrap(wrapped, own)
	if err != nil {
		return "", fmt.Errorf("open the job's key: %w", err)
	}
	return key, nil
}

// inClear reads a file of the data room in the clear.
func inClear(
	ctx context.Context, store *data.Store, key grid.JobKey, cid grid.CID,
) (io.ReadCloser, error) {
	body, err := store.Cat(ctx, cid)
	if errors.Is(err, data.ErrUnsupported) && key != "" {
		return nil, fmt.Errorf("%w: a directory", crypt.ErrDamaged)
	}
	if err != nil || key == "" {
		return body, err
	}
	plain, err := crypt.Open(key, body)
	if err != nil {
		return nil, errors.Join(err, body.Close())
	}
	return opened{plain, body}, nil
}

// opened reads one thing and closes another.
type opened struct {
	io.Reader
	io.Closer
}

// layOut copies what is in the data room to a path that must not exist yet, in the clear. When it
// fails, nothing is left there.
func layOut(
	ctx context.Context, store *data.Store, key grid.JobKey, in grid.Input, path string,
) error {
	if key == "" {
		return store.Export(ctx, in.CID, path)
	}
	ref, err := store.Stat(in.CID)
	if err != nil {
		return err
	}
	plain, err := inClear(ctx, store, key, in.CID)
	if err != nil {
		return err
	}
	defer func() { _ = plain.Close() }() // only read from
	if in.Dir {
		return crypt.Unpack(plain, path, ref.Bytes)
	}
	mode := os.FileMode(0o600)
	if ref.Executable {
		mode = 0o700
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return fmt.Errorf("lay out: %w", err)
	}
	_, err = io.Copy(f, plain)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

// AddEncrypted stores what a reader gives as one file, encrypted for a job.
func (a *Agent) AddEncrypted(
	ctx context.Context, key grid.JobKey, plain io.Reader, executable bool,
) (data.Ref, error) {
	r, err := crypt.Encrypt(key, plain)
	if err != nil {
		return data.Ref{}, err
	}
	return a.data.Add(ctx, data.Source{Content: r, Executable: executable})
}

// OpenContent reads a file of the data room that was encrypted with a job's key.
func (a *Agent) OpenContent(
	ctx context.Context, key grid.JobKey, cid grid.CID,
) (io.ReadCloser, error) {
	return inClear(ctx, a.data, key, cid)
}

// checkContent says whether what has come for a job is whole and the job's own.
func (a *Agent) checkContent(ctx context.Context, key grid.JobKey, cid grid.CID) error {
	if key == "" {
		return nil
	}
	plain, err := inClear(ctx, a.data, key, cid)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, plain)
	return errors.Join(err, plain.Close())
}
