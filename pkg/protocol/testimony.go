package protocol

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Testimony holds what a submitter tells another member of sites: how often they have failed it. It
// holds what the author has seen itself, never what others say, and nothing about the receiver. It
// takes the place of all that the author has said before. Making and verifying the signature is
// left to the drivers.
type Testimony struct {
	Author   grid.SiteID
	Sequence uint64 // grows with every testimony of the author, over restarts too; from 1
	IssuedMS int64  // the author's wall clock, ms since 1970 UTC
	Said     []Statement
	// Signature is by the author's key over SignedBytes; none before the driver has signed it.
	Signature []byte `json:",omitempty"`
}

// Statement holds what an author has counted of one site.
type Statement struct {
	About grid.SiteID
	Index float64       // its fault index now, 0 to MaxFaultIndex
	Tried uint64        // attempts that were counted, with a fault or without
	Over  time.Duration // the time in which they were, 0 = not known
	// Causes count its faults by fault.Cause; at most MaxCauses, fewer if the last are 0.
	Causes []uint32
}

// Limits on testimonies.
const (
	MaxStatements    = 128 // of a testimony
	MaxCauses        = 32  // of a statement
	MaxFaultIndex    = 1e6
	testimonyContext = "mrs testimony 1\x00"
)

// SignedBytes returns the bytes that the signature covers, for a domain. Equal testimonies give
// equal bytes, and others other bytes. What a later version adds is not covered here.
func (m Testimony) SignedBytes(domain grid.DomainID) []byte {
	text := []byte(testimonyContext)
	add := func(v uint64) { text = binary.BigEndian.AppendUint64(text, v) }
	addText := func(s string) {
		add(uint64(len(s)))
		text = append(text, s...)
	}
	addText(string(domain))
	addText(string(m.Author))
	add(m.Sequence)
	add(uint64(m.IssuedMS))
	for _, s := range m.Said {
		addText(string(s.About))
		add(math.Float64bits(s.Index))
		add(s.Tried)
		add(uint64(s.Over))
		add(uint64(len(s.Causes)))
		for _, n := range s.Causes {
			add(uint64(n))
		}
	}
	return text
}

// Validate reports the first field that is out of its range. It does not verify the signature.
func (m Testimony) Validate() error {
	switch {
	case m.Sequence == 0 || m.IssuedMS < 0 || m.IssuedMS > math.MaxInt64/int64(time.Millisecond):
		return invalidf("testimony: sequence 0 or time of issue out of range")
	case len(m.Signature) != 0 && len(m.Signature) != SignatureBytes:
		return invalidf("testimony: signature of %d bytes, want %d",
			len(m.Signature), SignatureBytes)
	case len(m.Said) > MaxStatements:
		return invalidf("testimony: want at most %d statements, have %d",
			MaxStatements, len(m.Said))
	}
	for i, s := range m.Said {
		if i > 0 && s.About <= m.Said[i-1].About {
			return invalidf("testimony: statement %d is out of order", i)
		}
		if err := s.validate(); err != nil {
			return err
		}
	}
	return m.Author.Validate()
}

func (s Statement) validate() error {
	switch {
	case !(s.Index >= 0 && s.Index <= MaxFaultIndex):
		return invalidf("statement: fault index: want 0 to %v, have %v", MaxFaultIndex, s.Index)
	case s.Over < 0:
		return invalidf("statement: time: want at least 0, have %s", s.Over)
	case len(s.Causes) > MaxCauses:
		return invalidf("statement: want at most %d causes, have %d", MaxCauses, len(s.Causes))
	}
	return s.About.Validate()
}
