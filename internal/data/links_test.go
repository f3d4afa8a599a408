package data

import (
	"crypto/rand"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

func somePeer(t *testing.T) peer.ID {
	t.Helper()
	_, public, err := crypto.GenerateEd25519Key(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	id, err := peer.IDFromPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestMeterTimesWhatIsBetweenTheFirstAndTheLastMessage(t *testing.T) {
	p, other := somePeer(t), somePeer(t)
	var told []float64
	m := meter{
		flows: make(map[peer.ID]*flow), done: func(_ peer.ID, bps float64) { told = append(told, bps) },
	}
	at := time.Now()
	m.arrived(p, 1<<20, at) // nothing was asked for
	end := m.begin([]peer.ID{p, other})
	for i := range 5 { // 4 MiB in 4 s behind the first message
		m.arrived(p, 1<<20, at.Add(time.Duration(i)*time.Second))
	}
	m.arrived(other, 100, at) // too little to tell
	m.arrived(other, 100, at.Add(time.Second))
	end()
	if len(told) != 1 || told[0] != 8<<20 {
		t.Errorf("told %v, want 8 Mibit/s once", told)
	}
	if len(m.flows) != 0 {
		t.Errorf("%d flows are kept after their transfers", len(m.flows))
	}
}

func TestLongTransfersAreToldInParts(t *testing.T) {
	p, told := somePeer(t), 0
	m := meter{flows: make(map[peer.ID]*flow), done: func(peer.ID, float64) { told++ }}
	end, at := m.begin([]peer.ID{p}), time.Now()
	second := m.begin([]peer.ID{p}) // at the same time
	for i := range 35 {
		m.arrived(p, 1<<20, at.Add(time.Duration(i)*time.Second))
	}
	end()
	if told != 3 {
		t.Errorf("told %d times within 35 s, want 3", told)
	}
	if second(); told != 4 {
		t.Errorf("told %d times, want 4 at the end of both transfers", told)
	}
}

// bookOfLinks makes a memory with a clock of its own.
func bookOfLinks(t *testing.T, dir string, now *time.Time) (*links, map[grid.SiteID]Link) {
	t.Helper()
	told := make(map[grid.SiteID]Link)
	l, err := openLinks(
		dir, func() time.Time { return *now }, func(s grid.SiteID, k Link) { told[s] = k },
	)
	if err != nil {
		t.Fatal(err)
	}
	return l, told
}

func TestLinksAgeAndSurviveARestart(t *testing.T) {
	now, dir, p := time.Unix(1_800_000_000, 0), t.TempDir(), somePeer(t)
	l, told := bookOfLinks(t, dir, &now)
	l.measured(p, 10e6)
	l.reported(p, 3e6)
	if want := (Link{DownBps: 10e6, UpBps: 3e6}); l.get(p) != want ||
		told[grid.SiteID(p.String())] != want {
		t.Fatalf("link %+v, told %+v, want %+v", l.get(p), told, want)
	}
	now = now.Add(time.Minute)
	l.measured(p, 40e6)
	if got := l.get(p).DownBps; got != 20e6 {
		t.Errorf("10 and 40 Mbit/s within an hour = %d, want their geometric mean", got)
	}
	if err := l.save(); err != nil {
		t.Fatal(err)
	}
	again, _ := bookOfLinks(t, dir, &now)
	if got := again.get(p); got.DownBps != 20e6 || got.UpBps != 3e6 {
		t.Errorf("after a restart %+v", got)
	}
	now = now.Add(2 * time.Hour)
	again.measured(p, 5e6)
	if got := again.get(p).DownBps; got != 5e6 {
		t.Errorf("an old measurement is mixed with the new one: %d", got)
	}
	now = now.Add(linkKept + time.Second)
	_, told = again, map[grid.SiteID]Link{}
	again.onLink = func(s grid.SiteID, k Link) { told[s] = k }
	again.expire()
	if got, heard := told[grid.SiteID(p.String())]; !heard || got != (Link{}) ||
		again.get(p) != (Link{}) || len(again.known) != 0 {
		t.Errorf("a day later %+v, told %+v, want it forgotten and that told", again.get(p), told)
	}
	now = now.Add(-48 * time.Hour) // the clock was wrong
	again.measured(p, 1e6)
	now = now.Add(-48 * time.Hour)
	if got := again.get(p); got != (Link{}) {
		t.Errorf("a measurement from the future counts: %+v", got)
	}
}

func TestLinksRefuseNonsense(t *testing.T) {
	now, dir, p := time.Unix(1_800_000_000, 0), t.TempDir(), somePeer(t)
	l, told := bookOfLinks(t, dir, &now)
	for _, bps := range []float64{0, -1, math.NaN(), math.Inf(1), 1e300, 0.5} {
		l.measured(p, bps)
		l.reported(p, bps)
	}
	if len(told) != 0 || len(l.known) != 0 {
		t.Errorf("nonsense is remembered: %+v", told)
	}
	for range linkPeers + 10 {
		now = now.Add(time.Second)
		l.measured(somePeer(t), 1e6)
	}
	if len(l.known) != linkPeers {
		t.Errorf("%d links are remembered, want at most %d", len(l.known), linkPeers)
	}
	text, err := json.Marshal(map[string]any{
		p.String():           map[string]any{"down": map[string]any{"bps": -4, "at": now}},
		somePeer(t).String(): map[string]any{"down": map[string]any{"bps": 5e6, "at": now}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for content, want := range map[string]int{"not json": -1, string(text): 1, `{"x":null}`: -1} {
		if err := os.WriteFile(filepath.Join(dir, linkFile), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := openLinks(dir, time.Now, nil)
		if (err != nil) != (want < 0) || len(l.known) != max(want, 0) {
			t.Errorf("%.20q: %d links, %v", content, len(l.known), err)
		}
	}
}

func TestATransferMeasuresBothEnds(t *testing.T) {
	var mu sync.Mutex
	told := make(map[string]Link)
	tell := func(name string) func(*Config) {
		return func(c *Config) {
			c.OnLink = func(_ grid.SiteID, l Link) {
				mu.Lock()
				defer mu.Unlock()
				told[name] = l
			}
			if name == "holder" {
				c.UploadBps = 64 << 20 // 8 MiB/s, so that the transfer lasts
			}
		}
	}
	holder, fetcher := newSite(t, tell("holder")), newSite(t, tell("fetcher"))
	fetcher.knows(holder)
	ref := mustAdd(t, holder.Store, noise(3, 8<<20))
	mustFetch(t, fetcher.Store, ref.CID, holder.id)
	eventually(t, "both ends know the rate", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return told["holder"].UpBps > 0 && told["fetcher"].DownBps > 0
	})
	if got := fetcher.Link(holder.id).DownBps; got < 30<<20 || got > 200<<20 {
		t.Errorf("measured %d bit/s, want about %d and the burst", got, 64<<20)
	}
}

func TestProbesMeasureWhereNothingWasMoved(t *testing.T) {
	a := newSite(t, func(c *Config) { c.UploadBps = 800e6 })
	b := newSite(t, func(c *Config) { c.ProbeEvery = 20 * time.Millisecond })
	b.knows(a)
	connect(t, b, a)
	eventually(t, "the link is known to both", func() bool {
		return b.Link(a.id).DownBps > 0 && a.Link(b.id).UpBps > 0
	})
	if _, ok := b.prober.unknown(); ok {
		t.Error("a link that is known is probed again")
	}
}

func connect(t *testing.T, from, to *site) {
	t.Helper()
	if err := from.host.Connect(within(t), peer.AddrInfo{
		ID: to.host.ID(), Addrs: to.host.Addrs(),
	}); err != nil {
		t.Fatal(err)
	}
}

func TestProbesAreBounded(t *testing.T) {
	var closed atomic.Bool
	a := newSite(t, func(c *Config) { c.Allow = func(peer.ID) bool { return !closed.Load() } })
	b := newSite(t, nil)
	connect(t, b, a)
	if _, err := b.prober.probe(within(t), a.host.ID()); err != nil {
		t.Fatalf("first probe: %v", err)
	}
	if _, err := b.prober.probe(within(t), a.host.ID()); err == nil {
		t.Error("a second probe within ten minutes is served")
	}
	for name, number := range map[string]uint64{"huge": 1 << 40, "tiny": 1} {
		if _, _, err := b.prober.fetch(within(t), a.host.ID(), int64(number)); err == nil {
			t.Errorf("a %s probe is served", name)
		}
	}
	stranger := newSite(t, nil)
	closed.Store(true)
	connect(t, stranger, a)
	if _, err := stranger.prober.probe(within(t), a.host.ID()); err == nil {
		t.Error("a stranger is served")
	}
	stream, err := stranger.prober.request(within(t), a.host.ID(), tellSpeed, 1e9)
	if err != nil {
		t.Fatal(err)
	}
	waitEnd(stream)
	if a.Link(stranger.id) != (Link{}) {
		t.Error("a stranger's report counts")
	}
}

// waitEnd waits until the other side has done with a stream.
func waitEnd(s network.Stream) { _, _ = s.Read(make([]byte, 1)) }
