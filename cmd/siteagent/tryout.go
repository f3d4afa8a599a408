package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mrsmesh/mrsmesh/internal/agent"
	"github.com/mrsmesh/mrsmesh/internal/agent/backend"
	"github.com/mrsmesh/mrsmesh/internal/config"
	"github.com/mrsmesh/mrsmesh/internal/obs"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/yield"
)

// Patience of a try.
const (
	checkWait  = 10 * time.Second // with the first offer
	checkPause = 200 * time.Millisecond
)

// tryOut lets the site live for a moment, asks the inviter what arrives, and says what
// came of it.
func (j *joining) tryOut(ctx context.Context, out io.Writer) error {
	log, err := obs.NewLogger(os.Stderr, j.config.Log.Format, "error")
	if err != nil {
		return usageError{err}
	}
	tried := j.config
	tried.Commands = config.CommandsUnbounded // none is run, and only the agent can have them held
	settings, err := assemble(ctx, tried, nil, obs.NewRegistry(), log)
	if err != nil {
		return err
	}
	a, err := agent.New(ctx, settings)
	if err != nil {
		return err
	}
	live, end := context.WithTimeout(ctx, checkWait)
	defer end()
	group := &errgroup.Group{}
	group.Go(func() error { return a.Run(live) })
	result, status := askUntil(live, backend.New(a))
	end()
	if err = errors.Join(group.Wait(), a.Close()); err != nil {
		return err
	}
	next := ""
	if !j.wishes.service {
		next = "; start the site with: " + j.place.Start()
	}
	fmt.Fprintf(j.notes, "checked %.1f s after the start of join%s\n",
		time.Since(j.began).Seconds(), next)
	quiet := quietly(status, time.Now())
	normal := !result.Arrive && quiet != ""
	err = j.form.print(out, j.joined(result), func() error {
		if !normal {
			return explainCheck(out, result)
		}
		_, failed := fmt.Fprintf(out, "You are in. %s that is normal.\n", quiet)
		return failed
	})
	if err == nil && !result.Arrive && !normal {
		err = errDiffers
	}
	return err
}

// joined is the site that has joined, as programs read it.
func (j *joining) joined(check view.CheckResult) madeSite {
	return madeSite{
		Site: j.identity.Site(), Name: j.config.Name, Domain: j.token.Domain, File: j.file,
		State: j.config.StateDir, Check: &check,
	}
}

// askUntil asks again until the offers arrive, the site has a good reason to make none,
// or the time is over.
func askUntil(ctx context.Context, b *backend.Backend) (view.CheckResult, view.AgentStatus) {
	var last view.CheckResult
	for {
		result, err := b.Check(ctx)
		if err == nil && result.Arrive {
			return result, view.AgentStatus{}
		}
		if result.Site != "" || last.Site == "" {
			last = result // that somebody answered once says more than that nobody does in the end
		}
		status, unknown := b.Status(ctx)
		reached := err == nil && result.Site != ""
		if unknown == nil && reached && quietly(status, time.Now()) != "" {
			return result, status
		}
		select {
		case <-ctx.Done():
			return last, status
		case <-time.After(checkPause):
		}
	}
}

// quietly says why a site that is as it should be makes no offers now; empty: it should.
func quietly(s view.AgentStatus, now time.Time) string {
	switch {
	case len(s.Kinds) == 0 && !s.Started.IsZero():
		return "This machine runs no jobs and offers nothing, but it can submit them;"
	case s.Owner != nil && s.Owner.Busy:
		if why, hours := strings.CutPrefix(ownerBusy(s, now), "no: you "); hours {
			return "You " + why + ", so it offers nothing now;"
		}
		if s.Owner.Why == yield.WhyBattery {
			return "Your machine runs on battery now, so it offers nothing;"
		}
		if s.Owner.Why == yield.WhyMetered {
			return "Your connection is metered now (owner.metered), so it offers nothing;"
		}
		if said, hot := strings.CutPrefix(s.Owner.Why, yield.WhyHeat); hot {
			return "It is too hot now (" + said + "), so it offers nothing;"
		}
		if strings.HasPrefix(s.Owner.Why, yield.WhyInput) {
			return "You are at your machine now (owner.input), so it offers nothing;"
		}
		if said, asked := strings.CutPrefix(s.Owner.Why, yield.WhyHook); asked {
			return "Your program owner.hook pauses it now (" + said + "), so it offers nothing;"
		}
		return "Your machine is busy now, so it offers nothing;"
	case s.Machine != nil && strings.HasPrefix(s.Machine.Pending, waitingForQuiet):
		return "Your machine is busy now, so it offers nothing;" // it could not even be measured
	default:
		return ""
	}
}
