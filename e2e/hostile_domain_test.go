//go:build e2e

package e2e_test

import (
	"log/slog"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/member"
	"github.com/mrsmesh/mrsmesh/internal/p2p"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// liar is the gateway of a domain that lies to a linked one. It is a real peer, in the process of
// the test: what it says crosses as what an honest gateway says.
type liar struct {
	*p2p.Mesh

	links  *member.Links
	number atomic.Uint64
	orders atomic.Int64 // that it has taken
}

func startLiar(t *testing.T) *liar {
	t.Helper()
	dir := t.TempDir()
	cfg := p2p.Config{
		KeyFile: filepath.Join(dir, "site.key"), AddressFile: filepath.Join(dir, "peers.json"),
		Listen: []string{"/ip4/127.0.0.1/tcp/0"}, Domain: "liars", Name: "liar", Incarnation: 1,
		Preset: p2p.PresetTest,
	}
	id, err := p2p.LoadIdentity(cfg.KeyFile)
	if err == nil {
		cfg.Members, err = member.Open(member.Config{
			Dir: dir, Domain: cfg.Domain, Self: id.Site(), Name: cfg.Name,
		})
	}
	if err == nil {
		cfg.Links, err = member.OpenLinks(cfg.Members)
	}
	if err == nil {
		err = cfg.Links.NeedKey()
	}
	if err != nil {
		t.Fatal(err)
	}
	l := &liar{links: cfg.Links}
	handlers := p2p.Handlers{
		OnBorder: func(domain grid.SiteID, m protocol.Message) { l.lie(t, domain, m) },
	}
	l.Mesh, err = p2p.New(t.Context(), cfg, handlers, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// lie offers the nearest place that there can be, takes what it is given, claims to have worked on
// it for ages and that it came to nothing, and forges a receipt of as much work done for it.
func (l *liar) lie(t *testing.T, domain grid.SiteID, m protocol.Message) {
	const ages = int64(1) << 53
	var said []protocol.Message
	switch m := m.(type) {
	case protocol.BorderQuery:
		said = append(said, protocol.BorderAnswer{Job: m.Job, Seq: m.Seq, Offer: &grid.Offer{
			ID: 1, Validity: time.Minute, TasksNow: m.Count,
		}})
	case protocol.BorderOrder:
		l.orders.Add(1)
		said = append(
			said,
			protocol.BorderRenew{Number: l.number.Add(1), Attempts: []grid.AttemptID{m.Attempt}},
			protocol.BorderReceipt{
				Attempt: m.Attempt, Giver: domain, Taker: l.own(t), UsedCoreMS: ages,
				Signature: make([]byte, protocol.SignatureBytes),
			},
		)
	case protocol.BorderLease:
		for _, id := range m.Attempts {
			said = append(said, protocol.BorderEnd{
				Attempt: id, Exit: grid.Exit{Cause: grid.CauseSiteRestart}, UsedCoreMS: ages,
			})
		}
	}
	for _, s := range said {
		if err := l.SendBorder(domain, s); err != nil {
			t.Log(err)
		}
	}
}

func (l *liar) own(t *testing.T) grid.SiteID {
	site, err := p2p.DomainSite(l.links.Key())
	if err != nil {
		t.Error(err)
	}
	return site
}

// A linked domain that lies about all it does costs some time: nothing is lost, nothing runs twice,
// its claims are on no account, and the agents go on.
func TestADomainThatLies(t *testing.T) {
	t.Parallel()
	home := foundDomain(t, submitOnly, oneCore)
	invited := home.sites[0].command(t, "domain", "invite")
	invited.want(t, 0)
	token, err := member.ParseToken(strings.TrimSpace(invited.out))
	if err != nil {
		t.Fatal(err)
	}
	l := startLiar(t)
	if _, err := l.LinkWith(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	home.awaitLink(t)
	id := home.begin(t, []string{"--count", "4"}, "ticks=10")
	eventually(t, 4*patience, "all are done", func() bool { return home.allDone(t, id) })
	if n := home.abroad(t, id, "done"); n != 0 || l.orders.Load() == 0 {
		t.Errorf("%d are done at the liar, which had %d orders", n, l.orders.Load())
	}
	const longest = 4 * 60. // four tasks for a minute: far below what was claimed
	if row := home.linkOf(t); row.Given != 0 || row.Taken > longest {
		t.Errorf("given %v, taken %v core-seconds", row.Given, row.Taken)
	}
	home.audit(t)
	home.replay(t)
}
