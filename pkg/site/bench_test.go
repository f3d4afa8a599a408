package site

import (
	"fmt"
	"testing"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// benchJob is one of a million job IDs.
func benchJob(i int) grid.JobID {
	id := []byte("aaaaaaaaaaaaaaaa")
	for p := len(id) - 1; i > 0; p, i = p-1, i/26 {
		id[p] = byte('a' + i%26)
	}
	return grid.JobID(id)
}

// BenchmarkAnnounce is one answer to one announcement, with the caches full.
func BenchmarkAnnounce(b *testing.B) {
	for _, submitters := range []int{1, 8} {
		b.Run(fmt.Sprintf("submitters=%d", submitters), func(b *testing.B) {
			m := New(Default(self, fourCores()))
			m.Step(epoch(), step.Boot{Incarnation: 1})
			i := 0
			for b.Loop() {
				from := grid.SiteID(fmt.Sprintf("s%d", i%submitters))
				m.Step(epoch(), step.MessageReceived{From: from, Message: announcement(benchJob(i), from)})
				i++
			}
		})
	}
}

// BenchmarkVacancy looks through a full cache in which everything fits.
func BenchmarkVacancy(b *testing.B) {
	m := New(Default(self, fourCores()))
	m.Step(epoch(), step.Boot{Incarnation: 1})
	for i := range 4_096 {
		from := grid.SiteID(fmt.Sprintf("s%d", i%8))
		m.Step(epoch(), step.MessageReceived{From: from, Message: announcement(benchJob(i), from)})
	}
	b.ResetTimer()
	sends := 0
	for b.Loop() {
		m.vacancy.at = m.now
		effects := m.Step(epoch(), step.TimerFired{Key: step.TimerKey{Name: timerVacancy}})
		for _, e := range only[step.Send](effects) {
			sends += len(e.Message.(protocol.Vacancy).Jobs)
		}
	}
	b.ReportMetric(float64(sends)/float64(b.N), "jobs/op")
}
