package agent

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/signed"
)

// startVouched starts an attempt. Where the owner runs signed work only, what lies ready is
// compared with what was signed right before: it may have lain there for hours.
func (w *workshop) startVouched(
	adapter lrm.Adapter, attempt lrm.Attempt, job *work,
) (lrm.Process, error) {
	if job.vouched {
		if err := w.vouchFor(w.a.ctx, attempt.Task, job); err != nil {
			return nil, fmt.Errorf("not started, as this site runs signed work only: %w", err)
		}
	}
	return adapter.Start(w.a.ctx, attempt)
}

// errNotSigned is about an attempt that is not what a listed signer has signed.
var errNotSigned = errors.New("this is not what was signed")

// vouchFor judges an attempt by the list that is in force now and by the files that it would run.
func (w *workshop) vouchFor(ctx context.Context, task grid.Task, job *work) error {
	keys, err := signed.NewKeys(w.a.Terms().Signers)
	if err != nil {
		return err
	}
	if reason := keys.Judge(task.Kind, task.Signature); reason != grid.ReasonNone {
		return errors.New(reason.String())
	}
	if task.Checkpoint.Whole && job.statePath != "" {
		return fmt.Errorf("%w: it would go on from a memory that nobody has signed", errNotSigned)
	}
	if task.Signature.Of == grid.SignedModule {
		return checkDigest(job.module, task.Signature.Digest)
	}
	if task.Module != "" {
		if err = w.a.data.Compare(ctx, task.Module, job.module); err != nil {
			return fmt.Errorf("%w: the module: %w", errNotSigned, err)
		}
	}
	for i, in := range task.Inputs {
		if err = w.a.data.Compare(ctx, in.CID, job.inputs[i].HostPath); err != nil {
			return fmt.Errorf("%w: the input %s: %w", errNotSigned, in.Path, err)
		}
	}
	return nil
}

// checkDigest hashes a file as it lies there.
func checkDigest(path, digest string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("read the module: %w", err)
	}
	defer func() { _ = f.Close() }() // only read from
	h := signed.Hash()
	if _, err = io.Copy(h, f); err != nil {
		return fmt.Errorf("read the module: %w", err)
	}
	if hex.EncodeToString(h.Sum(nil)) != digest {
		return fmt.Errorf("%w: the module is another one", errNotSigned)
	}
	return nil
}
