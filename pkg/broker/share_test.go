package broker

import (
	"fmt"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// crowd offers places for all tasks of a job, every one of which has failed once, and says
// how long the longest Step took until all are awarded, and how many awards it sent.
func crowd(t testing.TB, sites, tasks int, silent bool) (longest time.Duration, most int) {
	t.Helper()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	m := New(Default(self))
	due := make(map[step.TimerKey]time.Time)
	do := func(in step.Input) {
		started := time.Now()
		effects := m.Step(now, in)
		longest = max(longest, time.Since(started))
		awarded := 0
		for _, e := range effects {
			switch e := e.(type) {
			case step.SetTimer:
				due[e.Key] = e.At
			case step.StopTimer:
				delete(due, e.Key)
			case step.Send:
				if award, is := e.Message.(protocol.Award); is {
					awarded += len(award.Tasks)
				}
			}
		}
		most = max(most, awarded)
	}
	do(step.Boot{Incarnation: 1})
	for i := range sites {
		do(step.PeerSeen{Site: grid.SiteID(fmt.Sprint("s", i))})
	}
	do(step.Submit{Command: 1, Job: testJob(uint32(tasks))})
	id := m.Jobs()[0]
	j := m.jobs.all[id]
	for i := range j.tasks {
		j.tasks[i].remember(grid.SiteID(fmt.Sprint("s", i%sites)))
		if silent {
			j.tasks[i].away = now.Add(-time.Second)
		}
	}
	longest = 0
	places := uint32(2 * tasks / sites)
	refused := protocol.Refuse{Job: id, Seq: 1, Refusal: grid.Refusal{Reason: grid.ReasonCPUs}}
	do(step.MessageReceived{From: self, Message: refused})
	for i := range sites {
		do(step.MessageReceived{From: grid.SiteID(fmt.Sprint("s", i)), Message: protocol.Bid{
			Job: id, Seq: 1, Offer: offer(uint64(i+1), float64(1+i%7), places),
		}})
	}
	for range tasks {
		var next step.TimerKey
		for key, at := range due {
			if !at.After(now) {
				next = key
			}
		}
		if next.Name == "" {
			break
		}
		delete(due, next)
		do(step.TimerFired{Key: next})
	}
	if len(j.waiting) > 0 {
		t.Fatalf("%d of %d tasks wait", len(j.waiting), tasks)
	}
	return longest, most
}

// However many tasks wait, a Step places a bounded number, and the next ones the rest.
func TestAStepPlacesABoundedNumber(t *testing.T) {
	for _, silent := range []bool{false, true} {
		if _, most := crowd(t, 40, 4000, silent); most > maxPlaced || most < maxPlaced/2 {
			t.Errorf("silent %t: one Step awarded %d tasks, want at most %d", silent, most, maxPlaced)
		}
	}
}

// A thousand sites, and 64,000 tasks that have failed once.
func BenchmarkLongestStep(b *testing.B) {
	for _, silent := range []bool{false, true} {
		b.Run(fmt.Sprintf("silent=%t", silent), func(b *testing.B) {
			for b.Loop() {
				longest, _ := crowd(b, 1000, 64_000, silent)
				b.ReportMetric(float64(longest.Milliseconds()), "ms-longest-step")
			}
		})
	}
}
