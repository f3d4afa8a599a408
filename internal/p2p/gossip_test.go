package p2p

import (
	"bytes"
	"testing"
	"time"

	pubsub "github.com/libp2p/go-libp2p-pubsub"
	pb "github.com/libp2p/go-libp2p-pubsub/pb"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// forge makes envelopes in the name of an identity.
type forge struct {
	t  testing.TB
	id Identity
}

func newForge(tb testing.TB) forge {
	tb.Helper()
	id, err := LoadIdentity(tb.TempDir() + "/key")
	if err != nil {
		tb.Fatal(err)
	}
	return forge{tb, id}
}

func (f forge) envelope(message protocol.Message) protocol.Envelope {
	f.t.Helper()
	payload, err := protocol.Encode(message)
	if err != nil {
		f.t.Fatal(err)
	}
	return protocol.Envelope{
		Version: protocol.Version, Domain: "lab", Signer: f.id.site, Sequence: 1<<sequenceBits | 1,
		IssuedMS: time.Now().UnixMilli(), Validity: time.Minute, Payload: payload,
	}
}

func (f forge) sign(e protocol.Envelope) []byte {
	f.t.Helper()
	signature, err := f.id.key.Sign(e.SignedBytes())
	if err != nil {
		f.t.Fatal(err)
	}
	return protocol.EncodeEnvelope(e, signature)
}

func (f forge) announce(i int) []byte {
	f.t.Helper()
	return f.sign(f.envelope(announcement(f.id.site, i)))
}

func gossiped(data []byte, from peer.ID) *pubsub.Message {
	return &pubsub.Message{Message: &pb.Message{Data: data}, ReceivedFrom: from}
}

func TestEveryBadEnvelopeHasItsVerdict(t *testing.T) {
	signer, other := newForge(t), newForge(t)
	change := func(f func(*protocol.Envelope)) []byte {
		e := signer.envelope(announcement(signer.id.site, 1))
		f(&e)
		return signer.sign(e)
	}
	flipped := bytes.Clone(signer.announce(1))
	flipped[len(flipped)-1] ^= 1
	cfg := testConfig(t)
	cfg.AcceptAnyone, cfg.Allow = false, []grid.SiteID{signer.id.site}
	n := join(t, cfg)
	old := signer.envelope(announcement(signer.id.site, 1))
	old.IssuedMS -= (25 * time.Minute).Milliseconds()
	from := other.id.id // who passes it on does not matter
	for _, c := range []struct {
		name  string
		data  []byte
		want  pubsub.ValidationResult
		cause string
	}{
		{"oversize", make([]byte, protocol.MaxEnvelopeBytes+1), pubsub.ValidationReject, causeSize},
		{"rubbish", []byte("rubbish"), pubsub.ValidationReject, causeFormat},
		{"other domain", change(func(e *protocol.Envelope) { e.Domain = "other" }), pubsub.ValidationReject, causeDomain},
		{"expired", change(func(e *protocol.Envelope) { e.IssuedMS -= (12 * time.Minute).Milliseconds() }), pubsub.ValidationIgnore, causeDeadline},
		{"from the future", change(func(e *protocol.Envelope) { e.IssuedMS += (11 * time.Minute).Milliseconds() }), pubsub.ValidationIgnore, causeDeadline},
		{"not a member", other.announce(1), pubsub.ValidationIgnore, causeStranger},
		{"our own name, forged", forge{t, Identity{key: other.id.key, site: n.Self()}}.announce(1), pubsub.ValidationReject, causeSignature},
		{"our own words", forge{t, Identity{key: n.key, site: n.Self()}}.announce(1), pubsub.ValidationIgnore, causeReplay},
		{"expired and forged", forge{t, Identity{key: other.id.key, site: signer.id.site}}.sign(old), pubsub.ValidationReject, causeSignature},
		{"wrapped anew", append(signer.announce(1), 0xa0, 0x06, 0x01), pubsub.ValidationReject, causeFormat},
		{"signature of another", forge{t, Identity{key: other.id.key, site: signer.id.site}}.announce(1), pubsub.ValidationReject, causeSignature},
		{"signature flipped", flipped, pubsub.ValidationReject, causeSignature},
		{"payload is rubbish", change(func(e *protocol.Envelope) { e.Payload = []byte("rubbish") }), pubsub.ValidationReject, causeFormat},
		{"not for gossip", signer.sign(signer.envelope(protocol.Cancel{Job: jobID(1)})), pubsub.ValidationReject, causeFormat},
		{"in another's name", signer.sign(signer.envelope(announcement(other.id.site, 1))), pubsub.ValidationReject, causeFormat},
		{"good", signer.announce(1), pubsub.ValidationAccept, ""},
		{"replayed", signer.announce(1), pubsub.ValidationIgnore, causeReplay},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := n.Count(CountInvalid, c.cause)
			if got := n.gossip.check(t.Context(), from, gossiped(c.data, from)); got != c.want {
				t.Errorf("verdict = %d, want %d", got, c.want)
			}
			if got := n.Count(CountInvalid, c.cause) - before; c.cause != "" && got != 1 {
				t.Errorf("counted %d times under %q, want once", got, c.cause)
			}
		})
	}
}

