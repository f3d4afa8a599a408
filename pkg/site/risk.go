package site

import (
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/avail"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// Outlook says how likely the site stays available for a time from now on, and how well
// founded that is.
type Outlook struct {
	For      time.Duration
	Up       float64 // probability, 0 to 1; z of a task that ends then is 1 minus it
	Sureness avail.Sureness
}

// outlookSpans are the times that Status tells the outlook for.
func outlookSpans() []time.Duration { return []time.Duration{time.Hour, 8 * time.Hour} }

// risk holds what z of this site is computed from.
type risk struct {
	since   time.Time                 // when it booted: before anything was learned its age counts
	learned *step.AvailabilityLearned // nil: nothing yet
}

// onAvailability takes what the site has learned of its own availability.
func (m *Machine) onAvailability(in step.AvailabilityLearned) {
	if err := in.Model.Validate(); err != nil {
		m.out.Report(step.LevelWarn, eventInvalid, step.Report{Text: err.Error()})
		return
	}
	m.risk.learned = &in
	m.out.Report(step.LevelDebug, eventLearned, step.Report{Value: in.Model.Days})
}

// up is P(the site stays available for that long | up so long, this hour of the week),
// thesis 3.2 with the errors of its equations (3) to (9) put right. Before anything was
// learned it follows from the prior and the site's age alone.
func (m *Machine) up(next time.Duration) float64 {
	if m.risk.learned == nil {
		return m.cfg.Prior.Up(m.upFor(), next)
	}
	p, err := m.risk.learned.Model.Survival(m.query(next))
	if err != nil { // the model and the query were made to be valid
		return 0
	}
	return p
}

// upFor is the time since the site came up, as far as it has learned when that was.
func (m *Machine) upFor() time.Duration {
	since := m.risk.since
	if m.risk.learned != nil {
		since = m.risk.learned.Up
	}
	return max(m.now.Sub(since), 0)
}

// query asks the learned model about a time from now on.
func (m *Machine) query(next time.Duration) avail.Query {
	in := m.risk.learned
	return avail.Query{
		Week: avail.WeekSecond(m.now, in.Model.Zone),
		Up:   m.upFor().Seconds(), Free: max(m.now.Sub(in.Free), 0).Seconds(),
		For: max(next, 0).Seconds(),
	}
}

func (m *Machine) outlook(next time.Duration) Outlook {
	o := Outlook{For: next, Up: m.up(next), Sureness: avail.Sureness{High: 1}}
	if m.risk.learned != nil {
		o.Sureness, _ = m.risk.learned.Model.Sure(m.query(next))
	}
	return o
}
