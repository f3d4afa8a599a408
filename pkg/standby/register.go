package standby

import (
	"bytes"
	"maps"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// Register knows the groups of other owners (rules 10, 11 and 15). It says whether its site
// heeds a message on an owner's behalf, and where to send a message for an owner.
// It is no part of a Group: a site need not be in one. It has one owner, as a machine has.
type Register struct {
	cfg    RegisterConfig
	owners map[grid.SiteID]*office
	turn   uint64 // of uses
}

// RegisterConfig holds what a Register is told once. All fields but Busy are required.
type RegisterConfig struct {
	Owners int           // remembered at most
	Fresh  time.Duration // who acts and was heard of within this time is the only one written to
	// Verify reports whether a site's key has signed a text.
	Verify func(site grid.SiteID, text, signature []byte) bool
	// Busy lists the owners that have attempts here: they are not forgotten. nil: none has.
	Busy func() map[grid.SiteID]bool

	off registerChecks // nothing, but in tests
}

// registerChecks are taken out one by one by tests, which then have to find it.
type registerChecks struct {
	member, term, single, signature, epoch, owner, plain, saved bool
}

// office holds all that is known of one owner's group.
type office struct {
	raw         []byte // of the newest certificate
	certificate protocol.Certificate
	term        uint64      // the highest that was heeded; 0: none
	acting      grid.SiteID // who acts in it
	heard       time.Time   // of who acts; zero: not in this run
	saved       bool        // the facts are durable
	begun       bool        // the term is new since they were
	used        uint64
}

// Refusal says why a message is not heeded. Its text is for people.
type Refusal string

// Why a message is not heeded.
const (
	Heeded        Refusal = ""
	RefusedForged Refusal = "its certificate is none, or not signed by the owner's key"
	refusedEpoch  Refusal = "the owner has signed two certificates of one epoch"
	refusedMember Refusal = "the sender is no member of the owner's group"
	refusedTerm   Refusal = "another one acts for the owner since a later term"
	refusedTwo    Refusal = "another one acts for the owner in this term"
	refusedPlain  Refusal = "the owner has a group, and the message says no term"
	// RefusedStranger is for the driver, which knows the domain.
	RefusedStranger Refusal = "the owner is no member of this domain"
	refusedCrowded  Refusal = "too many owners with attempts here are known already"
)

// Label is the refusal as it is counted, in snake_case.
func (r Refusal) Label() string {
	switch r {
	case RefusedForged:
		return "forged_certificate"
	case refusedEpoch:
		return "other_certificate"
	case refusedMember:
		return "no_group_member"
	case refusedTerm:
		return "superseded_term"
	case refusedTwo:
		return "two_in_one_term"
	case refusedPlain:
		return "plain_for_group"
	case RefusedStranger:
		return "owner_no_member"
	case refusedCrowded:
		return "too_many_owners"
	default:
		return "heeded"
	}
}

// Verdict says what becomes of a message.
type Verdict struct {
	Why Refusal
	// Facts are to be durable before the message is delivered. They come again with each verdict
	// about the owner until Saved says that they are.
	Facts []step.Fact
	// Began: the term is new here. Who acts in it is to be told how its attempts go. It comes
	// again as the facts do.
	Began bool
	News  *protocol.StandbyNews // for the sender of what is not heeded; nil: nothing
}

// NewRegister makes an empty one.
func NewRegister(cfg RegisterConfig) *Register {
	return &Register{cfg: cfg, owners: make(map[grid.SiteID]*office)}
}

// Admit judges a message that from says on an owner's behalf.
func (r *Register) Admit(now time.Time, from grid.SiteID, b protocol.Behalf) Verdict {
	o, gone, why := r.learn(b.Owner, b.Certificate)
	if why == Heeded {
		why = r.judge(o, from, b.Term)
	}
	if why != Heeded {
		return r.verdict(o, gone, why)
	}
	if b.Term > o.term {
		o.term, o.acting, o.saved, o.begun = b.Term, from, false, true
	}
	o.heard = now
	v := r.verdict(o, gone, why)
	v.Began = o.begun
	return v
}

// judge compares a sender and its term with what is known.
func (r *Register) judge(o *office, from grid.SiteID, term uint64) Refusal {
	switch off := r.cfg.off; {
	case !o.certificate.Names(from) && !off.member:
		return refusedMember
	case term < o.term && !off.term:
		return refusedTerm
	case term == o.term && from != o.acting && !off.single:
		return refusedTwo
	default:
		return Heeded
	}
}

// Plain judges a message that an owner says as its own, without a term. Who has a group always
// says its term: else an owner whose agent was cut off, or was restored from before it had a
// group, would give orders beside the one who acts. It is told of its group.
func (r *Register) Plain(owner grid.SiteID) Verdict {
	if !r.Grouped(owner) || r.cfg.off.plain {
		return Verdict{}
	}
	o := r.owners[owner]
	r.use(o)
	return r.verdict(o, nil, refusedPlain)
}

// alone reports whether nobody but the owner's own site may act.
func (o *office) alone(owner grid.SiteID) bool {
	for _, m := range o.certificate.Members {
		if m.Site != owner {
			return false
		}
	}
	return true
}

// Learn takes a certificate that came by itself. It says nothing of who acts: that is believed of
// nobody but who does.
func (r *Register) Learn(certificate []byte) Verdict {
	c, err := protocol.DecodeCertificate(certificate)
	if err != nil {
		return Verdict{Why: RefusedForged}
	}
	o, gone, why := r.learn(c.Owner, certificate)
	return r.verdict(o, gone, why)
}

// learn takes the owner's certificate if it is the newest. An older one is no reason for a
// refusal: its bearer is judged by the newest.
func (r *Register) learn(owner grid.SiteID, raw []byte) (o *office, gone []step.Fact, why Refusal) {
	o = r.owners[owner]
	if o != nil {
		r.use(o)
		if bytes.Equal(raw, o.raw) {
			return o, nil, Heeded
		}
	}
	c, err := protocol.DecodeCertificate(raw)
	if err != nil || c.Owner != owner && !r.cfg.off.owner {
		return o, nil, RefusedForged
	}
	if o != nil && !r.cfg.off.epoch {
		if c.Epoch < o.certificate.Epoch {
			return o, nil, Heeded
		}
		if c.Epoch == o.certificate.Epoch {
			return o, nil, refusedEpoch
		}
	}
	if c.Verify(r.cfg.Verify) != nil && !r.cfg.off.signature {
		return o, nil, RefusedForged
	}
	if o == nil {
		room, freed := r.makeRoom()
		if !room {
			return nil, nil, refusedCrowded
		}
		gone, o = freed, new(office)
		r.owners[owner] = o
		r.use(o)
	}
	o.raw, o.certificate, o.saved = bytes.Clone(raw), c, false
	return o, gone, Heeded
}

// makeRoom forgets the owner without attempts that was not used for longest, if need be.
func (r *Register) makeRoom() (room bool, gone []step.Fact) {
	if len(r.owners) < r.cfg.Owners {
		return true, nil
	}
	var busy map[grid.SiteID]bool
	if r.cfg.Busy != nil {
		busy = r.cfg.Busy()
	}
	var oldest grid.SiteID
	for _, owner := range slices.Sorted(maps.Keys(r.owners)) {
		used := r.owners[owner].used
		if !busy[owner] && (oldest == "" || used < r.owners[oldest].used) {
			oldest = owner
		}
	}
	if oldest == "" {
		return false, nil
	}
	delete(r.owners, oldest)
	return true, []step.Fact{{Kind: kindOffice, Key: string(oldest)}}
}

func (r *Register) use(o *office) {
	r.turn++
	o.used = r.turn
}

// verdict says what becomes of a message, and what was learned with it.
func (r *Register) verdict(o *office, gone []step.Fact, why Refusal) Verdict {
	v := Verdict{Why: why, Facts: gone}
	if o == nil {
		return v
	}
	if !o.saved {
		v.Facts = append(v.Facts, o.fact())
		o.saved = r.cfg.off.saved
	}
	if why != Heeded && why != RefusedForged {
		v.News = &protocol.StandbyNews{Certificate: o.raw, Term: o.term, Acting: o.acting}
	}
	return v
}

// Saved says that the facts of a verdict about the owner are durable.
func (r *Register) Saved(owner grid.SiteID) {
	if o := r.owners[owner]; o != nil {
		o.saved, o.begun = true, false
	}
}

// Route says where to send a message for an owner: to who acts, if that was heard of a moment
// ago, else to all who may, who acts first. Without a certificate it is the owner.
func (r *Register) Route(now time.Time, owner grid.SiteID) []grid.SiteID {
	o := r.owners[owner]
	if o == nil {
		return []grid.SiteID{owner}
	}
	r.use(o)
	if !o.heard.IsZero() && now.Sub(o.heard) < r.cfg.Fresh && o.certificate.Names(o.acting) {
		return []grid.SiteID{o.acting}
	}
	return o.members()
}

// Members are the sites that may act for an owner, who acts first. Without a certificate it is
// the owner.
func (r *Register) Members(owner grid.SiteID) []grid.SiteID {
	if o := r.owners[owner]; o != nil {
		return o.members()
	}
	return []grid.SiteID{owner}
}

func (o *office) members() []grid.SiteID {
	sites := o.certificate.Sites()
	for i, site := range sites {
		if site == o.acting {
			copy(sites[1:i+1], sites[:i])
			sites[0] = site
		}
	}
	return sites
}

// Acting is who acts for an owner, as far as this site knows; empty: nobody that it knows of.
func (r *Register) Acting(owner grid.SiteID) grid.SiteID {
	if o := r.owners[owner]; o != nil && o.certificate.Names(o.acting) {
		return o.acting
	}
	return ""
}

// Certificate is the newest of an owner, nil if none is known.
func (r *Register) Certificate(owner grid.SiteID) []byte {
	if o := r.owners[owner]; o != nil {
		return o.raw
	}
	return nil
}

// Term is the highest that was heeded in an owner's group; 0: none was.
func (r *Register) Term(owner grid.SiteID) uint64 {
	if o := r.owners[owner]; o != nil {
		return o.term
	}
	return 0
}

// ActedFor lists the owners for whom a site acts, as far as this site knows, ascending.
func (r *Register) ActedFor(site grid.SiteID) []grid.SiteID {
	var owners []grid.SiteID
	for _, owner := range slices.Sorted(maps.Keys(r.owners)) {
		if r.Acting(owner) == site {
			owners = append(owners, owner)
		}
	}
	return owners
}

// Grouped reports whether others than the owner's own site may act for it: what is meant for the
// owner is then said on its behalf.
func (r *Register) Grouped(owner grid.SiteID) bool {
	o := r.owners[owner]
	return o != nil && !o.alone(owner)
}
