package p2p

import (
	"fmt"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// Facts hold what a peer's Hello says about it.
type Facts struct {
	Name        string
	Capability  grid.Capability
	Skew        time.Duration // the peer's clock minus ours, as exact as half a round trip
	RoundTrip   time.Duration // of the Hellos
	Incarnation uint64        // number of the peer's start
	Run         protocol.Run  // the start in full; of an earlier version the number alone
	Owner       string        // who owns the peer, as it says; empty: it is its owner's only one
}

// refusedError says that a peer and this site do not admit each other.
type refusedError struct {
	Site   grid.SiteID // the peer
	Reason grid.Reason // why
	ByPeer bool        // the peer refuses us, rather than we the peer
}

func (e *refusedError) Error() string {
	if e.ByPeer {
		return fmt.Sprintf("site %s refuses this site: %s", e.Site, e.Reason)
	}
	return fmt.Sprintf("site %s is refused: %s", e.Site, e.Reason)
}

// hello describes this site as it is now.
func (m *Mesh) hello(refusal grid.Reason, peers []string) protocol.Hello {
	return protocol.Hello{
		MinVersion: protocol.MinVersion, MaxVersion: protocol.Version, Domain: m.cfg.Domain,
		Name: m.cfg.Name, Owner: m.cfg.Owner,
		Incarnation: m.cfg.Incarnation, WallMS: m.cfg.Now().UnixMilli(), Capability: m.cfg.Capability(),
		Refusal: refusal, Peers: peers, Roster: m.cfg.Members.Roster().Digest(), Run: m.run,
	}
}

// maxHelloBytes bounds a Hello: 64 addresses and the capability fit well.
const maxHelloBytes = 32 << 10

// readHello reads the Hello that must come first.
func readHello(r *wire.Reader) (protocol.Hello, error) {
	m, err := r.Next(maxHelloBytes)
	if err != nil {
		return protocol.Hello{}, fmt.Errorf("read hello: %w", err)
	}
	hello, ok := m.(protocol.Hello)
	if !ok {
		return protocol.Hello{}, fmt.Errorf(
			"read hello: %w: the stream begins with %s", protocol.ErrMalformed, wire.NameOf(m),
		)
	}
	return hello, nil
}

// writeHello writes one frame and flushes it.
func writeHello(stream wire.Stream, limit time.Duration, hello protocol.Hello) error {
	frame, err := protocol.AppendFrame(nil, hello)
	if err != nil {
		return fmt.Errorf("write hello: %w", err)
	}
	if _, err := (wire.DeadlineWriter{Stream: stream, Limit: limit}).Write(frame); err != nil {
		return fmt.Errorf("write hello: %w", err)
	}
	return nil
}

// judge says why a peer is not admitted, or ReasonNone. sent and received bound
// the moment at which the peer read its clock. Version comes first, because the
// meaning of everything else hangs on it.
func (m *Mesh) judge(
	site grid.SiteID, h protocol.Hello, sent, received time.Time,
) (Facts, grid.Reason) {
	middle := sent.Add(received.Sub(sent) / 2)
	skew := time.UnixMilli(h.WallMS).Sub(middle)
	facts := Facts{
		Name: grid.Plain(h.Name), Capability: h.Capability, Skew: skew,
		RoundTrip: received.Sub(sent), Incarnation: h.Incarnation, Run: runOf(h),
		Owner: grid.Plain(h.Owner),
	}
	standing := m.judgeSite(site)
	switch {
	case h.MaxVersion < protocol.MinVersion || h.MinVersion > protocol.Version:
		return facts, grid.ReasonVersion
	case h.Domain != m.cfg.Domain:
		return facts, grid.ReasonDomain
	case standing != grid.ReasonNone:
		return facts, standing
	case skew > protocol.MaxSkew || skew < -protocol.MaxSkew:
		return facts, grid.ReasonClock
	case h.Refusal == grid.ReasonNone && m.isOlder(site, facts.Run):
		return facts, grid.ReasonOlderRun
	default:
		return facts, grid.ReasonNone
	}
}

// same reports whether nothing worth telling changed. Skew is measured anew
// every time and always differs a little.
func (f Facts) same(g Facts) bool {
	a, b := f.Capability, g.Capability
	drift := f.Skew - g.Skew
	return f.Name == g.Name && f.Run.Compare(g.Run) == 0 && drift.Abs() < time.Second &&
		slices.Equal(a.Kinds, b.Kinds) &&
		a.Total == b.Total && a.CoreMFLOPS == b.CoreMFLOPS && a.DownBps == b.DownBps &&
		a.UpBps == b.UpBps &&
		a.DiskBps == b.DiskBps && a.OS == b.OS && a.Arch == b.Arch
}

// reasonLabel is the reason as a label of wire.CountRefused.
func reasonLabel(r grid.Reason) string {
	switch r {
	case grid.ReasonVersion:
		return "version"
	case grid.ReasonDomain:
		return "domain"
	case grid.ReasonNotMember:
		return "not_member"
	case grid.ReasonClock:
		return "clock"
	case grid.ReasonInvalid:
		return "invalid"
	case grid.ReasonBanned:
		return "banned"
	case grid.ReasonOlderRun:
		return "older_run"
	case grid.ReasonFlood:
		return "flood"
	default:
		return fmt.Sprintf("reason_%d", uint16(r))
	}
}
