package scenario

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// What a submission says of when, after and in what it runs becomes a job; what is
// written again is read as the same.
func TestSubmissionsHavePlaces(t *testing.T) {
	s, err := Parse(small + `
submit job=r at=1s by=s0 cpus=2 start=1m reserve=30s
submit job=in at=2s by=s0 run=5s takes=9s reservation=r
submit job=late at=3s by=s0 after=r,in notbefore=10s deadline=2m
submit job=parts at=3s by=s0 count=4 split=if-needed
submit job=queued at=3s by=s0 map=seconds placing=flood
`)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := Parse(s.String()); err != nil || !cmp.Equal(s, again) {
		t.Errorf("written and read again: %v\n%s", err, cmp.Diff(s, again))
	}
	begin := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
	ids := map[string]grid.JobID{"r": "aaaaaaaaaaaaaaaa"}
	jobs := make(map[string]grid.Job)
	for _, sub := range s.Submissions() {
		jobs[sub.Name] = sub.Job(begin, ids)
		if ready := sub.Name != "late"; sub.Ready(ids) != ready {
			t.Errorf("%s is ready: %v, want %v", sub.Name, !ready, ready)
		}
	}
	r := jobs["r"].Spec
	opens := begin.Add(time.Minute)
	if r.Kind != grid.KindReservation || r.Module.CID != "" || r.Runtime != 30*time.Second ||
		!r.Window.At.Equal(opens) {
		t.Errorf("the reservation is %+v", r)
	}
	if in := jobs["in"].Spec; in.Reservation != ids["r"] || in.Runtime != 5*time.Second {
		t.Errorf("what is bound to it is %+v", in)
	}
	if lasts := s.Submissions()[1].Lasts(); lasts != 9*time.Second {
		t.Errorf("it lasts %s, want 9s", lasts)
	}
	late := grid.Window{NotBefore: begin.Add(10 * time.Second), Deadline: begin.Add(2 * time.Minute)}
	if j := jobs["late"]; j.Spec.Window != late || len(j.After) != 2 {
		t.Errorf("the late job has %+v after %v", j.Spec.Window, j.After)
	}
	queued := jobs["queued"]
	if jobs["parts"].Split != grid.SplitIfNeeded || !queued.Flood ||
		queued.Spec.Map != grid.MapSeconds {
		t.Errorf("the parts are %v, the queued job %+v", jobs["parts"].Split, queued)
	}
}

func TestErrorsOfPlaces(t *testing.T) {
	for text, want := range map[string]string{
		"submit job=a by=s0 at=5s start=5s": "line 3: submit start=5s: want a time after at=5s; " +
			"times count from the scenario's beginning",
		"submit job=a by=s0 split=maybe": "line 3: submit split=maybe: " +
			"want never or if-needed or greedy",
		"submit job=a by=s0 reserve=9s": "line 3: submit: want a job that some site could run; " +
			"invalid: reservation: want a start and no work",
		"submit job=a by=s0 split=greedy placing=flood": "line 3: submit: want a job that some " +
			"site could run; invalid: flood: ",
		"submit job=a by=s0 after=b": "submit job=a: want what it needs to be one job, " +
			"submitted before it by the same site; look at b",
		"submit job=a at=1s by=s0\nsubmit job=b at=2s by=s0 reservation=a": "look at a; " +
			"reservation= names one with reserve=",
		"submit job=a at=1s by=s1\nsubmit job=b at=2s by=s0 after=a": "submit job=b: want what",
		"expect spread=much": "line 3: expect spread=much: want a time such as 2m",
	} {
		_, err := Parse(small + text)
		if err == nil || !errors.Is(err, ErrSyntax) || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%q) =\n%v\nwant\n%s", text, err, want)
		}
	}
}
