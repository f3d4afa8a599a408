package p2p

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	lp "github.com/libp2p/go-libp2p/core/protocol"

	"github.com/mrsmesh/mrsmesh/internal/obs"
	"github.com/mrsmesh/mrsmesh/internal/p2p/gate"
	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// Each reason for which nothing can be sent has its error; whom an address or the memory leads to
// gets an owner, who is dialled.
func TestToWhomSomethingIsSent(t *testing.T) {
	for name, c := range map[string]struct {
		before func(q *quiet, to grid.SiteID) grid.SiteID
		want   error
	}{
		"this site": {func(q *quiet, _ grid.SiteID) grid.SiteID { return q.self }, errSelf},
		"a stranger": {func(q *quiet, to grid.SiteID) grid.SiteID {
			q.cfg.AcceptAnyone = false
			return to
		}, errNotMember},
		"nowhere": {func(_ *quiet, to grid.SiteID) grid.SiteID { return to }, errUnknownSite},
		"at an address": {func(q *quiet, to grid.SiteID) grid.SiteID {
			q.at(forge{t: q.t, site: to}.peer(), "/ip4/10.0.0.1/tcp/1")
			return to
		}, nil},
		"remembered": {func(q *quiet, to grid.SiteID) grid.SiteID {
			q.book.put(forge{t: q.t, site: to}.peer(), addrAt(1), time.Now())
			return to
		}, nil},
		"known": {func(q *quiet, to grid.SiteID) grid.SiteID {
			q.knows(forge{t: q.t, site: to}.peer())
			return to
		}, nil},
		"one too many": {func(q *quiet, to grid.SiteID) grid.SiteID {
			q.cfg.Limits.Peers = 1
			q.knows(q.stranger())
			q.book.put(forge{t: q.t, site: to}.peer(), addrAt(1), time.Now())
			return to
		}, errCrowded},
		"closed, known": {func(q *quiet, to grid.SiteID) grid.SiteID {
			q.knows(forge{t: q.t, site: to}.peer())
			q.book.put(forge{t: q.t, site: to}.peer(), addrAt(1), time.Now())
			q.closed = true
			return to
		}, errClosed},
	} {
		q := newQuiet(t, nil)
		to := c.before(q, wire.SiteOf(q.stranger()))
		err := q.Send(to, protocol.Cancel{Job: jobID(1)})
		if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if c.want != nil {
			continue
		}
		r := q.lookup(to)
		if r == nil || len(r.waiting(t)) != 1 || len(q.begun) != 1 || q.begun[0] != r ||
			q.Count(wire.CountOut, "Cancel") != 1 {
			t.Errorf("%s: %d owners begin, want one for which the message waits", name, len(q.begun))
		}
	}
	q := newQuiet(t, nil)
	if err := q.Send("nobody", protocol.Cancel{Job: jobID(1)}); err == nil ||
		errors.Is(err, errUnknownSite) {
		t.Errorf("Send to a word: %v", err)
	}
	r := q.knows(q.stranger())
	if err := q.Send(r.site, protocol.Cancel{}); !errors.Is(err, grid.ErrInvalid) || len(r.queue) > 0 {
		t.Errorf("a message that is none: %v", err)
	}
}

// A peer has one owner; this site has none, and nobody has one in a mesh that is closed or full.
func TestWhoHasAnOwner(t *testing.T) {
	q := newQuiet(t, func(c *Config) { c.Limits.Peers = 2 })
	id := q.stranger()
	changed := 0
	for range 2 {
		q.want(id, func(*remote) { changed++ })
	}
	if len(q.begun) != 1 || changed != 2 || q.want(q.stub.id, func(*remote) { changed++ }) != nil {
		t.Errorf("%d owners, changed %d times", len(q.begun), changed)
	}
	last, beyond := q.want(q.stranger(), nil), q.want(q.stranger(), func(*remote) { changed++ })
	if last == nil || beyond != nil || changed != 2 || len(q.all()) != 2 {
		t.Errorf("%d owners, want as many as there may be", len(q.all()))
	}
	q.closed = true
	if q.want(id, nil) != nil {
		t.Error("a closed mesh has owners")
	}
}

// What is broadcast also goes, on its stream, to each present peer that is not yet on the topic.
func TestABroadcastToPeersThatAreNotOnTheTopic(t *testing.T) {
	a := startSite(t, testConfig(t))
	h, _ := admitRaw(t, a) // it speaks no gossip
	r := a.lookup(wire.SiteOf(h.ID()))
	absent := a.want(newForge(t).peer(), func(r *remote) { r.hearsay = 1 })
	if err := a.Broadcast(announcement(a.Self(), 1)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "this site hears itself", func() bool { return a.count() == 1 })
	if got := a.Count(wire.CountOut, "Announce"); got != 2 || r == nil || absent == nil {
		t.Errorf("%d messages are counted, want what was said and what was sent", got)
	}
	if err := a.Broadcast(protocol.Cancel{Job: jobID(1)}); err == nil ||
		!strings.HasPrefix(err.Error(), "broadcast Cancel: ") {
		t.Errorf("Broadcast(Cancel) = %v", err)
	}
}