func TestASubmitterMayNotSayMoreThanItsRate(t *testing.T) {
	cfg := testConfig(t)
	cfg.Limits.SubmitterRate, cfg.Limits.SubmitterBurst, cfg.Limits.Submitters = 0.001, 3, 2
	n := join(t, cfg)
	verdicts := func(f forge, times int) (accepted int) {
		for i := range times {
			e := f.envelope(announcement(f.id.site, i))
			e.Sequence += uint64(i)
			if n.gossip.check(t.Context(), f.id.id, gossiped(f.sign(e), f.id.id)) == pubsub.ValidationAccept {
				accepted++
			}
		}
		return accepted
	}
	for i, want := range []int{3, 3, 0} { // the third submitter finds no room to be watched
		if got := verdicts(newForge(t), 10); got != want {
			t.Errorf("submitter %d: %d of 10 accepted, want %d", i, got, want)
		}
	}
	if got := n.Count(CountInvalid, causeRate); got != 24 {
		t.Errorf("counted %d over the rate, want 24", got)
	}
}

func TestGossipThatIsNotHandledIsBounded(t *testing.T) {
	cfg := testConfig(t)
	cfg.Limits.GossipMessages = 10
	n := join(t, cfg)
	hold := make(chan struct{})
	n.recorder.mu.Lock()
	n.on = func(grid.SiteID, protocol.Message) { <-hold }
	n.recorder.mu.Unlock()
	failed := 0
	for i := range 100 {
		if n.Broadcast(announcement(n.Self(), i)) != nil {
			failed++
		}
	}
	close(hold)
	eventually(t, "the rest is handled", func() bool { return n.count() == 100-failed })
	if failed < 80 || uint64(failed) != n.Count(CountDropped, queueGossip) {
		t.Errorf("%d of 100 refused, counted %d; want most and as many", failed, n.Count(CountDropped, queueGossip))
	}
	eventually(t, "nothing is left reserved", func() bool {
		return n.gossip.waiting.Load() == 0 && n.gossip.bytes.Load() == 0
	})
}

func TestForgedAndReplayedGossipStopsAtTheFirstSite(t *testing.T) {
	nodes := cluster(t, 2, nil)
	attacker := rawPeer(t, nodes[0])
	ps, err := pubsub.NewGossipSub(t.Context(), attacker,
		pubsub.WithMessageSignaturePolicy(pubsub.StrictNoSign), pubsub.WithNoAuthor(),
		pubsub.WithMessageIdFn(func(m *pb.Message) string { return time.Now().String() + messageID(m) }))
	if err != nil {
		t.Fatal(err)
	}
	topic, err := ps.Join(protocol.Topic("lab"))
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the attacker is on the topic", func() bool { return len(topic.ListPeers()) > 0 })
	publish := func(data []byte) {
		t.Helper()
		if err := topic.Publish(t.Context(), data); err != nil {
			t.Fatal(err)
		}
	}
	f := newForge(t)
	warm := 0 // gossipsub passes messages on once its mesh has formed
	eventually(t, "messages are passed on", func() bool {
		e := f.envelope(announcement(f.id.site, warm))
		e.Sequence += uint64(warm)
		warm++
		publish(f.sign(e))
		return nodes[1].count() > 0
	})
	last := f.envelope(announcement(f.id.site, warm))
	last.Sequence += uint64(warm)
	publish(forge{t, Identity{key: f.id.key, site: nodes[1].Self()}}.announce(1))
	for range 3 {
		publish(f.sign(last))
	}
	for i, n := range nodes {
		times := 0
		eventually(t, "the last one arrives", func() bool {
			times = 0
			for _, h := range n.heard() {
				if a, ok := h.message.(protocol.Announce); ok && h.from == f.id.site && a.Job == jobID(warm) {
					times++
				}
			}
			return times > 0
		})
		if times != 1 {
			t.Errorf("site %d heard the replayed one %d times", i, times)
		}
	}
	eventually(t, "the forged one is counted", func() bool { return nodes[0].Count(CountInvalid, causeSignature) == 1 })
	if got := nodes[1].Count(CountInvalid, causeSignature); got != 0 {
		t.Errorf("a forged message was passed on %d times", got)
	}
}

func TestScoresAndShapesAreAcceptedByGossipsub(t *testing.T) {
	for _, p := range []Preset{PresetLAN, PresetWAN, PresetTest} {
		cfg := testConfig(t)
		cfg.Preset = p
		if n := join(t, cfg); n.Broadcast(announcement(n.Self(), 1)) != nil {
			t.Errorf("preset %s: own announcement is refused", p)
		}
	}
}

func TestASubmitterCanBeAnsweredAtTheAddressItGave(t *testing.T) {
	cfg := testConfig(t)
	a, b := join(t, cfg), join(t, testConfig(t))
	if err := a.Send(b.Self(), protocol.Cancel{Job: jobID(1)}); err == nil {
		t.Fatal("Send to an unknown site is accepted")
	}
	a.hint(b.Host().ID(), b.Addrs())
	if err := a.Send(b.Self(), protocol.Cancel{Job: jobID(1)}); err != nil {
		t.Fatalf("Send = %v", err)
	}
	eventually(t, "the message arrives", func() bool { return b.count() == 1 })
}
