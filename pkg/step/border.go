package step

import (
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// Ordered tells of a job, or a probe, that it is another domain's.
type Ordered struct {
	Domain grid.SiteID // the neighbour that ordered it; empty: nobody did
	Name   string      // of that domain, for people, at most 64 bytes
	// Ref is the border's own name for the order or query, at most MaxRef bytes; news repeat it.
	Ref string
	// Hops counts the borders that it may cross from here: with 0 no neighbour is asked.
	Hops uint32
}

// MaxRef is the longest name of an order or query, in bytes.
const MaxRef = 320

// Foreign reports whether a neighbour ordered it.
func (o Ordered) Foreign() bool { return o.Domain != "" }

// NeighbourSeen says that a gateway of a neighbouring domain is connected. It comes again when its
// name has changed. One gateway of a domain is connected at a time; before another one is the first
// is gone.
type NeighbourSeen struct {
	Domain  grid.SiteID   // the site that the domain is taken for here
	Name    grid.DomainID // what it calls itself
	Gateway grid.SiteID   `json:",omitempty"` // the site of it that is connected
}

// NeighbourGone says that the connection to a neighbour's gateway was lost.
type NeighbourGone struct {
	Domain grid.SiteID
}

// BorderReceived brings a validated message of a neighbour's gateway, which the channel has
// authenticated: one of those of protocol.ForBorder.
type BorderReceived struct {
	Domain  grid.SiteID
	Message protocol.Message
}

// LinksChanged names all links of this domain, ascending by domain. A driver says so at the start
// of every run and after every change. A domain that is not named any more is a stranger: nothing
// of it is taken, and its orders here are stopped.
type LinksChanged struct {
	Links []Link
}

// Link holds the terms that an administrator has agreed with a neighbouring domain.
type Link struct {
	Domain grid.SiteID
	Name   grid.DomainID
	Key    grid.DomainKey // its receipts are signed by it
	Closed bool           // nothing new crosses in either direction; orders under way go on
	// Give says how much of this domain's cores that one may use at a time, in percent; 100:
	// whatever is free.
	Give uint32
	// Take says how much of that one may be used at a time, in percent of this domain's cores; 100:
	// as much as that one gives.
	Take  uint32
	Kinds []grid.WorkKind // that are taken from that domain, ascending; empty: none
	Tasks uint32          // most tasks of that domain here at a time; 0: no limit of their number
	// Onward says how many borders more what this domain asks of that one may cross, at most
	// protocol.MaxHops - 1.
	Onward uint32 `json:",omitempty"`
	// Beside: this domain's submitters ask that one together with their members. The border does
	// not mind; its driver tells the submitters.
	Beside bool `json:",omitempty"`
}

// Replied answers an Order: the broker's Reply to its input.
type Replied struct {
	Command uint64     // of the input of the Order
	Job     grid.JobID // that was submitted, or probed
	Err     string     // empty, or why nothing was done
}

// OrderNews tells the border's machine how a job goes that it has ordered, or a probe: the broker
// of the same site has said so by TellBorder. Of an order that begins, and of all that are there
// after a Boot, it says at least the phase; of a probe, too, before any neighbour is asked.
type OrderNews struct {
	Ref string // as in Ordered
	Job grid.JobID
	// Probed: the rest is the answer to a probe: the nearest offer and for how many tasks all
	// offers are, or without an offer the most frequent reason.
	Probed  bool          `json:",omitempty"`
	Offer   *grid.Offer   `json:",omitempty"`
	Tasks   uint32        `json:",omitempty"`
	Refusal *grid.Refusal `json:",omitempty"`

	// Of an order: how its task goes. Ended phases come with the exit, and what it left is here.
	Phase      grid.Phase    `json:",omitempty"`
	Done       int64         `json:",omitempty"` // staging: bytes at its site
	Total      int64         `json:",omitempty"` // staging: bytes in all
	Reason     grid.Reason   `json:",omitempty"` // why it is frozen or waits
	StartedAgo time.Duration `json:",omitempty"` // 0: it has not begun, or just now
	EndedAgo   time.Duration `json:",omitempty"`
	Exit       *grid.Exit    `json:",omitempty"`
}

// Ceiling bounds the leases of an ordered job: none that the broker grants may end, its margin
// included, after Until. Before the first Ceiling of a run it grants none at all.
type Ceiling struct {
	Job   grid.JobID
	Until time.Time // on the driver's clock (now); it may move back
}

// Signed answers Sign.
type Signed struct {
	ID        string
	Signature []byte // empty: it could not be signed
	Problem   string // why
	// Mandate is that of this site, which has signed as a deputy; nil: the domain's key has.
	Mandate *protocol.Mandate `json:",omitempty"`
}

// Order hands an input to the broker of this site: a Submit, Probe, CancelJob, ForgetJob or
// Ceiling. All but Ceiling are answered by Replied. A driver whose users give commands, too,
// numbers them anew on the way to the broker, and back.
type Order struct {
	Command uint64 // that of the input; 0 with Ceiling
	Input   Input
}

// SendBorder sends a message to a neighbour's gateway. It may be lost.
type SendBorder struct {
	Domain  grid.SiteID
	Message protocol.Message
}

// SendAs sends a message to one site of this domain, which may be this one, in the name of a
// neighbouring domain. It may be lost.
type SendAs struct {
	As      grid.SiteID // the neighbour
	To      grid.SiteID
	Message protocol.Message
}

// TellBorder hands news of an ordered job to the border's machine of this site.
type TellBorder struct {
	News OrderNews
}

// Sign signs a text with the key of this domain, or as its deputy. Answered by Signed.
type Sign struct {
	ID   string
	Text []byte
}

func (NeighbourSeen) input()  {}
func (NeighbourGone) input()  {}
func (BorderReceived) input() {}
func (LinksChanged) input()   {}
func (Replied) input()        {}
func (OrderNews) input()      {}
func (Ceiling) input()        {}
func (Signed) input()         {}

func (Order) effect()      {}
func (SendBorder) effect() {}
func (SendAs) effect()     {}
func (TellBorder) effect() {}
func (Sign) effect()       {}
