package protocol

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol/wirepb"
)

// JoinStreamID is the libp2p protocol name of the stream on which a stranger
// redeems an invitation: a JoinRequest, answered with a JoinAnswer and, when the
// stranger is admitted, the whole roster in Roster messages.
const JoinStreamID = "/mrs/1/join"

// MemberKind is the kind of a record about a site.
type MemberKind uint8

// The kinds of records.
const (
	MemberAdmit MemberKind = 1 // the site is a member
	MemberBan   MemberKind = 2 // the site is no member, whatever other records say
)

// String is the kind in one word.
func (k MemberKind) String() string {
	switch k {
	case MemberAdmit:
		return "admit"
	case MemberBan:
		return "ban"
	default:
		return fmt.Sprintf("kind %d", uint8(k))
	}
}

// MemberRecord is the statement of a domain's key about one site. Making and verifying
// the signature is left to the caller.
type MemberRecord struct {
	Domain   grid.DomainID
	Site     grid.SiteID
	Kind     MemberKind
	Name     string // of the site, for people, at most 64 bytes
	SerialMS int64  // time of issue, ms since 1970 UTC; the highest of a site's records holds
	Note     string // of the issuer, for people, at most MaxNoteBytes
	// Successions counts those of the domain's key before the first record of the site, at most
	// MaxSuccessions: it tells what a successor has taken over from what is new.
	Successions uint32
	Signature   []byte // over SignedBytes, SignatureBytes long
}

// Roster brings records of members.
type Roster struct {
	Records []MemberRecord // at most MaxRosterRecords
	Digest  Digest         // of the sender's whole roster, with its last message; zero before
	Answer  bool           // sent because of a Roster; not answered
	// Successions of the domain's key, all from the first one; none: the key had none, or another
	// message of this roster has them.
	Successions []Succession
}

// JoinRequest redeems an invitation.
type JoinRequest struct {
	Secret []byte      // of the invitation, SecretBytes long
	Name   string      // of the newcomer, for people, at most 64 bytes
	Knows  JoinRefusal // the highest refusal that the newcomer has words for; 0 = JoinBroken
}

// JoinRefusal says why a newcomer is not admitted. The numbers are part of the
// protocol and never change their meaning.
type JoinRefusal uint8

// The refusals.
const (
	JoinAdmitted  JoinRefusal = 0           // no refusal
	JoinUnknown   JoinRefusal = 1           // nobody was invited with this secret
	JoinExpired   JoinRefusal = 2           // the invitation has expired
	JoinUsed      JoinRefusal = 3           // it was used as often as it may be
	JoinBanned    JoinRefusal = 4           // the newcomer is banned
	JoinFull      JoinRefusal = 5           // the domain has as many members as a roster holds
	JoinBroken    JoinRefusal = 6           // the inviter cannot write the admission down
	JoinRevoked   JoinRefusal = 7           // the invitation was revoked
	JoinPending   JoinRefusal = 8           // not yet: a person at the inviter decides
	JoinCrowded   JoinRefusal = 9           // too many wait for that already
	JoinRefusals              = JoinCrowded // the last one
	SecretBytes               = 16          // of an invitation
	MaxNoteBytes              = 128         // of a record
	MaxListed                 = 1_024       // sites of a JoinAnswer
	MaxJoinAddrs              = 8           // addresses of a JoinAnswer
	maxJoinText               = 256         // bytes of a JoinAnswer's or Checked's text
	memberContext             = "mrs/1/member"
	// MaxRosterRecords is the largest number of records in a Roster message: one of 256 KiB
	// at their longest.
	MaxRosterRecords = 256
)

// String is the refusal in words a person understands.
func (r JoinRefusal) String() string {
	names := [...]string{
		"admitted", "the invitation is not known there", "the invitation has expired",
		"the invitation is used up",
		"this site is banned", "the domain is full", "the inviter cannot write the admission down",
		"the invitation was revoked", "the inviter has not admitted this site yet",
		"too many sites wait to be admitted with this invitation",
	}
	if int(r) < len(names) {
		return names[r]
	}
	return fmt.Sprintf("refusal %d", uint8(r))
}

// For is the refusal that a newcomer is sent who has words for those up to known: one that it
// does not know it would take for a damaged answer, and ask again.
func (r JoinRefusal) For(known JoinRefusal) JoinRefusal {
	if r <= max(known, JoinBroken) {
		return r
	}
	return JoinExpired
}

// JoinAnswer admits a newcomer or says why not.
type JoinAnswer struct {
	Refusal JoinRefusal
	Text    string        // more on the refusal, for people; at most 256 bytes
	Admit   *MemberRecord // with JoinAdmitted
	Listed  []grid.SiteID // members that the inviter trusts by its own list
	Addrs   []string      // where the inviter can be dialled, multiaddrs that end in /p2p/ID
}

