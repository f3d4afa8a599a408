package agent

import (
	"context"
	"fmt"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// A member holds the data that who acts for the owner asks it to hold, within what its site keeps
// for another owner.

// mostKeeping questions of other members are worked on at a time.
const mostKeeping = 4 * keepRounds

// pinTable pins what is here of the jobs that the group's table has.
func (j *jobs) pinTable() {
	m := j.seen()
	if m == nil {
		return
	}
	for _, id := range m.Jobs() {
		for _, cid := range m.Data(id) {
			if ref, err := j.a.data.Stat(cid); err == nil {
				j.content.held[id] = true
				j.known(m, id)
				j.stock.take(id, cid, ref.Bytes)
				j.a.pins.hold(jobOwner(id), cid)
			}
		}
	}
}

// onKeep keeps data for the group, or lets it go.
func (j *jobs) onKeep(from grid.SiteID, m protocol.Keep) {
	if !j.assembly.certificate.Names(from) {
		j.a.reports.count("group_stranger")
		return
	}
	if m.Release {
		j.a.release(m.Job)
		j.stock.release(m.Job)
		delete(j.content.held, m.Job)
		return
	}
	j.a.readers.belong(jobOwner(m.Job), j.owner)
	j.a.readers.admit(jobOwner(m.Job), m.Awarded...)
	j.a.pins.drop(jobOwner(m.Job), m.Dropped)
	for _, cid := range m.Dropped {
		j.stock.drop(m.Job, cid)
	}
	if len(m.CIDs) == 0 {
		return
	}
	answer := protocol.Kept{Owner: j.owner, Number: m.Number}
	if j.keeping >= mostKeeping {
		answer.Problem = "too much is asked for at a time"
		j.a.sendQuietly(from, answer)
		return
	}
	j.keeping++
	j.content.held[m.Job] = true
	sources := append([]grid.SiteID{from}, j.others()...)
	j.a.spawn(func() {
		answer.Problem = j.keep(m, sources)
		j.a.sendQuietly(from, answer)
		j.soon(func() { j.keeping-- })
	})
}

// keep fetches and pins data, within what this site keeps for an owner.
func (j *jobs) keep(m protocol.Keep, sources []grid.SiteID) (problem string) {
	for _, cid := range m.CIDs {
		if err := j.keepOne(m.Job, cid, sources); err != nil {
			return short(err.Error())
		}
		j.a.pins.hold(jobOwner(m.Job), cid)
	}
	return ""
}

// keepOne fetches data that is not here, unless this site then keeps too much for another owner.
func (j *jobs) keepOne(job grid.JobID, cid grid.CID, sources []grid.SiteID) error {
	ctx, cancel := context.WithTimeout(j.a.ctx, collectTimeout)
	defer cancel()
	tooMuch := false
	_, err := j.a.data.Fetch(ctx, cid, sources, func(done, total int64) {
		if !j.stock.take(job, cid, max(done, total)) {
			tooMuch = true
			cancel()
		}
	})
	if ref, wrong := j.a.data.Stat(cid); err == nil && wrong == nil {
		tooMuch = !j.stock.take(job, cid, ref.Bytes) // it may have been here
	}
	if tooMuch || err != nil {
		j.stock.drop(job, cid)
	}
	if tooMuch {
		return fmt.Errorf("%w: together more than the %s that this site keeps for another owner",
			grid.ErrInvalid, grid.FormatBytes(j.stock.most))
	}
	return err
}
