package gossip

import (
	"bytes"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	pubsub "github.com/libp2p/go-libp2p-pubsub"
	pb "github.com/libp2p/go-libp2p-pubsub/pb"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
	"go.uber.org/goleak"

	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// A process-wide cache of memory statistics of the resource manager's limits.
		goleak.IgnoreTopFunction("github.com/filecoin-project/go-clock.(*realClock).Sleep"))
}

// newStation joins a topic on which nobody else is. All may be members.
func newStation(t *testing.T, change func(*Config)) *Topic {
	t.Helper()
	own := newForge(t)
	h, err := libp2p.New(libp2p.Identity(own.key), libp2p.NoListenAddrs, libp2p.DisableMetrics())
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{
		Host: h, Key: own.key, Self: own.site, Domain: "lab", Incarnation: 1, Now: time.Now, Quick: true,
		Limits: Limits{
			Messages: 100, Bytes: 1 << 20, SubmitterRate: 100, SubmitterBurst: 100, Submitters: 100,
		},
		Counts:  wire.NewCounters(nil),
		Allowed: func(grid.SiteID) bool { return true }, LateOwn: func(peer.ID) bool { return true },
		OnMessage: func(grid.SiteID, protocol.Message) {},
		Account:   &account{},
	}
	change(&cfg)
	topic, err := Join(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); topic.Run(t.Context()) }()
	t.Cleanup(func() {
		topic.Close()
		<-done
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return topic
}

// eventually waits until the condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); <-tick.C {
		if holds() {
			return
		}
	}
	t.Fatalf("still not true: %s", what)
}

func announcement(submitter grid.SiteID, i int) protocol.Announce {
	return protocol.Announce{
		Job: grid.JobID(fmt.Sprintf("aaaaaaaaaaaaa%c%c%c", 'a'+i/26/26%26, 'a'+i/26%26, 'a'+i%26)),
		Seq: 1, Submitter: submitter, Count: 1, TTL: time.Second, Sample: 1,
		Req: grid.Requirement{
			Kind: grid.KindWasm, Need: grid.Resources{MilliCPUs: 1000, MemoryBytes: 1 << 20, MFLOPS: 1},
			Runtime: time.Second, Weights: grid.DefaultWeights(),
		},
	}
}

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
		Version: protocol.Version, Domain: "lab", Signer: f.site, Sequence: 1<<sequenceBits | 1,
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

func gossiped(data []byte, from peer.ID) *pubsub.Message {
	return on(protocol.Topic("lab"), data, from)
}

// on makes a message that a peer passes on, on a topic.
func on(topic string, data []byte, from peer.ID) *pubsub.Message {
	return &pubsub.Message{Message: &pb.Message{Data: data, Topic: &topic}, ReceivedFrom: from}
}

func TestEveryBadEnvelopeHasItsVerdict(t *testing.T) {
	signer, other := newForge(t), newForge(t)
	change := func(f func(*protocol.Envelope)) []byte {
		e := signer.envelope(announcement(signer.site, 1))
		f(&e)
		return signer.sign(e)
	}
	flipped := bytes.Clone(signer.announce(1))
	flipped[len(flipped)-1] ^= 1
	n := newStation(t, func(c *Config) {
		c.Allowed = func(site grid.SiteID) bool { return site == c.Self || site == signer.site }
	})
	old := signer.envelope(announcement(signer.site, 1))
	old.IssuedMS -= (25 * time.Minute).Milliseconds()
	from := other.peer() // who passes it on does not matter
	for _, c := range []struct {
		name  string
		data  []byte
		want  pubsub.ValidationResult
		cause string
	}{
		{"oversize", make([]byte, protocol.MaxEnvelopeBytes+1), pubsub.ValidationReject, "size"},
		{"rubbish", []byte("rubbish"), pubsub.ValidationReject, wire.CauseFormat},
		{
			"other domain", change(func(e *protocol.Envelope) { e.Domain = "other" }),
			pubsub.ValidationReject, causeDomain,
		},
		{
			"expired",
			change(func(e *protocol.Envelope) { e.IssuedMS -= (12 * time.Minute).Milliseconds() }),
			pubsub.ValidationIgnore, causeDeadline,
		},
		{
			"from the future",
			change(func(e *protocol.Envelope) { e.IssuedMS += (11 * time.Minute).Milliseconds() }),
			pubsub.ValidationIgnore, causeDeadline,
		},
		{"not a member", other.announce(1), pubsub.ValidationIgnore, causeStranger},
		{
			"our own name, forged", forge{t, other.key, n.cfg.Self}.announce(1), pubsub.ValidationReject,
			causeSignature,
		},
		{
			"our own words", forge{t, n.cfg.Key, n.cfg.Self}.announce(1), pubsub.ValidationIgnore,
			causeReplay,
		},
		{
			"expired and forged", forge{t, other.key, signer.site}.sign(old), pubsub.ValidationReject,
			causeSignature,
		},
		{
			"wrapped anew", append(signer.announce(1), 0xa0, 0x06, 0x01), pubsub.ValidationReject,
			wire.CauseFormat,
		},
		{
			"signature of another", forge{t, other.key, signer.site}.announce(1), pubsub.ValidationReject,
			causeSignature,
		},
		{"signature flipped", flipped, pubsub.ValidationReject, causeSignature},
		{
			"payload is rubbish", change(func(e *protocol.Envelope) { e.Payload = []byte("rubbish") }),
			pubsub.ValidationReject, wire.CauseFormat,
		},
		{
			"not for gossip", signer.sign(signer.envelope(protocol.Cancel{Job: announcement("", 1).Job})),
			pubsub.ValidationReject, wire.CauseFormat,
		},
		{
			"in another's name", signer.sign(signer.envelope(announcement(other.site, 1))),
			pubsub.ValidationReject, wire.CauseFormat,
		},
		{"good", signer.announce(1), pubsub.ValidationAccept, ""},
		{"replayed", signer.announce(1), pubsub.ValidationIgnore, causeReplay},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := n.cfg.Counts.Get(wire.CountInvalid, c.cause)
			if got := n.check(t.Context(), from, gossiped(c.data, from)); got != c.want {
				t.Errorf("verdict = %d, want %d", got, c.want)
			}
			if got := n.cfg.Counts.Get(wire.CountInvalid, c.cause) - before; c.cause != "" && got != 1 {
				t.Errorf("counted %d times under %q, want once", got, c.cause)
			}
		})
	}
}

