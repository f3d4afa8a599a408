package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/jobfile"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// upload stores what a plan needs and gives the job.
func (a *app) upload(ctx context.Context, plan *jobfile.Plan) (grid.Job, error) {
	return a.uploadFinding(ctx, plan, func(ref jobfile.Ref) (grid.JobID, error) {
		return a.findNamed(ctx, ref)
	})
}

// uploadFinding does so with other jobs named in another way.
func (a *app) uploadFinding(
	ctx context.Context, plan *jobfile.Plan, find func(jobfile.Ref) (grid.JobID, error),
) (grid.Job, error) {
	for _, note := range plan.File.Notes {
		a.say("%s", note)
	}
	if err := plan.Complete(find); err != nil {
		return grid.Job{}, err
	}
	if err := a.warnOfClocks(ctx, plan.File.Spec.Window); err != nil {
		return grid.Job{}, err
	}
	stored, err := a.storeAll(ctx, plan)
	if err != nil {
		return grid.Job{}, err
	}
	return plan.Job(stored)
}

// storeAll stores what a plan needs.
func (a *app) storeAll(ctx context.Context, plan *jobfile.Plan) ([]jobfile.Stored, error) {
	if plan.File.Encrypt {
		plan.KeyName = rand.Text()
	}
	stored := make([]jobfile.Stored, 0, len(plan.Sources))
	shown := a.newTransfer(plan.Sources)
	for _, source := range plan.Sources {
		ref, err := a.store(ctx, source, plan.KeyName, shown)
		if err != nil {
			return nil, err
		}
		stored = append(stored, jobfile.Stored{CID: ref.CID, Bytes: ref.Bytes, Dir: ref.Dir})
	}
	shown.end()
	return stored, nil
}

func (a *app) store(
	ctx context.Context, source jobfile.Source, keyName string, shown *transfer,
) (view.DataRef, error) {
	if source.CID != "" {
		ref, err := a.client.StatData(ctx, source.CID)
		if errors.Is(err, view.ErrNotFound) {
			return ref, usage("input cid:%s: the agent no longer holds it; name the file instead",
				source.CID)
		}
		return ref, err
	}
	body, err := source.Open()
	if err != nil {
		return view.DataRef{}, fmt.Errorf("upload input: %w", err)
	}
	defer func() { _ = body.Close() }() // only read from
	counted := shown.reader(body)
	var ref view.DataRef
	switch {
	case keyName != "":
		u := view.Upload{Tar: source.Dir, Executable: source.Executable}
		ref, err = a.client.PutEncrypted(ctx, keyName, u, counted)
	case source.Executable:
		ref, err = a.client.PutExecutable(ctx, counted)
	default:
		ref, err = a.client.PutData(ctx, source.Dir, counted)
	}
	if err != nil {
		return ref, fmt.Errorf("upload %s: %w", source.Path, err)
	}
	return ref, nil
}

// skewLimit is from which on a difference of clocks matters to a start that was
// asked for: sites keep times by the submitter's clock, and one of the two is wrong.
const skewLimit = 500 * time.Millisecond

// warnOfClocks says whose clock is wrong, or that ours is, when a time is asked for.
func (a *app) warnOfClocks(ctx context.Context, w grid.Window) error {
	if !w.Promised() {
		return nil
	}
	sites, err := a.client.Sites(ctx)
	if err != nil {
		return err
	}
	for _, s := range sites {
		if s.Connected && s.SkewSeconds != nil && math.Abs(*s.SkewSeconds) >= skewLimit.Seconds() {
			a.say("warning: the clock of %s differs from this one by %s, by which times are kept; "+
				"make sure that this one is right, set clocks by NTP",
				clean(nameOf(s.Name, s.ID)), skew(s.SkewSeconds))
		}
	}
	return nil
}
