package member

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Contexts of what is said about links.
const (
	linkContext = "mrs/1/link"
	askContext  = "mrs/1/link-ask"
)

// Limits of a side of a link.
const (
	maxGateways     = 4
	maxGatewayAddrs = 8
)

// errSide says that a side of a link cannot be one.
var errSide = errors.New("not a side of a link")

// Gateway is a site of a domain that holds its links.
type Gateway struct {
	Site  grid.SiteID `json:"site"`
	Addrs []string    `json:"addrs,omitempty"` // multiaddrs that end in /p2p/ID, at most 8
}

// LinkSide is one of the two domains of a link.
type LinkSide struct {
	Name     grid.DomainID  `json:"name"`
	Key      grid.DomainKey `json:"key"`
	Gateways []Gateway      `json:"gateways"` // 1 to 4
}

// Validate reports the first field that is out of its range.
func (s LinkSide) Validate() error {
	if err := errors.Join(s.Name.Validate(), s.Key.Validate()); err != nil {
		return fmt.Errorf("%w: %w", errSide, err)
	}
	return ValidGateways(s.Gateways)
}

// ValidGateways reports the first of a domain's gateways that cannot be one.
func ValidGateways(gateways []Gateway) error {
	if n := len(gateways); n == 0 || n > maxGateways {
		return fmt.Errorf("%w: want 1 to %d gateways, have %d", errSide, maxGateways, n)
	}
	for _, g := range gateways {
		if err := g.Site.Validate(); err != nil {
			return fmt.Errorf("%w: gateway: %w", errSide, err)
		}
		if len(g.Addrs) > maxGatewayAddrs {
			return fmt.Errorf("%w: gateway %s has %d addresses, want at most %d",
				errSide, g.Site, len(g.Addrs), maxGatewayAddrs)
		}
		for _, a := range g.Addrs {
			if !strings.HasPrefix(a, "/") || !strings.HasSuffix(a, "/p2p/"+string(g.Site)) ||
				len(a) > maxTokenAddr+len("/p2p/")+len(g.Site) ||
				strings.ContainsFunc(a, func(r rune) bool { return r <= ' ' || r > '~' }) {
				return fmt.Errorf("%w: address %q of gateway %s", errSide, a, g.Site)
			}
		}
	}
	return nil
}

// has reports whether the site is one of its gateways.
func (s LinkSide) has(site grid.SiteID) bool {
	return slices.ContainsFunc(s.Gateways, func(g Gateway) bool { return g.Site == site })
}

// linkText is the text that both domains sign.
type linkText struct {
	ID      string   `json:"id"` // the hash of the invitation's secret
	Inviter LinkSide `json:"inviter"`
	Joiner  LinkSide `json:"joiner"`
	SinceMS int64    `json:"since_ms"`
}

// LinkRecord is the agreement of two domains, signed by both keys.
type LinkRecord struct {
	Text    []byte `json:"text"`
	Inviter []byte `json:"inviter"`          // signature
	Joiner  []byte `json:"joiner,omitempty"` // signature; none before the joiner has agreed
}

// read reads the text and checks the signatures that there are; the inviter's there must be.
func (r LinkRecord) read() (linkText, error) {
	var t linkText
	if len(r.Text) > maxStatementBytes {
		return t, fmt.Errorf("%w: longer than %d bytes", errStatement, maxStatementBytes)
	}
	if err := json.Unmarshal(r.Text, &t); err != nil {
		return t, fmt.Errorf("%w: %w", errStatement, err)
	}
	if err := errors.Join(t.Inviter.Validate(), t.Joiner.Validate()); err != nil {
		return t, err
	}
	if !signedFor(linkContext, t.Inviter.Key, r.Text, r.Inviter) {
		return t, fmt.Errorf("inviter: %w", errStatement)
	}
	if r.Joiner != nil && !signedFor(linkContext, t.Joiner.Key, r.Text, r.Joiner) {
		return t, fmt.Errorf("joiner: %w", errStatement)
	}
	return t, nil
}

// LinkAsk asks for a link; the joining domain says it first, under its key.
type LinkAsk struct {
	To     grid.DomainKey `json:"to"` // the inviter's
	Secret []byte         `json:"secret"`
	Side   LinkSide       `json:"side"`
}

