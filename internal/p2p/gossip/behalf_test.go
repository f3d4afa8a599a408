package gossip

import (
	"fmt"
	"testing"
	"time"

	pubsub "github.com/libp2p/go-libp2p-pubsub"

	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

func behalf(owner grid.SiteID, m protocol.Message) protocol.OnBehalf {
	return protocol.OnBehalf{
		Behalf:  protocol.Behalf{Owner: owner, Term: 3, Certificate: []byte("certificate")},
		Message: m,
	}
}

// Anybody may say what is said on an owner's behalf, in the owner's name and on the topic for
// that; whether it has the right is not asked here.
func TestVerdictsOfWhatIsSaidOnBehalf(t *testing.T) {
	signer, owner := newForge(t), newForge(t)
	own, other := protocol.Topic("lab"), protocol.BehalfTopic("lab")
	good := behalf(owner.site, announcement(owner.site, 1))
	over := protocol.Clear{
		Job: announcement("", 1).Job, Submitter: owner.site, Kind: protocol.ClearEnded,
	}
	for _, c := range []struct {
		name, topic string
		m           protocol.Message
		want        pubsub.ValidationResult
	}{
		{"an announcement", other, good, pubsub.ValidationAccept},
		{"a clear", other, behalf(owner.site, over), pubsub.ValidationAccept},
		{"on the topic of submitters", own, good, pubsub.ValidationReject},
		{
			"for itself, on the other topic", other, announcement(signer.site, 1),
			pubsub.ValidationReject,
		},
		{
			"of another's job", other, behalf(owner.site, announcement(signer.site, 1)),
			pubsub.ValidationReject,
		},
		{
			"not for gossip", other, behalf(owner.site, protocol.Cancel{Job: over.Job}),
			pubsub.ValidationReject,
		},
		{"on no topic", "", good, pubsub.ValidationReject},
	} {
		n := newStation(t, func(*Config) {})
		raw := signer.sign(signer.envelope(c.m))
		passed := on(c.topic, raw, signer.peer())
		if got := n.check(t.Context(), signer.peer(), passed); got != c.want {
			t.Errorf("%s: verdict %d, want %d", c.name, got, c.want)
		}
		bad := n.cfg.Counts.Get(wire.CountInvalid, wire.CauseFormat)
		if want := c.want == pubsub.ValidationReject; (bad == 1) != want {
			t.Errorf("%s: counted %d times", c.name, bad)
		}
	}
}

// It matters for as long as what is said.
func TestHowLongWhatIsSaidOnBehalfMatters(t *testing.T) {
	a := announcement("o", 1)
	a.TTL = time.Minute
	if got, want := validity(behalf("o", a)), validity(a); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// What is said on behalf of an owner goes to those who know of that, and to nobody else.
func TestWhoHearsWhatIsSaidOnBehalf(t *testing.T) {
	var heard, hears ear
	a := newStation(t, func(c *Config) { c.OnMessage = heard.listen })
	b := newStation(t, func(c *Config) { c.OnMessage = hears.listen })
	link(t, a.cfg.Host, b.cfg.Host)
	m := behalf("owner", announcement("owner", 1))
	to := b.cfg.Host.ID()
	eventually(t, "they reach each other", func() bool { return a.Reaches(to) && a.Hears(to, m) })
	if err := a.Say(m); err != nil {
		t.Fatal(err)
	}
	for i, e := range []*ear{&heard, &hears} {
		eventually(t, fmt.Sprintf("%d hears it", i), func() bool { return e.has(a.cfg.Self, m) })
	}
	b.behalf.close() // as one that knows no standbys
	eventually(t, "it hears that no more", func() bool { return !a.Hears(to, m) })
	if !a.Reaches(to) || !a.Hears(to, m.Message) {
		t.Error("it hears nothing at all")
	}
}
