package agent

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/standby"
)

// The owner of a group of jobs is a site: its agent says who stands by, takes its user's commands,
// and gets the lead back.

// commandPatience bounds the time that a command waits for who acts.
const commandPatience = 5 * time.Second

// errNotActing answers a command that would have to wait for too long.
var errNotActing = errors.New("no agent acts for your jobs at the moment")

func (j *jobs) holds() bool { return j.own() }

func (j *jobs) seat() grid.SiteID { return j.owner }

func (j *jobs) sign(text []byte) ([]byte, error) { return j.a.mesh.Sign(text) }

func (j *jobs) settings() any { return j.a.brokerSettings() }

func (j *jobs) wanted() int { return j.a.cfg.Standbys.Count }

// candidates are in an order that differs from owner to owner, so that none has all groups.
func (j *jobs) candidates() []grid.SiteID { return j.a.around.sites(j.owner) }

func (j *jobs) invite(site grid.SiteID, epoch uint64) {
	j.a.sendQuietly(site, protocol.StandbyAsk{Epoch: epoch, Facts: j.member.TableBytes()})
}

func (j *jobs) refuse(site grid.SiteID, reason string) {
	j.a.sendQuietly(site, protocol.StandbyAnswer{Reason: reason})
}

// mayRejoin reports whether the jobs of the group that others have can be taken up: not beside new
// ones, which that group cannot have.
func (j *jobs) mayRejoin(to grid.SiteID) bool {
	if !j.acts() || !j.hasNewJobs() {
		return true
	}
	j.a.reports.count("rejoin_waits") // asked again when the standby says so again
	j.log.Warn("standbys have jobs of an earlier life of this site; they are taken up when "+
		"those that were submitted here since have ended", "standby", string(to))
	return false
}

// hasNewJobs reports whether this agent has jobs that no group of an earlier life can have.
func (j *jobs) hasNewJobs() bool {
	return slices.ContainsFunc(j.seen().Jobs(), func(id grid.JobID) bool { return !j.before[id] })
}

func (j *jobs) tick() {
	j.expireCommands()
	if leader, _ := j.member.Leader(); !j.own() && j.siteOf(leader) == j.owner {
		j.returnedAt = time.Time{} // the owner has taken it; the next time it is offered again
	}
	j.giveBack()
	j.content.look(j)
}

// met tells an owner that is back who has acted for it. It may have the lead back as soon as it
// has been there for a moment, whatever became of it when it was offered before.
func (j *jobs) met(site grid.SiteID) {
	if site == j.owner && !j.own() {
		j.returnedAt = time.Time{}
		j.tellNews(site)
	}
}

// expireCommands refuses commands for which nobody acts.
func (j *jobs) expireCommands() {
	if j.acts() || len(j.waiting) == 0 {
		j.waitsSince = time.Time{}
		return
	}
	now := j.clock.now()
	if j.waitsSince.IsZero() {
		j.waitsSince = now
	}
	if now.Sub(j.waitsSince) < commandPatience || !j.own() {
		return
	}
	j.waiting, j.waitsSince = nil, time.Time{}
	j.a.commands.fail(fmt.Errorf("%w: %w", view.ErrBusy, j.whyIdle()))
}

// whyIdle says why a command cannot be taken.
func (j *jobs) whyIdle() error {
	leader, _ := j.member.Leader()
	if site := j.siteOf(leader); leader != 0 && site != "" {
		return fmt.Errorf("%w: %s acts for you and hands over; try again", errNotActing, site)
	}
	var missing []grid.SiteID
	for _, site := range j.assembly.certificate.Sites() {
		if site != j.owner && !j.a.around.has(site) {
			missing = append(missing, site)
		}
	}
	if len(missing) == 0 {
		return fmt.Errorf("%w: this agent and its standbys agree on the one that does; try again",
			errNotActing)
	}
	return fmt.Errorf("%w: a majority of this agent and its standbys is needed, and %v cannot be "+
		"reached; wait for one of them, or submit recover --help", errNotActing, missing)
}

// giveBack hands the lead to the owner's agent when that is back and has all.
func (j *jobs) giveBack() {
	if j.own() || !j.acts() {
		return
	}
	now := j.clock.now()
	if !j.a.around.has(j.owner) {
		j.ownerSince = time.Time{}
		return
	}
	if j.ownerSince.IsZero() {
		j.ownerSince = now
	}
	if now.Sub(j.newsAt) > silentFor/6 {
		j.newsAt = now
		j.tellNews(j.owner)
	}
	id := j.memberOf(j.owner)
	back := mayReturn(now, j.ownerSince, j.returnedAt, j.member.Heard(id), j.idle)
	if id != 0 && back && j.member.CanLead(id) && j.content.given(j) {
		j.returnedAt = now
		j.step(standby.Transfer{To: id})
	}
}

// mayReturn reports whether an owner may have the lead back: it has been there for a moment, was
// not offered it just before, and is awake. A group that rests hears nobody for longer, and there
// is nothing to lose.
func mayReturn(now, since, offered, heard time.Time, rests bool) bool {
	return now.Sub(since) >= returnAfter && now.Sub(offered) >= returnAgain &&
		(rests || now.Sub(heard) <= awake)
}
