package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/api/client"
	"github.com/mrsmesh/mrsmesh/internal/localmesh"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

const (
	wanted   = 10               // jobs with a deadline
	possible = 6                // that three sites can run in time: two each
	deadline = 14 * time.Second // of all of them
	estimate = 5 * time.Second  // of each: a third one on a site would end after 15 s
	nap      = 2 * time.Second
	atOnce   = 3 * time.Second // a refusal comes sooner than that

	ahead       = 10 * time.Second // the reservation begins so much later
	length      = 6 * time.Second
	crowd       = 24 // best-effort tasks that fill the sites meanwhile
	crowdNap    = 1500 * time.Millisecond
	crowdTakes  = 2500 * time.Millisecond // as estimated
	startSlack  = time.Second             // how late the bound job may start
	ttl         = 300 * time.Millisecond
	moduleBytes = 4 << 10
	limit       = time.Minute // for anything to happen
)

// story holds what is submitted and what came of it.
type story struct {
	api   *client.Client
	out   *localmesh.Screen
	rows  []row
	start started
}

// row is one job with a deadline.
type row struct {
	id       grid.JobID
	due      time.Time
	answered time.Duration // after it was submitted
	refused  bool
	earliest view.Time // that could be kept, of a refused one
	by       string    // who could, or who ran it
	kept     *float64  // how likely the site stays, as it said
	ended    time.Time
}

// started tells what became of the job in the reservation.
type started struct {
	reservation view.Reservation
	at          time.Time
	before      int // best-effort tasks that began at the same site before
}

// job sleeps for that long on a whole core.
func (s *story) job(
	ctx context.Context, name string, sleeps, takes time.Duration,
) (grid.Job, error) {
	ref, err := s.api.PutData(
		ctx, false, bytes.NewReader(localmesh.Sleeper(name, sleeps, moduleBytes)),
	)
	if err != nil {
		return grid.Job{}, fmt.Errorf("upload program: %w", err)
	}
	return grid.Job{
		Spec: grid.Spec{
			Name: name, Kind: grid.KindWasm, Module: grid.Input{CID: ref.CID, Bytes: ref.Bytes},
			Need:    need(),
			Runtime: takes, Weights: grid.DefaultWeights(),
		},
		Count: 1, TTL: ttl,
	}, nil
}

func need() grid.Resources {
	return grid.Resources{MilliCPUs: 1000, MemoryBytes: 128 << 20, DiskBytes: 8 << 20, MFLOPS: 2000}
}

// deadlines submits jobs one after the other, each when the one before was answered,
// and waits until those that were taken have ended.
func (s *story) deadlines(ctx context.Context) error {
	due := time.Now().Add(deadline).Round(time.Millisecond)
	s.out.Say("submitting %d jobs of %s each that are due at %s; three sites can run %d in time",
		wanted, estimate, due.Format(time.TimeOnly), possible)
	for i := range wanted {
		job, err := s.job(ctx, fmt.Sprintf("due-%d", i+1), nap, estimate)
		if err != nil {
			return err
		}
		job.Spec.Window.Deadline = due
		r := row{due: due}
		asked := time.Now()
		if r.id, err = s.api.Submit(ctx, job); err != nil {
			return fmt.Errorf("submit: %w", err)
		}
		seen, err := s.await(ctx, r.id, "an answer", placedOrEnded)
		if err != nil {
			return err
		}
		r.answered, r.refused = time.Since(asked), seen.Phase == view.PhaseRefused
		if err := s.explain(ctx, &r); err != nil {
			return err
		}
		s.rows = append(s.rows, r)
	}
	for i := range s.rows {
		if s.rows[i].refused {
			continue
		}
		if err := s.awaitEnd(ctx, &s.rows[i]); err != nil {
			return err
		}
	}
	s.showDeadlines()
	return nil
}

func placedOrEnded(v view.JobView) bool {
	return v.Phase != view.PhaseAnnounced && v.Phase != view.PhaseWaiting
}

func ended(v view.JobView) bool { return v.Phase.Ended() }

// explain fills in what the sites said.
func (s *story) explain(ctx context.Context, r *row) error {
	offers, err := s.api.Offers(ctx, r.id)
	if err != nil {
		return fmt.Errorf("ask for the offers: %w", err)
	}
	for _, o := range offers.Rows {
		s.out.Detail("  %s: %s %s", o.Name, o.Refusal, o.Finish.Local().Format(time.TimeOnly))
		if !o.CouldPromise.IsZero() && (r.earliest.IsZero() || o.CouldPromise.Before(r.earliest.Time)) {
			r.earliest, r.by = o.CouldPromise, o.Name
		}
	}
	return nil
}

