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

	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// town is a mesh in virtual time with a member that attacks it: it speaks plain
// gossipsub to all sites and says no Hello.
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
	members := []grid.SiteID{attacker.site}
	for i := range n {
		h := w.world.host(t, i+1)
		w.hosts, members = append(w.hosts, h), append(members, wire.SiteOf(h.ID()))
	}
	w.evil = w.world.host(t, n+1, libp2p.Identity(attacker.key))
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
			if n.peers() != len(w.nodes)-1 || !n.hears(w.nodes) {
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

// arm connects the attacker to all sites.
func (w *town) arm() {
	w.t.Helper()
	for _, h := range w.hosts {
		if err := w.evil.Connect(w.t.Context(), peer.AddrInfo{ID: h.ID(), Addrs: h.Addrs()}); err != nil {
			w.t.Fatal(err)
		}
	}
	ps, err := pubsub.NewGossipSub(w.t.Context(), w.evil, pubsub.WithFloodPublish(true),
		pubsub.WithMessageSignaturePolicy(pubsub.StrictNoSign), pubsub.WithNoAuthor(),
		pubsub.WithMessageIdFn(func(m *pb.Message) string {
			return time.Now().String() + string(m.GetData())
		}))
	if err != nil {
		w.t.Fatal(err)
	}
	if w.topic, err = ps.Join(protocol.Topic("lab")); err != nil {
		w.t.Fatal(err)
	}
	w.until("the attacker is on the topic", func() bool {
		return len(w.topic.ListPeers()) == len(w.hosts)
	})
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
	e := f.envelope(announcement(f.site, int(w.sent)))
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
		return w.fresh(forge{w.t, w.attacker.key, w.nodes[0].Self()}, nil)
	},
	"format": func(w *town) []byte {
		return w.fresh(w.attacker, func(e *protocol.Envelope) {
			e.Payload = fmt.Append(nil, "rubbish ", w.sent)
		})
	},
	"oversize": func(w *town) []byte {
		w.sent++
		return bytes.Repeat(fmt.Appendf(nil, "%07d ", w.sent), protocol.MaxEnvelopeBytes/8+1)
	},
	"domain": func(w *town) []byte {
		return w.fresh(w.attacker, func(e *protocol.Envelope) { e.Domain = "other" })
	},
	"expired forgery": func(w *town) []byte {
		return w.fresh(forge{w.t, w.attacker.key, w.nodes[0].Self()}, expired)
	},
	"expired": func(w *town) []byte { return w.fresh(w.attacker, expired) },
	"replay": func(w *town) []byte { // in ever new wrappings
		w.sent++
		return append(w.attacker.announce(1), number(100, int64(w.sent))...)
	},
}

func expired(e *protocol.Envelope) { e.IssuedMS -= (25 * time.Minute).Milliseconds() }

// invalid counts the messages that the sites have validated and found invalid.
func (w *town) invalid() (sum uint64) {
	for _, n := range w.nodes {
		for _, cause := range []string{
			"size", "version", "domain", "deadline", "rate", "stranger", "signature", "format", "replay",
		} {
			sum += n.Count(wire.CountInvalid, cause)
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
			if a, ok := h.message.(protocol.Announce); ok && h.from != w.attacker.site {
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

var everyFlaw = []string{
	"signature", "name of another", "format", "oversize", "domain", "expired forgery", "expired",
	"replay",
}

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
	t.Logf("%d sites, %s at 100 invalid messages/s: %d validations without scores, %d with: "+
		"%.0f times fewer; delivered %.4f and %.4f",
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
					t.Errorf(
						"%d of %d validated, want at most %d; delivered %.4f", validated, 400*len(w.nodes), limit,
						delivered,
					)
				}
			})
		})
	}
}
