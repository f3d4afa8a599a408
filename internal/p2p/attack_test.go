package p2p

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p"
	pubsub "github.com/libp2p/go-libp2p-pubsub"
	pb "github.com/libp2p/go-libp2p-pubsub/pb"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/peer"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// town is a mesh in virtual time with a member that attacks it: it speaks plain
// gossipsub to everybody and says no Hello.
type town struct {
	t        *testing.T
	world    *simulated
	nodes    []node
	hosts    []host.Host
	attacker forge
	stranger forge // whose envelopes nobody wants
	evil     host.Host
	topic    *pubsub.Topic
	sent     uint64
}

// newTown starts n sites that list each other and the attacker. It must be
// called in a bubble, and closed there.
func newTown(t *testing.T, n int, attacker, stranger forge, change func(*Config)) *town {
	t.Helper()
	w := &town{t: t, world: newSimulated(), attacker: attacker, stranger: stranger}
	w.world.mbps = 1000
	members := []grid.SiteID{attacker.id.site}
	for i := range n {
		h := w.world.host(t, i+1)
		w.hosts, members = append(w.hosts, h), append(members, siteOf(h.ID()))
	}
	w.evil = w.world.host(t, n+1, libp2p.Identity(attacker.id.key))
	w.world.net.Start()
	for i, h := range w.hosts {
		cfg := Config{Host: h, Domain: "lab", Incarnation: 1, Allow: members, Preset: PresetLAN}
		if i > 0 {
			cfg.Bootstrap = []string{w.hosts[0].Addrs()[0].String() + "/p2p/" + w.hosts[0].ID().String()}
		}
		if change != nil {
			change(&cfg)
		}
		rec := &recorder{}
		m, err := New(t.Context(), cfg, rec.handlers(), nil)
		if err != nil {
			t.Fatal(err)
		}
		w.nodes = append(w.nodes, node{m, rec})
	}
	w.until("the mesh is whole", func() bool {
		for _, n := range w.nodes {
			if n.peers() != len(w.nodes)-1 || len(n.gossip.topic.ListPeers()) != len(w.nodes)-1 {
				return false
			}
		}
		return true
	})
	w.arm()
	return w
}

func (w *town) close() {
	for i, n := range w.nodes {
		_ = n.Close()
		_ = w.hosts[i].Close()
	}
	_ = w.evil.Close()
	w.world.net.Close()
}

