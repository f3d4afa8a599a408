package backend

import (
	"context"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/agent"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Offers returns how the sites answered the last announcement of a job.
func (b *Backend) Offers(ctx context.Context, id grid.JobID) (view.OfferTable, error) {
	job, n, err := b.findJob(ctx, id)
	if err != nil {
		return view.OfferTable{}, err
	}
	members, err := b.membersNow(ctx)
	if err != nil {
		return view.OfferTable{}, err
	}
	return offerTable(job, members, n, b.agent.Now()), nil
}

// Rounds returns how the sites answered the last announcements of a job, oldest first.
func (b *Backend) Rounds(ctx context.Context, id grid.JobID) ([]view.OfferTable, error) {
	job, n, err := b.findJob(ctx, id)
	if err != nil {
		return nil, err
	}
	members, err := b.membersNow(ctx)
	if err != nil {
		return nil, err
	}
	return roundTables(job, b.agent.Rounds(id), members, n, b.agent.Now()), nil
}

// membersNow lists the other sites as the submitter's machine knows them.
func (b *Backend) membersNow(ctx context.Context) (members []broker.MemberState, err error) {
	err = b.agent.AskBroker(ctx, func(m *broker.Machine) { members = m.Members() })
	return members, err
}

// roundTables are the tables of the rounds before the present one, and its own if any site has
// answered.
func roundTables(
	job broker.JobState, before []agent.Round, members []broker.MemberState, n names, now time.Time,
) []view.OfferTable {
	last := offerTable(job, members, n, now)
	tables := []view.OfferTable{}
	for _, round := range before {
		if round.Number >= last.Round && len(last.Rows) > 0 {
			break // it has had no answer yet, or this run of the machine counts anew
		}
		tables = append(tables, tableOf(round.State, round.Hosted, members, n, now))
	}
	if len(last.Rows) > 0 {
		tables = append(tables, last)
	}
	return tables[max(0, len(tables)-agent.KeptRounds):]
}

func offerTable(
	job broker.JobState, members []broker.MemberState, n names, now time.Time,
) view.OfferTable {
	return tableOf(job, job.Hosted(), members, n, now)
}

// tableOf is the table of a job's answers when sites have so many of its tasks.
func tableOf(
	job broker.JobState, awarded map[grid.SiteID]uint32, members []broker.MemberState, n names,
	now time.Time,
) view.OfferTable {
	table := view.OfferTable{
		Job: job.ID, Members: 1, Map: job.Job.Spec.Map.String(), Answered: uint32(len(job.Answers)),
		Never: len(job.Answers) > 0, Rows: []view.OfferRow{}, Counterfactuals: []string{},
	}
	if job.Abroad != "" {
		table.Domains = strings.Split(job.Abroad, "; ")
	}
	faults := make(map[grid.SiteID]int)
	for _, m := range members {
		faults[m.Site] = faultRow(m).Index
		if m.Connected || now.Sub(m.LastSeen) < time.Minute {
			table.Members++
		}
	}
	var refusals []grid.Refusal
	for i, answer := range job.Answers {
		row := answerRow(answer, job.Ranks[i], n).Timed(answer.At, promised(job.Job.Spec))
		row.FaultIndex, row.Awarded = faults[answer.Site], awarded[answer.Site]
		lag := job.Behind[i]
		row.Behind = view.Behind(lag.Dimension, lag.Value, lag.Nearest)
		table.Rows = append(table.Rows, row)
		table.Round = max(table.Round, answer.Seq)
		table.Never = table.Never && answer.Offer == nil && answer.Refusal.Never
		if at := view.At(answer.At); table.Asked.IsZero() || answer.At.Before(table.Asked.Time) {
			table.Asked = at
		}
		if answer.Offer == nil {
			refusals = append(refusals, answer.Refusal)
		}
	}
	table.Counterfactuals = append(table.Counterfactuals, view.Counterfactuals(refusals)...)
	return table
}

func answerRow(answer broker.Answer, rank int, n names) view.OfferRow {
	if answer.Offer == nil {
		row := view.FromRefusal(answer.Site, n[answer.Site], answer.Refusal)
		row.CouldPromise = view.CouldPromise(answer.Refusal, answer.At)
		return row
	}
	row := view.FromOffer(*answer.Offer, n[answer.Site], rank)
	row.EarliestStart = view.At(answer.At.Add(answer.Offer.Parts.Wait))
	return row
}
