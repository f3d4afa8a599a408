package site

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// timerVacancy collects what became free in a short while.
const timerVacancy = "vacancy"

// The pauses before those who were not told of room have their turn.
const (
	vacancyAgain   = 200 * time.Millisecond
	vacancyLongest = 30 * time.Second
)

// grown notes that there is more room than before. Those who wait are told a
// little later, so that a burst of exits makes one message.
func (m *Machine) grown() {
	m.vacancyPause = vacancyAgain
	m.tellRoom(vacancyDelay)
}

// unnamed sees to it that those who were not told have their turn, should there
// still be room a while later: those who were told may have found another place.
func (m *Machine) unnamed() {
	m.tellRoom(m.vacancyPause)
	m.vacancyPause = min(2*m.vacancyPause, vacancyLongest)
}

// tellRoom sets the timer, unless it fires earlier anyway.
func (m *Machine) tellRoom(after time.Duration) {
	at := m.now.Add(after)
	if !m.vacancyAt.IsZero() && !m.vacancyAt.After(at) {
		return
	}
	m.vacancyAt = at
	m.out.SetTimer(timerVacancy, "", at)
}

// freedShare notes that somebody has less of what is shared out, attempts or open
// offers. It only matters if somebody was refused for having his share.
func (m *Machine) freedShare() {
	if m.shareRefused {
		m.shareRefused = false
		m.grown()
	}
}

// onVacancyTimer names to each submitter its waiting jobs that fit now, least
// recently announced first, but no more than could fill the room twice: to call
// everybody for one place makes many offers that are declined in the end. A site
// that is closed says nothing; it will when it opens.
func (m *Machine) onVacancyTimer() {
	if m.vacancyAt.IsZero() {
		m.out.Report(step.LevelDebug, eventStale, step.Report{Text: "timer " + timerVacancy})
		return
	}
	m.vacancyAt = time.Time{}
	if _, closed := m.closed(); closed {
		return
	}
	free := m.plan.Free(m.now, m.now.Add(1))
	free.MFLOPS = math.MaxInt64 // soft: less of it only takes longer
	seats := free.Add(free)
	seats.MFLOPS = math.MaxInt64
	fitting := make(map[grid.SiteID][]grid.JobID)
	for _, job := range m.cache.Waiting(m.now) {
		entry, ok := m.cache.Peek(m.now, job)
		if !ok || len(fitting[entry.Submitter]) >= maxVacancies {
			continue
		}
		if entry.Value.Map == grid.MapThesis && !free.Fits(entry.Value.Need) {
			continue // the usual case, told apart without asking the plan
		}
		if _, _, fits := m.quote(entry.Value, inquiry{job: job, submitter: entry.Submitter, count: 1}); !fits {
			continue
		}
		if !seats.Fits(entry.Value.Need) {
			m.unnamed()
			break
		}
		seats = seats.Sub(entry.Value.Need)
		fitting[entry.Submitter] = append(fitting[entry.Submitter], job)
	}
	for _, submitter := range slices.Sorted(maps.Keys(fitting)) {
		jobs := fitting[submitter]
		m.out.Send(submitter, protocol.Vacancy{Jobs: jobs})
		m.out.Report(step.LevelDebug, eventVacancySent, step.Report{
			Site: submitter, Value: float64(len(jobs)),
		})
	}
}