func (w *town) until(what string, holds func() bool) {
	w.t.Helper()
	for range 600 {
		if holds() {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	w.t.Fatalf("after a minute still not true: %s", what)
}

// arm connects the attacker to everybody.
func (w *town) arm() {
	w.t.Helper()
	for _, h := range w.hosts {
		if err := w.evil.Connect(w.t.Context(), peer.AddrInfo{ID: h.ID(), Addrs: h.Addrs()}); err != nil {
			w.t.Fatal(err)
		}
	}
	ps, err := pubsub.NewGossipSub(w.t.Context(), w.evil, pubsub.WithFloodPublish(true),
		pubsub.WithMessageSignaturePolicy(pubsub.StrictNoSign), pubsub.WithNoAuthor(),
		pubsub.WithMessageIdFn(func(m *pb.Message) string { return time.Now().String() + messageID(m) }))
	if err != nil {
		w.t.Fatal(err)
	}
	if w.topic, err = ps.Join(protocol.Topic("lab")); err != nil {
		w.t.Fatal(err)
	}
	w.until("the attacker is on the topic", func() bool { return len(w.topic.ListPeers()) == len(w.hosts) })
}

func (w *town) publish(data []byte) {
	w.t.Helper()
	if err := w.topic.Publish(w.t.Context(), data); err != nil {
		w.t.Fatal(err)
	}
}

// fresh is a signed envelope of somebody that was never sent.
func (w *town) fresh(f forge, change func(*protocol.Envelope)) []byte {
	w.sent++
	e := f.envelope(announcement(f.id.site, int(w.sent)))
	e.Sequence += w.sent
	if change != nil {
		change(&e)
	}
	return f.sign(e)
}

// The ways to be invalid.
var flaws = map[string]func(*town) []byte{
	"signature": func(w *town) []byte {
		raw := w.fresh(w.attacker, nil)
		raw[len(raw)-1] ^= 1
		return raw
	},
	"name of another": func(w *town) []byte {
		return w.fresh(forge{w.t, Identity{key: w.attacker.id.key, site: w.nodes[0].Self()}}, nil)
	},
	"format": func(w *town) []byte {
		return w.fresh(w.attacker, func(e *protocol.Envelope) { e.Payload = fmt.Append(nil, "rubbish ", w.sent) })
	},
	"oversize": func(w *town) []byte {
		w.sent++
		return bytes.Repeat(fmt.Appendf(nil, "%07d ", w.sent), protocol.MaxEnvelopeBytes/8+1)
	},
	"domain": func(w *town) []byte {
		return w.fresh(w.attacker, func(e *protocol.Envelope) { e.Domain = "other" })
	},
	"expired forgery": func(w *town) []byte {
		return w.fresh(forge{w.t, Identity{key: w.attacker.id.key, site: w.nodes[0].Self()}}, expired)
	},
	"expired": func(w *town) []byte { return w.fresh(w.attacker, expired) },
	"replay": func(w *town) []byte { // in ever new wrappings
		w.sent++
		return protowire.AppendVarint(protowire.AppendTag(w.attacker.announce(1), 100, protowire.VarintType), w.sent)
	},
}

func expired(e *protocol.Envelope) { e.IssuedMS -= (25 * time.Minute).Milliseconds() }

// invalid is how many messages the sites have validated in vain.
func (w *town) invalid() (sum uint64) {
	for _, n := range w.nodes {
		for _, cause := range []string{
			causeSize, causeVersion, causeDomain, causeDeadline, causeRate, causeStranger, causeSignature, causeFormat, causeReplay,
		} {
			sum += n.Count(CountInvalid, cause)
		}
	}
	return sum
}

// delivered is which part of the honest announcements every site has heard.
func (w *town) delivered(from int) float64 {
	got := 0
	for _, n := range w.nodes {
		jobs := make(map[grid.JobID]bool)
		for _, h := range n.heard() {
			if a, ok := h.message.(protocol.Announce); ok && h.from != w.attacker.id.site {
				jobs[a.Job] = true
			}
		}
		got += len(jobs)
	}
	return float64(got) / float64(from*len(w.nodes))
}

// flood attacks with 100 messages a second for so long, while the sites announce
// ten jobs a second. It reports the invalid messages that were validated and the
// part of the honest ones that arrived.
func (w *town) flood(d time.Duration, kinds ...string) (validated uint64, delivered float64) {
	w.t.Helper()
	before, said := w.invalid(), 0
	for i := range int(d / (10 * time.Millisecond)) {
		kind := kinds[i%len(kinds)]
		if kind == "oversize" && i/len(kinds)%10 > 0 {
			kind = "format" // no more bytes than an uplink takes
		}
		w.publish(flaws[kind](w))
		if i%10 == 0 {
			n := w.nodes[i/10%len(w.nodes)]
			if err := n.Broadcast(announcement(n.Self(), 1_000_000+said)); err != nil {
				w.t.Fatal(err)
			}
			said++
		}
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(2 * time.Second)
	return w.invalid() - before, w.delivered(said)
}

var everyFlaw = []string{"signature", "name of another", "format", "oversize", "domain", "expired forgery", "expired", "replay"}

func TestScoresCutAFloodOfInvalidMessages(t *testing.T) { cutsAFlood(t, 8, 7*time.Second) }

// cutsAFlood floods a mesh with scores and one without, and compares.
func cutsAFlood(t *testing.T, sites int, length time.Duration) {
	t.Helper()
	attacker, stranger := newForge(t), newForge(t)
	run := func(unscored bool) (validated uint64, delivered float64) {
		synctest.Test(t, func(t *testing.T) {
			w := newTown(t, sites, attacker, stranger, func(c *Config) { c.unscored = unscored })
			defer w.close()
			validated, delivered = w.flood(length, everyFlaw...)
		})
		return validated, delivered
	}
	without, deliveredWithout := run(true)
	with, deliveredWith := run(false)
	t.Logf("%d sites, %s at 100 invalid messages/s: %d validations without scores, %d with: %.0f times fewer; delivered %.4f and %.4f",
		sites, length, without, with, float64(without)/float64(with), deliveredWithout, deliveredWith)
	if with == 0 || without < 100*with {
		t.Errorf("validations fell from %d to %d, want to a hundredth", without, with)
	}
	if deliveredWith != 1 {
		t.Errorf("honest delivery %.4f, want all", deliveredWith)
	}
}

func TestEveryKindOfInvalidMessageCostsThePeerItsScore(t *testing.T) {
	for _, kind := range everyFlaw {
		t.Run(strings.ReplaceAll(kind, " ", "-"), func(t *testing.T) {
			attacker, stranger := newForge(t), newForge(t)
			synctest.Test(t, func(t *testing.T) {
				w := newTown(t, 3, attacker, stranger, nil)
				defer w.close()
				validated, delivered := w.flood(4*time.Second, kind)
				limit := uint64(10 * len(w.nodes))
				if kind == "expired" {
					limit += lateBurst * uint64(len(w.nodes))
				}
				if validated > limit || validated == 0 || delivered != 1 {
					t.Errorf("%d of %d validated, want at most %d; delivered %.4f", validated, 400*len(w.nodes), limit, delivered)
				}
			})
		})
	}
}

// heardFrom counts the announcements of a submitter that reached the handlers of
// each site, the least and the most.
func (w *town) heardFrom(site grid.SiteID) (least, most int) {
	for i, n := range w.nodes {
		got := 0
		for _, h := range n.heard() {
			if h.from == site {
				got++
			}
		}
		if i == 0 {
			least = got
		}
		least, most = min(least, got), max(most, got)
	}
	return least, most
}

// rejected is how many messages cost who brought them its score.
func (w *town) rejected() (sum uint64) {
	for _, n := range w.nodes {
		for _, cause := range []string{causeSize, causeVersion, causeDomain, causeSignature, causeFormat} {
			sum += n.Count(CountInvalid, cause)
		}
	}
	return sum
}

func TestOneSubmittersFloodIsCutAndPunishesNobody(t *testing.T) {
	attacker, stranger := newForge(t), newForge(t)
	synctest.Test(t, func(t *testing.T) {
		const perSecond, burst, seconds = 20, 40, 5
		w := newTown(t, 6, attacker, stranger, func(c *Config) {
			c.Limits.SubmitterRate, c.Limits.SubmitterBurst = perSecond, burst
		})
		defer w.close()
		for i := range 10 * perSecond * seconds {
			w.publish(w.fresh(w.attacker, nil))
			if i%40 == 0 {
				n := w.nodes[i/40%len(w.nodes)]
				if err := n.Broadcast(announcement(n.Self(), 1_000_000+i/40)); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Second / (10 * perSecond))
		}
		time.Sleep(2 * time.Second)
		least, most := w.heardFrom(attacker.id.site)
		t.Logf("of %d the sites heard %d to %d", 10*perSecond*seconds, least, most)
		if least < burst || most > burst+perSecond*(seconds+2) {
			t.Errorf("the sites heard %d to %d of the flooder, want %d and at most %d", least, most, burst, burst+perSecond*(seconds+2))
		}
		if got := w.delivered(10 * perSecond * seconds / 40); got != 1 || w.rejected() != 0 {
			t.Errorf("honest delivery %.4f, %d messages punished; want all and none", got, w.rejected())
		}
	})
}

func TestWhoPassesOnAStrangersEnvelopesIsNotPunished(t *testing.T) {
	attacker, stranger := newForge(t), newForge(t)
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, 4, attacker, stranger, nil)
		defer w.close()
		for range 100 {
			w.publish(w.fresh(w.stranger, nil))
			time.Sleep(10 * time.Millisecond)
		}
		w.publish(w.fresh(w.attacker, nil))
		time.Sleep(2 * time.Second)
		if _, most := w.heardFrom(stranger.id.site); most > 0 {
			t.Errorf("%d envelopes of a stranger were heeded", most)
		}
		if least, most := w.heardFrom(attacker.id.site); least != 1 || most != 1 || w.rejected() > 0 {
			t.Errorf("who passed them on was heard %d to %d times, %d messages punished; want once and none", least, most, w.rejected())
		}
	})
}

