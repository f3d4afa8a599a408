package p2p

import (
	"testing"
	"time"

	pubsub "github.com/libp2p/go-libp2p-pubsub"
	pb "github.com/libp2p/go-libp2p-pubsub/pb"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// forge makes envelopes in the name of a site.
type forge struct {
	t    testing.TB
	key  crypto.PrivKey
	site grid.SiteID
}

func newForge(tb testing.TB) forge {
	tb.Helper()
	id, err := wire.LoadIdentity(tb.TempDir() + "/key")
	if err != nil {
		tb.Fatal(err)
	}
	return forge{tb, id.Key(), id.Site()}
}

func (f forge) peer() peer.ID {
	f.t.Helper()
	id, err := wire.PeerOf(f.site)
	if err != nil {
		f.t.Fatal(err)
	}
	return id
}

func (f forge) envelope(message protocol.Message) protocol.Envelope {
	f.t.Helper()
	payload, err := protocol.Encode(message)
	if err != nil {
		f.t.Fatal(err)
	}
	return protocol.Envelope{
		Version: protocol.Version, Domain: "lab", Signer: f.site, Sequence: 1<<32 | 1,
		IssuedMS: time.Now().UnixMilli(), Validity: time.Minute, Payload: payload,
	}
}

func (f forge) sign(e protocol.Envelope) []byte {
	f.t.Helper()
	signature, err := f.key.Sign(e.SignedBytes())
	if err != nil {
		f.t.Fatal(err)
	}
	return protocol.EncodeEnvelope(e, signature)
}

func (f forge) announce(i int) []byte {
	f.t.Helper()
	return f.sign(f.envelope(announcement(f.site, i)))
}

func TestForgedAndReplayedGossipStopsAtTheFirstSite(t *testing.T) {
	nodes := cluster(t, 2, nil)
	attacker := rawPeer(t, nodes[0])
	ps, err := pubsub.NewGossipSub(t.Context(), attacker,
		pubsub.WithMessageSignaturePolicy(pubsub.StrictNoSign), pubsub.WithNoAuthor(),
		pubsub.WithMessageIdFn(func(m *pb.Message) string {
			return time.Now().String() + string(m.GetData())
		}))
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
		e := f.envelope(announcement(f.site, warm))
		e.Sequence += uint64(warm)
		warm++
		publish(f.sign(e))
		return nodes[1].count() > 0
	})
	last := f.envelope(announcement(f.site, warm))
	last.Sequence += uint64(warm)
	publish(forge{t, f.key, nodes[1].Self()}.announce(1))
	for range 3 {
		publish(f.sign(last))
	}
	for i, n := range nodes {
		times := 0
		eventually(t, "the last one arrives", func() bool {
			times = 0
			for _, h := range n.heard() {
				if a, ok := h.message.(protocol.Announce); ok && h.from == f.site && a.Job == jobID(warm) {
					times++
				}
			}
			return times > 0
		})
		if times != 1 {
			t.Errorf("site %d heard the replayed one %d times", i, times)
		}
	}
	eventually(t, "the forged one is counted", func() bool {
		return nodes[0].Count(wire.CountInvalid, "signature") == 1
	})
	if got := nodes[1].Count(wire.CountInvalid, "signature"); got != 0 {
		t.Errorf("a forged message was passed on %d times", got)
	}
}

func TestScoresAndShapesAreAcceptedByGossipsub(t *testing.T) {
	for _, p := range []Preset{PresetLAN, PresetWAN, PresetTest} {
		cfg := testConfig(t)
		cfg.Preset = p
		if n := startSite(t, cfg); n.Broadcast(announcement(n.Self(), 1)) != nil {
			t.Errorf("preset %s: own announcement is refused", p)
		}
	}
}

func TestASubmitterCanBeAnsweredAtTheAddressItGave(t *testing.T) {
	cfg := testConfig(t)
	a, b := startSite(t, cfg), startSite(t, testConfig(t))
	if err := a.Send(b.Self(), protocol.Cancel{Job: jobID(1)}); err == nil {
		t.Fatal("Send to an unknown site is accepted")
	}
	a.hint(b.Host().ID(), b.Addrs())
	if err := a.Send(b.Self(), protocol.Cancel{Job: jobID(1)}); err != nil {
		t.Fatalf("Send = %v", err)
	}
	eventually(t, "the message arrives", func() bool { return b.count() == 1 })
}