// Check asks a member to announce a probe and to say whether this site's offer
// arrives.
type Check struct {
	Number uint64 // repeated in the answer
}

// Checked answers Check.
type Checked struct {
	Number   uint64
	Arrived  bool          // an offer came
	Distance float64       // of the offer
	Took     time.Duration // from the announcement to the offer
	Text     string        // why none came, for people; at most 256 bytes
}

// Validate reports the first field that is out of its range. It does not verify
// the signature.
func (r MemberRecord) Validate() error {
	if len(r.Signature) != SignatureBytes {
		return invalidf("member: signature of %d bytes, want %d", len(r.Signature), SignatureBytes)
	}
	return r.validateContent()
}

func (r MemberRecord) validateContent() error {
	switch {
	case r.Kind != MemberAdmit && r.Kind != MemberBan:
		return invalidf("member: %s is unknown", r.Kind)
	case len(r.Name) > maxHelloName || !utf8.ValidString(r.Name):
		return invalidf("member: name longer than %d bytes or not UTF-8", maxHelloName)
	case len(r.Note) > MaxNoteBytes || !utf8.ValidString(r.Note):
		return invalidf("member: note longer than %d bytes or not UTF-8", MaxNoteBytes)
	case r.SerialMS <= 0 || r.SerialMS > math.MaxInt64/int64(time.Millisecond):
		return invalidf("member: serial %d is no time of issue", r.SerialMS)
	case r.Successions > MaxSuccessions:
		return invalidf("member: after %d successions, want at most %d",
			r.Successions, MaxSuccessions)
	}
	return firstError(r.Domain.Validate(), r.Site.Validate())
}

// SignedBytes returns the bytes that the signature covers. Equal records give equal
// bytes. The bytes of a record whose fields are out of range are nil.
func (r MemberRecord) SignedBytes() []byte {
	signed := r.content()
	if signed == nil || r.Successions == 0 {
		return signed
	}
	// No field of the content has the number 0, so this is the content of no other record.
	return binary.BigEndian.AppendUint32(append(signed, 0), r.Successions)
}

// content is the part of the signed bytes that builds know which know of no succession.
func (r MemberRecord) content() []byte {
	if r.validateContent() != nil {
		return nil
	}
	signed, err := marshalOptions().Marshal(&wirepb.SignedMember{
		Context: memberContext, Domain: string(r.Domain), Site: string(r.Site), Kind: uint32(r.Kind),
		Name: r.Name, SerialMs: r.SerialMS, Note: r.Note,
	})
	if err != nil { // the texts were found to be UTF-8
		return nil
	}
	return signed
}

// Validate reports the first field that is out of its range.
func (m Roster) Validate() error {
	if len(m.Records) > MaxRosterRecords {
		return invalidf("roster: more than %d records", MaxRosterRecords)
	}
	for _, r := range m.Records {
		if err := r.Validate(); err != nil {
			return err
		}
	}
	return ValidSuccessions(m.Successions)
}

// Validate reports the first field that is out of its range.
func (m JoinRequest) Validate() error {
	if len(m.Secret) != SecretBytes || len(m.Name) > maxHelloName {
		return invalidf("join: want a secret of %d bytes and a name of at most %d",
			SecretBytes, maxHelloName)
	}
	return nil
}

// Validate reports the first field that is out of its range.
func (m JoinAnswer) Validate() error {
	switch {
	case m.Refusal > JoinRefusals:
		return invalidf("join: %s is unknown", m.Refusal)
	case (m.Refusal == JoinAdmitted) != (m.Admit != nil):
		return invalidf("join: want either a refusal or an admission")
	case len(m.Text) > maxJoinText || len(m.Listed) > MaxListed || len(m.Addrs) > MaxJoinAddrs:
		return invalidf("join: text, sites or addresses are too many")
	}
	for _, site := range m.Listed {
		if err := site.Validate(); err != nil {
			return err
		}
	}
	for _, addr := range m.Addrs {
		if addr == "" || len(addr) > maxAddrBytes {
			return invalidf("join: an address takes 1 to %d bytes, have %d", maxAddrBytes, len(addr))
		}
	}
	if m.Admit == nil {
		return nil
	}
	return m.Admit.Validate()
}

// Validate accepts every number.
func (m Check) Validate() error { return nil }

// Validate reports the first field that is out of its range.
func (m Checked) Validate() error {
	if !finite(m.Distance) || m.Took < 0 || len(m.Text) > maxJoinText {
		return invalidf("checked: distance, time or text out of range")
	}
	return nil
}

