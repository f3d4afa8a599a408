package agent

import (
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

func TestProbesAreValidJobsOfTheSitesKind(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kinds []grid.WorkKind
		want  grid.WorkKind
	}{
		{nil, grid.KindWasm},
		{[]grid.WorkKind{grid.KindWasm}, grid.KindWasm},
		{[]grid.WorkKind{grid.KindCommand}, grid.KindCommand},
		{[]grid.WorkKind{grid.KindWasm, grid.KindCommand}, grid.KindWasm},
	} {
		job := probeJob(c.kinds)
		if err := job.Validate(); err != nil || job.Spec.Kind != c.want {
			t.Errorf("%v: kind %s, %v", c.kinds, job.Spec.Kind, err)
		}
	}
}

func TestVerdictsSayWhatCame(t *testing.T) {
	t.Parallel()
	asked := time.UnixMilli(1_900_000_000_000)
	state := broker.JobState{Submitted: asked, Answers: []broker.Answer{
		{Site: "a", At: asked.Add(time.Second), Offer: &grid.Offer{Parts: grid.Parts{Distance: .5}}},
		{Site: "b", At: asked, Refusal: grid.Refusal{Reason: grid.ReasonPaused}},
	}}
	for site, want := range map[grid.SiteID]protocol.Checked{
		"a": {Arrived: true, Distance: .5, Took: time.Second},
		"b": {Text: "not now: paused by its owner"},
		"c": {Text: "no answer came within 2s"},
	} {
		got := verdictOf(site, probeJob(nil), state)
		if got != want {
			t.Errorf("%s: %+v, want %+v", site, got, want)
		}
		if err := got.Validate(); err != nil {
			t.Error(err)
		}
	}
	if got := short(strings.Repeat("ä", 300)); (protocol.Checked{Text: got}).Validate() != nil {
		t.Errorf("a long text stays too long: %d bytes", len(got))
	}
}

// An answer counts only from who was asked, and once.
func TestAnswersOfOthersAreIgnored(t *testing.T) {
	t.Parallel()
	c := newChecks()
	q, answer := c.ask("a")
	c.answered("b", protocol.Checked{Number: q.number})
	c.answered("a", protocol.Checked{Number: q.number + 1})
	select {
	case v := <-answer:
		t.Fatalf("taken: %+v", v)
	default:
	}
	c.answered("a", protocol.Checked{Number: q.number, Arrived: true})
	c.answered("a", protocol.Checked{Number: q.number})
	if v := <-answer; !v.Arrived {
		t.Error("the first answer is not the one that counts")
	}
}
