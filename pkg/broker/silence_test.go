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

func awards(effects []step.Effect) []protocol.Award {
	_, all := sent[protocol.Award](effects)
	return all
}
