package backend

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/member"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// RotateKey gives the domain a new key and tells the members; see member.Links.Rotate.
func (b *Backend) RotateKey(
	ctx context.Context, from grid.DomainKey,
) (view.Rotation, error) {
	if err := b.needsKey(); err != nil {
		return view.Rotation{}, err
	}
	if from != "" {
		if err := from.Validate(); err != nil {
			return view.Rotation{}, fmt.Errorf("from: %w", err)
		}
	}
	done, err := b.links.Rotate(from)
	if done.Succession.Number > 0 {
		b.agent.Rotated() // also where not all could be written: the former key counts no more
	}
	if err != nil {
		return view.Rotation{}, rotationError(err)
	}
	v := view.Rotation{
		Domain: b.cfg.P2P.Domain, Former: done.Succession.Former, Key: done.Succession.Successor,
		Number: int(done.Succession.Number), Made: view.At(time.UnixMilli(done.Succession.MadeMS)),
		Sites:   int(done.Succession.Records),
		Revoked: inviteRows(done.Revoked, b.invitedNames(ctx)),
	}
	for _, i := range done.Withdrawn {
		v.Withdrawn = append(v.Withdrawn, view.LinkInvite{
			ID: i.ID, Name: i.Name, Created: view.At(i.Created), Expires: view.At(i.Expires),
		})
	}
	return v, nil
}

// rotationError names an error in the words of the API.
func rotationError(err error) error {
	if errors.Is(err, member.ErrLinked) || errors.Is(err, member.ErrNotKey) ||
		errors.Is(err, member.ErrKeyless) {
		return fmt.Errorf("%w: %w", view.ErrConflict, err)
	}
	return memberError(err)
}

// contestNotices says of each successor of the domain's key that is not followed what it means and
// what can be done.
func contestNotices(contests []member.Contest) []view.Notice {
	var notices []view.Notice
	for _, r := range contests {
		s := r.Succession
		if r.Followed == "" {
			notices = append(notices, view.Notice{
				Text: fmt.Sprintf("another site has rotated the domain's key, to %s", s.Successor),
				Cause: fmt.Sprintf("it has signed with %s, which is this site's domain.key",
					s.Former),
				Action: "if you moved the key to another machine, or restored an old copy " +
					"here, put the newest domain.key in its place and restart; if not, it was " +
					"stolen: siteagent domain rotate, and look which key the members have",
			})
			continue
		}
		notices = append(notices, view.Notice{
			Text: fmt.Sprintf("two successors of the domain's key are known: %s, which this site "+
				"follows, and %s", r.Followed, s.Successor),
			Cause: fmt.Sprintf("both were signed with %s, so somebody else has had that key",
				s.Former),
			Action: "ask who holds domain.key which one is right; if it is the other one: " +
				"siteagent config set domain-key " + string(s.Successor) + ", and restart",
		})
	}
	return notices
}
