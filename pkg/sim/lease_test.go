package sim

import (
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// A job that may run on alone loses a lease, and then the network for longer than its site
// waits for one. Whichever lease it is that gets lost, the job ends soon after the cut, not
// after the hours that the submitter has promised.
func TestALostLeaseOfHoursCostsNoHours(t *testing.T) {
	for lost := 1; lost <= 2; lost++ { // the short one, and the long one that follows
		for _, cut := range []time.Duration{5 * time.Second, 20 * time.Second, 50 * time.Second} {
			left := 0
			watch := func(s Sight) {
				if _, is := s.Message.(protocol.Lease); is && s.Kind == SightSent {
					left++
				}
			}
			w := New(Config{Seed: 7, Sites: fleet(3), Network: lan(), CheckFacts: true, Watch: watch})
			_ = w.Run(time.Second)
			job := wasmJob(1, 10*time.Second)
			job.Spec.Need.MilliCPUs = 3000 // too many for the submitter's own site
			job.Spec.Unattended = grid.UnattendedFinish
			warm := job // both sites have the module afterwards, so that nothing is fetched during the cut
			warm.Count = 2
			mustEnd(t, w, time.Minute, "s0", mustSubmit(t, w, "s0", warm))
			left = 0
			id := mustSubmit(t, w, "s0", job)
			if !w.runUntil(w.elapsed+10*time.Second, func() bool { return left == lost }) {
				t.Fatalf("%d leases were sent, want %d", left, lost)
			}
			s, _ := w.Broker("s0").Job(id)
			site := s.Tasks[0].Site
			w.Isolate(site) // what is on its way is lost
			w.At(w.elapsed+cut, func() { w.Rejoin(site) })
			end := w.elapsed + cut + time.Minute
			wantAllDone(t, mustEnd(t, w, end, "s0", id))
			if n := w.Trace().overlaps(); n != 0 {
				t.Errorf("lease %d lost, cut for %s: %d pairs of attempts overlap", lost, cut, n)
			}
		}
	}
}

// The submitter of such a job may leave as soon as the site holds its long lease, which is
// within seconds, and finds it done.
func TestAJobFinishesAlone(t *testing.T) {
	w := New(Config{Seed: 8, Sites: fleet(3), Network: lan(), CheckFacts: true})
	_ = w.Run(time.Second)
	job := wasmJob(1, time.Minute)
	job.Spec.Need.MilliCPUs = 3000
	job.Spec.Unattended = grid.UnattendedFinish
	id := mustSubmit(t, w, "s0", job)
	_ = w.Run(w.elapsed + 4*time.Second)
	w.Isolate("s0")
	w.At(w.elapsed+10*time.Minute, func() { w.Rejoin("s0") })
	s := mustEnd(t, w, w.elapsed+11*time.Minute, "s0", id)
	wantAllDone(t, s)
	var ran time.Duration
	for _, run := range w.Trace().Intervals {
		ran += run.To - run.From
	}
	if len(s.Tasks[0].Tries) != 1 || ran != time.Minute {
		t.Errorf("it ran for %s in %+v, want once for a minute", ran, s.Tasks[0].Tries)
	}
}
