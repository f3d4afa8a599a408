package sim

import (
	"flag"
	"math/bits"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

var liars = flag.Int("liars", 1, "how many stories TestLiars plays of each lie")

// The jobs that a liar meets. They declare their output, as what is not declared cannot be missed.
const (
	toldRun   = 20 * time.Second
	toldLimit = 2 * time.Minute
	toldFor   = 45 * time.Minute
)

func toldJob() grid.Job {
	job := wasmJob(1, toldRun)
	job.Spec.TimeLimit, job.Spec.Outputs = toldLimit, []grid.Output{{Path: "/out/result"}}
	return job
}

// lies are the ways to lie, each with how long a liar keeps a task, as ADR 0032 has it.
func lies() map[Lie]time.Duration {
	cfg := broker.Default("s0")
	lease := cfg.Lease + cfg.LeaseMargin
	return map[Lie]time.Duration{
		lieIdle: 10*time.Minute + lease, lieHold: toldLimit*11/10 + time.Minute + lease,
		lieEmpty: lease, lieForge: cfg.CollectGiveUp + cfg.CollectRetry, lieSilent: time.Second,
	}
}

// trials counts the tasks that a site gets in a time after its first breach: one after ten
// minutes, the next after twenty more, and so on.
func trials(after time.Duration) int {
	return bits.Len(uint(after/(10*time.Minute)+1)) - 1
}

// liarStory tells of a liar as one submitter saw it.
type liarStory struct {
	breach time.Duration // the first; 0: there was none
	later  int           // awards to the liar after it
	awards int           // to the liar
	slow   int           // rounds of at least 100 ms
}

func (w *World) storyOf(submitter, liar grid.SiteID) liarStory {
	var s liarStory
	submitted := make(map[grid.JobID]time.Time)
	for _, n := range w.Trace().Notes {
		if !n.Broker || n.Site != submitter {
			continue
		}
		job, to := n.Report.Attempt.Task.Job, n.Report.Site == liar
		switch n.Report.Event {
		case "job_submitted":
			submitted[job] = n.At
		case "passed_over":
			if s.breach == 0 && to {
				s.breach = n.At.Sub(Epoch())
			}
		case "awarded":
			if at, first := submitted[job]; first && n.At.Sub(at) >= 100*time.Millisecond {
				s.slow++
			}
			delete(submitted, job)
			if to {
				s.awards++
			}
			if to && s.breach > 0 {
				s.later++
			}
		}
	}
	return s
}

// A site lies to two submitters for three quarters of an hour. Every job of theirs ends as soon
// as the liar's time with it is over and another site has run it. Who was lied to once gives
// the liar a task on trial now and then, and waits for no answer of one that has none.
func TestLiars(t *testing.T) {
	for how, kept := range lies() {
		t.Run(string(how), func(t *testing.T) {
			for seed := range uint64(*liars) {
				playLiar(t, seed, how, kept)
			}
		})
	}
}

func playLiar(t *testing.T, seed uint64, how Lie, kept time.Duration) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 39))
	w := New(Config{Seed: seed, Sites: fleet(4 + r.IntN(4)), Network: lan(), CheckEvery: 500})
	at := r.IntN(len(w.order))
	liar := w.order[at]
	submitters := []grid.SiteID{w.order[(at+1)%len(w.order)], w.order[(at+2)%len(w.order)]}
	w.Lie(liar, how)
	jobs := make(map[grid.JobID]grid.SiteID)
	pause := func() time.Duration { return time.Duration(r.IntN(180)) * time.Second }
	for next := 1500 * time.Millisecond; next < toldFor; next += pause() {
		w.At(next, func() {
			by := submitters[r.IntN(len(submitters))]
			jobs[mustSubmit(t, w, by, toldJob())] = by
		})
	}
	if err := w.Run(toldFor + time.Hour); err != nil {
		t.Fatal(err)
	}
	for id, by := range jobs {
		s, _ := w.Job(by, id)
		wantAllDone(t, s)
		if took := s.Ended.Sub(s.Submitted); took > kept+toldRun+5*time.Second {
			t.Errorf("seed %d: job %s took %s, the liar has %s of that at most", seed, id, took, kept)
		}
	}
	for _, by := range submitters {
		judgeLiar(t, w, by, liar, how)
	}
}

func judgeLiar(t *testing.T, w *World, by, liar grid.SiteID, how Lie) {
	t.Helper()
	s, faults := w.storyOf(by, liar), 0
	for _, m := range w.Broker(by).Members() {
		for _, n := range m.Fault.Counts {
			if m.Site == liar {
				faults += int(n)
			}
		}
	}
	t.Logf("at %s: %d awards, first breach at %s, %d awards later; %d faults, %d slow rounds",
		by, s.awards, s.breach, s.later, faults, s.slow)
	if faults != s.awards {
		t.Errorf("at %s: the liar has %d faults after %d awards", by, faults, s.awards)
	}
	switch most := trials(toldFor - s.breach); {
	case how == lieSilent && (s.awards > 0 || s.slow > 5):
		t.Errorf("at %s: %d awards to a silent site, %d slow rounds", by, s.awards, s.slow)
	case how != lieSilent && (s.breach == 0 || s.later > most):
		t.Errorf("at %s: %d awards to the liar after %s, want at most %d",
			by, s.later, s.breach, most)
	case how != lieSilent && s.slow > 0:
		t.Errorf("at %s: %d rounds of 100 ms and more", by, s.slow)
	}
}

// Nobody hears the honest agent of a site that lies: others' jobs do not come to it. Only a silent
// one hears them, and says nothing.
func TestALiarKeepsItsAgentOutOfIt(t *testing.T) {
	for how := range lies() {
		w := New(Config{Seed: 1, Sites: fleet(3), Network: lan()})
		_ = w.Run(time.Second)
		w.Lie("s2", how)
		mustSubmit(t, w, "s0", toldJob())
		_ = w.Run(w.elapsed + time.Second/2)
		if n := w.Site("s1").Status().Cached; n != 1 {
			t.Fatalf("%s: an honest site has heard of %d jobs, want 1", how, n)
		}
		if n := w.Site("s2").Status().Cached; (n > 0) != (how == lieSilent) {
			t.Errorf("%s: the liar's own agent has heard of %d jobs", how, n)
		}
	}
}
