package wire

import (
	"reflect"
	"sync"
	"sync/atomic"

	"github.com/mrsmesh/mrsmesh/internal/obs"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// The families of counters, as Mesh.Count names them. The label is given in
// brackets.
const (
	CountIn      = "messages_in"  // messages handed to OnMessage [type]
	CountOut     = "messages_out" // messages accepted by Send and Broadcast [type]
	CountInvalid = "invalid"      // received and not usable [cause]
	CountDropped = "dropped"      // lost in a full or abandoned queue [queue]
	CountRefused = "refused"      // peers not admitted, by us or by them [reason]
	CountLost    = "peers_lost"   // admitted peers that went [refusing, silent]
	CountDials   = "dials"        // attempts to reach a peer [ok, failed]
	CountJoins   = "joins"        // strangers who asked to join [admitted, or why not]
	CountRoster  = "roster"       // records of members that came [fresh, forged, former, contested]
	CountPunches = "punches"      // making relayed connections direct [attempt, ok, failed, direct]
	CountRelays  = "relays"       // asking members to relay for this site [held, refused, lost]
	CountMoves   = "moves"        // streams moved to a better connection [ok, failed]
	CountLookups = "lookups"      // asking members where a member is [found, unknown]
	CountBorder  = "border"       // streams to linked domains [opened, lost, or why refused]
	CountParted  = "parted"       // peers that cost too much, and are kept out for a time [of what]
)

// Causes that messages of every kind share, the label of CountInvalid.
const (
	causeSize    = "size"    // larger than allowed
	causeVersion = "version" // a version not spoken here
	CauseFormat  = "format"  // not decodable, out of range, or not for gossip
	causeFrame   = "frame"   // a stream's frame was cut short or too slow
)

// Counters counts for tests, the API and the registry together.
type Counters struct {
	families map[string]obs.CounterVec
	values   sync.Map // [2]string{family, label} -> *counter
}

type counter struct {
	value atomic.Uint64
	shown obs.Counter
}

// NewCounters shows what it counts in a registry; nil = nowhere.
func NewCounters(reg *obs.Registry) *Counters {
	family := func(name, help, label string) obs.CounterVec {
		return reg.CounterVec("p2p_"+name+"_total", help, label)
	}
	return &Counters{families: map[string]obs.CounterVec{
		CountIn:      family(CountIn, "Messages received and handed on.", "type"),
		CountOut:     family(CountOut, "Messages sent.", "type"),
		CountInvalid: family(CountInvalid, "Received messages that were thrown away.", "cause"),
		CountDropped: family(CountDropped, "Messages lost in full or abandoned queues.", "queue"),
		CountRefused: family(CountRefused,
			"Peers that were not admitted, or did not admit this site.", "reason"),
		CountLost:   family(CountLost, "Admitted peers whose connection was lost.", "how"),
		CountDials:  family(CountDials, "Attempts to reach a peer.", "result"),
		CountJoins:  family(CountJoins, "Strangers who asked to join.", "result"),
		CountRoster: family(CountRoster, "Records of members that peers sent.", "kind"),
		CountPunches: family(CountPunches,
			"Hole punching between this site and a member that is reached through a relay.", "result"),
		CountRelays: family(CountRelays, "Slots at members that relay.", "result"),
		CountMoves: family(CountMoves,
			"Streams moved from a relayed to a direct connection.", "result"),
		CountLookups: family(CountLookups, "Questions to members where a member is.", "result"),
		CountBorder:  family(CountBorder, "Streams to and from linked domains.", "result"),
		CountParted: family(CountParted,
			"Peers that cost this site too much and are kept out for some minutes.", "cause"),
	}}
}

// Add counts n events of a family, with a label.
func (c *Counters) Add(family, label string, n uint64) {
	key := [2]string{family, label}
	found, ok := c.values.Load(key)
	if !ok {
		found, _ = c.values.LoadOrStore(key, &counter{shown: c.families[family].With(label)})
	}
	cnt := found.(*counter) //nolint:forcetypeassert // nothing else is stored
	cnt.value.Add(n)
	cnt.shown.Add(float64(n))
}

// Inc counts one.
func (c *Counters) Inc(family, label string) { c.Add(family, label, 1) }

// Get returns the count.
func (c *Counters) Get(family, label string) uint64 {
	found, ok := c.values.Load([2]string{family, label})
	if !ok {
		return 0
	}
	return found.(*counter).value.Load() //nolint:forcetypeassert // nothing else is stored
}

// Labels are the counts of a family, by label.
func (c *Counters) Labels(family string) map[string]uint64 {
	all := make(map[string]uint64)
	c.values.Range(func(key, value any) bool {
		if k, ok := key.([2]string); ok && k[0] == family {
			all[k[1]] = value.(*counter).value.Load() //nolint:forcetypeassert // nothing else is stored
		}
		return true
	})
	return all
}

// NameOf is the message's type as a label, "Announce".
func NameOf(m protocol.Message) string { return reflect.TypeOf(m).Name() }
