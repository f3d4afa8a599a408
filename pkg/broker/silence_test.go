package broker

import (
	"fmt"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// Of ten members one is connected and answers nothing. The first round waits for
// it until the TTL; the next ones do not, even if it goes on to tell news of
// itself.
func TestAMemberThatAnswersNothingDelaysOneRound(t *testing.T) {
	const mute = "m"
	answering := []grid.SiteID{self}
	for i := range 9 {
		answering = append(answering, grid.SiteID(fmt.Sprint("s", i)))
	}
	b := newBench(t, nil, append(answering[1:], mute)...)
	first := b.submit(testJob(1))
	if b.offers(first, 1, answering...); len(awards(b.last)) > 0 {
		t.Fatal("the first round does not wait for the silent member")
	}
	if got := awards(b.pass(time.Second)); len(got) != 1 {
		t.Fatalf("%d awards at the TTL, want 1", len(got))
	}
	for i := range 5 {
		b.pass(time.Second)
		b.do(step.PeerSeen{
			Site: mute, Name: fmt.Sprint("news ", i), Capability: grid.Capability{DownBps: int64(i)},
		})
		next := b.submit(testJob(1))
		if b.offers(next, 1, answering...); len(awards(b.last)) != 1 {
			t.Errorf("round %d waits for the silent member", i+2)
		}
	}
	b.do(step.PeerGone{Site: mute})
	b.do(step.PeerSeen{Site: mute}) // back, and perhaps mended
	if last := b.submit(testJob(1)); !b.m.jobs.all[last].round().expected[mute] {
		t.Error("who has come back is not waited for")
	}
}

// A member that answers nothing and connects anew each second delays two rounds, and is asked
// alone for what waits no more often.
func TestAMemberThatReconnectsIsNotWaitedFor(t *testing.T) {
	const mute = "m"
	b := newBench(t, nil, "a", mute)
	waits := b.submit(testJob(1))
	slow, asked := 0, 0
	for range 60 {
		next := b.submit(testJob(1))
		b.offers(next, 1, "a", self)
		if len(awards(b.last)) == 0 {
			slow++
		}
		b.pass(900 * time.Millisecond)
		b.do(step.PeerGone{Site: mute})
		b.refusal(waits, "a", false)
		b.refusal(waits, self, false)
		b.pass(100 * time.Millisecond)
		to, _ := sent[protocol.Reannounce](b.do(step.PeerSeen{Site: mute}))
		asked += min(len(to), 1)
	}
	if slow > forgiven+2 || asked > forgiven+3 {
		t.Errorf("%d of 60 rounds waited for it, and it was asked on %d of its arrivals", slow, asked)
	}
	b.hear(mute, protocol.Refuse{Job: waits, Seq: b.m.asked(waits).seq, Refusal: grid.Refusal{
		Reason: grid.ReasonPaused,
	}})
	if last := b.submit(testJob(1)); !b.m.jobs.all[last].round().expected[mute] {
		t.Error("who has answered is not waited for")
	}
}

// A probe is to find out who answers: it waits for who was silent, too, or a site that
// was late once could never show that its offers arrive.
func TestAProbeWaitsForTheSilent(t *testing.T) {
	const late = "m"
	b := newBench(t, nil, late)
	first := b.submit(testJob(1))
	b.offers(first, 1, self)
	b.pass(time.Second) // the TTL: m has not answered
	b.do(step.Probe{Command: 7, Job: testJob(1)})
	for _, p := range b.m.probes {
		if r := p.round(); r == nil || !r.expected[late] {
			t.Error("the probe does not wait for the site that was late")
		}
	}
	if len(b.m.probes) != 1 {
		t.Errorf("%d probes, want 1", len(b.m.probes))
	}
}

// Silence counts against a member only if it was asked and had to answer: not in a mesh so
// large that only those answer that offer, and not in a round to which it may not have been
// drawn. That nobody answered at all means that this site is cut off only if all had to.
func TestWhoseSilenceCounts(t *testing.T) {
	for _, c := range []struct {
		name   string
		tune   func(*Config)
		counts bool
	}{
		{"all have to answer", func(*Config) {}, true},
		{"refusals are not told", func(c *Config) { c.ExplainUpTo = 1 }, false},
		{"some are drawn", func(c *Config) { c.ReplyTarget = 1 }, false},
	} {
		b := newBench(t, c.tune, "a", "b", "c")
		id := b.submit(testJob(1))
		b.offers(id, 1, self)
		b.pass(time.Second)
		for _, site := range []grid.SiteID{"a", "b", "c"} {
			if got := b.m.peers.silent(site); got != c.counts {
				t.Errorf("%s: the silence of %s counts = %t", c.name, site, got)
			}
		}
		if b.m.peers.silent(self) {
			t.Errorf("%s: this site has answered and is held to be silent", c.name)
		}
		if b.m.peers.cutOff != c.counts {
			t.Errorf("%s: cut off = %t", c.name, b.m.peers.cutOff)
		}
	}
}

// Of the domain one site was asked, as it holds the job's reservation, and the answer was lost:
// that says nothing of the others, nor of this one.
func TestTheSilenceOfOneHolderCutsNobodyOff(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	res := b.placed(b.reservation(), "a")
	b.submit(inside(res))
	b.pass(2 * time.Second)
	if !b.m.peers.silent("a") || b.m.peers.cutOff {
		t.Errorf("a silent: %t; cut off: %t", b.m.peers.silent("a"), b.m.peers.cutOff)
	}
}

// Of three members one answers: only the two others are silent, and nobody is cut off.
func TestWhoAnsweredIsNotBlamed(t *testing.T) {
	b := newBench(t, nil, "a", "b", "c")
	id := b.submit(testJob(1))
	b.refusal(id, "b", false)
	b.refusal(id, self, false)
	b.pass(time.Second)
	for site, want := range map[grid.SiteID]bool{"a": true, "b": false, "c": true, self: false} {
		if got := b.m.peers.silent(site); got != want {
			t.Errorf("the silence of %s counts = %t, want %t", site, got, want)
		}
	}
	if b.m.peers.cutOff {
		t.Error("cut off, though one has answered")
	}
}

// A window that closes during a round ends the job with the round, and the offers that came
// before are not used, nor asked for again: neither where the window's own timer ends it, nor
// where the round ends first, by what a machine reads late.
func TestAWindowThatClosesDuringARound(t *testing.T) {
	for name, job := range map[string]func(until time.Time) grid.Job{
		"a fixed start": func(until time.Time) grid.Job {
			return windowed(testJob(1), grid.Window{At: until})
		},
		"a deadline": func(until time.Time) grid.Job {
			return windowed(testJob(1), grid.Window{Deadline: until})
		},
		"parts and a deadline": func(until time.Time) grid.Job {
			return windowed(splitJob(grid.SplitGreedy, 2), grid.Window{Deadline: until})
		},
	} {
		for how, end := range map[string]func(b *bench, id grid.JobID) []step.Effect{
			"its timer": func(b *bench, _ grid.JobID) []step.Effect { return b.pass(time.Second) },
			"an answer": func(b *bench, id grid.JobID) []step.Effect {
				b.now = b.now.Add(time.Second) // no timer has fired yet
				return append(b.refusal(id, "b", false), b.refusal(id, self, false)...)
			},
			"a member's going": func(b *bench, id grid.JobID) []step.Effect {
				b.refusal(id, self, false)
				b.now = b.now.Add(time.Second)
				b.gone(true, "b")
				return b.last
			},
		} {
			b := newBench(t, nil, "a", "b")
			id := b.submit(job(b.now.Add(time.Second / 2)))
			b.offers(id, 2, "a")
			effects := end(b, id)
			if b.wantPhase(id, 0, grid.PhaseRefused); len(awards(effects)) > 0 {
				t.Errorf("%s, by %s: awarded after it", name, how)
			}
			if to, _ := sent[protocol.HoldOffer](effects); len(to) > 0 {
				t.Errorf("%s, by %s: %v are asked to hold", name, how, to)
			}
		}
	}
}

func windowed(job grid.Job, w grid.Window) grid.Job {
	job.Spec.Window, job.Spec.Runtime = w, time.Second/10
	return job
}

func awards(effects []step.Effect) []protocol.Award {
	_, all := sent[protocol.Award](effects)
	return all
}