// Link holds the knowledge that this domain has of a linked one.
type Link struct {
	Name   grid.DomainID // here; where two have the same name a piece of the key is behind it
	Side   LinkSide      // the other domain, with the gateways that it named last
	Since  time.Time
	Policy LinkPolicy
	Last   time.Time // when its gateway was heard of last; zero: not yet
	Record LinkRecord
}

// EndedLink is a link that one side has ended.
type EndedLink struct {
	Name   grid.DomainID
	Key    grid.DomainKey
	Sites  []grid.SiteID // its gateways, which are told why they are refused
	At     time.Time
	ByThem bool // the other domain has ended it
}

// LinkRefusal says why two domains are not linked. Each text has the remedy. The values are part
// of what gateways tell each other.
type LinkRefusal string

// The refusals.
const (
	LinkUnknown   LinkRefusal = "unknown"
	LinkExpired   LinkRefusal = "expired"
	LinkUsed      LinkRefusal = "used"
	LinkWithdrawn LinkRefusal = "withdrawn"
	LinkOther     LinkRefusal = "other"
	LinkSame      LinkRefusal = "same"
	LinkAlready   LinkRefusal = "linked"
	LinkFull      LinkRefusal = "full"
	LinkForged    LinkRefusal = "forged"
	LinkBroken    LinkRefusal = "broken"
	LinkUnlinked  LinkRefusal = "unlinked"
	LinkNoKey     LinkRefusal = "no-key"
	LinkReplayed  LinkRefusal = "replayed"
	LinkLapsed    LinkRefusal = "lapsed"
)

// Error is the reason in a sentence, and what can be done.
func (r LinkRefusal) Error() string {
	const anew = "; ask for a new token there: siteagent domain invite"
	switch r {
	case LinkUnknown:
		return "the inviting domain does not know the invitation" + anew
	case LinkExpired:
		return "the invitation has expired" + anew
	case LinkUsed:
		return "the invitation was used already, and is good once" + anew
	case LinkWithdrawn:
		return "the inviting domain has withdrawn the invitation" + anew
	case LinkOther:
		return "the invitation is for a domain of another name; " +
			"ask for one that names this domain: siteagent domain invite --name NAME"
	case LinkSame:
		return "the token is of this domain itself; " +
			"sites join it with siteagent join and a token of siteagent invite"
	case LinkAlready:
		return "the two domains are linked already; " +
			"to link them anew: siteagent domain unlink, at both"
	case LinkFull:
		return fmt.Sprintf("a domain has at most %d links; "+
			"end one with: siteagent domain unlink", maxLinks)
	case LinkForged:
		return "what the other side says is not signed by its domain's key; " +
			"see that the token is of the domain that you mean, and ask for a new one"
	case LinkUnlinked:
		return "the other domain has ended the link; " +
			"ask for an invitation there, if it was not meant so"
	case LinkNoKey:
		return "the other site does not hold its domain's key any more; " +
			"its administrator knows where domain.key is"
	case LinkReplayed:
		return "what the other side says was made for another conversation; " +
			"if this is repeated, somebody poses as its gateway"
	case LinkLapsed:
		return "it may stand in for its domain's gateway no longer; " +
			"start the site that has that domain's key"
	default:
		return "the other side cannot do that now; its log says why"
	}
}

// known is the refusal, or LinkBroken where another version knows more than this one.
func (r LinkRefusal) known() LinkRefusal {
	all := []LinkRefusal{
		LinkUnknown, LinkExpired, LinkUsed, LinkWithdrawn, LinkOther, LinkSame, LinkAlready,
		LinkFull, LinkForged, LinkUnlinked, LinkNoKey, LinkReplayed, LinkLapsed,
	}
	if slices.Contains(all, r) {
		return r
	}
	return LinkBroken
}

// RefusalOf is the refusal that an error is, LinkBroken if it is none.
func RefusalOf(err error) LinkRefusal {
	var refusal LinkRefusal
	switch {
	case errors.As(err, &refusal):
		return refusal.known()
	case errors.Is(err, errStatement), errors.Is(err, errSide):
		return LinkForged
	case errors.Is(err, ErrNoKey):
		return LinkNoKey
	default:
		return LinkBroken
	}
}
