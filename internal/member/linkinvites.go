package member

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// LinkInvite is an invitation to a link as its issuer knows it: never with its secret.
type LinkInvite struct {
	ID      string        // first characters of the secret's hash, for people
	Name    grid.DomainID // of the domain that it is for; empty: any
	Created time.Time
	Expires time.Time
}

// linkInvite is one on disk.
type linkInvite struct {
	Hash      string         `json:"hash"` // SHA-256 of the secret, hexadecimal
	Name      grid.DomainID  `json:"name,omitempty"`
	CreatedMS int64          `json:"created_ms"`
	ExpiresMS int64          `json:"expires_ms"`
	By        grid.DomainKey `json:"by,omitempty"` // who has used it
	Withdrawn bool           `json:"withdrawn,omitempty"`
	ClosedMS  int64          `json:"closed_ms,omitempty"` // when it was used or withdrawn
}

func (i linkInvite) validate() error {
	if _, err := hex.DecodeString(i.Hash); err != nil || len(i.Hash) != 2*sha256.Size {
		return fmt.Errorf("invitation with hash %q", i.Hash)
	}
	return nil
}

// refusal says why the domain of that key cannot use it, or is empty.
func (i linkInvite) refusal(by LinkSide, now time.Time) LinkRefusal {
	switch {
	case i.Withdrawn:
		return LinkWithdrawn
	case i.By != "":
		return LinkUsed
	case now.UnixMilli() >= i.ExpiresMS:
		return LinkExpired
	case i.Name != "" && i.Name != by.Name:
		return LinkOther
	default:
		return ""
	}
}

// told reports whether it is open, or was closed so recently that its holder should hear why it
// is of no use.
func (i linkInvite) told(now time.Time) bool {
	closed := i.ExpiresMS
	if i.ClosedMS != 0 {
		closed = min(closed, i.ClosedMS)
	}
	return now.Sub(time.UnixMilli(closed)) < closedTold
}

// Invite makes an invitation to a link, good once and for so long, and returns its secret, which
// is not stored. With a name only a domain of that name can use it. The first one makes the
// domain's key.
func (l *Links) Invite(
	name grid.DomainID, span time.Duration,
) (secret []byte, made LinkInvite, err error) {
	if span < time.Second || span > MaxInvite {
		return nil, made, fmt.Errorf("%w: an invitation is good for 1s to %d days, not %s",
			grid.ErrInvalid, MaxInvite/(24*time.Hour), span)
	}
	if name != "" {
		if err := name.Validate(); err != nil {
			return nil, made, err
		}
	}
	if err := l.NeedKey(); err != nil {
		return nil, made, err
	}
	l.disk.Lock()
	defer l.disk.Unlock()
	s, now := l.get(), l.now()
	s.invites = slices.DeleteFunc(slices.Clone(s.invites), func(i linkInvite) bool {
		return now.Sub(time.UnixMilli(i.ExpiresMS)) > closedKept
	})
	if len(s.open(now)) >= maxInvites || len(s.invites) >= maxInvitKept {
		return nil, made, fmt.Errorf("%w: %d invitations are open; withdraw one, or wait until it "+
			"expires", ErrTooMany, maxInvites)
	}
	secret = make([]byte, protocol.SecretBytes)
	_, _ = rand.Read(secret) // it never fails
	fresh := linkInvite{
		Hash: hashOf(secret), Name: name, CreatedMS: now.UnixMilli(),
		ExpiresMS: now.Add(span).UnixMilli(),
	}
	s.invites = append(s.invites, fresh)
	return secret, fresh.public(), l.keep(s)
}

func (i linkInvite) public() LinkInvite {
	return LinkInvite{
		ID: i.Hash[:idChars], Name: i.Name, Created: time.UnixMilli(i.CreatedMS),
		Expires: time.UnixMilli(i.ExpiresMS),
	}
}

// open are the invitations that can be used now.
func (s linksState) open(now time.Time) []linkInvite {
	return slices.DeleteFunc(slices.Clone(s.invites), func(i linkInvite) bool {
		return i.refusal(LinkSide{Name: i.Name}, now) != ""
	})
}

// awaitsUntil is the time, in ms since 1970 UTC, until which strangers may come for an open
// invitation; 0: none is open.
func (s linksState) awaitsUntil(now time.Time) (untilMS int64) {
	for _, i := range s.open(now) {
		untilMS = max(untilMS, i.ExpiresMS)
	}
	return untilMS
}

// Invites lists the open invitations, the oldest first.
func (l *Links) Invites() []LinkInvite {
	var list []LinkInvite
	for _, i := range l.get().open(l.now()) {
		list = append(list, i.public())
	}
	return list
}

// Inviting reports whether the gateway of an unknown domain may connect to use an invitation.
func (l *Links) Inviting() bool {
	now := l.now()
	return slices.ContainsFunc(l.get().invites, func(i linkInvite) bool { return i.told(now) })
}

// Withdraw makes the open invitation with that ID useless.
func (l *Links) Withdraw(id string) error {
	l.disk.Lock()
	defer l.disk.Unlock()
	s, now := l.get(), l.now()
	s.invites = slices.Clone(s.invites)
	for n, i := range s.invites {
		if i.Hash[:idChars] == id && i.refusal(LinkSide{Name: i.Name}, now) == "" {
			s.invites[n].Withdrawn, s.invites[n].ClosedMS = true, now.UnixMilli()
			return l.keep(s)
		}
	}
	return fmt.Errorf("%w: no open invitation is called %q; siteagent domains lists them",
		ErrNoLink, id)
}

// find the invitation with that hash, -1 if there is none.
func (s linksState) invite(hash string) int {
	return slices.IndexFunc(s.invites, func(i linkInvite) bool { return i.Hash == hash })
}

