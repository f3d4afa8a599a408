package protocol

import (
	"slices"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol/wirepb"
)

// Group is a part of a message between two members of an owner's group. What the message says is
// the business of pkg/standby.
type Group struct {
	Owner    grid.SiteID // whose group it is
	From, To uint64      // group members
	Message  uint64      // number of the message, of this sender to this receiver
	Part     uint32      // from 0
	Parts    uint32      // in all, 1 to maxGroupParts
	Data     []byte      // GroupPartBytes of it; the last part has the rest, 1 or more
}

// StandbyAsk asks a site to be a standby of the sender.
type StandbyAsk struct {
	Epoch uint64 // of the certificate that would name it, from 1
	Facts int64  // bytes that it would have to keep now
}

// StandbyAnswer answers StandbyAsk.
type StandbyAnswer struct {
	Accept bool
	Member uint64 // the number that the site has drawn, if it accepts
	Reason string // why it does not, for people, at most 256 bytes
	Epoch  uint64 // of the question; 0: not said
}

// GroupAsk asks a site to be a member of the group of an owner that is not the sender: of the
// domain, whose key the sender has.
type GroupAsk struct {
	Owner grid.SiteID
	StandbyAsk
}

// GroupAnswer answers GroupAsk. A refusal that nobody has asked for says that a site is no member,
// or does not want to be one any more.
type GroupAnswer struct {
	Owner grid.SiteID
	StandbyAnswer
}

// StandbyNews says who acts for the owner that the certificate names, as far as the sender knows.
// From who acts itself in the domain's group it is its word that it does.
type StandbyNews struct {
	Certificate []byte      // the newest that the sender knows
	Term        uint64      // the highest that the sender knows; 0: none
	Acting      grid.SiteID // who acts in that term; empty: nobody that the sender knows of
}

// Rejoin tells a group member that the owner, whose log is lost, takes part again under another
// number, which the certificate names.
type Rejoin struct {
	Certificate []byte
}

// Keep asks a group member to hold data for an owner's job, so that it is not lost with one disk,
// or, with Release, no longer.
type Keep struct {
	Owner   grid.SiteID
	Job     grid.JobID
	CIDs    []grid.CID // at most MaxKeepCIDs; none, to release all of the job
	Release bool
	Number  uint64 // repeated in the answer, from 1
	// Awarded are sites that tasks of the job were awarded to, at most MaxKeepSites: they may have
	// the job's data. With them alone nothing is to be held, and nothing is answered.
	Awarded []grid.SiteID
	// Dropped are contents that the job needs no longer, at most MaxKeepCIDs: checkpoints that
	// later ones have replaced. Nothing is answered. Older versions want an awarded site, too.
	Dropped []grid.CID
}

// Kept answers Keep when the data is held.
type Kept struct {
	Owner   grid.SiteID
	Number  uint64 // of the question
	Problem string // why it is not held, for people, at most 256 bytes; empty: it is
}

// Limits on what group members say to each other.
const (
	GroupPartBytes = 192 << 10 // of a message of raft, in each part but the last
	maxGroupParts  = 512       // of one message: 96 MiB in all
	MaxKeepCIDs    = 1_024     // of a Keep
	MaxKeepSites   = 256       // of a Keep
	maxStandbyText = 256       // bytes of a reason or problem
)

// Validate reports the first field that is out of its range.
func (m Group) Validate() error {
	size := len(m.Data)
	switch {
	case m.From == m.To:
		return invalidf("group: member %d writes to itself", m.From)
	case m.Parts < 1 || m.Parts > maxGroupParts || m.Part >= m.Parts:
		return invalidf("group: part %d of %d, want 1 to %d parts", m.Part, m.Parts, maxGroupParts)
	case size == 0 || size > GroupPartBytes || m.Part < m.Parts-1 && size != GroupPartBytes:
		return invalidf("group: part %d of %d has %d bytes, want %d, or less in the last",
			m.Part, m.Parts, size, GroupPartBytes)
	}
	return firstError(m.Owner.Validate(), checkMember(m.From), checkMember(m.To))
}

// Validate reports the first field that is out of its range.
func (m StandbyAsk) Validate() error {
	if m.Epoch == 0 || m.Facts < 0 {
		return invalidf("standby: epoch 0, or less than 0 bytes of facts")
	}
	return nil
}

