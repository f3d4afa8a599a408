package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/p2p"
)

// errPending says that a person at the inviter has not decided about this site yet.
var errPending = errors.New("the inviter has not admitted this site yet")

// The inviter is asked again after a time that doubles from the first to the last.
const (
	firstAsked = time.Second
	lastAsked  = 15 * time.Second
)

// turnedAway is the number of times in a row that a site which waits may be turned away: too many
// others join then, or the inviter has banned this site, and does not tell.
const turnedAway = 3

// await asks the inviter again and again until it has decided, or the invitation has ended. The
// identity is kept: it is the one that the inviter sees and admits.
func (j *joining) await(ctx context.Context) (admission, error) {
	if err := j.saveIdentity(); err != nil {
		return admission{}, err
	}
	fmt.Fprintf(j.notes, "this site waits to be admitted: siteagent members shows it there as %s; "+
		"to let it in, there: siteagent admit %s\n", j.config.Name, j.identity.Site())
	fmt.Fprintf(j.notes, "waiting until %s; ^C stops waiting, and siteagent join with the same "+
		"token goes on\n", dayText(j.token.Expires, time.Now()))
	away, turned := false, 0
	for wait := firstAsked; ; wait = min(2*wait, lastAsked) {
		select {
		case <-ctx.Done():
			return admission{}, fmt.Errorf("%w; siteagent join with the same token goes on waiting",
				errPending)
		case <-time.After(wait):
		}
		admitted, err := j.redeemOnce(ctx, true)
		switch {
		case errors.Is(err, errPending), ctx.Err() != nil:
			away, turned = false, 0
		case errors.Is(err, p2p.ErrTurnedAway) && turned < turnedAway:
			turned++
		case errors.Is(err, p2p.ErrNotReached) && time.Now().Before(j.token.Expires):
			if !away {
				fmt.Fprintln(j.notes, "the inviter does not answer now; waiting on")
			}
			away, turned = true, 0
		default:
			return admitted, err
		}
	}
}
