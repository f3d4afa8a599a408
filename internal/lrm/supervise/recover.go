package supervise

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
)

// No lease rests on these. A started agent says that its attempts have ended only after
// Recover has returned, and who does not hear it waits for the end of their leases, when the
// supervisors have frozen them, see grid.FreezeGrace.
const (
	recoverGrace = 3 * time.Second // for supervisors to end by themselves
	recoverHard  = 3 * time.Second // for those that were killed
	recoverPoll  = 10 * time.Millisecond
)

// Recover waits until every supervisor that the run record names is gone and
// kills those that do not end by themselves, as a stopped one cannot. Its runner
// then dies by the parent-death signal.
func Recover(ctx context.Context, recordPath string) error {
	records, err := lrm.ReadRecords(recordPath)
	if err != nil {
		return err
	}
	left := lrm.Unended(records)
	left, err = awaitGone(ctx, left, recoverGrace)
	if err != nil {
		return err
	}
	for _, rec := range left {
		if p, wrong := os.FindProcess(rec.Supervisor.PID); wrong == nil && alive(rec.Supervisor) {
			_ = p.Kill()
		}
	}
	left, err = awaitGone(ctx, left, recoverHard)
	if err != nil {
		return err
	}
	return stillThere(left)
}

// stillThere is the error for attempts that nothing could end.
func stillThere(left []lrm.Record) error {
	if len(left) == 0 {
		return nil
	}
	return fmt.Errorf("recover: %d attempts are still running, the first is %s under process %d: "+
		"kill it",
		len(left), left[0].Attempt, left[0].Supervisor.PID)
}

// awaitGone returns the records that still have a living supervisor after limit.
func awaitGone(
	ctx context.Context, records []lrm.Record, limit time.Duration,
) ([]lrm.Record, error) {
	deadline := time.Now().Add(limit)
	tick := time.NewTicker(recoverPoll)
	defer tick.Stop()
	for {
		var left []lrm.Record
		for _, rec := range records {
			if alive(rec.Supervisor) {
				left = append(left, rec)
			}
		}
		if len(left) == 0 || time.Now().After(deadline) {
			return left, nil
		}
		records = left
		select {
		case <-tick.C:
		case <-ctx.Done():
			return left, ctx.Err()
		}
	}
}
