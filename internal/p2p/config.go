package p2p

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/mrsmesh/mrsmesh/internal/member"
	"github.com/mrsmesh/mrsmesh/internal/obs"
	"github.com/mrsmesh/mrsmesh/internal/p2p/relay"
	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Preset chooses what suits the network between the sites.
type Preset string

// The presets. The default is the one for a local network.
const (
	PresetLAN  Preset = "lan"  // TCP first, small gossip degree, flood publishing
	PresetWAN  Preset = "wan"  // QUIC first, default gossip degree, patient deadlines
	PresetTest Preset = "test" // as lan, with everything quick
)

// Config sets up a Mesh. Required: KeyFile (or Host), Domain and
// Incarnation. Without Allow and AcceptAnyone the site stays alone.
type Config struct {
	KeyFile      string           // the site's ed25519 identity; created with mode 0600 when missing
	AddressFile  string           // where members' addresses are remembered; empty = nowhere
	Listen       []string         // multiaddrs; empty = a free TCP and UDP port on 127.0.0.1
	Domain       grid.DomainID    // whom to talk to
	Name         string           // for people, at most 64 bytes
	Owner        string           // of the site, at most 64 bytes; empty: not said
	Incarnation  uint64           // number of this start of the agent, from 1, never used twice
	Nonce        uint64           // drawn for this start: two machines may reach the same number
	Line         uint64           // of starts that followed one another on one machine; 0 = not told
	Allow        []grid.SiteID    // the members; this site need not be among them
	AcceptAnyone bool             // no list: every site of this domain is a member, unless banned
	Members      *member.Registry // members and bans besides the list, and the invitations; nil = none
	Links        *member.Links    // with other domains; nil = those of Members
	Bootstrap    []string         // multiaddrs that end in /p2p/ID, dialled again and again
	Preset       Preset           // empty = PresetLAN
	NAT          relay.NAT        // for machines behind translating routers; zero = nothing
	MDNS         bool             // find members on the local network, and be found there
	DHT          bool             // ask members for the addresses of members that are not reached

	Capability func() grid.Capability // what Hello tells; called from any goroutine; nil = nothing

	Timing   Timing        // zero fields come from the preset
	Limits   Limits        // zero fields come from defaultLimits
	Registry *obs.Registry // nil = counted, but shown nowhere

	Host host.Host        // for tests: a host to use instead of making one; Close leaves it open
	Now  func() time.Time // for tests: the wall clock told to peers; nil = time.Now

	unscored bool // for tests: gossip without peer scores, to see what these are good for
}

// Timing holds the deadlines and pauses, all above 0.
type Timing struct {
	Dial       time.Duration // for one attempt to connect
	Hello      time.Duration // for opening a stream and the Hellos on it
	Write      time.Duration // for each write to a stream
	Read       time.Duration // for the rest of a message whose first byte has come
	Debounce   time.Duration // a lost peer that is back within this time was never gone
	BackoffMin time.Duration // first pause between attempts to dial; doubles, with jitter
	BackoffMax time.Duration // longest pause between attempts to dial
	Spread     time.Duration // news of members are collected this long before they are told
	LogIdle    time.Duration // a log stream on which nothing comes for so long is closed
	Guest      time.Duration // a stranger has so long to redeem an invitation
	RosterGap  time.Duration // between two whole rosters sent to one peer
	Relay      time.Duration // between two looks at which relays are held
	Linger     time.Duration // a relayed connection stays so long beside a direct one
	Lookup     time.Duration // between two questions to members where a member is
	Parted     time.Duration // a peer that cost too much is kept out for so long
}

// Limits bounds what peers can make this site hold. All are above 0.
type Limits struct {
	QueueMessages  int   // messages waiting for one peer
	QueueBytes     int64 // bytes of them
	GossipMessages int   // gossiped messages waiting for the handler
	GossipBytes    int64 // bytes of them
	// gossiped messages of one submitter, per second, in the long run; large ones count more
	SubmitterRate  float64
	SubmitterBurst int // gossiped messages of one submitter in a row
	Submitters     int // submitters whose rate and replays are watched
	Members        int // admitted members above which nobody is dialled on hearsay
	Peers          int // peers known at all; beyond, strangers are turned away
	LogStreams     int // log streams served at a time
	Guests         int // strangers connected at a time to redeem an invitation
	ConnsPerSubnet int // connections from one IPv4 address or IPv6 /56
	RelaySlots     int // members for which this site relays at a time
	RelayCircuits  int // relayed connections of one member at a time
}

// defaultLimits suits a site of a few hundred members.
func defaultLimits() Limits {
	return Limits{
		QueueMessages: 4096, QueueBytes: 8 << 20, GossipMessages: 65_536, GossipBytes: 64 << 20,
		SubmitterRate: 200, SubmitterBurst: 4096, Submitters: 4096,
		Members: 256, Peers: 4096, LogStreams: 64, ConnsPerSubnet: 256, Guests: 16, RelaySlots: 128,
		RelayCircuits: 48,
	}
}

