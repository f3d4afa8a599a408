package protocol

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Each limit of a testimony has the last value that is taken and the first that is not.
func TestEachLimitOfTestimoniesIsExact(t *testing.T) {
	with := func(c func(*Testimony)) Message { return changed(t, "testimony", c) }
	first := func(c func(*Statement)) Message {
		return with(func(m *Testimony) {
			m.Said = append([]Statement(nil), m.Said...)
			c(&m.Said[0])
		})
	}
	said := func(n int) Message {
		return with(func(m *Testimony) {
			m.Said = nil
			for i := range n {
				m.Said = append(m.Said, Statement{About: named(i)})
			}
		})
	}
	for name, c := range map[string]struct{ last, first Message }{
		"sequence": {
			with(func(m *Testimony) { m.Sequence = 1 }),
			with(func(m *Testimony) { m.Sequence = 0 }),
		},
		"issued": {
			with(func(m *Testimony) { m.IssuedMS = 0 }),
			with(func(m *Testimony) { m.IssuedMS = -1 }),
		},
		"late": {
			with(func(m *Testimony) { m.IssuedMS = math.MaxInt64 / 1_000_000 }),
			with(func(m *Testimony) { m.IssuedMS = math.MaxInt64/1_000_000 + 1 }),
		},
		"signature": {
			with(func(m *Testimony) { m.Signature = nil }),
			with(func(m *Testimony) { m.Signature = make([]byte, SignatureBytes-1) }),
		},
		"author": {
			with(func(m *Testimony) { m.Author = "a" }), with(func(m *Testimony) { m.Author = "" }),
		},
		"statements": {said(MaxStatements), said(MaxStatements + 1)},
		"order": {
			first(func(s *Statement) { s.About = "12D3KooWgooc" }),
			first(func(s *Statement) { s.About = "12D3KooWgood" }),
		},
		"about": {
			first(func(s *Statement) { s.About = "1" }), first(func(s *Statement) { s.About = "" }),
		},
		"no index": {
			first(func(s *Statement) { s.Index = 0 }), first(func(s *Statement) { s.Index = -.1 }),
		},
		"index": {
			first(func(s *Statement) { s.Index = MaxFaultIndex }),
			first(func(s *Statement) { s.Index = math.Inf(1) }),
		},
		"no number": {
			first(func(*Statement) {}), first(func(s *Statement) { s.Index = math.NaN() }),
		},
		"time": {
			first(func(s *Statement) { s.Over = 0 }), first(func(s *Statement) { s.Over = -1 }),
		},
		"causes": {
			first(func(s *Statement) { s.Causes = make([]uint32, MaxCauses) }),
			first(func(s *Statement) { s.Causes = make([]uint32, MaxCauses+1) }),
		},
	} {
		if err := c.last.Validate(); err != nil {
			t.Errorf("%s: the last value is refused: %v", name, err)
		}
		if err := c.first.Validate(); !errors.Is(err, grid.ErrInvalid) {
			t.Errorf("%s: the first value beyond: %v, want %v", name, err, grid.ErrInvalid)
		}
	}
}

func named(i int) grid.SiteID { return grid.SiteID(fmt.Sprintf("%03d", i)) }

// The largest testimony fits into a message.
func TestTheLargestTestimonyFits(t *testing.T) {
	m := Testimony{
		Author: "a", Sequence: math.MaxUint64, IssuedMS: math.MaxInt64 / 1_000_000,
		Signature: make([]byte, SignatureBytes),
	}
	for i := range MaxStatements {
		s := Statement{
			About: grid.SiteID(strings.Repeat("s", 100)) + named(i),
			Index: math.Pi, Tried: math.MaxUint64, Over: math.MaxInt64,
			Causes: make([]uint32, MaxCauses),
		}
		for c := range s.Causes {
			s.Causes[c] = math.MaxUint32
		}
		m.Said = append(m.Said, s)
	}
	raw, err := Encode(m)
	if err != nil || len(raw) > MaxMessageBytes/4 {
		t.Errorf("the largest testimony: %d bytes, %v", len(raw), err)
	}
}

// Whatever is changed changes what is signed, the domain included, and only the signature does not.
func TestAllOfATestimonyIsSigned(t *testing.T) {
	whole := func() Testimony {
		m, _ := goldenMessages()["testimony"].(Testimony)
		return m
	}
	seen := map[string]string{string(whole().SignedBytes("lab")): "the whole"}
	note := func(what string, signed []byte) {
		if other, is := seen[string(signed)]; is {
			t.Errorf("%s and %s have the same bytes", what, other)
		}
		seen[string(signed)] = what
	}
	note("another domain", whole().SignedBytes("lab2"))
	for name, change := range map[string]func(*Testimony){
		"Author":    func(m *Testimony) { m.Author = "b" },
		"Sequence":  func(m *Testimony) { m.Sequence++ },
		"IssuedMS":  func(m *Testimony) { m.IssuedMS++ },
		"Said":      func(m *Testimony) { m.Said = m.Said[1:] },
		"About":     func(m *Testimony) { m.Said[1].About = "12D3KooWgooe" },
		"Index":     func(m *Testimony) { m.Said[0].Index++ },
		"Tried":     func(m *Testimony) { m.Said[0].Tried++ },
		"Over":      func(m *Testimony) { m.Said[0].Over += time.Second },
		"Causes":    func(m *Testimony) { m.Said[0].Causes[1]++ },
		"Causes, n": func(m *Testimony) { m.Said[0].Causes = m.Said[0].Causes[:2] },
	} {
		m := whole()
		change(&m)
		note(name, m.SignedBytes("lab"))
	}
	for _, of := range []reflect.Type{reflect.TypeFor[Testimony](), reflect.TypeFor[Statement]()} {
		if of.NumField() != 5 {
			t.Errorf("%s has %d fields, and 5 are tested", of.Name(), of.NumField())
		}
	}
}
