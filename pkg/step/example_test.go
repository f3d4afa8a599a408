package step_test

import (
	"fmt"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// counter is the smallest machine: it counts its timer's firings, and remembers the count
// over a crash.
type counter struct {
	out   step.Out
	count int
}

func (m *counter) Step(now time.Time, in step.Input) []step.Effect {
	switch in.(type) {
	case step.Boot:
		m.out.Report(step.LevelInfo, "booted", step.Report{Value: float64(m.count)})
	case step.TimerFired:
		m.count++
		m.out.Persist(step.NewFact("count/1", "only", m.count))
	}
	m.out.SetTimer("again", "", now.Add(time.Second))
	return m.out.Take()
}

func (m *counter) Snapshot() []byte { return m.out.Facts().Encode() }

func (m *counter) Restore(text []byte) error {
	facts, err := step.DecodeFacts(text)
	for _, f := range facts {
		m.out.Facts().Apply(f)
		_, err = fmt.Sscan(string(f.Value), &m.count)
	}
	return err
}

func (m *counter) Check() error { return nil }

var _ step.Machine = (*counter)(nil)

// A driver gives inputs with their time and carries out the effects in order. After a
// crash a new machine goes on with the facts.
func Example() {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	first := &counter{}
	fired := step.TimerFired{Key: step.TimerKey{Name: "again"}}
	for second, in := range []step.Input{step.Boot{Incarnation: 1}, fired} {
		for _, effect := range first.Step(noon.Add(time.Duration(second)*time.Second), in) {
			fmt.Println(second, step.EncodeEffect(effect))
		}
	}

	second := &counter{}
	if err := second.Restore(first.Snapshot()); err != nil {
		fmt.Println(err)
	}
	for _, effect := range second.Step(noon, step.Boot{Incarnation: 2}) {
		if report, is := effect.(step.Report); is {
			fmt.Println("after a crash:", report.Event, "with", report.Value)
		}
	}
	// Output:
	// 0 {"type":"Report","body":{"Event":"booted","Level":1,"Attempt":".0#0","Site":"","Reason":"no reason","Value":"0","Text":""}}
	// 0 {"type":"SetTimer","body":{"Key":{"Name":"again","ID":""},"At":"2026-03-01T12:00:01Z"}}
	// 1 {"type":"Persist","body":{"kind":"count/1","key":"only","value":1}}
	// 1 {"type":"SetTimer","body":{"Key":{"Name":"again","ID":""},"At":"2026-03-01T12:00:02Z"}}
	// after a crash: booted with 1
}