// What another submitter announces tells where it is reached; this site needs not to be told.
func TestWhatIsOverheard(t *testing.T) {
	q := newQuiet(t, nil)
	id := q.stranger()
	a := announcement(wire.SiteOf(id), 1)
	a.Addrs = []string{"/ip4/10.0.0.1/tcp/4601"}
	q.overheard(wire.SiteOf(id), a)
	q.overheard(q.self, a)
	q.overheard("nobody", a)
	if len(q.stub.store.Addrs(id)) != 1 || len(q.stub.store.Addrs(q.stub.id)) != 0 ||
		len(q.stub.store.PeersWithAddrs()) != 1 {
		t.Error("want the addresses of another submitter taken, and of no other")
	}
	if got := q.heard(); len(got) != 3 || got[0].from != wire.SiteOf(id) || got[1].from != q.self {
		t.Errorf("heard %+v, want each handed on", got)
	}
}

// The room for gossip is set up as the preset says; so is that for relays.
func TestHowTheRoomsAreSetUp(t *testing.T) {
	for preset, want := range map[Preset][2]bool{
		PresetLAN: {false, false}, PresetWAN: {true, false}, PresetTest: {false, true},
	} {
		q := newQuiet(t, func(c *Config) { c.Preset = preset })
		if got := q.gossipConfig(); [2]bool{got.Wide, got.Quick} != want || got.Self != q.self {
			t.Errorf("%s: far sites %t, quick %t, want %t", preset, got.Wide, got.Quick, want)
		}
	}
	q := newQuiet(t, nil)
	if !q.relayConfig().Injected {
		t.Error("a host that was given seems to be this site's own")
	}
	q.cfg.Host = nil
	if q.relayConfig().Injected {
		t.Error("this site's own host seems to be another's")
	}
}

// What relays ask about members.
func TestWhatRelaysAreTold(t *testing.T) {
	q := newQuiet(t, nil)
	present, absent := q.present(q.stranger()), q.knows(q.stranger())
	s := relayMembers{q.Mesh}
	if !s.Admitted(present.id) || s.Admitted(absent.id) || s.Admitted(q.stranger()) {
		t.Error("want those that are present admitted, and no other")
	}
	if got := s.Present(); len(got) != 1 || got[0] != present.id {
		t.Errorf("present are %v", got)
	}
	s.TellOwn(addrAt(4601))
	if want := addrAt(4601)[0].String() + "/p2p/" + string(q.self); len(present.pending) != 1 ||
		present.pending[0] != want || len(absent.pending) > 0 {
		t.Errorf("told %q, want %s", present.pending, want)
	}
	q.cfg.AcceptAnyone = false
	if s.Allowed(present.id) {
		t.Error("a stranger may be a member")
	}
}

// Connections wake the owners of their peers: one that dialled, one that is direct now, and one
// that this site dialled.
func TestWhatAConnectionSays(t *testing.T) {
	relay := somebody(t)
	for name, c := range map[string]struct {
		at                       string
		direction                network.Direction
		better, dialed, outbound bool
	}{
		"it dialled": {"/ip4/10.0.0.9/tcp/1", network.DirInbound, true, true, false},
		"it dialled through a relay": {
			through(relay, "/ip4/10.0.0.9/tcp/1"), network.DirInbound, false,
			true, false,
		},
		"this site dialled": {"/ip4/10.0.0.9/tcp/1", network.DirOutbound, true, false, true},
	} {
		q := newQuiet(t, nil)
		conn := q.connected(q.stranger(), c.at, c.direction)
		q.notifiee().Connected(q.stub.net, conn)
		r := q.lookup(wire.SiteOf(conn.peer))
		if r == nil {
			t.Fatalf("%s: the peer has no owner", name)
		}
		last := r.outbound.Load()
		if marked(r.better) != c.better || marked(r.dialed) != c.dialed || (last != nil) != c.outbound ||
			last != nil && *last != network.Conn(conn) {
			t.Errorf("%s: want direct %t, dialled by it %t, by this site %t", name, c.better, c.dialed,
				c.outbound)
		}
		if len(q.later) > 0 {
			t.Errorf("%s: a member's connection is to be closed", name)
		}
	}
	q := newQuiet(t, keeper(t))
	q.ownHost = true
	stranger := q.connected(q.stranger(), "/ip4/10.0.0.9/tcp/1", network.DirInbound)
	if q.notifiee().Connected(q.stub.net, stranger); len(q.later) != 1 ||
		q.later[0].after != farewell {
		t.Error("a stranger's connection stays")
	}
	guest := q.connected(q.stranger(), "/ip4/10.0.0.9/tcp/1", network.DirInbound)
	q.lobby.Enter(guest)
	if q.notifiee().Disconnected(q.stub.net, guest); q.lobby.Has(guest) {
		t.Error("a guest that left keeps its place")
	}
}

