package protocol

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// drawMandate draws none now and then.
func drawMandate(t *rapid.T) *Mandate {
	if rapid.Bool().Draw(t, "by the key") {
		return nil
	}
	return &Mandate{
		Site: drawSite(t), Key: drawBytes(t, ed25519.PublicKeySize),
		UntilMS: rapid.Int64Min(1).Draw(t, "until"), Signature: drawBytes(t, SignatureBytes),
	}
}

func drawHandover(t *rapid.T) Message {
	m := Handover{
		Gateway: drawSite(t), MadeMS: rapid.Int64Min(1).Draw(t, "made"), Links: drawBytes(t, 20),
		Signature: drawBytes(t, SignatureBytes), Deputies: []grid.SiteID{drawSite(t)},
	}
	if given := drawMandate(t); given != nil {
		m.Mandate = *given
	} else {
		m.Mandate = goldenMessages()["handover"].(Handover).Mandate
	}
	return m
}

// realmKey is a key of which nothing is known but its seed.
func realmKey(seed byte) (ed25519.PrivateKey, grid.DomainKey) {
	private := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
	return private, grid.NewDomainKey(private[ed25519.SeedSize:])
}

// mandated is a mandate of a domain's key for the site with another key.
func mandated(domain, own ed25519.PrivateKey, site grid.SiteID, until time.Time) Mandate {
	m := Mandate{Site: site, Key: own[ed25519.SeedSize:], UntilMS: until.UnixMilli()}
	m.Signature = ed25519.Sign(domain, m.SignedBytes())
	return m
}

// What a deputy says counts under a mandate that the domain's key has signed whole, before it ends,
// and with the deputy's own signature.
func TestWhatIsSaidUnderAMandate(t *testing.T) {
	domain, key := realmKey(1)
	own, _ := realmKey(2)
	other, otherKey := realmKey(3)
	until := time.Unix(1_900_000_000, 0)
	good := mandated(domain, own, "deputy", until)
	now := until.Add(-time.Millisecond)
	stolen, longer, renamed := good, good, good
	stolen.Key, longer.UntilMS, renamed.Site = other[ed25519.SeedSize:], good.UntilMS+1, "x"
	for name, c := range map[string]struct {
		mandate *Mandate
		by      ed25519.PrivateKey
		from    grid.SiteID
		key     grid.DomainKey
		at      time.Time
		want    bool
	}{
		"a deputy":               {&good, own, "deputy", key, now, true},
		"the key itself":         {nil, domain, "gate", key, now, true},
		"no mandate":             {nil, own, "deputy", key, now, false},
		"another's mandate":      {&good, other, "deputy", key, now, false},
		"for another site":       {&good, own, "x", key, now, false},
		"of another domain":      {&good, own, "deputy", otherKey, now, false},
		"that has ended":         {&good, own, "deputy", key, until, false},
		"with a changed key":     {&stolen, other, "deputy", key, now, false},
		"with a changed end":     {&longer, own, "deputy", key, now, false},
		"with a changed site":    {&renamed, own, "x", key, now, false},
		"the domain's signature": {&good, domain, "deputy", key, now, false},
	} {
		m := Neighbours{Gateway: c.from, MadeMS: 1, Mandate: c.mandate}
		m.Signature = ed25519.Sign(c.by, m.SignedBytes())
		if got := m.IsSignedBy(c.key, c.at); got != c.want {
			t.Errorf("%s: neighbours: %t", name, got)
		}
		r := goldenMessages()["borderreceipt"].(BorderReceipt)
		r.Mandate, r.Signature = c.mandate, nil
		r.Signature = ed25519.Sign(c.by, r.SignedBytes())
		if c.from != "x" && r.IsSignedBy(c.key, c.at) != c.want {
			t.Errorf("%s: receipt: %t", name, !c.want)
		}
	}
}

func TestHandoversThatAreRefused(t *testing.T) {
	good := goldenMessages()["handover"].(Handover)
	for name, change := range map[string]func(*Handover){
		"no time":         func(m *Handover) { m.MadeMS = 0 },
		"no signature":    func(m *Handover) { m.Signature = nil },
		"no gateway":      func(m *Handover) { m.Gateway = "" },
		"many deputies":   func(m *Handover) { m.Deputies = []grid.SiteID{"a", "b", "c", "d"} },
		"twice":           func(m *Handover) { m.Deputies = []grid.SiteID{"a", "a"} },
		"a nameless one":  func(m *Handover) { m.Deputies = []grid.SiteID{""} },
		"too many links":  func(m *Handover) { m.Links = make([]byte, MaxHandedLinks+1) },
		"no site":         func(m *Handover) { m.Mandate.Site = "" },
		"no key":          func(m *Handover) { m.Mandate.Key = nil },
		"no end":          func(m *Handover) { m.Mandate.UntilMS = 0 },
		"unsigned":        func(m *Handover) { m.Mandate.Signature = nil },
		"without mandate": func(m *Handover) { m.Mandate = Mandate{} },
	} {
		m := good
		change(&m)
		if err := m.Validate(); !errors.Is(err, grid.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	full := good
	full.Links = make([]byte, MaxHandedLinks)
	full.Deputies = []grid.SiteID{"12D3KooWa", "12D3KooWb", "12D3KooWc"}
	if _, err := Encode(full); err != nil {
		t.Errorf("a full one: %v", err)
	}
}

// What is signed of a handover differs where anything that is told differs.
func TestWhatIsSignedOfAHandover(t *testing.T) {
	good := goldenMessages()["handover"].(Handover)
	seen := map[string]string{}
	for name, change := range map[string]func(*Handover){
		"as it is": func(*Handover) {},
		"gateway":  func(m *Handover) { m.Gateway += "x" },
		"time":     func(m *Handover) { m.MadeMS++ },
		"site":     func(m *Handover) { m.Mandate.Site += "x" },
		"key":      func(m *Handover) { m.Mandate.Key = bytes.Repeat([]byte{5}, 32) },
		"end":      func(m *Handover) { m.Mandate.UntilMS++ },
		"a deputy": func(m *Handover) { m.Deputies = m.Deputies[:1] },
		"their order": func(m *Handover) {
			m.Deputies = slices.Clone(m.Deputies)
			slices.Reverse(m.Deputies)
		},
		"links": func(m *Handover) { m.Links = []byte("{ }") },
	} {
		m := good
		change(&m)
		text := string(m.SignedBytes())
		if other, twice := seen[text]; twice {
			t.Errorf("%s and %s are signed alike", name, other)
		}
		seen[text] = name
	}
}