func TestOldEnvelopesAreNotHeardAgain(t *testing.T) {
	attacker, stranger := newForge(t), newForge(t)
	synctest.Test(t, func(t *testing.T) {
		const said = 20
		w := newTown(t, 4, attacker, stranger, func(c *Config) {
			c.Limits.SubmitterRate, c.Limits.SubmitterBurst = 0.1, 2*said
		})
		defer w.close()
		tap, err := w.topic.Subscribe()
		if err != nil {
			t.Fatal(err)
		}
		defer tap.Cancel()
		time.Sleep(5 * time.Second)
		victim := w.nodes[0]
		var captured [][]byte
		for i := range said {
			if err := victim.Broadcast(announcement(victim.Self(), i)); err != nil {
				t.Fatal(err)
			}
			raw, err := tap.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			captured = append(captured, raw.GetData())
		}
		for range 3 { // gossipsub itself knows a message again for two minutes
			time.Sleep(150 * time.Second)
			for _, raw := range captured {
				w.publish(raw)
			}
		}
		time.Sleep(2 * time.Second)
		if err := victim.Broadcast(announcement(victim.Self(), said)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if least, most := w.heardFrom(victim.Self()); least != said+1 || most != said+1 {
			t.Errorf("the victim's %d announcements were heard %d to %d times", said+1, least, most)
		}
		if w.nodes[1].Count(CountInvalid, causeReplay) == 0 {
			t.Error("no replay is counted")
		}
	})
}

func TestForgeriesDoNotUseUpTheirVictimsRate(t *testing.T) {
	cfg := testConfig(t)
	cfg.Limits.SubmitterRate, cfg.Limits.SubmitterBurst, cfg.Limits.Submitters = 0.001, 3, 8
	n := join(t, cfg)
	victim, liar := newForge(t), newForge(t)
	check := func(f forge, i int) pubsub.ValidationResult {
		e := f.envelope(announcement(f.id.site, i))
		e.Sequence += uint64(i)
		return n.gossip.check(t.Context(), liar.id.id, gossiped(f.sign(e), liar.id.id))
	}
	for i := range 100 {
		if got := check(forge{t, Identity{key: liar.id.key, site: victim.id.site}}, i); got != pubsub.ValidationReject {
			t.Fatalf("forgery %d: verdict %d, want a rejection", i, got)
		}
		made := forge{t, Identity{key: liar.id.key, site: siteOf(newID(i))}}
		_ = check(made, i) // names that nobody has take no place among the submitters
	}
	for i := range 3 {
		if got := check(victim, i); got != pubsub.ValidationAccept {
			t.Errorf("the victim's own announcement %d: verdict %d, want it accepted", i, got)
		}
	}
}