// setMember sets the body for the messages about members; it reports false for
// all others.
func setMember(w *wirepb.Wire, m Message) bool {
	switch m := m.(type) {
	case Roster:
		w.Body = &wirepb.Wire_Roster{Roster: &wirepb.Roster{
			Records: each(m.Records, wireMember), Digest: wireDigest(m.Digest), Answer: m.Answer,
			Successions: each(m.Successions, wireSuccession),
		}}
	case JoinRequest:
		w.Body = &wirepb.Wire_JoinRequest{
			JoinRequest: &wirepb.JoinRequest{
				Secret: m.Secret, Name: forPeople(m.Name), Knows: uint32(m.Knows),
			},
		}
	case JoinAnswer:
		answer := &wirepb.JoinAnswer{
			Refusal: uint32(m.Refusal), Text: forPeople(m.Text), Listed: each(m.Listed, asText[grid.SiteID]),
			Addrs: m.Addrs,
		}
		if m.Admit != nil {
			answer.Admit = wireMember(*m.Admit)
		}
		w.Body = &wirepb.Wire_JoinAnswer{JoinAnswer: answer}
	case Check:
		w.Body = &wirepb.Wire_Check{Check: &wirepb.Check{Number: m.Number}}
	case Checked:
		w.Body = &wirepb.Wire_Checked{Checked: &wirepb.Checked{
			Number: m.Number, Arrived: m.Arrived, Distance: m.Distance,
			TookNs: int64(m.Took), Text: forPeople(m.Text),
		}}
	case Testimony:
		w.Body = &wirepb.Wire_Testimony{Testimony: wireTestimony(m)}
	default:
		return false
	}
	return true
}

func wireMember(r MemberRecord) *wirepb.MemberRecord {
	return &wirepb.MemberRecord{
		Signed: r.content(), Signature: r.Signature, Successions: r.Successions,
	}
}

// wireDigest leaves out the digest that says nothing.
func wireDigest(d Digest) []byte {
	if d == (Digest{}) {
		return nil
	}
	return d[:]
}

// aboutMembers is the counterpart of setMember.
func (r *reader) aboutMembers(w *wirepb.Wire) Message {
	switch b := w.GetBody().(type) {
	case *wirepb.Wire_Roster:
		return Roster{
			Records: each(b.Roster.GetRecords(), r.member), Digest: r.optionalDigest(b.Roster.GetDigest()),
			Answer:      b.Roster.GetAnswer(),
			Successions: each(b.Roster.GetSuccessions(), r.succession),
		}
	case *wirepb.Wire_JoinRequest:
		return JoinRequest{
			Secret: b.JoinRequest.GetSecret(), Name: b.JoinRequest.GetName(),
			Knows: small[JoinRefusal](b.JoinRequest.GetKnows()),
		}
	case *wirepb.Wire_JoinAnswer:
		return r.joinAnswer(b.JoinAnswer)
	case *wirepb.Wire_Check:
		return Check{Number: b.Check.GetNumber()}
	case *wirepb.Wire_Checked:
		c := b.Checked
		return Checked{
			Number: c.GetNumber(), Arrived: c.GetArrived(), Distance: c.GetDistance(),
			Took: time.Duration(c.GetTookNs()), Text: c.GetText(),
		}
	case *wirepb.Wire_Testimony:
		return testimony(b.Testimony)
	default:
		return nil
	}
}

func (r *reader) joinAnswer(w *wirepb.JoinAnswer) JoinAnswer {
	m := JoinAnswer{
		Refusal: small[JoinRefusal](w.GetRefusal()), Text: w.GetText(), Addrs: w.GetAddrs(),
		Listed: each(w.GetListed(), func(s string) grid.SiteID { return grid.SiteID(s) }),
	}
	if w.GetAdmit() != nil {
		record := r.member(w.GetAdmit())
		m.Admit = &record
	}
	return m
}

// member reads a record. What was signed must be exactly what SignedBytes gives
// again, so that one statement has one form.
func (r *reader) member(w *wirepb.MemberRecord) MemberRecord {
	var signed wirepb.SignedMember
	if err := proto.Unmarshal(w.GetSigned(), &signed); err != nil {
		r.fail(fmt.Errorf("%w: member: %w", ErrMalformed, err))
		return MemberRecord{}
	}
	record := MemberRecord{
		Domain: grid.DomainID(signed.GetDomain()),
		Site:   grid.SiteID(signed.GetSite()), Kind: small[MemberKind](signed.GetKind()),
		Name: signed.GetName(), SerialMS: signed.GetSerialMs(),
		Note: signed.GetNote(), Successions: w.GetSuccessions(), Signature: w.GetSignature(),
	}
	if signed.GetContext() != memberContext || string(record.content()) != string(w.GetSigned()) {
		r.fail(fmt.Errorf("%w: member: signed for another purpose, or in another form", ErrMalformed))
	}
	return record
}

// optionalDigest reads a digest that may be missing.
func (r *reader) optionalDigest(raw []byte) Digest {
	var d Digest
	if len(raw) == 0 {
		return d
	}
	if copy(d[:], raw) != len(d) || len(raw) != len(d) {
		r.fail(fmt.Errorf("%w: digest of %d bytes, want %d", ErrMalformed, len(raw), len(d)))
	}
	return d
}