// Ask makes the request by which this domain joins that of the token. The error, a LinkRefusal
// where one fits, says why it does not even ask.
func (l *Links) Ask(token Token, own LinkSide) (Statement, error) {
	if err := l.NeedKey(); err != nil {
		return Statement{}, err
	}
	own.Key = l.Key()
	s := l.get()
	switch _, linked := l.Get(token.Key); {
	case token.Key == own.Key:
		return Statement{}, LinkSame
	case linked:
		return Statement{}, LinkAlready
	case len(s.links) >= maxLinks:
		return Statement{}, LinkFull
	}
	return l.members.State(askContext, LinkAsk{To: token.Key, Secret: token.Secret, Side: own})
}

// Propose answers an ask that came from that site: the record of the link, signed by this
// domain alone, or by both if the same domain has agreed before and did not hear so. The error
// is a LinkRefusal.
func (l *Links) Propose(said Statement, from grid.SiteID, own LinkSide) (LinkRecord, error) {
	var ask LinkAsk
	if err := said.peek(askContext, &ask); err != nil {
		return LinkRecord{}, LinkForged
	}
	err := said.Read(askContext, ask.Side.Key, &ask)
	if err != nil || ask.Side.Validate() != nil || !ask.Side.has(from) {
		return LinkRecord{}, LinkForged
	}
	s, now := l.get(), l.now()
	at := s.invite(hashOf(ask.Secret))
	switch {
	case at < 0:
		return LinkRecord{}, LinkUnknown
	case ask.Side.Key == l.Key():
		return LinkRecord{}, LinkSame
	case ask.To != l.Key():
		return LinkRecord{}, LinkForged
	}
	link, linked := l.Get(ask.Side.Key)
	if linked && s.invites[at].By == ask.Side.Key {
		return link.Record, nil
	}
	if refusal := s.invites[at].refusal(ask.Side, now); refusal != "" {
		return LinkRecord{}, refusal
	}
	if linked {
		return LinkRecord{}, LinkAlready
	}
	if len(s.links) >= maxLinks {
		return LinkRecord{}, LinkFull
	}
	text, err := json.Marshal(linkText{
		ID: s.invites[at].Hash, Inviter: own, Joiner: ask.Side, SinceMS: now.UnixMilli(),
	})
	if err != nil {
		return LinkRecord{}, LinkBroken
	}
	signature, err := l.members.Sign(contextual(linkContext, text))
	return LinkRecord{Text: text, Inviter: signature}, err
}

// Agree signs the record of a link as the domain that joins by that token, if it says what it
// has to.
func (l *Links) Agree(token Token, record LinkRecord, own LinkSide) (LinkRecord, error) {
	own.Key = l.Key()
	t, err := record.read()
	switch {
	case err != nil:
		return record, LinkForged
	case t.Inviter.Key != token.Key || t.Inviter.Name != token.Domain ||
		!t.Inviter.has(token.Inviter) || t.ID != hashOf(token.Secret):
		return record, LinkForged
	case t.Joiner.Key != own.Key || t.Joiner.Name != own.Name:
		return record, LinkForged
	case record.Joiner != nil: // agreed before
		return record, nil
	}
	record.Joiner, err = l.members.Sign(contextual(linkContext, record.Text))
	return record, err
}

// Join keeps a link that the inviter has confirmed.
func (l *Links) Join(record LinkRecord) (Link, error) {
	l.disk.Lock()
	defer l.disk.Unlock()
	t, err := record.read()
	if err != nil || record.Joiner == nil || t.Joiner.Key != l.Key() {
		return Link{}, LinkForged
	}
	return l.add(l.get(), t.Inviter, t, record)
}

// Seal keeps a link that this domain has proposed and the other one has agreed to, and uses the
// invitation up, in one step. The same record again changes nothing.
func (l *Links) Seal(record LinkRecord) (Link, error) {
	l.disk.Lock()
	defer l.disk.Unlock()
	t, err := record.read()
	own, bad := l.Key().Bytes()
	if err != nil || bad != nil || record.Joiner == nil || t.Inviter.Key != l.Key() ||
		!ed25519.Verify(own, contextual(linkContext, record.Text), record.Inviter) {
		return Link{}, LinkForged
	}
	s, now := l.get(), l.now()
	if old, linked := l.Get(t.Joiner.Key); linked {
		if bytes.Equal(old.Record.Text, record.Text) {
			return old, nil
		}
		return Link{}, LinkAlready
	}
	at := s.invite(t.ID)
	if at < 0 {
		return Link{}, LinkUnknown
	}
	if refusal := s.invites[at].refusal(t.Joiner, now); refusal != "" {
		return Link{}, refusal
	}
	s.invites = slices.Clone(s.invites)
	s.invites[at].By, s.invites[at].ClosedMS = t.Joiner.Key, now.UnixMilli()
	return l.add(s, t.Joiner, t, record)
}

// add keeps a new link; the caller holds disk.
func (l *Links) add(s linksState, other LinkSide, t linkText, record LinkRecord) (Link, error) {
	if old, linked := l.Get(other.Key); linked {
		if bytes.Equal(old.Record.Text, record.Text) {
			return old, nil
		}
		return Link{}, LinkAlready
	}
	if len(s.links) >= maxLinks {
		return Link{}, LinkFull
	}
	link := Link{
		Name: l.alias(s, other), Side: other, Since: time.UnixMilli(t.SinceMS),
		Policy: defaultPolicy(), Record: record,
	}
	if err := l.keep(s.with(link)); err != nil {
		return Link{}, err
	}
	return link, nil
}
