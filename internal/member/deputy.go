package member

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// deputyFile has what the site with the domain's key has handed over.
const deputyFile = "deputy.json"

// errHandover says that a handover is not for this site, or is not of the domain's key.
var errHandover = errors.New("not a handover of this domain's links to this site")

// deputyOffice holds what a deputy was handed, and whether it stands in.
type deputyOffice struct {
	handed protocol.Handover                 // zero: nothing was
	links  linksState                        // that are in it
	sign   func(text []byte) ([]byte, error) // by this site's own key; nil: it does not stand in
	made   int64                             // MadeMS of the last handover that this site has made
}

// deputyText is the form on disk.
type deputyText struct {
	Version  int               `json:"version"`
	Handover protocol.Handover `json:"handover"`
}

// openOffice reads what an earlier run was handed. What cannot be read counts as nothing: it is
// handed over again.
func (l *Links) openOffice() {
	var stored deputyText
	err := read(l.dir+"/"+deputyFile, func(text []byte) error {
		return json.Unmarshal(text, &stored)
	})
	if err == nil && stored.Version == fileVersion && !l.Holds() {
		_ = l.take(stored.Handover) // it may be of another domain
	}
}

// Speaks reports whether this site can speak for its domain: it has the domain's key, or stands in
// for the site that has it.
func (l *Links) Speaks() bool { return l.Holds() || l.mandate() != nil }

// mandate is that under which this site stands in now; nil: it does not, or may not any more.
func (l *Links) mandate() *protocol.Mandate {
	now := l.now()
	l.mu.RLock()
	defer l.mu.RUnlock()
	given := l.office.handed.Mandate
	if l.office.sign == nil || now.UnixMilli() >= given.UntilMS {
		return nil
	}
	return &given
}

// Sign signs a text for the domain: with its key, or under the mandate that comes with the
// signature. The error is ErrNoKey where this site does not speak for the domain.
func (l *Links) Sign(text []byte) ([]byte, *protocol.Mandate, error) {
	given := l.mandate()
	if given == nil {
		signature, err := l.members.Sign(text)
		return signature, nil, err
	}
	l.mu.RLock()
	sign := l.office.sign
	l.mu.RUnlock()
	if sign == nil {
		return nil, nil, ErrNoKey // it has just ended
	}
	signature, err := sign(text)
	return signature, given, err
}

// State says something for the domain, under its key or under the mandate that comes with it.
func (l *Links) State(context string, value any) (Statement, *protocol.Mandate, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return Statement{}, nil, fmt.Errorf("write %s: %w", context, err)
	}
	signature, mandate, err := l.Sign(contextual(context, text))
	return Statement{Text: text, Signature: signature}, mandate, err
}

// ReadUnder reads what a deputy says under a mandate, as Read does for the domain's key. Whose
// mandate it is the caller judges.
func (s Statement) ReadUnder(context string, mandate protocol.Mandate, into any) error {
	if !mandate.HasSigned(contextual(context, s.Text), s.Signature) {
		return fmt.Errorf("%s: %w", context, errStatement)
	}
	return s.peek(context, into)
}

// Handed returns the links as a deputy is told them: with records, gateways and policies, and
// until when an invitation to a link is open.
func (l *Links) Handed() ([]byte, error) {
	s := l.get()
	until := s.awaitsUntil(l.now())
	s.links = slices.Clone(s.links)
	for i := range s.links {
		s.links[i].Last = time.Time{} // it changes all the time
	}
	for {
		text, err := json.Marshal(linksTextOf(linksState{links: s.links, ended: s.ended, awaitsMS: until}))
		if err != nil || len(text) <= protocol.MaxHandedLinks || len(s.links) == 0 {
			return text, err
		}
		s.links = s.links[:len(s.links)-1] // those that do not fit are away with this site
	}
}

