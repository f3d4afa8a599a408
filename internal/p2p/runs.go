package p2p

import (
	"fmt"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"

	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// A site's identity may be on two machines: a state directory or a whole disk was copied. The
// run that was started later is the site. Every other site refuses an older one for as long as
// it remembers the newer, and shows it what that has signed, so that it can end. Nobody else can
// make such a proof, and an old one says nothing against a run that is newer still.

// runs remembers the newest run of each peer, of a bounded number of peers.
type runs struct {
	mu     sync.Mutex
	limit  int
	newest map[grid.SiteID]heardRun
}

type heardRun struct {
	protocol.Run

	at time.Time
}

// learn takes a peer's run, and returns the newest one that is known.
func (k *runs) learn(site grid.SiteID, run protocol.Run, now time.Time) protocol.Run {
	k.mu.Lock()
	defer k.mu.Unlock()
	known, met := k.newest[site]
	switch {
	case met && run.Compare(known.Run) < 0:
		return known.Run
	case !met && len(k.newest) >= k.limit:
		k.forgetOldest()
	}
	k.newest[site] = heardRun{Run: run, at: now}
	return run
}

// forgetOldest drops the peer that was not heard of for longest.
func (k *runs) forgetOldest() {
	var oldest grid.SiteID
	for site, r := range k.newest {
		if oldest == "" || r.at.Before(k.newest[oldest].at) {
			oldest = site
		}
	}
	delete(k.newest, oldest)
}

// isOlder takes the run that a site says it is, and reports whether there is a newer one.
func (m *Mesh) isOlder(site grid.SiteID, run protocol.Run) bool {
	return m.runs.learn(site, run, m.cfg.Now()).Compare(run) > 0
}

// runOf is the run that a Hello names; one of an earlier version says its number alone.
func runOf(h protocol.Hello) protocol.Run {
	if h.Run.Number == 0 {
		return protocol.Run{Number: h.Incarnation}
	}
	return h.Run
}

// sign names this site's run.
func (m *Mesh) sign() error {
	run := protocol.Run{
		Number: m.cfg.Incarnation, Nonce: m.cfg.Nonce, Line: m.cfg.Line,
		SinceMS: max(m.cfg.Now().UnixMilli(), 0),
	}
	signature, err := m.key.Sign(run.Signed())
	if err != nil {
		return fmt.Errorf("sign this run: %w", err)
	}
	run.Signature = signature
	m.run = run
	return nil
}

// Sign signs a text with the site's key. The text begins with a context of its own, so that it
// cannot be taken for another statement.
func (m *Mesh) Sign(text []byte) ([]byte, error) {
	signature, err := m.key.Sign(text)
	if err != nil {
		return nil, fmt.Errorf("sign with the site's key: %w", err)
	}
	return signature, nil
}

// told takes it that a peer refuses this run because of a newer one, if it can prove that.
func (m *Mesh) told(by grid.SiteID, newer protocol.Run) {
	if newer.Number == 0 || newer.Compare(m.run) <= 0 || !signedBy(m.key.GetPublic(), newer) {
		m.counts.Inc(wire.CountInvalid, "run")
		m.log.Warn("a peer speaks of a newer run of this site and has no proof", "peer", by)
		return
	}
	m.newer.Do(func() {
		m.log.Error("another machine runs with this site's identity", "peer", by,
			"since", newer.Since().Format(time.RFC3339), "start", newer.Number)
		if tell := m.handlers.OnNewerRun; tell != nil {
			tell(newer)
		}
	})
}

// heedRefusal looks at why a peer refuses this site.
func (m *Mesh) heedRefusal(by grid.SiteID, hello protocol.Hello) {
	if hello.Refusal == grid.ReasonOlderRun {
		m.told(by, hello.Newer)
	}
}

func signedBy(key crypto.PubKey, run protocol.Run) bool {
	ok, err := key.Verify(run.Signed(), run.Signature)
	return ok && err == nil
}

// refusal is the Hello that refuses a site.
func (m *Mesh) refusal(site grid.SiteID, reason grid.Reason, theirs protocol.Run) protocol.Hello {
	hello := m.hello(reason, nil)
	if reason == grid.ReasonOlderRun {
		hello.Newer = m.runs.learn(site, theirs, m.cfg.Now())
	}
	return hello
}
