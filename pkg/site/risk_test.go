package site

import (
	"math"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/avail"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// learned is the model of a site that is switched off at six on working days.
func learned(t *testing.T) avail.Model {
	t.Helper()
	var h avail.History
	for day := range 40 {
		h.Spans = append(h.Spans, avail.Span{
			Week: float64(day%5)*86400 + 9*3600, Seconds: 9*3600 - 60, End: avail.EndLeft,
		})
	}
	m, err := avail.Fit(h, avail.DefaultPriors(), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// z of an offer follows from what the site has learned, by its own hour of the week.
func TestZFollowsWhatWasLearned(t *testing.T) {
	at := func(hour, zone int) float64 {
		m := New(Default(self, fourCores()))
		now := time.Date(2026, 3, 3, hour, 30, 0, 0, time.UTC) // a Tuesday
		m.Step(now.Add(-time.Hour), step.Boot{Incarnation: 1})
		model := learned(t)
		model.Zone = zone
		m.Step(now, step.AvailabilityLearned{
			Model: model, Up: now.Add(-time.Hour), Free: now.Add(-time.Hour),
		})
		q, refusal, ok := m.quote(announcement(job1, alice).Req, inquiry{submitter: alice, count: 1})
		if !ok {
			t.Fatalf("refused: %s", refusal.Explain())
		}
		want := 1 - m.up(q.finish(m.now))
		if math.Abs(q.parts.Z-want) > 1e-6 {
			t.Errorf("z of the offer %v, by the model %v", q.parts.Z, want)
		}
		return 1 - m.up(time.Hour)
	}
	if noon, six := at(12, 0), at(17, 0); noon > 0.1 || six < 0.8 {
		t.Errorf("z for an hour at noon %v, at half past five %v", noon, six)
	}
	if east := at(12, 5*3600); east < 0.8 {
		t.Errorf("z for an hour at half past five of a place in the east %v", east)
	}
}

func TestAModelThatMakesNoSenseIsRefused(t *testing.T) {
	m := New(Default(self, fourCores()))
	m.Step(time.Unix(0, 0), step.Boot{Incarnation: 1})
	before := m.up(time.Hour)
	model := learned(t)
	model.Leave.Exposure = math.NaN()
	effects := m.Step(time.Unix(1, 0), step.AvailabilityLearned{Model: model})
	told := false
	for _, e := range effects {
		r, is := e.(step.Report)
		told = told || is && r.Event == eventInvalid
	}
	if !told || m.risk.learned != nil || math.Abs(m.up(time.Hour)-before) > 1e-3 {
		t.Errorf("told %v, learned %v, %v before and %v after",
			told, m.risk.learned != nil, before, m.up(time.Hour))
	}
}

func TestStatusShowsTheOutlook(t *testing.T) {
	m := New(Default(self, fourCores()))
	m.Step(time.Unix(0, 0), step.Boot{Incarnation: 1})
	guess := m.Status().Outlook
	now := time.Date(2026, 3, 3, 12, 0, 0, 0, time.UTC)
	m.Step(now, step.AvailabilityLearned{Model: learned(t), Up: now, Free: now})
	known := m.Status().Outlook
	if len(guess) != 2 || guess[0].For != time.Hour || guess[0].Sureness.Words() != "a guess" {
		t.Errorf("before anything was learned: %+v", guess)
	}
	if o := known[1]; o.For != 8*time.Hour || o.Up > 0.2 || o.Sureness.Ends != 40 ||
		o.Sureness.Low > o.Up {
		t.Errorf("learned: %+v", o)
	}
}
