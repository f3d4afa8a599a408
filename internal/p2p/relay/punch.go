package relay

import (
	"log/slog"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/protocol/holepunch"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
)

// Pauses before a hole is tried again. The first leaves libp2p the time for its own attempt.
const (
	punchPause        = 5 * time.Second
	longestPunchPause = 15 * time.Minute
)

// Puncher makes relayed connections direct, and counts that. Libp2p tries it a single time, when
// a relayed connection comes in, and fails if either side does not yet know a public address of
// its own. A site that has just started is connected to its peers within milliseconds, long before
// it knows; so the Puncher tries again, in pauses that double.
type Puncher struct {
	counts  *wire.Counters
	log     *slog.Logger
	service connector // nil: this host punches no holes
}

// connector is libp2p's service as the Puncher uses it.
type connector interface {
	// DirectConnect punches a hole to a peer whose relayed connection came in here. It
	// returns when that has succeeded or failed, or when the host closes.
	DirectConnect(p peer.ID) error
}

// NewPuncher makes a Puncher for one host.
func NewPuncher(counts *wire.Counters, log *slog.Logger) *Puncher {
	return &Puncher{counts: counts, log: log}
}

// keep is an option of libp2p's service by which the Puncher learns of it.
func (p *Puncher) keep(s *holepunch.Service) error {
	p.service = s
	return nil
}

// Results of hole punching, the label of CountPunches.
const (
	punchAttempt = "attempt" // both sides dial simultaneously
	punchOK      = "ok"      // and that made a direct connection
	punchFailed  = "failed"  // and none did
	punchDirect  = "direct"  // dialling plainly was enough
)

// Trace counts attempts and their results.
func (p *Puncher) Trace(e *holepunch.Event) {
	result := ""
	switch what := e.Evt.(type) {
	case *holepunch.HolePunchAttemptEvt:
		result = punchAttempt
	case *holepunch.EndHolePunchEvt:
		result = punchFailed
		if what.Success {
			result = punchOK
		}
	case *holepunch.DirectDialEvt:
		if what.Success {
			result = punchDirect
		}
	case *holepunch.ProtocolErrorEvt:
		p.log.Debug("hole punching is not agreed", "peer", wire.SiteOf(e.Remote), "error", what.Error)
	}
	if result != "" {
		p.counts.Inc(wire.CountPunches, result)
		p.log.Debug("hole punching", "peer", wire.SiteOf(e.Remote), "result", result)
	}
}

// FilterLocal completes what this host says of where it can be dialled: it knows only how the
// router translates the transport over which it reached others, and the other side may have used
// the other one; then no two of the dialled addresses would meet. Most routers keep port numbers,
// so the twin of an address is likely to be right; a wrong one costs a dial that fails.
func (p *Puncher) FilterLocal(_ peer.ID, addrs []ma.Multiaddr) []ma.Multiaddr {
	all := slices.Clone(addrs)
	for _, a := range addrs {
		if t := twin(a); t != nil {
			all = append(all, t)
		}
	}
	return ma.Unique(all)
}

// FilterRemote leaves what the other side says as it is.
func (p *Puncher) FilterRemote(_ peer.ID, addrs []ma.Multiaddr) []ma.Multiaddr { return addrs }

// twin is the address of the same port by the other of the two transports; nil for what is of
// neither.
func twin(a ma.Multiaddr) ma.Multiaddr {
	if len(a) < 2 {
		return nil
	}
	name, rest := "tcp", ""
	switch {
	case len(a) == 2 && a[1].Code() == ma.P_TCP:
		name, rest = "udp", "/quic-v1"
	case len(a) == 3 && a[1].Code() == ma.P_UDP && a[2].Code() == ma.P_QUIC_V1:
	default:
		return nil
	}
	other, err := ma.NewMultiaddr("/" + name + "/" + a[1].Value() + rest)
	if err != nil {
		return nil
	}
	return ma.Join(a[:1], other)
}

// punchAgain tries again to reach members directly whose relayed connections came in here; the
// other side of a connection leaves it to this one.
func (r *Relays) punchAgain(now time.Time) {
	p := r.cfg.Puncher
	if p == nil || p.service == nil || !r.knowsAPublicAddress() {
		return
	}
	next := make(map[peer.ID]refusal, len(r.punched))
	for _, id := range r.cfg.Members.Present() {
		if !r.relayedIn(id) {
			continue
		}
		was, known := r.punched[id]
		switch {
		case !known:
			was = refusal{until: now.Add(punchPause), pause: punchPause}
		case !now.Before(was.until):
			// It takes some seconds, and ends with the host.
			go func() { _ = p.service.DirectConnect(id) }()
			pause := min(2*was.pause, longestPunchPause)
			was = refusal{until: now.Add(pause), pause: pause}
		}
		next[id] = was
	}
	r.punched = next
}

// knowsAPublicAddress reports whether libp2p's service works by now: it answers others as soon as
// it knows an address of this host that they may dial. Until then it would block who asks it.
func (r *Relays) knowsAPublicAddress() bool {
	return slices.Contains(r.cfg.Host.Mux().Protocols(), holepunch.Protocol)
}

// relayedIn reports whether a member is connected through a relay alone, and dialled this site.
func (r *Relays) relayedIn(id peer.ID) bool {
	in := func(c network.Conn) bool {
		return IsCircuit(c.RemoteMultiaddr()) && c.Stat().Direction == network.DirInbound
	}
	return Direct(r.cfg.Host, id) == nil &&
		slices.ContainsFunc(r.cfg.Host.Network().ConnsToPeer(id), in)
}
