package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

const reserveLong = `Hold capacity at a site from a time on, for jobs that are bound to it.

The sites are asked as for a job with a fixed start; the one that is expected to
serve it best promises the place, and the others are told that they are free again.
The verb ends when the reservation is held. It ends with code 4 when no site can
promise it, and says the earliest start that one could. STAYS gives the
probability that the site stays until the reservation ends.

A job runs in it with submit run --reservation ID, or reservation: ID in a job file.
What is not ended when the reservation is over is stopped. A reservation survives
restarts of this agent and of the site.`

// reserveFlags are the flags of reserve, which become a job file.
type reserveFlags struct {
	at, length, cpus, gflops, memory, disk, bandwidth, project, name, priority string
	count                                                                      uint32
	detach                                                                     bool
}

func (a *app) reserveCommand() *cobra.Command {
	var f reserveFlags
	cmd := &cobra.Command{
		Use:   "reserve --at TIME --for SPAN",
		Short: "Hold capacity from a time on, for jobs that are bound to it", Long: reserveLong,
		Example: `  submit reserve --at 14:00 --for 2h --cpus 4 --memory 8GiB
  submit reserve --at "mon 09:00" --for 30m --count 3 --name lecture
  submit run --reservation mfrg --wasm pi.wasm -- --digits 1000`,
		Args: exactly(0, "no argument"),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.reserve(cmd.Context(), f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.at, "at", "", `when it begins, such as 14:00, "tomorrow 09:00" or +30s`)
	flags.StringVar(&f.length, "for", "", "how long it lasts, such as 2h")
	flags.StringVar(&f.cpus, "cpus", "", "cores of each place (default 1)")
	flags.StringVar(&f.gflops, "gflops", "", "computation of each place (default 1)")
	flags.StringVar(&f.memory, "memory", "", "memory of each place (default 128MiB)")
	flags.StringVar(&f.disk, "disk", "", "scratch space of each place (default 64MiB)")
	flags.StringVar(&f.bandwidth, "bandwidth", "",
		"of the site's link, for each place, such as 20Mbit/s (default none)")
	flags.Uint32Var(&f.count, "count", 1, "number of such places")
	flags.StringVar(&f.project, "project", "", "whose share of a site it counts against")
	flags.StringVar(&f.name, "name", "", "name for people")
	flags.StringVar(&f.priority, "priority", "", "among your own jobs, higher goes first")
	flags.BoolVarP(&f.detach, "detach", "d", false, "do not wait until it is held")
	return cmd
}

// document is the flags as a job file.
func (f reserveFlags) document() (map[string]any, error) {
	if f.at == "" || f.length == "" {
		return nil, usage("want --at and --for, such as --at 14:00 --for 2h")
	}
	resources := map[string]any{}
	doc := map[string]any{
		"reserve": f.length, "start": map[string]any{"at": f.at},
		"count": strconv.FormatUint(uint64(f.count), 10), "resources": resources,
	}
	writeGiven([]given{
		{resources, "cpus", f.cpus},
		{resources, "gflops", f.gflops},
		{resources, "memory", f.memory},
		{resources, "disk", f.disk},
		{resources, "bandwidth", f.bandwidth},
		{doc, "project", f.project},
		{doc, "name", f.name},
		{doc, "priority", f.priority},
	})
	return doc, nil
}

func (a *app) reserve(ctx context.Context, f reserveFlags) error {
	doc, err := f.document()
	if err != nil {
		return err
	}
	plan, err := a.planOfDocument(doc)
	if err != nil {
		return err
	}
	id, _, err := a.hand(ctx, plan)
	if err != nil {
		return err
	}
	if !f.detach {
		if err = a.awaitHeld(ctx, id); err != nil {
			return err
		}
	}
	all, err := a.client.Reservations(ctx)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(all, func(r view.Reservation) bool { return r.ID == id })
	if at < 0 {
		return fmt.Errorf("reservation %s: %w", id, view.ErrNotFound)
	}
	if err := a.show(a.reservationsResult(all[at], all[at:at+1])); err != nil {
		return err
	}
	if !a.parsable {
		a.say("`submit run --reservation %s ...` runs in it, `submit release %s` gives it back.", id, id)
	}
	return nil
}

// awaitHeld waits until every place is held, or none can be.
func (a *app) awaitHeld(ctx context.Context, id grid.JobID) error {
	said := ""
	err := a.watch(ctx, id, func(v view.JobView) (bool, error) {
		switch v.Phase {
		case view.PhaseRefused:
			a.sayRefused(ctx, "reservation", v)
			return true, &codeError{code: exitNever}
		case view.PhaseReleased, view.PhaseCancelled, view.PhaseLost, view.PhaseFailed:
			return true, &codeError{code: exitOther, cause: fmt.Errorf("reservation %s was %s", id, v.Phase)}
		default:
		}
		if v.Hint != "" && v.Hint != said {
			a.say("%s", clean(v.Hint))
			said = v.Hint
		}
		open := v.Tasks[view.PhaseWaiting] + v.Tasks[view.PhaseAnnounced] + v.Tasks[view.PhaseAwarded] +
			v.Tasks[view.PhaseStaging]
		return open == 0, nil
	})
	if err != nil && ctx.Err() != nil {
		a.say(
			"\nthe reservation is still asked for; `submit reservations` shows it, `submit release %s` "+
				"withdraws it.",
			id,
		)
		return &codeError{code: exitDetached}
	}
	return err
}