// awaitEnd waits for a job that was taken and notes who ran it.
func (s *story) awaitEnd(ctx context.Context, r *row) error {
	if _, err := s.await(ctx, r.id, "its end", ended); err != nil {
		return err
	}
	tasks, err := s.api.AllTasks(ctx, r.id)
	if err != nil {
		return fmt.Errorf("ask for the tasks: %w", err)
	}
	if len(tasks) != 1 || tasks[0].Phase != view.PhaseDone {
		return fmt.Errorf("job %s did not end well: %+v", r.id, tasks)
	}
	r.by, r.kept, r.ended = tasks[0].SiteName, tasks[0].Kept, tasks[0].Ended.Time
	return nil
}

// reservation fills all sites, reserves a core at one of them and lets a job run in
// it.
func (s *story) reservation(ctx context.Context) error {
	many, err := s.job(ctx, "crowd", crowdNap, crowdTakes)
	if err != nil {
		return err
	}
	many.Count = crowd
	crowdID, err := s.api.Submit(ctx, many)
	if err != nil {
		return fmt.Errorf("submit: %w", err)
	}
	s.out.Say("%d best-effort tasks fill the sites", crowd)
	if _, err = s.await(
		ctx, crowdID, "the first of them to run",
		func(v view.JobView) bool { return v.Tasks[view.PhaseRunning] > 0 },
	); err != nil {
		return err
	}
	held, err := s.reserve(ctx)
	if err != nil {
		return err
	}
	bound, err := s.job(ctx, "bound", nap, length-startSlack)
	if err != nil {
		return err
	}
	bound.Spec.Reservation = held.ID
	id, err := s.api.Submit(ctx, bound)
	if err != nil {
		return fmt.Errorf("submit: %w", err)
	}
	s.out.Say("job %s is bound to it", id)
	if _, err = s.await(ctx, id, "its end", ended); err != nil {
		return err
	}
	tasks, err := s.api.AllTasks(ctx, id)
	if err != nil {
		return fmt.Errorf("ask for the tasks: %w", err)
	}
	if tasks[0].Phase != view.PhaseDone {
		return fmt.Errorf(
			"the job in the reservation: %s %s %s", tasks[0].Phase, tasks[0].Cause, tasks[0].Text,
		)
	}
	s.start = started{reservation: held, at: tasks[0].Started.Time}
	if s.start.before, err = s.begunBefore(ctx, crowdID, held); err != nil {
		return err
	}
	s.showReservation()
	return nil
}

// reserve asks for a core for some time from a while on, and waits until it is held.
func (s *story) reserve(ctx context.Context) (view.Reservation, error) {
	job := grid.Job{
		Spec: grid.Spec{
			Name: "held", Kind: grid.KindReservation, Need: need(), Runtime: length,
			Weights: grid.DefaultWeights(),
			Window:  grid.Window{At: time.Now().Add(ahead).Round(time.Millisecond)},
		},
		Count: 1, TTL: ttl,
	}
	id, err := s.api.Submit(ctx, job)
	if err != nil {
		return view.Reservation{}, fmt.Errorf("reserve: %w", err)
	}
	seen, err := s.await(ctx, id, "the reservation", func(v view.JobView) bool {
		return v.Phase == view.PhaseHeld || v.Phase == view.PhaseOpen || v.Phase.Ended()
	})
	if err != nil {
		return view.Reservation{}, err
	}
	if seen.Phase != view.PhaseHeld {
		return view.Reservation{}, fmt.Errorf("the reservation is %s: %v", seen.Phase, seen.Reasons)
	}
	all, err := s.api.Reservations(ctx)
	if err != nil {
		return view.Reservation{}, fmt.Errorf("ask for the reservations: %w", err)
	}
	for _, r := range all {
		if r.ID == id && len(r.Places) == 1 {
			s.out.Say(
				"reserved a core of %s from %s on%s", r.Places[0].SiteName,
				r.Start.Local().Format(time.TimeOnly), keptText(r.Kept),
			)
			return r, nil
		}
	}
	return view.Reservation{}, errors.New("the reservation is not listed")
}

// begunBefore counts the tasks that began at the reservation's site before it.
func (s *story) begunBefore(
	ctx context.Context, id grid.JobID, held view.Reservation,
) (int, error) {
	tasks, err := s.api.AllTasks(ctx, id)
	if err != nil {
		return 0, fmt.Errorf("ask for the tasks: %w", err)
	}
	n := 0
	for _, t := range tasks {
		if t.Site == held.Places[0].Site && !t.Started.IsZero() && t.Started.Before(held.Start.Time) {
			n++
		}
	}
	return n, nil
}

// await asks for a job's status until it holds.
func (s *story) await(
	ctx context.Context, id grid.JobID, what string, holds func(view.JobView) bool,
) (view.JobView, error) {
	var seen view.JobView
	err := localmesh.Await(ctx, limit, what, func(ctx context.Context) (bool, error) {
		detail, err := s.api.Job(ctx, id)
		if err != nil {
			return false, err
		}
		seen = detail.Status
		s.out.Progress("job %s: %s", id, seen.Phase)
		return holds(seen), nil
	})
	if err != nil {
		return seen, fmt.Errorf("job %s: %w (%s %s)", id, err, seen.Phase, seen.Hint)
	}
	return seen, nil
}