func TestASubmitterMayNotSayMoreThanItsRate(t *testing.T) {
	n := newStation(t, func(c *Config) {
		c.Limits.SubmitterRate, c.Limits.SubmitterBurst, c.Limits.Submitters = 0.001, 3, 2
	})
	verdicts := func(f forge, times int) (accepted int) {
		for i := range times {
			e := f.envelope(announcement(f.site, i))
			e.Sequence += uint64(i)
			if n.check(t.Context(), f.peer(), gossiped(f.sign(e), f.peer())) == pubsub.ValidationAccept {
				accepted++
			}
		}
		return accepted
	}
	for i, want := range []int{3, 3, 0} { // the third submitter is one too many to be watched
		if got := verdicts(newForge(t), 10); got != want {
			t.Errorf("submitter %d: %d of 10 accepted, want %d", i, got, want)
		}
	}
	if got := n.cfg.Counts.Get(wire.CountInvalid, causeRate); got != 24 {
		t.Errorf("counted %d over the rate, want 24", got)
	}
}

func TestGossipThatIsNotHandledIsBounded(t *testing.T) {
	hold := make(chan struct{})
	var handled atomic.Int64
	n := newStation(t, func(c *Config) {
		c.Limits.Messages = 10
		c.OnMessage = func(grid.SiteID, protocol.Message) { <-hold; handled.Add(1) }
	})
	failed := 0
	for i := range 100 {
		if n.Say(announcement(n.cfg.Self, i)) != nil {
			failed++
		}
	}
	close(hold)
	eventually(t, "the rest is handled", func() bool { return handled.Load() == int64(100-failed) })
	if failed < 80 || uint64(failed) != n.cfg.Counts.Get(wire.CountDropped, queueGossip) {
		t.Errorf(
			"%d of 100 refused, counted %d; want most and as many", failed,
			n.cfg.Counts.Get(wire.CountDropped, queueGossip),
		)
	}
	eventually(t, "nothing is left reserved", func() bool {
		return n.waiting.Load() == 0 && n.bytes.Load() == 0
	})
}

func TestForgeriesDoNotUseUpTheirVictimsRate(t *testing.T) {
	n := newStation(t, func(c *Config) {
		c.Limits.SubmitterRate, c.Limits.SubmitterBurst, c.Limits.Submitters = 0.001, 3, 8
	})
	victim, liar := newForge(t), newForge(t)
	check := func(f forge, i int) pubsub.ValidationResult {
		e := f.envelope(announcement(f.site, i))
		e.Sequence += uint64(i)
		return n.check(t.Context(), liar.peer(), gossiped(f.sign(e), liar.peer()))
	}
	for i := range 100 {
		if got := check(forge{t, liar.key, victim.site}, i); got != pubsub.ValidationReject {
			t.Fatalf("forgery %d: verdict %d, want a rejection", i, got)
		}
		made := forge{t, liar.key, wire.SiteOf(peer.ID(fmt.Sprintf("peer-%06d", i)))}
		_ = check(made, i) // names that nobody has take no place among the submitters
	}
	for i := range 3 {
		if got := check(victim, i); got != pubsub.ValidationAccept {
			t.Errorf("the victim's own announcement %d: verdict %d, want it accepted", i, got)
		}
	}
}

func TestLargeMessagesCostMore(t *testing.T) {
	now := time.Now()
	r := newRates(1, 32, 8)
	large := 0
	for r.take("a", now, 60<<10) {
		large++
	}
	small := 0
	for r.take("b", now, 500) {
		small++
	}
	if large != 2 || small != 32 || !r.take("c", now, 1<<20) {
		t.Errorf(
			"%d large and %d small messages in a row, want 2 and 32, and one of any size", large, small,
		)
	}
}
