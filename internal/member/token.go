package member

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// errToken says that a text is not an invitation token.
var errToken = errors.New("not an invitation token")

// Limits and layout of a token.
const (
	tokenPrefix   = "mrs1."
	linkPrefix    = "mrslink1." // of a token that links two domains
	tokenVersion  = 1
	maxTokenText  = 4096 // characters
	maxTokenAddrs = protocol.MaxJoinAddrs
	maxTokenAddr  = 200 // bytes of an address
	checksumBytes = 4
)

// Token is given to an invited site, or domain: it says whom to ask, and with which secret.
type Token struct {
	Link    bool // it links two domains, rather than inviting a site; then there is a Key
	Domain  grid.DomainID
	Key     grid.DomainKey // of the domain; empty: it takes anyone, and the token is only where it is
	Inviter grid.SiteID
	Addrs   []string  // of the inviter, multiaddrs without /p2p/ID, 1 to 8
	Secret  []byte    // protocol.SecretBytes, or nothing where Key is empty
	Expires time.Time // to the second
}

// Dial lists the inviter's addresses with its ID.
func (t Token) Dial() []string {
	var addrs []string
	for _, a := range t.Addrs {
		addrs = append(addrs, a+"/p2p/"+string(t.Inviter))
	}
	return addrs
}

// Open reports whether the domain takes anyone.
func (t Token) Open() bool { return t.Key == "" }

// Validate reports the first field that is out of its range.
func (t Token) Validate() error {
	switch {
	case t.Link && t.Open():
		return fmt.Errorf("%w: a domain without a key cannot be linked", errToken)
	case t.Open() != (len(t.Secret) == 0), !t.Open() && len(t.Secret) != protocol.SecretBytes:
		return fmt.Errorf("%w: key and secret do not fit together", errToken)
	case len(t.Addrs) == 0 || len(t.Addrs) > maxTokenAddrs:
		return fmt.Errorf("%w: want 1 to %d addresses, have %d", errToken, maxTokenAddrs, len(t.Addrs))
	case t.Expires.Unix() <= 0:
		return fmt.Errorf("%w: no expiry", errToken)
	}
	if err := validAddrs(t.Addrs); err != nil {
		return err
	}
	if !t.Open() {
		if err := t.Key.Validate(); err != nil {
			return fmt.Errorf("%w: %w", errToken, err)
		}
	}
	if err := errors.Join(t.Domain.Validate(), t.Inviter.Validate()); err != nil {
		return fmt.Errorf("%w: %w", errToken, err)
	}
	return nil
}

// validAddrs reports the first address that a token cannot name.
func validAddrs(addrs []string) error {
	for _, a := range addrs {
		if !strings.HasPrefix(a, "/") || len(a) > maxTokenAddr || !utf8.ValidString(a) ||
			strings.ContainsFunc(a, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return fmt.Errorf("%w: address %q", errToken, a)
		}
	}
	return nil
}

// Text is the token in one line, for ParseToken.
func (t Token) Text() (string, error) {
	if err := t.Validate(); err != nil {
		return "", err
	}
	key, _ := t.Key.Bytes() // nothing where the domain takes anyone
	b := []byte{tokenVersion}
	for _, field := range [][]byte{[]byte(t.Domain), key, []byte(t.Inviter), t.Secret} {
		b = append(append(b, byte(len(field))), field...)
	}
	b = binary.BigEndian.AppendUint64(b, uint64(t.Expires.Unix()))
	b = append(b, byte(len(t.Addrs)))
	for _, a := range t.Addrs {
		b = append(append(b, byte(len(a))), a...)
	}
	prefix := t.prefix()
	return prefix + base64.RawURLEncoding.EncodeToString(append(b, checksum(prefix, b)...)), nil
}

// prefix begins the text.
func (t Token) prefix() string {
	if t.Link {
		return linkPrefix
	}
	return tokenPrefix
}

// command prints such tokens.
func (t Token) command() string {
	if t.Link {
		return "siteagent domain invite"
	}
	return "siteagent invite"
}

// checksum tells the two kinds of tokens apart, too.
func checksum(prefix string, b []byte) []byte {
	context := "mrs/1/token"
	if prefix == linkPrefix {
		context = "mrs/1/link-token"
	}
	sum := sha256.Sum256(append([]byte(context), b...))
	return sum[:checksumBytes]
}

// ParseToken reads what Text wrote. White space, as mail programs insert it, is
// ignored. The error is errToken.
func ParseToken(text string) (Token, error) {
	if len(text) > 2*maxTokenText {
		return Token{}, fmt.Errorf("%w: too long", errToken)
	}
	text = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, text)
	var kind Token
	body, found := strings.CutPrefix(text, tokenPrefix)
	if !found {
		body, found = strings.CutPrefix(text, linkPrefix)
		kind.Link = found
	}
	if !found || len(text) > maxTokenText {
		return Token{}, fmt.Errorf("%w: one begins with %q; copy the whole line that %s printed",
			errToken, kind.prefix(), kind.command())
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(body)
	if err != nil || len(raw) <= checksumBytes ||
		!bytes.Equal(raw[len(raw)-checksumBytes:],
			checksum(kind.prefix(), raw[:len(raw)-checksumBytes])) {
		return Token{}, fmt.Errorf("%w: it is damaged; copy the whole line that %s printed",
			errToken, kind.command())
	}
	t, err := decodeToken(raw[:len(raw)-checksumBytes])
	if err != nil {
		return Token{}, err
	}
	t.Link = kind.Link
	return t, t.Validate()
}

func decodeToken(raw []byte) (Token, error) {
	r := cursor{rest: raw}
	if version := r.number(1); version != tokenVersion {
		return Token{}, fmt.Errorf(
			"%w: unknown version %d; update siteagent on this machine", errToken, version,
		)
	}
	t := Token{Domain: grid.DomainID(r.field())}
	if key := r.field(); len(key) > 0 {
		t.Key = grid.NewDomainKey(key)
	}
	t.Inviter = grid.SiteID(r.field())
	t.Secret = bytes.Clone(r.field())
	t.Expires = time.Unix(int64(min(r.number(8), 1<<40)), 0).UTC()
	for range min(r.number(1), maxTokenAddrs+1) {
		t.Addrs = append(t.Addrs, string(r.field()))
	}
	if r.short || len(r.rest) > 0 {
		return Token{}, fmt.Errorf("%w: wrong length", errToken)
	}
	if len(t.Secret) == 0 {
		t.Secret = nil
	}
	return t, nil
}

// cursor reads fields off bytes and notes when there are too few.
type cursor struct {
	rest  []byte
	short bool
}

func (c *cursor) take(n int) []byte {
	if n > len(c.rest) {
		c.short, c.rest = true, nil
		return nil
	}
	taken := c.rest[:n]
	c.rest = c.rest[n:]
	return taken
}

func (c *cursor) number(size int) uint64 {
	var n uint64
	for _, b := range c.take(size) {
		n = n<<8 | uint64(b)
	}
	return n
}

func (c *cursor) field() []byte { return c.take(int(c.number(1))) }