// HandOver makes what a deputy is told, later than all that was made before: gateway is this site,
// key the deputy's own ed25519 key, all are the deputies in the order in which they stand in. The
// error is ErrNoKey where this site does not have the domain's key.
func (l *Links) HandOver(
	deputy grid.SiteID, key []byte, gateway grid.SiteID, all []grid.SiteID, until time.Time,
) (protocol.Handover, error) {
	links, err := l.Handed()
	if err != nil {
		return protocol.Handover{}, fmt.Errorf("hand links over: %w", err)
	}
	l.mu.Lock()
	l.office.made = max(l.office.made+1, l.now().UnixMilli())
	m := protocol.Handover{
		Gateway: gateway, MadeMS: l.office.made, Deputies: all, Links: links,
		Mandate: protocol.Mandate{Site: deputy, Key: key, UntilMS: until.UnixMilli()},
	}
	l.mu.Unlock()
	if m.Mandate.Signature, err = l.members.Sign(m.Mandate.SignedBytes()); err != nil {
		return protocol.Handover{}, err
	}
	if m.Signature, err = l.members.Sign(m.SignedBytes()); err != nil {
		return protocol.Handover{}, err
	}
	return m, m.Validate()
}

// Take keeps what the site with the domain's key has handed to this one, unless something later was
// handed. One whose mandate has ended takes back what was.
func (l *Links) Take(m protocol.Handover) error {
	l.disk.Lock()
	defer l.disk.Unlock()
	l.mu.RLock()
	late := m.MadeMS <= l.office.handed.MadeMS && m.Gateway == l.office.handed.Gateway
	l.mu.RUnlock()
	if late {
		return nil
	}
	if err := l.take(m); err != nil {
		return err
	}
	return save(l.dir, deputyFile, deputyText{Version: fileVersion, Handover: m})
}

func (l *Links) take(m protocol.Handover) error {
	key, err := l.Key().Bytes()
	switch {
	case err != nil, m.Validate() != nil, m.Mandate.Site != l.members.cfg.Self, l.Holds(),
		!ed25519.Verify(key, m.SignedBytes(), m.Signature),
		!ed25519.Verify(key, m.Mandate.SignedBytes(), m.Mandate.Signature):
		return errHandover
	}
	links, err := decodeLinks(m.Links)
	if err != nil {
		return fmt.Errorf("%w: %w", errHandover, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.office.sign == nil && len(l.state.links) > 0 {
		return fmt.Errorf("%w: it has links of its own in %s", errHandover, linksFile)
	}
	m.Links = bytes.Clone(m.Links)
	l.office.handed, l.office.links = m, links
	return nil
}

// Deputy returns the last handover to this site; false: nothing, or the mandate has ended.
func (l *Links) Deputy() (protocol.Handover, bool) {
	now := l.now()
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.office.handed, now.UnixMilli() < l.office.handed.Mandate.UntilMS
}

// StandIn has this site speak for its domain, with its own key and under its mandate, about the
// links that it was handed. What it hears of them is lost when it stands down.
func (l *Links) StandIn(sign func(text []byte) ([]byte, error)) {
	l.disk.Lock()
	defer l.disk.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state, l.office.sign = l.office.links, sign
}

// LetsPass reports whether a site may connect to this one, a deputy, in order to be relayed to the
// gateway: it is a gateway of a linked domain.
func (l *Links) LetsPass(site grid.SiteID) bool {
	if _, deputy := l.Deputy(); !deputy {
		return false
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	return slices.ContainsFunc(l.office.links.links, func(link Link) bool {
		return link.Side.has(site)
	})
}

// Ushers reports whether strangers may connect to this site, a deputy, in order to be relayed to
// the gateway, which has invited one.
func (l *Links) Ushers() bool {
	if _, deputy := l.Deputy(); !deputy {
		return false
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.now().UnixMilli() < l.office.links.awaitsMS
}

// StandDown ends that: this site knows of no link any more.
func (l *Links) StandDown() {
	l.disk.Lock()
	defer l.disk.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.office.sign != nil {
		l.state, l.office.sign = linksState{}, nil
	}
}

// StandsIn reports whether this site stands in, if its mandate has not ended.
func (l *Links) StandsIn() bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.office.sign != nil
}

// needHolder refuses what the site with the domain's key alone decides.
func (l *Links) needHolder() error {
	if !l.Holds() && l.Key() != "" {
		return fmt.Errorf("%w; run this at %s", ErrNoKey, l.members.Founder())
	}
	return nil
}
