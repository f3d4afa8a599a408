package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// The answer of who was asked is returned; one who says nothing is waited for for checkWait.
func TestAskCheckWaitsForTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBare(t)
		began := time.Now()
		if _, err := b.AskCheck(t.Context(), "silent"); !errors.Is(err, ErrNoAnswer) {
			t.Errorf("nobody answers: %v, want ErrNoAnswer", err)
		}
		if waited := time.Since(began); waited != checkWait {
			t.Errorf("it waited for %s, want %s", waited, checkWait)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := b.AskCheck(ctx, "silent"); !errors.Is(err, context.Canceled) {
			t.Errorf("who asks leaves: %v, want Canceled", err)
		}
		if n := len(b.checks.waiting); n != 0 {
			t.Errorf("%d questions still wait", n)
		}
		got := make(chan protocol.Checked, 1)
		go func() {
			answer, err := b.AskCheck(t.Context(), "other")
			if err != nil {
				t.Error(err)
			}
			got <- answer
		}()
		synctest.Wait()
		sent := b.sent()
		last := sent[len(sent)-1]
		check, is := last.message.(protocol.Check)
		if !is || last.to != "other" || len(sent) != 3 {
			t.Fatalf("sent %+v, want a question to each", sent)
		}
		want := protocol.Checked{Number: check.Number, Arrived: true, Took: time.Second}
		b.received("other", want)
		if answer := <-got; answer != want {
			t.Errorf("the answer is %+v, want %+v", answer, want)
		}
		if heard := heardOf[step.MessageReceived](&b.ofSite); len(heard) != 0 {
			t.Errorf("a machine hears of checks: %+v", heard)
		}
	})
}

// prober is a broker's loop that answers probes with a state of its own.
type prober struct {
	mu     sync.Mutex
	probes []time.Time // guarded by mu; when they came
	jobs   []grid.Job  // guarded by mu
}

func (p *prober) when() []time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.probes)
}

// answering makes the broker's machine one that refuses every probe with an error.
func answering(b *bare, with error) *prober {
	p := &prober{}
	b.broker.perform = b.perform
	b.broker.machine = scripted(func(_ time.Time, in step.Input) []step.Effect {
		probe, is := in.(step.Probe)
		if !is {
			return nil
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.probes, p.jobs = append(p.probes, time.Now()), append(p.jobs, probe.Job)
		return []step.Effect{step.Reply{Command: probe.Command, Err: with}}
	})
	b.brokerMachine = broker.New(broker.Default("self"))
	return p
}

// What others may ask is bounded: checkQueue checks are under way or wait, one is carried out
// at a time with a pause after each, and those that come beyond that are told.
func TestChecksOfOthersAreBounded(t *testing.T) {
	b := newBare(t)
	p := answering(b, errForTest)
	const more = 3
	for n := range checkQueue + more {
		b.received(grid.SiteID(fmt.Sprint("site", n)), protocol.Check{Number: uint64(100 + n)})
	}
	eventually(t, "all are answered", func() bool { return len(b.sent()) == checkQueue+more })
	answers, refused := 0, 0
	for _, l := range b.sent() {
		answer, is := l.message.(protocol.Checked)
		if !is || string(l.to) != fmt.Sprint("site", answer.Number-100) || answer.Arrived {
			t.Errorf("answer %+v", l)
		}
		switch {
		case answer.Text == "too many sites ask for a check at this moment" &&
			answer.Number >= 100+checkQueue:
			refused++
		case strings.Contains(answer.Text, errForTest.Error()) && answer.Number < 100+checkQueue:
			answers++
		}
	}
	if answers != checkQueue || refused != more {
		t.Errorf("%d are answered and %d refused, want %d and %d", answers, refused, checkQueue, more)
	}
	probes := p.when()
	if len(probes) != checkQueue {
		t.Fatalf("%d probes, want %d", len(probes), checkQueue)
	}
	for i := 1; i < len(probes); i++ {
		if pause := probes[i].Sub(probes[i-1]); pause < checkPause {
			t.Errorf("%s between two probes, want at least %s", pause, checkPause)
		}
	}
	eventually(t, "there are places again", func() bool { return len(b.checks.slots) == 0 })
	b.received("late", protocol.Check{Number: 9})
	eventually(t, "it is looked at", func() bool { return len(p.when()) == checkQueue+1 })
}

// The probe asks for as little as can be asked, for a short time, and stands for the kind of
// work that the site runs.
func TestWhatAProbeAsksFor(t *testing.T) {
	wasm := probeJob(nil)
	if wasm.Count != 1 || wasm.TTL != checkTTL || wasm.Spec.Runtime != time.Second ||
		wasm.Spec.Need != (grid.Resources{MilliCPUs: 1, MemoryBytes: 1 << 20, DiskBytes: 1, MFLOPS: 1}) ||
		wasm.Spec.Module.Bytes != 1 || wasm.Spec.Module.CID != probeModule {
		t.Errorf("a probe is %+v", wasm)
	}
	command := probeJob([]grid.WorkKind{grid.KindCommand})
	if command.Spec.Module.CID != "" || len(command.Spec.Args) != 1 {
		t.Errorf("a probe of a command is %+v", command)
	}
	synctest.Test(t, func(t *testing.T) {
		b := newBare(t)
		p := answering(b, nil)
		job, state, err := b.probeFor("stranger")
		if err != nil || len(state.Answers) != 0 || len(p.jobs) != 1 ||
			p.jobs[0].Spec.Kind != job.Spec.Kind {
			t.Errorf("job %+v, state %+v, %v, told %+v", job, state, err, p.jobs)
		}
	})
}

// A machine that does not answer holds nobody for longer than checkWait.
func TestAProbeThatIsNotAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBare(t)
		b.brokerMachine = broker.New(broker.Default("self"))
		began := time.Now()
		if got := b.checkFor("site", 7); got.Number != 7 || got.Arrived || got.Text == "" {
			t.Errorf("answer %+v, want that there is none", got)
		}
		if took := time.Since(began); took != checkWait+checkPause {
			t.Errorf("it took %s, want %s", took, checkWait+checkPause)
		}
		if err := b.end(); err != nil {
			t.Error(err)
		}
		if got := b.checkFor("site", 8); got.Number != 8 || got.Text == "" {
			t.Errorf("answer %+v after the end, want that there is none", got)
		}
	})
}

// Texts are as long as a message takes, and end between two letters.
func TestShortTexts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{"brief", "brief"},
		{strings.Repeat("x", 250), strings.Repeat("x", 250)},
		{strings.Repeat("x", 251), strings.Repeat("x", 250)},
		{strings.Repeat("x", 249) + "ä", strings.Repeat("x", 249)},
	} {
		if got := short(c.text); got != c.want {
			t.Errorf("%d bytes become %d, want %d", len(c.text), len(got), len(c.want))
		}
	}
	asked := time.UnixMilli(1_900_000_000_000)
	early := broker.JobState{Submitted: asked, Answers: []broker.Answer{
		{Site: "a", At: asked.Add(-time.Second), Offer: &grid.Offer{}}, // a clock was set
	}}
	if got := verdictOf("a", probeJob(nil), early); got != (protocol.Checked{Arrived: true}) {
		t.Errorf("an answer from before the question: %+v", got)
	}
}
