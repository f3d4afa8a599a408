package protocol

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

func drawByGateway(t *rapid.T) Message {
	draw := rapid.SampledFrom([]func(*rapid.T) Message{
		drawOnBehalf, messages()["award"], messages()["bid"], messages()["renew"],
	}).Draw(t, "said")
	return ByGateway{Domain: drawSite(t), Message: draw(t)}
}

func drawNeighbours(t *rapid.T) Message {
	signature := rapid.SliceOfN(rapid.Byte(), SignatureBytes, SignatureBytes)
	m := Neighbours{
		Gateway: drawSite(t), MadeMS: rapid.Int64Min(1).Draw(t, "made"),
		Signature: signature.Draw(t, "signature"), Mandate: drawMandate(t),
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "neighbours") {
		m.All = append(m.All, Neighbour{
			Domain: grid.SiteID(fmt.Sprintf("12D3KooW%d", i)), Name: "ab-c",
			Beside: rapid.Bool().Draw(t, "beside"),
		})
	}
	return m
}

// What is signed differs where anything that is told differs.
func TestWhatIsSignedOfNeighbours(t *testing.T) {
	seen := map[string]Neighbours{}
	for _, m := range []Neighbours{
		{Gateway: "ab", MadeMS: 1},
		{Gateway: "a", MadeMS: 1},
		{Gateway: "ab", MadeMS: 2},
		{Gateway: "ab", MadeMS: 1, All: []Neighbour{{Domain: "b", Name: "c"}}},
		{Gateway: "ab", MadeMS: 1, All: []Neighbour{{"b", "c", true}}},
		{Gateway: "ab", MadeMS: 1, All: []Neighbour{{"b", "c", true}, {"d", "e", false}}},
		{Gateway: "ab", MadeMS: 1, All: []Neighbour{{"b", "c", false}, {"d", "e", true}}},
		{Gateway: "ab", MadeMS: 1, All: []Neighbour{{Domain: "bc"}}},
		{Gateway: "ab", MadeMS: 1, All: []Neighbour{{"b", "c", false}, {"d", "e", false}}},
		{Gateway: "ab", MadeMS: 1, All: []Neighbour{{"b", "cde", false}}},
	} {
		text := string(m.SignedBytes())
		if other, twice := seen[text]; twice {
			t.Errorf("%+v and %+v are signed alike", m, other)
		}
		seen[text] = m
		signed := m
		signed.Signature = []byte("x")
		if !bytes.Equal(signed.SignedBytes(), m.SignedBytes()) {
			t.Error("the signature is over itself")
		}
	}
}

func TestNeighboursThatAreRefused(t *testing.T) {
	good := goldenMessages()["neighbours"].(Neighbours)
	one := good.All[0]
	for name, change := range map[string]func(*Neighbours){
		"no time":      func(m *Neighbours) { m.MadeMS = 0 },
		"no signature": func(m *Neighbours) { m.Signature = nil },
		"no gateway":   func(m *Neighbours) { m.Gateway = "" },
		"twice":        func(m *Neighbours) { m.All = []Neighbour{one, one} },
		"no name":      func(m *Neighbours) { m.All = []Neighbour{{Domain: one.Domain}} },
		"no domain":    func(m *Neighbours) { m.All = []Neighbour{{Name: one.Name}} },
		"too many":     func(m *Neighbours) { m.All = slices.Repeat(m.All, MaxNeighbours+1) },
	} {
		m := good
		change(&m)
		if err := m.Validate(); !errors.Is(err, grid.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A neighbour is told what a site is, and nothing else.
func TestWhatANeighbourIsTold(t *testing.T) {
	for name, m := range goldenMessages() {
		_, behalf := m.(OnBehalf)
		want := behalf || betweenMachines(m)
		if _, nested := m.(ByGateway); nested && want {
			t.Errorf("%s: said to a neighbour's neighbour", name)
		}
		err := ByGateway{Domain: "12D3KooWneighbour", Message: m}.Validate()
		if (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}
