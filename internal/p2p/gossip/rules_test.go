package gossip

import (
	"errors"
	"fmt"
	"testing"
	"time"

	pubsub "github.com/libp2p/go-libp2p-pubsub"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// Only a peer that sends its own expired words is to blame, and only where its lateness is
// not forgiven: who passes on may have slept.
func TestWhoIsToBlameForWhatHasExpired(t *testing.T) {
	signer, other := newForge(t), newForge(t)
	for _, c := range []struct {
		name    string
		from    peer.ID
		forgive bool
		want    pubsub.ValidationResult
	}{
		{"its own", signer.peer(), false, pubsub.ValidationReject},
		{"its own, forgiven", signer.peer(), true, pubsub.ValidationIgnore},
		{"passed on", other.peer(), false, pubsub.ValidationIgnore},
		{"passed on, forgiven", other.peer(), true, pubsub.ValidationIgnore},
	} {
		n := newStation(t, func(cfg *Config) {
			cfg.LateOwn = func(p peer.ID) bool { return p != c.from || c.forgive }
		})
		e := signer.envelope(announcement(signer.site, 1))
		e.IssuedMS -= (12 * time.Minute).Milliseconds()
		if got := n.check(t.Context(), c.from, gossiped(signer.sign(e), c.from)); got != c.want {
			t.Errorf("%s: verdict %d, want %d", c.name, got, c.want)
		}
	}
}

// What is said to all carries its site, its incarnation above its count, and how long it
// matters; what is not for all is not said.
func TestWhatIsSealed(t *testing.T) {
	n := newStation(t, func(c *Config) { c.Incarnation = 3 })
	self := n.cfg.Self
	announce := announcement(self, 1)
	announce.TTL = time.Minute
	for i, m := range []protocol.Message{announce, protocol.Clear{
		Job: announce.Job, Submitter: self, Kind: protocol.ClearEnded,
	}} {
		raw, err := n.seal(m)
		if err != nil {
			t.Fatalf("%T: %v", m, err)
		}
		e, _, _, err := protocol.DecodeEnvelope(raw)
		if err != nil {
			t.Fatal(err)
		}
		if e.Sequence != 3<<sequenceBits|uint64(i+1) || e.Signer != self || e.Domain != "lab" {
			t.Errorf("%T: %+v", m, e)
		}
		want := []time.Duration{time.Minute, clearValidity}[i]
		if e.Validity != want || validity(m) != want {
			t.Errorf("%T matters for %s, want %s", m, e.Validity, want)
		}
		if by, ok := speaker(m); !ok || by != self {
			t.Errorf("%T speaks for %q, %t", m, by, ok)
		}
	}
	for ttl, want := range map[time.Duration]time.Duration{
		0: minValidity, minValidity - 1: minValidity, minValidity + 1: minValidity + 1,
		protocol.MaxValidity + 1: protocol.MaxValidity,
	} {
		if got := validity(protocol.Announce{TTL: ttl}); got != want {
			t.Errorf("an announcement of %s matters for %s, want %s", ttl, got, want)
		}
		if got := validity(protocol.Reannounce{TTL: ttl}); got != want {
			t.Errorf("one again of %s matters for %s, want %s", ttl, got, want)
		}
	}
	if by, ok := speaker(protocol.Reannounce{Submitter: self}); !ok || by != self {
		t.Errorf("an announcement again speaks for %q, %t", by, ok)
	}
	_, err := n.seal(protocol.Cancel{Job: announce.Job})
	if !errors.Is(err, protocol.ErrUnknownMessage) {
		t.Errorf("a message for one: %v", err)
	}
	if err := n.Say(protocol.Clear{}); err == nil {
		t.Error("a message about nothing is said")
	}
}

// Members alone take part, messages have no author, and nobody is barred by libp2p itself.
func TestStrangers(t *testing.T) {
	member, other := newForge(t), newForge(t)
	n := newStation(t, func(c *Config) {
		c.Allowed = func(site grid.SiteID) bool { return site == member.site }
	})
	s := strangers{n}
	if s.Contains("") || s.Contains(member.peer()) || !s.Contains(other.peer()) {
		t.Error("want strangers out, and members and messages without an author in")
	}
	if s.Add(member.peer()) || s.Contains(member.peer()) {
		t.Error("a member can be barred by another way than its membership")
	}
}

// So many submitters are watched at a time. One that was silent until it has all its tokens
// again makes room, which is looked for once a second at most.
func TestRoomForAnotherSubmitter(t *testing.T) {
	now := time.Unix(1000, 0)
	r := newRates(1, 2, 2)
	site := func(i int) grid.SiteID { return grid.SiteID(fmt.Sprint("site", i)) }
	if !r.take(site(1), now, 0) || !r.take(site(2), now, 0) || !r.take(site(2), now, 0) {
		t.Fatal("two submitters are too many")
	}
	if r.take(site(2), now, 0) || r.ready(site(2), now) {
		t.Error("more than its burst")
	}
	if !r.ready(site(1), now) || !r.ready(site(3), now) {
		t.Error("who has tokens, or was never heard, is not ready")
	}
	if r.take(site(3), now.Add(500*time.Millisecond), 0) {
		t.Error("room for a third while both have used tokens")
	}
	if r.take(site(3), now.Add(1500*time.Millisecond), 0) {
		t.Error("room is looked for again within a second")
	}
	if !r.take(site(3), now.Add(1501*time.Millisecond), 0) || r.buckets[site(1)] != nil {
		t.Error("the one that was silent is not dropped")
	}
	if r.buckets[site(2)] == nil || len(r.buckets) != 2 {
		t.Errorf("watched are %d, want the one that still has to wait and the new one", len(r.buckets))
	}
	// Nothing is dropped where fewer are watched.
	r = newRates(1, 2, 3)
	r.take(site(1), now, 0)
	r.take(site(2), now.Add(time.Hour), 0)
	if len(r.buckets) != 2 {
		t.Errorf("%d are watched, want 2", len(r.buckets))
	}
}

// A message costs a token, and another one for each so many bytes; the largest costs all.
func TestTheCostOfAMessage(t *testing.T) {
	now := time.Unix(1000, 0)
	for bytes, want := range map[int]float64{
		0: 9, tokenBytes - 1: 9, tokenBytes: 8, 3*tokenBytes - 1: 7, 100 * tokenBytes: 0,
	} {
		r := newRates(1, 10, 1)
		if !r.take("a", now, bytes) || r.buckets["a"].TokensAt(now) != want {
			t.Errorf("after %d bytes there are %v tokens, want %v",
				bytes, r.buckets["a"].TokensAt(now), want)
		}
	}
	r := newRates(1, 10, 1)
	for range 9 {
		r.take("a", now, 0)
	}
	if !r.ready("a", now) || !r.take("a", now, 0) || r.ready("a", now) {
		t.Error("want the last token to be given, and no more")
	}
	if r.ready("a", now.Add(999*time.Millisecond)) || !r.ready("a", now.Add(time.Second)) {
		t.Error("want a token a second")
	}
}

// Near sites keep few neighbours, far ones gossipsub's own degree; only tests are quick.
func TestTheShapeOfTheMesh(t *testing.T) {
	usual := pubsub.DefaultGossipSubParams()
	near, far := meshShape(Config{}), meshShape(Config{Wide: true})
	if near.D >= usual.D || near.Dlo >= near.D || near.Dhi <= near.D || near.Dout >= near.Dlo ||
		near.Dscore > near.D || near.Dhi > usual.Dlo {
		t.Errorf("near: %d, %d to %d, %d out, %d by score",
			near.D, near.Dlo, near.Dhi, near.Dout, near.Dscore)
	}
	if far.D != usual.D || far.Dlo != usual.Dlo || far.Dhi != usual.Dhi {
		t.Errorf("far: %d, %d to %d", far.D, far.Dlo, far.Dhi)
	}
	if near.HeartbeatInterval != usual.HeartbeatInterval ||
		meshShape(Config{Quick: true}).HeartbeatInterval*10 != usual.HeartbeatInterval {
		t.Error("want ten heartbeats in the time of one for tests alone")
	}
}

// What libp2p asks of the scores holds, and misdeeds outweigh all that a peer can earn.
func TestScores(t *testing.T) {
	params, limits := scores([]string{"topic"})
	topic := params.Topics["topic"]
	most := topic.TopicWeight * (topic.TimeInMeshWeight*topic.TimeInMeshCap +
		topic.FirstMessageDeliveriesWeight*topic.FirstMessageDeliveriesCap)
	if most <= 0 || params.AppSpecificScore("") != 0 {
		t.Errorf("a good peer has %v", most)
	}
	invalid := func(n float64) float64 {
		return topic.TopicWeight * topic.InvalidMessageDeliveriesWeight * n * n
	}
	for name, c := range map[string]struct{ few, many, limit float64 }{
		"no gossip": {2, 3, limits.GossipThreshold}, "not published to": {3, 4, limits.PublishThreshold},
		"not heard": {4, 5, limits.GraylistThreshold},
	} {
		if invalid(c.few) < c.limit || invalid(c.many)+most >= c.limit+most && invalid(c.many) > c.limit {
			t.Errorf("%s: want it after %v bad messages, not after %v", name, c.many, c.few)
		}
	}
}

// What waits is bounded in number and in bytes; the rest is counted and leaves none
// of its own.
func TestRoomForWhatWaits(t *testing.T) {
	n := newStation(t, func(c *Config) { c.Limits.Messages, c.Limits.Bytes = 3, 100 })
	for i, c := range []struct {
		size int
		want pubsub.ValidationResult
	}{
		{60, pubsub.ValidationAccept},
		{41, pubsub.ValidationIgnore},
		{40, pubsub.ValidationAccept},
		{1, pubsub.ValidationIgnore},
		{0, pubsub.ValidationAccept},
		{0, pubsub.ValidationIgnore},
	} {
		if got := n.reserve(c.size); got != c.want {
			t.Errorf("message %d of %d bytes: %d, want %d", i, c.size, got, c.want)
		}
	}
	if n.waiting.Load() != 3 || n.bytes.Load() != 100 {
		t.Errorf("%d messages of %d bytes wait, want 3 of 100", n.waiting.Load(), n.bytes.Load())
	}
	if got := n.cfg.Counts.Get(wire.CountDropped, queueGossip); got != 3 {
		t.Errorf("%d are counted as dropped, want 3", got)
	}
	for _, size := range []int{60, 40, 0} {
		n.release(size)
	}
}

// The clock of the checks does not go back with that of the machine.
func TestTheClockDoesNotGoBack(t *testing.T) {
	now := time.Unix(1000, 0)
	n := newStation(t, func(c *Config) { c.Now = func() time.Time { return now } })
	first := n.clock()
	now = now.Add(-time.Hour)
	if got := n.clock(); !got.Equal(first) {
		t.Errorf("the clock went back to %s", got)
	}
	now = now.Add(2 * time.Hour)
	if got := n.clock(); !got.Equal(now) {
		t.Errorf("the clock stands at %s, want %s", got, now)
	}
}

// What gossipsub drops in its own queues is counted, and nothing else that it rejects; what the
// handler was too slow for waits no more.
func TestWhatGossipsubDrops(t *testing.T) {
	n := newStation(t, func(*Config) {})
	d := tracer{g: n}
	for _, reason := range []string{
		pubsub.RejectValidationQueueFull, pubsub.RejectValidationThrottled,
		pubsub.RejectInvalidSignature, pubsub.RejectValidationIgnored,
	} {
		d.RejectMessage(nil, reason)
	}
	if got := n.cfg.Counts.Get(wire.CountDropped, queueValidate); got != 2 {
		t.Errorf("%d were not checked in time, want 2", got)
	}
	n.reserve(5)
	d.UndeliverableMessage(gossiped(make([]byte, 5), ""))
	if n.waiting.Load() != 0 || n.bytes.Load() != 0 ||
		n.cfg.Counts.Get(wire.CountDropped, queueGossip) != 1 {
		t.Errorf("%d messages of %d bytes wait", n.waiting.Load(), n.bytes.Load())
	}
}

// What cannot be sealed is not said, and counts as no word of this site.
func TestWhatCannotBeSealed(t *testing.T) {
	n := newStation(t, func(*Config) {})
	m := announcement(n.cfg.Self, 1)
	m.Count = 0
	if raw, err := n.seal(m); err == nil || raw != nil {
		t.Errorf("an announcement of nothing: %d bytes, %v", len(raw), err)
	}
	if err := n.Say(m); err == nil {
		t.Error("an announcement of nothing is said")
	}
	if n.sent.Load() != 0 {
		t.Errorf("%d words are counted", n.sent.Load())
	}
}
