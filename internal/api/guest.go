package api

import (
	"strings"

	"github.com/mrsmesh/mrsmesh/internal/view"
)

// A guest of the page sees how far work is and where, and nothing of what is computed. Each form
// below names the fields that a guest gets: one that is added to internal/view later is left out
// until somebody lists it here. Texts that can quote a job, its files or what it printed are left
// out, or replaced by words that are chosen here. The name of a job is shown: its submitter chose
// it for people.

// guestStatus leaves out what is for the owner: settings, and what to do.
func guestStatus(status view.AgentStatus) view.AgentStatus {
	status.Configuration, status.Notices = nil, []view.Notice{}
	if status.Owner != nil {
		owner := *status.Owner
		owner.Hook = ""
		status.Owner = &owner
	}
	return status
}

// guestJob is the status of a job without the agent's sentences about it.
func guestJob(j view.JobView) view.JobView {
	return view.JobView{
		ID: j.ID, Name: j.Name, Kind: j.Kind, Phase: j.Phase, Count: j.Count, Tasks: j.Tasks,
		Submitted: j.Submitted, Started: j.Started, Ended: j.Ended, Code: j.Code,
		FailedIndex: j.FailedIndex, Moves: j.Moves, Offers: j.Offers, Hint: guestHint(j),
		Promise: guestPromise(j.Promise), After: j.After, For: j.For, Held: j.Held,
	}
}

// guestHint says why a job does not run, as far as its phase does.
func guestHint(j view.JobView) string {
	switch {
	case j.Phase == view.PhaseRefused:
		return "no site can take it"
	case j.Phase == view.PhaseSuspended:
		return "the owner of its site needs the machine"
	case j.Phase != view.PhaseWaiting || j.Hint == "":
		return ""
	case j.Held:
		return "held by its submitter"
	case len(j.After) > 0:
		return "waits for other jobs"
	default:
		return "waits until a site has capacity"
	}
}

// guestTask says how far a task is, and where: without its item, its outputs, and texts.
func guestTask(t view.TaskView) view.TaskView {
	g := view.TaskView{
		ID: t.ID, Index: t.Index, Phase: t.Phase, Site: t.Site, SiteName: t.SiteName,
		Domain: t.Domain, Distance: t.Distance, Token: t.Token, Started: t.Started, Ended: t.Ended,
		Planned: t.Planned, Kept: t.Kept, Promise: guestPromise(t.Promise), Progress: t.Progress,
		Saved: t.Saved, Code: t.Code, Cause: guestCause(t.Cause),
	}
	if t.Move != nil {
		g.Move = &view.MoveView{Phase: t.Move.Phase, Reason: t.Move.Reason}
	}
	for _, a := range t.Attempts {
		a.Cause, a.Text = guestCause(a.Cause), ""
		g.Attempts = append(g.Attempts, a)
	}
	for _, c := range t.Copies {
		c.Digest = "" // who guesses a result could confirm it by that
		g.Copies = append(g.Copies, c)
	}
	return g
}

// guestCause says how an attempt ended, without what follows the colon: a site's text may quote
// what the program printed.
func guestCause(cause string) string {
	kind, _, _ := strings.Cut(cause, ":")
	return kind
}

func guestPromise(p *view.PromiseView) *view.PromiseView {
	if p == nil {
		return nil
	}
	return &view.PromiseView{
		State: p.State, StartLateSeconds: p.StartLateSeconds, EndLateSeconds: p.EndLateSeconds,
	}
}

// guestTable has the map: how near each site is, and which refuse, for a reason by its number.
func guestTable(t view.OfferTable) view.OfferTable {
	g := view.OfferTable{
		Job: t.Job, Asked: t.Asked, Round: t.Round, Members: t.Members, Answered: t.Answered,
		Never: t.Never, Map: t.Map,
	}
	for _, o := range t.Rows {
		row := view.OfferRow{
			Site: o.Site, Name: o.Name, Rank: o.Rank, X: o.X, Y: o.Y, Z: o.Z,
			Distance: o.Distance, Seconds: o.Seconds, WaitSeconds: o.WaitSeconds,
			StageSeconds: o.StageSeconds, RunSeconds: o.RunSeconds, Further: o.Further,
			EarliestStart: o.EarliestStart, Start: o.Start, Finish: o.Finish, Kept: o.Kept,
			Firm: o.Firm, TasksNow: o.TasksNow, Awarded: o.Awarded, FaultIndex: o.FaultIndex,
			Reason: o.Reason, Never: o.Never,
		}
		if o.Rank == 0 {
			row.Refusal = o.Reason.String()
		}
		g.Rows = append(g.Rows, row)
	}
	return g
}
