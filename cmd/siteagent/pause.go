package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/api/client"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

func pauseCommand(o *options) *cobra.Command {
	var leave bool
	var stopAfter, at string
	cmd := order(o, "pause [1h]", "Take no new work",
		`Take no new work, for a while or until siteagent resume. Running jobs go on;
siteagent stop --now moves them. With --after-checkpoint those that save their state
move to other sites as soon as it is saved, and lose nothing by it; the others go on
until they end, or until the time that --stop-after gives them is over.

--at pauses another site, whose owner has put this one's ID under owner.remote. The
owner's own pause stays the owner's: from afar it is neither changed nor ended.`,
		func(
			ctx context.Context, c *client.Client, args []string,
		) (said string, now view.AgentStatus, err error) {
			p, err := pauseOrder(args, leave, stopAfter)
			if err != nil {
				return "", now, err
			}
			if at != "" {
				now, err = c.PauseAt(ctx, at, p)
				return pausedAfar(now, at, time.Now()), now, err
			}
			if err = sendPause(ctx, c, p); err != nil {
				return "", now, err
			}
			now, err = c.Status(ctx)
			return pausedText(now, time.Now()), now, err
		})
	atFlag(o, cmd, &at)
	cmd.Flags().BoolVar(&leave, "after-checkpoint", false,
		"move jobs that save their state to other sites, each when it is saved")
	cmd.Flags().StringVar(&stopAfter, "stop-after", "",
		"with --after-checkpoint: stop the other jobs then, such as 30m")
	return cmd
}

// pauseSpan reads a time, 0 if there is none.
func pauseSpan(name string, texts []string) (time.Duration, error) {
	if len(texts) == 0 || texts[0] == "" {
		return 0, nil
	}
	span, err := grid.ParseSpan(texts[0])
	if err != nil || span <= 0 {
		return 0, usageError{
			fmt.Errorf("%s: want a time such as 30m or 1h, have %q", name, texts[0]),
		}
	}
	return span, nil
}

func pauseOrder(args []string, leave bool, stopAfter string) (view.PauseOrder, error) {
	span, wrong := pauseSpan("pause", args)
	stop, err := pauseSpan("--stop-after", []string{stopAfter})
	if err = cmp.Or(wrong, err); err == nil && stop > 0 && !leave {
		err = usageError{fmt.Errorf("--stop-after: want --after-checkpoint with it; " +
			"siteagent stop --now stops all jobs")}
	}
	return view.PauseOrder{Span: span, Leave: leave, StopAfter: stop}, err
}

func sendPause(ctx context.Context, c *client.Client, p view.PauseOrder) error {
	if p.Leave {
		return c.Leave(ctx, p.Span, p.StopAfter)
	}
	return c.Pause(ctx, p.Span)
}

// pausedText says until when the site is paused, and what becomes of its jobs.
func pausedText(s view.AgentStatus, now time.Time) string {
	text := pausedUntil(s, now) + "; siteagent resume ends that"
	if more := pausedJobs(s, now); more != "" {
		text += "; " + more
	}
	return text
}

// pausedAfar is pausedText of another site.
func pausedAfar(s view.AgentStatus, at string, now time.Time) string {
	text := at + ": " + pausedUntil(s, now) + "; siteagent resume --at " + at + " ends that"
	if more := pausedJobs(s, now); more != "" {
		text += "; " + more
	}
	return text
}

// pausedUntil says until when a site is paused, and by whom if that came from afar.
func pausedUntil(s view.AgentStatus, now time.Time) string {
	text := "paused"
	if s.PausedBy != "" {
		text += " from afar by " + s.PausedBy
	}
	if !s.PausedUntil.IsZero() {
		text += " until " + dayText(s.PausedUntil.Time, now)
	}
	return text
}

// pausedJobs says what becomes of the jobs of a site that is paused, empty if it has none.
func pausedJobs(s view.AgentStatus, now time.Time) string {
	leave := 0
	for _, r := range s.Running {
		if r.Leaves != "" {
			leave++
		}
	}
	text := ""
	if leave > 0 {
		text = plural(leave, "job moves when it is saved and another site offers",
			"jobs move when they are saved and other sites offer")
	}
	if stay := len(s.Running) - leave; stay > 0 {
		if text != "" {
			text += ", "
		}
		text += plural(stay, "job goes on", "jobs go on")
		if !s.StopAt.IsZero() {
			text += " until " + dayText(s.StopAt.Time, now)
		}
	}
	return text
}

func resumeCommand(o *options) *cobra.Command {
	var at string
	cmd := order(o, "resume", "Take work again",
		`Take work again after siteagent pause. Jobs that were to leave and have not left stay.
--at does so at another site that was paused from afar.`,
		func(
			ctx context.Context, c *client.Client, _ []string,
		) (said string, now view.AgentStatus, err error) {
			if at != "" {
				now, err = c.ResumeAt(ctx, at)
				return at + ": resumed; sharing: " + sharingAfar(now, time.Now()), now, err
			}
			if err = c.Resume(ctx); err == nil {
				now, err = c.Status(ctx)
			}
			return "resumed", now, err
		})
	atFlag(o, cmd, &at)
	return cmd
}
