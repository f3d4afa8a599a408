package protocol

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// A border stream carries what gateways say to each other, and nothing that a member might.
func TestABorderStreamCarriesItsOwnMessagesAlone(t *testing.T) {
	for name, m := range goldenMessages() {
		raw, err := Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodeBorder(raw)
		switch {
		case ForBorder(m) && err != nil:
			t.Errorf("%s: %v", name, err)
		case !ForBorder(m) && (!errors.Is(err, ErrUnknownMessage) || got != nil):
			t.Errorf("%s is taken from a border: %v", name, err)
		}
		on, is := m.(OnBehalf)
		if !is && ForBorder(m) && (OnBehalf{on.Behalf, m}).Validate() == nil {
			t.Errorf("%s is said on an owner's behalf", name)
		}
	}
	if _, err := DecodeBorder([]byte{1, 2}); !errors.Is(err, ErrMalformed) {
		t.Errorf("no message: %v", err)
	}
}

// Each limit of the border's messages has the last value that is taken and the first that is not.
func TestEachLimitOfTheBordersMessagesIsExact(t *testing.T) {
	way := func(hops uint32, path ...grid.SiteID) Message {
		return changed(t, "borderquery", func(m *BorderQuery) {
			m.Passage = Passage{Request: 1, Path: path, Hops: hops}
		})
	}
	end := func(used int64) Message {
		return changed(t, "borderend", func(m *BorderEnd) { m.UsedCoreMS = used })
	}
	receipt := func(c func(*BorderReceipt)) Message { return changed(t, "borderreceipt", c) }
	for name, c := range map[string]struct{ last, first Message }{
		"hops":    {way(MaxHops-1, "a"), way(MaxHops, "a")},
		"domains": {way(0, "a", "b", "c", "d"), way(0, "a", "b", "c", "d", "e")},
		"none":    {way(0, "a"), way(0)},
		"circles": {way(0, "a", "b"), way(0, "a", "b", "a")},
		"no use":  {end(0), end(-1)},
		"use":     {end(maxUsedCoreMS), end(maxUsedCoreMS + 1)},
		"request": {BorderRenew{Number: 1, Attempts: manyAttempts(1)}, BorderRenew{
			Attempts: manyAttempts(1),
		}},
		"attempts": {
			BorderFence{Below: manyAttempts(MaxAttempts)},
			BorderFence{Below: manyAttempts(MaxAttempts + 1)},
		},
		"signature": {
			receipt(func(m *BorderReceipt) { m.Signature = make([]byte, SignatureBytes) }),
			receipt(func(m *BorderReceipt) { m.Signature = make([]byte, SignatureBytes-1) }),
		},
		"claim": {
			receipt(func(m *BorderReceipt) { m.UsedCoreMS = maxUsedCoreMS }),
			receipt(func(m *BorderReceipt) { m.UsedCoreMS = maxUsedCoreMS + 1 }),
		},
	} {
		if err := c.last.Validate(); err != nil {
			t.Errorf("%s: the last value is refused: %v", name, err)
		}
		if err := c.first.Validate(); !errors.Is(err, grid.ErrInvalid) {
			t.Errorf("%s: the first value beyond: %v", name, err)
		}
	}
}

// A receipt's signature is over all that it says.
func TestAReceiptIsSignedWhole(t *testing.T) {
	private := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))
	public := grid.NewDomainKey(private[ed25519.SeedSize:])
	m := changed(t, "borderreceipt", func(*BorderReceipt) {}).(BorderReceipt)
	m.Signature = ed25519.Sign(private, m.SignedBytes())
	before := time.Unix(1, 0)
	if !m.IsSignedBy(public, before) || m.IsSignedBy("ed25519:no", before) {
		t.Fatal("its own key does not verify it, or none does")
	}
	for name, change := range map[string]func(*BorderReceipt){
		"attempt": func(m *BorderReceipt) { m.Attempt.Token++ },
		"giver":   func(m *BorderReceipt) { m.Giver += "x" },
		"taker":   func(m *BorderReceipt) { m.Taker += "x" },
		"both":    func(m *BorderReceipt) { m.Giver, m.Taker = m.Giver+m.Taker[:1], m.Taker[1:] },
		"use":     func(m *BorderReceipt) { m.UsedCoreMS++ },
		"none":    func(m *BorderReceipt) { m.Signature = nil },
	} {
		other := m
		if change(&other); other.IsSignedBy(public, before) {
			t.Errorf("%s does not count", name)
		}
	}
}