// Validate reports the first field that is out of its range.
func (m StandbyAnswer) Validate() error {
	switch {
	case m.Accept && m.Reason != "":
		return invalidf("standby: accepts, and says why not")
	case m.Accept:
		return checkMember(m.Member)
	case m.Member != 0 || m.Reason == "":
		return invalidf("standby: a refusal has a reason and no member")
	}
	return checkStandbyText(m.Reason)
}

// Validate reports the first field that is out of its range.
func (m GroupAsk) Validate() error {
	return firstError(m.Owner.Validate(), m.StandbyAsk.Validate())
}

// Validate reports the first field that is out of its range.
func (m GroupAnswer) Validate() error {
	return firstError(m.Owner.Validate(), m.StandbyAnswer.Validate())
}

// Validate reports the first field that is out of its range.
func (m StandbyNews) Validate() error {
	if m.Acting == "" {
		return checkCertificateBytes(m.Certificate)
	}
	if m.Term == 0 {
		return invalidf("standby: %s acts in no term", m.Acting)
	}
	return firstError(checkCertificateBytes(m.Certificate), m.Acting.Validate())
}

// Validate reports the first field that is out of its range.
func (m Rejoin) Validate() error { return checkCertificateBytes(m.Certificate) }

// Validate reports the first field that is out of its range.
func (m Keep) Validate() error {
	nothing := len(m.CIDs)+len(m.Awarded)+len(m.Dropped) == 0 && !m.Release
	if len(m.CIDs) > MaxKeepCIDs || len(m.Dropped) > MaxKeepCIDs || nothing {
		return invalidf("keep: want 1 to %d CIDs, have %d, and %d dropped",
			MaxKeepCIDs, len(m.CIDs), len(m.Dropped))
	}
	if len(m.Awarded) > MaxKeepSites {
		return invalidf("keep: want at most %d sites, have %d", MaxKeepSites, len(m.Awarded))
	}
	for _, site := range m.Awarded {
		if err := site.Validate(); err != nil {
			return err
		}
	}
	for _, cid := range slices.Concat(m.CIDs, m.Dropped) {
		if err := cid.Validate(); err != nil {
			return err
		}
	}
	return firstError(checkNumber(m.Number), m.Owner.Validate(), m.Job.Validate())
}

// Validate reports the first field that is out of its range.
func (m Kept) Validate() error {
	return firstError(checkNumber(m.Number), m.Owner.Validate(), checkStandbyText(m.Problem))
}

func checkNumber(n uint64) error {
	if n == 0 {
		return invalidf("keep: questions count from 1")
	}
	return nil
}

func checkStandbyText(text string) error {
	if len(text) > maxStandbyText {
		return invalidf("standby: text longer than %d bytes", maxStandbyText)
	}
	return nil
}

// setStandby sets the body for the messages about standbys; it reports false for all others.
func setStandby(w *wirepb.Wire, m Message) bool {
	switch m := m.(type) {
	case Group:
		w.Body = &wirepb.Wire_Group{Group: &wirepb.Group{
			Owner: string(m.Owner), From: m.From, To: m.To, Message: m.Message,
			Part: m.Part, Parts: m.Parts, Data: m.Data,
		}}
	case StandbyAsk:
		w.Body = &wirepb.Wire_StandbyAsk{StandbyAsk: wireStandbyAsk(m)}
	case StandbyAnswer:
		w.Body = &wirepb.Wire_StandbyAnswer{StandbyAnswer: wireStandbyAnswer(m)}
	case GroupAsk:
		w.Body = &wirepb.Wire_GroupAsk{GroupAsk: &wirepb.GroupAsk{
			Owner: string(m.Owner), Ask: wireStandbyAsk(m.StandbyAsk),
		}}
	case GroupAnswer:
		w.Body = &wirepb.Wire_GroupAnswer{GroupAnswer: &wirepb.GroupAnswer{
			Owner: string(m.Owner), Answer: wireStandbyAnswer(m.StandbyAnswer),
		}}
	case StandbyNews:
		w.Body = &wirepb.Wire_StandbyNews{StandbyNews: &wirepb.StandbyNews{
			Certificate: m.Certificate, Term: m.Term, Acting: string(m.Acting),
		}}
	case Rejoin:
		w.Body = &wirepb.Wire_Rejoin{Rejoin: &wirepb.Rejoin{Certificate: m.Certificate}}
	case Keep:
		w.Body = &wirepb.Wire_Keep{Keep: &wirepb.Keep{
			Owner: string(m.Owner), Job: string(m.Job), Cids: each(m.CIDs, asText[grid.CID]),
			Release: m.Release, Number: m.Number,
			Awarded: each(m.Awarded, asText[grid.SiteID]),
			Dropped: each(m.Dropped, asText[grid.CID]),
		}}
	case Kept:
		w.Body = &wirepb.Wire_Kept{Kept: &wirepb.Kept{
			Owner: string(m.Owner), Number: m.Number, Problem: forPeople(m.Problem),
		}}
	default:
		return false
	}
	return true
}

