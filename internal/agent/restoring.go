package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/crypt"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// pullTimeout bounds one attempt to fetch a checkpoint; its site tells of it again.
const pullTimeout = 5 * time.Minute

// pull brings a checkpoint of another site here, or says why it does not count.
func (a *Agent) pull(e step.Pull) step.Pulled {
	answer := step.Pulled{Attempt: e.Attempt, Number: e.Checkpoint.Number, CID: e.Checkpoint.CID}
	ctx, cancel := context.WithTimeout(a.ctx, pullTimeout)
	defer cancel()
	c := e.Checkpoint
	tooMuch := false
	_, err := a.data.Fetch(ctx, c.CID, []grid.SiteID{e.From}, func(done, _ int64) {
		if done > c.Bytes+fetchSlack(c.Bytes) { // it said to be smaller
			tooMuch = true
			cancel()
		}
	})
	switch {
	case tooMuch:
		answer.Reason = grid.ReasonSavedDamaged
		return answer
	case err != nil:
		answer.Problem = err.Error()
		_ = a.disk.lacked(err)
		return answer
	}
	if err := a.checkSeal(ctx, e, c); err != nil {
		answer.Reason, answer.Problem = refusal(err), err.Error()
		return answer
	}
	a.pins.hold(jobOwner(e.Attempt.Task.Job), c.CID)
	return answer
}

// fetchSlack bounds the nodes of a tree with so many bytes, which are fetched besides them.
func fetchSlack(n int64) int64 { return n/100 + 1<<20 }

// sealError says what is wrong with a checkpoint.
type sealError struct {
	reason grid.Reason
	text   string
}

func (e sealError) Error() string { return e.reason.String() + ": " + e.text }

// refusal is the reason in an error, ReasonNone if it is the machine's own trouble.
func refusal(err error) grid.Reason {
	if wrong, is := errors.AsType[sealError](err); is {
		return wrong.reason
	}
	return grid.ReasonNone
}

// checkSeal looks at the seal of a checkpoint that is here.
func (a *Agent) checkSeal(
	ctx context.Context, e step.Pull, c grid.Checkpoint,
) error {
	r, err := inClear(ctx, a.data, e.Key, c.CID)
	if err != nil {
		return sealError{grid.ReasonSavedDamaged, err.Error()}
	}
	defer r.Close()
	tail, total, err := readTail(r)
	if errors.Is(err, crypt.ErrDamaged) {
		return sealError{grid.ReasonSavedDamaged, err.Error()}
	}
	if err != nil {
		return fmt.Errorf("read checkpoint: %w", err)
	}
	_, err = matchSeal(tail, total, e.Attempt.Task, c, e.Work)
	return err
}

// readTail reads to the end and keeps what may be a seal.
func readTail(r io.Reader) (tail []byte, total int64, err error) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := r.Read(buffer)
		total += int64(n)
		tail = append(tail, buffer[:n]...)
		tail = tail[max(0, len(tail)-protocol.MaxSealBytes):]
		if errors.Is(err, io.EOF) {
			return tail, total, nil
		}
		if err != nil {
			return nil, total, err
		}
	}
}

// matchSeal reads a checkpoint's seal, or says why it is not the one that is wanted.
func matchSeal(
	tail []byte, total int64, task grid.TaskID, c grid.Checkpoint, work string,
) (protocol.Seal, error) {
	seal, err := protocol.ReadSeal(tail, total)
	if err != nil {
		return seal, sealError{grid.ReasonSavedDamaged, err.Error()}
	}
	want := protocol.Seal{Task: task, Number: c.Number, Work: work}
	if why := seal.Against(want); why != grid.ReasonNone {
		text := fmt.Sprintf("it is number %d of task %s", seal.Number, seal.Task)
		return seal, sealError{why, text}
	}
	return seal, nil
}

// layOutState fetches the first checkpoint that is whole for an attempt's program. Those that are
// not are noted. An error ends the attempt: it is the site's own trouble.
func (w *workshop) layOutState(
	ctx context.Context, e step.Stage, job *work, result *step.Staged,
) (moved int64, err error) {
	holder := attemptOwner(e.Attempt)
	for _, c := range e.Saved {
		got, err := w.a.data.FetchFor(ctx, job.tenant, c.CID, w.a.heeding.members(e.From), nil)
		moved += got.Bytes
		switch {
		case ctx.Err() != nil, err != nil && w.a.disk.lacked(err):
			return moved, fmt.Errorf("fetch checkpoint %d: %w", c.Number, err)
		case err != nil:
			w.refuseState(e, c, sealError{grid.ReasonSavedMissing, err.Error()}, result)
			continue
		}
		w.a.pins.charged(holder, job.tenant, c.CID)
		w.a.pins.hold(holder, c.CID)
		path := filepath.Join(job.dir, "state-"+strconv.FormatUint(c.Number, 10))
		if err = w.a.exportState(ctx, path, e, savedAs{c, job.key}); err == nil {
			job.statePath, result.Saved = path, c.Number
			return moved, nil
		}
		if refusal(err) == grid.ReasonNone {
			return moved, err
		}
		w.refuseState(e, c, err, result)
	}
	return moved, nil
}

func (w *workshop) refuseState(e step.Stage, c grid.Checkpoint, why error, result *step.Staged) {
	w.a.log.Warn("a checkpoint is refused",
		"attempt", e.Attempt.String(), "number", c.Number, "error", why)
	result.Refused = append(result.Refused,
		step.RefusedCheckpoint{Number: c.Number, Reason: refusal(why)})
}

// savedAs is a checkpoint and the key that opens it, if its job is encrypted.
type savedAs struct {
	grid.Checkpoint

	key grid.JobKey
}

// exportState writes a checkpoint's state, without its seal, to a file that is not there yet.
func (a *Agent) exportState(
	ctx context.Context, path string, e step.Stage, c savedAs,
) (err error) {
	if err = layOut(ctx, a.data, c.key, grid.Input{CID: c.CID}, path); err != nil {
		if ctx.Err() != nil || a.disk.lacked(err) {
			return fmt.Errorf("lay out checkpoint: %w", err)
		}
		return sealError{grid.ReasonSavedDamaged, err.Error()}
	}
	f, err := os.OpenFile(path, os.O_RDWR|plainFileOnly, 0) // a directory is none
	if err != nil {
		return sealError{grid.ReasonSavedDamaged, err.Error()}
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return fmt.Errorf("lay out checkpoint: %w", err)
	}
	tail := make([]byte, min(size, protocol.MaxSealBytes))
	if _, err = f.ReadAt(tail, size-int64(len(tail))); err != nil {
		return fmt.Errorf("lay out checkpoint: %w", err)
	}
	seal, err := matchSeal(tail, size, e.Attempt.Task, c.Checkpoint, e.Work)
	if err != nil {
		return err
	}
	return f.Truncate(seal.Bytes)
}
