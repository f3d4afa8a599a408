package site

import (
	"maps"
	"math"
	"slices"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// timerVacancy collects what became free in a short while.
const timerVacancy = "vacancy"

// grown notes that there is more room than before. Those who wait are told a
// little later, so that a burst of exits makes one message.
func (m *Machine) grown() {
	if m.vacancyDue {
		return
	}
	m.vacancyDue = true
	m.emit(step.SetTimer{Key: step.TimerKey{Name: timerVacancy}, At: m.now.Add(vacancyDelay)})
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
// recently announced first. A site that is closed says nothing; it will when it
// opens.
func (m *Machine) onVacancyTimer() {
	if !m.vacancyDue {
		m.report(step.LevelDebug, eventStale, step.Report{Text: "timer " + timerVacancy})
		return
	}
	m.vacancyDue = false
	if _, closed := m.closed(); closed {
		return
	}
	free := m.plan.Free(m.now, m.now.Add(1))
	free.MFLOPS = math.MaxInt64 // soft: less of it only takes longer
	fitting := make(map[grid.SiteID][]grid.JobID)
	for _, job := range m.cache.Waiting(m.now) {
		entry, ok := m.cache.Peek(m.now, job)
		if !ok || len(fitting[entry.Submitter]) >= maxVacancies {
			continue
		}
		if entry.Value.Map == grid.MapThesis && !free.Fits(entry.Value.Need) {
			continue // the usual case, told apart without asking the plan
		}
		if _, _, fits := m.quote(entry.Value, inquiry{job: job, submitter: entry.Submitter, count: 1}); fits {
			fitting[entry.Submitter] = append(fitting[entry.Submitter], job)
		}
	}
	for _, submitter := range slices.Sorted(maps.Keys(fitting)) {
		jobs := fitting[submitter]
		m.send(submitter, protocol.Vacancy{Jobs: jobs})
		m.report(step.LevelDebug, eventVacancySent, step.Report{Site: submitter, Value: float64(len(jobs))})
	}
}