// Close leaves a host that was given open, without this mesh's protocols, and waits for handlers.
func TestHowAMeshIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQuiet(t, nil)
		q.gossip = nil // it has no topic yet
		var ended, closed atomic.Bool
		q.cancel = func() { ended.Store(true) }
		if !q.enter() {
			t.Fatal("an open mesh is closed")
		}
		go func() {
			if err := q.Close(); err != nil {
				t.Errorf("Close() = %v", err)
			}
			closed.Store(true)
		}()
		if synctest.Wait(); closed.Load() || !ended.Load() || q.enter() {
			t.Errorf("closed %t, ended %t; want it to wait for a handler, and nothing new",
				closed.Load(), ended.Load())
		}
		q.wg.Done()
		if synctest.Wait(); !closed.Load() {
			t.Error("it waits although nothing runs")
		}
		for range 2 {
			if err := q.Close(); err != nil {
				t.Errorf("Close() again = %v", err)
			}
		}
		want := []lp.ID{
			protocol.StreamID, protocol.LogStreamID, protocol.JoinStreamID, protocol.DeathStreamID,
			gate.StreamID, gate.LinkStreamID,
		}
		if !slices.Equal(q.stub.removed, want) || q.stub.net.stopped != 1 || q.stub.closed != 0 {
			t.Errorf("removed %v, %d notifiees, the host closed %d times",
				q.stub.removed, q.stub.net.stopped, q.stub.closed)
		}
	})
	q := newQuiet(t, nil)
	q.gossip, q.ownHost, q.stub.failClose = nil, true, errRelayed
	if err := q.Close(); !errors.Is(err, errRelayed) || q.stub.closed != 1 {
		t.Errorf("Close() = %v, the own host closed %d times", err, q.stub.closed)
	}
}

// Addresses of this site end in its name; those through relays come from where they are held.
func TestWhereThisSiteIs(t *testing.T) {
	q := newQuiet(t, nil)
	q.stub.addrs = parseAddrs([]string{
		"/ip4/10.0.0.1/tcp/1", through(q.stranger(), "/ip4/10.0.0.2/tcp/1"), "/ip4/127.0.0.1/tcp/1",
	})
	me := "/p2p/" + string(q.self)
	want := []string{"/ip4/10.0.0.1/tcp/1" + me, "/ip4/127.0.0.1/tcp/1" + me}
	if got := q.Addrs(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Peers are listed in the order of their names, with where their best connection leads.
func TestTheListOfPeers(t *testing.T) {
	reg := obs.NewRegistry()
	q := newQuiet(t, func(c *Config) { c.Registry = reg })
	q.countConnections(reg)
	relay := q.stranger()
	for range 8 {
		q.present(q.stranger())
	}
	q.knows(q.stranger())
	direct, relayed, both := q.present(q.stranger()), q.present(q.stranger()), q.present(q.stranger())
	q.connected(direct.id, "/ip4/10.0.0.1/tcp/1", network.DirInbound)
	q.connected(relayed.id, through(relay, "/ip4/10.0.0.2/tcp/1"), network.DirInbound)
	q.connected(both.id, through(relay, "/ip4/10.0.0.2/tcp/1"), network.DirInbound)
	q.connected(both.id, "/ip4/10.0.0.3/tcp/1", network.DirInbound)
	peers := q.Peers()
	if len(peers) != 11 || !slices.IsSortedFunc(peers, func(a, b Peer) int {
		return strings.Compare(string(a.Site), string(b.Site))
	}) {
		t.Fatalf("%d peers, want 11 in order", len(peers))
	}
	for _, p := range peers {
		var want Peer
		switch p.Site {
		case direct.site:
			want.Addr = "/ip4/10.0.0.1/tcp/1"
		case relayed.site:
			want.Addr, want.Relay = through(relay, "/ip4/10.0.0.2/tcp/1"), wire.SiteOf(relay)
		case both.site:
			want.Addr = "/ip4/10.0.0.3/tcp/1"
		}
		if p.Addr != want.Addr || p.Relay != want.Relay || p.Facts.Name != "other" {
			t.Errorf("%+v, want it at %q through %q", p, want.Addr, want.Relay)
		}
	}
	if got := q.Reach(); got.Direct != 2 || got.Relayed != 1 {
		t.Errorf("%d are direct and %d relayed, want 2 and 1", got.Direct, got.Relayed)
	}
	answer := httptest.NewRecorder()
	reg.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for _, line := range []string{"p2p_peers_direct 2", "p2p_peers_relayed 1", "p2p_relays_held 0"} {
		if !strings.Contains(answer.Body.String(), line+"\n") {
			t.Errorf("the metrics do not say %s:\n%s", line, answer.Body)
		}
	}
}
