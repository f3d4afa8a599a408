package protocol

import (
	"crypto/ed25519"
	"encoding/binary"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// BorderStreamID is the libp2p protocol name of the stream between the gateways of two domains. It
// carries the messages of ForBorder and nothing else.
const BorderStreamID = "/mrs/1/border"

// Passage tells how a request has come to a domain. Domains are named by the site that each is
// taken for elsewhere.
type Passage struct {
	Request uint64        // the number that the first domain gave it, from 1, never used twice
	Path    []grid.SiteID // the domains that passed it on, 1 to MaxHops, the one that made it first
	Hops    uint32        // how many borders it may cross after this one, with Path at most MaxHops
}

// BorderQuery asks a domain for its best offer for tasks of a job. The answer is a BorderAnswer.
// What the requirement says of holders of data is meaningless in another domain, and left out.
type BorderQuery struct {
	Passage Passage
	Job     grid.JobID // of the domain that asks
	Seq     uint32     // from 1; the answer repeats it
	Req     grid.Requirement
	Count   uint32        // how many tasks are to be placed
	TTL     time.Duration // how long the answer is awaited
}

// BorderAnswer is a domain's best offer, or why it makes none. Of what is inside the domain it
// tells the nearest site's position and time and nothing else.
type BorderAnswer struct {
	Job     grid.JobID
	Seq     uint32
	Offer   *grid.Offer  // nil: none; its Site is set by the receiver
	Refusal grid.Refusal // only without an offer
}

// BorderOrder gives one task to a domain. It is repeated until a BorderRenew or BorderDeclined
// names the attempt, and once more when its inputs are at the sender's gateway. The same attempt
// again is the same order; one with a higher token ends the earlier ones of its task. Nothing of it
// may run before a BorderLease.
type BorderOrder struct {
	Passage Passage
	Attempt grid.AttemptID // of the domain that orders
	Spec    grid.Spec      // of this one task: nothing is left to be filled in
	Here    bool           // all that it needs is at the sender's gateway
}

// BorderDeclined says that the domain does not take the attempts.
type BorderDeclined struct {
	Attempts []grid.AttemptID
	Refusal  grid.Refusal
}

// BorderRenew names attempts that the domain has taken, and asks for their leases.
type BorderRenew struct {
	Number   uint64 // from 1; the answer repeats it
	Attempts []grid.AttemptID
}

// BorderLease lets attempts run. The domain counts Duration from the sending of the request that
// Number names. No lease that it grants to a site of its own for them may end later.
type BorderLease struct {
	Number   uint64
	Attempts []grid.AttemptID
	Duration time.Duration
}

// BorderState tells how an attempt goes. The fields are those of Progress.
type BorderState struct {
	Attempt    grid.AttemptID
	Phase      grid.Phase // staging, running or frozen
	Done       int64
	Total      int64
	Reason     grid.Reason   `json:",omitempty"`
	StartedAgo time.Duration `json:",omitempty"`
}

// BorderEnd says how an attempt ended; what it left is at the sender's gateway. It is repeated
// until a BorderReceipt.
type BorderEnd struct {
	Attempt    grid.AttemptID
	Exit       grid.Exit
	StartedAgo time.Duration `json:",omitempty"`
	EndedAgo   time.Duration `json:",omitempty"`
	UsedCoreMS int64         // what it used, in thousandths of a core-second
}

// BorderFence stops all attempts of each task whose token is below the one given. The domain
// forgets them; no BorderEnd is awaited.
type BorderFence struct {
	Below []grid.AttemptID
}

// BorderReceipt ends an order: the domain that ordered has all that it wants of the attempt, and
// confirms what was used for it.
type BorderReceipt struct {
	Attempt    grid.AttemptID
	Giver      grid.SiteID // the domain that ran it
	Taker      grid.SiteID // the one that ordered it
	UsedCoreMS int64       // thousandths of a core-second; at most what BorderEnd claimed
	Signature  []byte      // by the taker's domain key over SignedBytes
	// Mandate is that of the deputy which has signed in the place of the key; nil: the key has.
	Mandate *Mandate `json:",omitempty"`
}

// MaxHops is the highest number of borders that a request may cross.
const MaxHops = 4

// maxUsedCoreMS bounds what one attempt can have used.
const maxUsedCoreMS = int64(1) << 53

// receiptContext keeps a signature from being taken for one that was made for another purpose.
const receiptContext = "mrs receipt 1\x00"

// SignedBytes is the text that Signature is over.
func (m BorderReceipt) SignedBytes() []byte {
	text := []byte(receiptContext)
	for _, part := range []string{string(m.Giver), string(m.Taker), m.Attempt.String()} {
		text = appendText(text, part)
	}
	return binary.BigEndian.AppendUint64(text, uint64(m.UsedCoreMS))
}

// IsSignedBy reports whether the signature is of the domain's key, or of a deputy of that domain
// whose mandate has not ended.
func (m BorderReceipt) IsSignedBy(taker grid.DomainKey, now time.Time) bool {
	if m.Mandate != nil {
		return m.Mandate.IsSignedBy(taker, now) &&
			m.Mandate.HasSigned(m.SignedBytes(), m.Signature)
	}
	public, err := taker.Bytes()
	return err == nil && len(m.Signature) == ed25519.SignatureSize &&
		ed25519.Verify(public, m.SignedBytes(), m.Signature)
}

// ForBorder reports whether a message is one between the gateways of two domains.
func ForBorder(msg Message) bool {
	switch msg.(type) {
	case BorderQuery, BorderAnswer, BorderOrder, BorderDeclined, BorderRenew, BorderLease,
		BorderState, BorderEnd, BorderFence, BorderReceipt:
		return true
	default:
		return false
	}
}

// DecodeBorder is Decode of what a border stream carries: any other message is ErrUnknownMessage.
func DecodeBorder(raw []byte) (Message, error) {
	m, err := Decode(raw)
	if err == nil && !ForBorder(m) {
		return nil, notForBorder(m)
	}
	return m, err
}

// Validate reports the first field that is out of its range, or that a domain passed it on twice.
func (p Passage) Validate() error {
	if p.Request == 0 || len(p.Path) == 0 {
		return invalidf("passage: want a number from 1 and the domain that made the request")
	}
	if len(p.Path) > MaxHops || p.Hops > uint32(MaxHops-len(p.Path)) {
		return invalidf("passage: at most %d borders, have %d and %d more",
			MaxHops, len(p.Path), p.Hops)
	}
	for i, domain := range p.Path {
		if err := domain.Validate(); err != nil {
			return err
		}
		if slices.Contains(p.Path[:i], domain) {
			return invalidf("passage: goes in circles")
		}
	}
	return nil
}

// Validate reports the first field that is out of its range.
func (m BorderQuery) Validate() error {
	return firstError(checkAnswer(m.Job, m.Seq), checkCount(m.Count, m.TTL), m.Passage.Validate(),
		m.Req.Validate())
}

// Validate reports the first field that is out of its range.
func (m BorderAnswer) Validate() error {
	if m.Offer != nil {
		return firstError(checkAnswer(m.Job, m.Seq), m.Offer.Validate())
	}
	return firstError(checkAnswer(m.Job, m.Seq), m.Refusal.Validate())
}

// Validate reports the first field that is out of its range.
func (m BorderOrder) Validate() error {
	return firstError(m.Attempt.Validate(), m.Passage.Validate(), m.Spec.Validate())
}

// Validate reports the first field that is out of its range.
func (m BorderDeclined) Validate() error {
	return firstError(checkAttempts(m.Attempts), m.Refusal.Validate())
}

// Validate reports the first field that is out of its range.
func (m BorderRenew) Validate() error {
	if m.Number == 0 {
		return invalidf("border: requests count from 1")
	}
	return checkAttempts(m.Attempts)
}

// Validate reports the first field that is out of its range.
func (m BorderLease) Validate() error {
	if m.Number == 0 {
		return invalidf("border: requests count from 1")
	}
	return Lease{Attempts: m.Attempts, Duration: m.Duration}.Validate()
}

// Validate reports the first field that is out of its range.
func (m BorderState) Validate() error {
	return Progress{
		Attempt: m.Attempt, Phase: m.Phase, Done: m.Done, Total: m.Total, Reason: m.Reason,
		StartedAgo: m.StartedAgo,
	}.Validate()
}

// Validate reports the first field that is out of its range.
func (m BorderEnd) Validate() error {
	if !isUsed(m.UsedCoreMS) {
		return invalidf("border: use: want 0 to %d core-milliseconds, have %d",
			maxUsedCoreMS, m.UsedCoreMS)
	}
	return Exited{
		Attempt: m.Attempt, Exit: m.Exit, StartedAgo: m.StartedAgo, EndedAgo: m.EndedAgo,
	}.Validate()
}

// Validate reports the first field that is out of its range.
func (m BorderFence) Validate() error { return checkAttempts(m.Below) }

// Validate reports the first field that is out of its range. It does not verify the signature.
func (m BorderReceipt) Validate() error {
	if !isUsed(m.UsedCoreMS) {
		return invalidf("receipt: use: want 0 to %d core-milliseconds, have %d",
			maxUsedCoreMS, m.UsedCoreMS)
	}
	if len(m.Signature) != SignatureBytes {
		return invalidf("receipt: signature of %d bytes, want %d", len(m.Signature), SignatureBytes)
	}
	return firstError(m.Attempt.Validate(), m.Giver.Validate(), m.Taker.Validate(),
		validMandate(m.Mandate))
}

func isUsed(coreMS int64) bool { return coreMS >= 0 && coreMS <= maxUsedCoreMS }
