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

// The pauses before submitters that were not told of capacity have their turn.
const (
	vacancyAgain   = 200 * time.Millisecond
	vacancyLongest = 30 * time.Second
)

// vacancy says when waiting submitters are told that there is capacity.
type vacancy struct {
	at time.Time // when the timer fires; zero if it is not set

	// pause is the time until waiting submitters that were not told have their turn. It
	// doubles each time, up to vacancyLongest, and starts again when more capacity is free.
	pause time.Duration

	// shareRefused says that a submitter was refused because it had its share of the
	// attempts or offers, since any was last told. Only then does it matter that a share
	// has become smaller: the capacity as a whole has not grown by that.
	shareRefused bool

	// watchers were told what is free, and are told when it is more; at most maxWatchers.
	watchers map[grid.SiteID]watcher
}

// watcher is a submitter that was told what is free.
type watcher struct {
	probe grid.JobID // its last one
	until time.Time
}

// timerWatchers forgets those to whom nothing was promised any more.
const timerWatchers = "watchers"

// maxWatchers bounds the submitters that are told when more is free; others ask again.
const maxWatchers = 64

// promiseWord promises to tell a submitter once more is free, and reports false if too many wait
// for that.
func (m *Machine) promiseWord(c call) bool {
	m.forgetWatchers()
	watchers := m.vacancy.watchers
	if _, known := watchers[c.submitter]; !known && len(watchers) >= maxWatchers {
		return false
	}
	if watchers == nil {
		watchers = make(map[grid.SiteID]watcher)
		m.vacancy.watchers = watchers
	}
	until := m.now.Add(protocol.FreeHolds)
	watchers[c.submitter] = watcher{probe: c.job, until: until}
	m.out.SetTimer(timerWatchers, "", until) // the last of them
	return true
}

// forgetWatchers forgets those whose time is over.
func (m *Machine) forgetWatchers() {
	maps.DeleteFunc(m.vacancy.watchers, func(_ grid.SiteID, w watcher) bool {
		return !w.until.After(m.now)
	})
}

// tellWatchers has those that were told what is free ask again.
func (m *Machine) tellWatchers() {
	for _, site := range slices.Sorted(maps.Keys(m.vacancy.watchers)) {
		if w := m.vacancy.watchers[site]; w.until.After(m.now) {
			m.out.Send(site, protocol.Vacancy{Jobs: []grid.JobID{w.probe}})
		}
	}
	m.vacancy.watchers = nil
}

// noteRoom notes that more capacity is free than before. Waiting submitters are told a
// little later, so that a burst of exits makes one message.
func (m *Machine) noteRoom() {
	m.vacancy.pause = vacancyAgain
	m.tellRoom(vacancyDelay)
}

// noteUnnamed gives submitters that were not told their turn, if capacity is still free a
// while later: those that were told may have found another place.
func (m *Machine) noteUnnamed() {
	m.tellRoom(m.vacancy.pause)
	m.vacancy.pause = min(2*m.vacancy.pause, vacancyLongest)
}

// tellRoom sets the timer, unless it fires earlier anyway.
func (m *Machine) tellRoom(after time.Duration) {
	at := m.now.Add(after)
	if !m.vacancy.at.IsZero() && !m.vacancy.at.After(at) {
		return
	}
	m.vacancy.at = at
	m.out.SetTimer(timerVacancy, "", at)
}

// noteShare notes that a submitter has less of what is shared out, attempts or open
// offers. It only matters if one was refused because it had its share.
func (m *Machine) noteShare() {
	if m.vacancy.shareRefused {
		m.vacancy.shareRefused = false
		m.noteRoom()
	}
}

// onSpaceTimer is a timer of this file.
func (m *Machine) onSpaceTimer(name string) {
	if name == timerWatchers {
		m.forgetWatchers()
		return
	}
	m.onVacancyTimer()
}

// onVacancyTimer names to each submitter its waiting jobs that fit now, least
// recently announced first, but no more than could fill the capacity twice: to call
// all submitters for one place makes many offers that are declined in the end. A site
// that is closed says nothing; it will when it opens.
func (m *Machine) onVacancyTimer() {
	if m.vacancy.at.IsZero() {
		m.out.Report(step.LevelDebug, eventStale, step.Report{Text: "timer " + timerVacancy})
		return
	}
	m.vacancy.at = time.Time{}
	m.tellWatchers()
	if _, closed := m.owner.closed(); closed {
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
		req := entry.Value.requirement()
		need := m.needHere(req)
		if req.Map == grid.MapThesis && !free.Fits(need) {
			continue // the usual case, told apart without asking the plan
		}
		one := inquiry{job: job, submitter: entry.Submitter, count: 1}
		if _, _, fits := m.quote(m.here(entry.Submitter, req), one); !fits {
			continue
		}
		if !seats.Fits(need) {
			m.noteUnnamed()
			break
		}
		seats = seats.Sub(need)
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