// timing is the preset's timing.
func (p Preset) timing() Timing {
	t := Timing{
		Dial: 5 * time.Second, Hello: 5 * time.Second, Write: 10 * time.Second, Read: 10 * time.Second,
		Debounce:   200 * time.Millisecond,
		BackoffMin: 500 * time.Millisecond, BackoffMax: 30 * time.Second,
		Spread: time.Second, LogIdle: 10 * time.Minute,
		Guest: 10 * time.Second, RosterGap: 5 * time.Second,
		Relay: 2 * time.Second, Linger: 10 * time.Second, Lookup: 30 * time.Second,
		Parted: 5 * time.Minute,
	}
	switch p {
	case PresetWAN:
		t.Dial, t.Hello, t.Write, t.Read = 15*time.Second, 15*time.Second, 30*time.Second, 30*time.Second
		t.Debounce = 2 * time.Second
	case PresetTest:
		t.BackoffMin, t.BackoffMax, t.Spread = 50*time.Millisecond, time.Second, 50*time.Millisecond
		t.RosterGap = 200 * time.Millisecond
		t.Relay, t.Linger, t.Lookup = 100*time.Millisecond, 500*time.Millisecond, 200*time.Millisecond
	case PresetLAN:
	}
	return t
}

// Site is the name that the site will have. The identity is made when it is
// missing.
func (c Config) Site() (grid.SiteID, error) {
	if c.Host != nil {
		return wire.SiteOf(c.Host.ID()), nil
	}
	id, err := LoadIdentity(c.KeyFile)
	return id.Site(), err
}

// Validate reports every field that is out of its range.
func (c Config) Validate() error {
	var errs []error
	bad := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	bad(
		c.KeyFile == "" && c.Host == nil,
		"key file: missing; name the file that holds the site's identity",
	)
	bad(len(c.Name) > 64, "name: longer than 64 bytes")
	bad(len(c.Owner) > 64, "owner.name: longer than 64 bytes")
	bad(c.Incarnation == 0 || c.Incarnation > math.MaxUint32,
		"incarnation: want 1 to %d, have %d", uint32(math.MaxUint32), c.Incarnation)
	bad(len(c.Allow) > 0 && c.AcceptAnyone, "members: listed, and anyone accepted; choose one")
	bad(!slices.Contains([]Preset{"", PresetLAN, PresetWAN, PresetTest}, c.Preset),
		"network preset %q: want lan, wan or test", string(c.Preset))
	return errors.Join(errors.Join(errs...), c.Domain.Validate(), c.NAT.Validate(), c.validateAddrs())
}

func (c Config) validateAddrs() error {
	var errs []error
	for _, site := range c.Allow {
		if _, err := peer.Decode(string(site)); err != nil {
			errs = append(errs, fmt.Errorf("member %q: no peer ID: %w", string(site), err))
		}
	}
	for _, text := range c.Listen {
		if _, err := ma.NewMultiaddr(text); err != nil {
			errs = append(
				errs,
				fmt.Errorf("listen address %q: want a multiaddr such as /ip4/0.0.0.0/tcp/4601: %w", text, err),
			)
		}
	}
	for _, text := range c.Bootstrap {
		if _, err := peer.AddrInfoFromString(text); err != nil {
			errs = append(
				errs, fmt.Errorf("bootstrap address %q: want a multiaddr that ends in /p2p/ID: %w", text, err),
			)
		}
	}
	return errors.Join(errs...)
}

// withDefaults fills in what was left open.
func (c Config) withDefaults() Config {
	if c.Preset == "" {
		c.Preset = PresetLAN
	}
	if len(c.Listen) == 0 {
		c.Listen = []string{"/ip4/127.0.0.1/tcp/0", "/ip4/127.0.0.1/udp/0/quic-v1"}
	}
	if c.Capability == nil {
		c.Capability = func() grid.Capability { return grid.Capability{} }
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	c.NAT = c.NAT.WithDefaults()
	c.Timing = c.Timing.or(c.Preset.timing())
	c.Limits = c.Limits.or(defaultLimits())
	return c
}

func (t Timing) or(d Timing) Timing {
	return Timing{
		Dial: or(t.Dial, d.Dial), Hello: or(t.Hello, d.Hello),
		Write: or(t.Write, d.Write), Read: or(t.Read, d.Read),
		Debounce:   or(t.Debounce, d.Debounce),
		BackoffMin: or(t.BackoffMin, d.BackoffMin), BackoffMax: or(t.BackoffMax, d.BackoffMax),
		Spread: or(t.Spread, d.Spread), LogIdle: or(t.LogIdle, d.LogIdle),
		Guest: or(t.Guest, d.Guest), RosterGap: or(t.RosterGap, d.RosterGap),
		Relay: or(t.Relay, d.Relay), Linger: or(t.Linger, d.Linger), Lookup: or(t.Lookup, d.Lookup),
		Parted: or(t.Parted, d.Parted),
	}
}

func (l Limits) or(d Limits) Limits {
	return Limits{
		QueueMessages: or(l.QueueMessages, d.QueueMessages), QueueBytes: or(l.QueueBytes, d.QueueBytes),
		GossipMessages: or(l.GossipMessages, d.GossipMessages),
		GossipBytes:    or(l.GossipBytes, d.GossipBytes),
		SubmitterRate:  or(l.SubmitterRate, d.SubmitterRate),
		SubmitterBurst: or(l.SubmitterBurst, d.SubmitterBurst),
		Submitters:     or(l.Submitters, d.Submitters),
		Members:        or(l.Members, d.Members),
		Peers:          or(l.Peers, d.Peers),
		LogStreams:     or(l.LogStreams, d.LogStreams),
		Guests:         or(l.Guests, d.Guests),
		ConnsPerSubnet: or(l.ConnsPerSubnet, d.ConnsPerSubnet),
		RelaySlots:     or(l.RelaySlots, d.RelaySlots),
		RelayCircuits:  or(l.RelayCircuits, d.RelayCircuits),
	}
}

// or is the value, or the default where the value is not positive.
func or[T int | int64 | float64 | time.Duration](value, byDefault T) T {
	if value > 0 {
		return value
	}
	return byDefault
}