func wireStandbyAsk(m StandbyAsk) *wirepb.StandbyAsk {
	return &wirepb.StandbyAsk{Epoch: m.Epoch, Facts: m.Facts}
}

func wireStandbyAnswer(m StandbyAnswer) *wirepb.StandbyAnswer {
	return &wirepb.StandbyAnswer{
		Accept: m.Accept, Member: m.Member, Reason: forPeople(m.Reason), Epoch: m.Epoch,
	}
}

func standbyAsk(w *wirepb.StandbyAsk) StandbyAsk {
	return StandbyAsk{Epoch: w.GetEpoch(), Facts: w.GetFacts()}
}

func standbyAnswer(w *wirepb.StandbyAnswer) StandbyAnswer {
	return StandbyAnswer{
		Accept: w.GetAccept(), Member: w.GetMember(), Reason: w.GetReason(), Epoch: w.GetEpoch(),
	}
}

// aboutStandbys is the counterpart of setStandby.
func aboutStandbys(w *wirepb.Wire) Message {
	switch b := w.GetBody().(type) {
	case *wirepb.Wire_Group:
		g := b.Group
		return Group{
			Owner: grid.SiteID(g.GetOwner()), From: g.GetFrom(), To: g.GetTo(),
			Message: g.GetMessage(),
			Part:    g.GetPart(), Parts: g.GetParts(), Data: g.GetData(),
		}
	case *wirepb.Wire_StandbyAsk:
		return standbyAsk(b.StandbyAsk)
	case *wirepb.Wire_StandbyAnswer:
		return standbyAnswer(b.StandbyAnswer)
	case *wirepb.Wire_GroupAsk:
		return GroupAsk{
			Owner:      grid.SiteID(b.GroupAsk.GetOwner()),
			StandbyAsk: standbyAsk(b.GroupAsk.GetAsk()),
		}
	case *wirepb.Wire_GroupAnswer:
		return GroupAnswer{
			Owner:         grid.SiteID(b.GroupAnswer.GetOwner()),
			StandbyAnswer: standbyAnswer(b.GroupAnswer.GetAnswer()),
		}
	case *wirepb.Wire_StandbyNews:
		n := b.StandbyNews
		return StandbyNews{
			Certificate: n.GetCertificate(), Term: n.GetTerm(), Acting: grid.SiteID(n.GetActing()),
		}
	case *wirepb.Wire_Rejoin:
		return Rejoin{Certificate: b.Rejoin.GetCertificate()}
	case *wirepb.Wire_Keep:
		k := b.Keep
		return Keep{
			Owner: grid.SiteID(k.GetOwner()), Job: grid.JobID(k.GetJob()),
			CIDs:    each(k.GetCids(), func(s string) grid.CID { return grid.CID(s) }),
			Release: k.GetRelease(), Number: k.GetNumber(),
			Awarded: each(k.GetAwarded(), func(s string) grid.SiteID { return grid.SiteID(s) }),
			Dropped: each(k.GetDropped(), func(s string) grid.CID { return grid.CID(s) }),
		}
	case *wirepb.Wire_Kept:
		return Kept{
			Owner: grid.SiteID(b.Kept.GetOwner()), Number: b.Kept.GetNumber(),
			Problem: b.Kept.GetProblem(),
		}
	default:
		return nil
	}
}
