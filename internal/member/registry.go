package member

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// Why an order is not carried out.
var (
	ErrNoKey   = errors.New("this site does not hold the domain's key")
	ErrTooMany = errors.New("limit reached")
	errSelf    = errors.New("a site cannot admit or ban itself")
)

// Config sets up a Registry. Domain and Self are required.
type Config struct {
	Dir    string // state directory; empty = everything stays in memory
	Domain grid.DomainID
	Self   grid.SiteID
	Name   string // of this site, for people
	// Key is the domain's key, or was it once; its successors are found from there. Empty = that of
	// domain.key, if there is one.
	Key grid.DomainKey
	Now func() time.Time // the wall clock; nil = time.Now
}

// Registry holds the roster, the owner's own decisions and the invitations. It
// is safe for concurrent use. Every answer is on disk before it is given.
type Registry struct {
	cfg      Config
	problems []string // constant after Open

	disk sync.Mutex // held while something is decided and written
	halt func(step string) error

	mu       sync.RWMutex
	key      Key // of domain.key; zero: there is none, or not of this domain
	spare    Key // the successor that a rotation has made and not yet put in its place
	roster   Roster
	contests []Contest
	local    map[grid.SiteID]decision
	invites  []invite
}

// Open reads the files in the directory. Invitations that cannot be used are moved away,
// see Problems; a damaged roster, damaged bans and an unusable key are errors.
func Open(cfg Config) (*Registry, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	r := &Registry{cfg: cfg, local: map[grid.SiteID]decision{}}
	if err := r.loadKeys(); err != nil {
		return nil, err
	}
	if err := r.openRoster(); err != nil {
		return nil, err
	}
	if err := r.needBans(); err != nil {
		return nil, err
	}
	for _, problem := range []string{
		load(cfg.Dir, rosterFile, r.readRoster),
		load(cfg.Dir, invitesFile, func(text []byte) (err error) {
			r.invites, err = decodeInvites(text)
			return err
		}),
	} {
		if problem != "" {
			r.problems = append(r.problems, problem)
		}
	}
	if r.local == nil {
		r.local = map[grid.SiteID]decision{}
	}
	if err := r.finish(); err != nil {
		return nil, fmt.Errorf("finish the rotation of the domain's key: %w", err)
	}
	return r, nil
}

// needBans reads who is banned. Where that cannot be read the site does not start: it
// would let them in.
func (r *Registry) needBans() error {
	const fromOthers = "restore the file from a backup, or move it away: then the other members " +
		"send the roster when they meet this site, or restore it at the site that has domain.key"
	const fromOwner = "restore the file from a backup, or move it away and ban again, with " +
		"siteagent ban, whom you had banned"
	return errors.Join(
		need(r.cfg.Dir, rosterFile, errBans, fromOthers, func(text []byte) error {
			_, err := decodeRoster(text)
			return err
		}),
		need(r.cfg.Dir, localFile, errBans, fromOwner, func(text []byte) (err error) {
			r.local, err = decodeLocal(text)
			return err
		}),
	)
}

// Problems says what was wrong with the files, for the owner.
func (r *Registry) Problems() []string { return r.problems }

// Key is the domain's key that is trusted; empty if there is none.
func (r *Registry) Key() grid.DomainKey {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.roster.Key()
}

// Holds reports whether this site holds the domain's private key.
func (r *Registry) Holds() bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.holds()
}

// holds is Holds; the caller holds mu.
func (r *Registry) holds() bool {
	return r.key.Public() != "" && r.key.Public() == r.roster.Key()
}

// Sign signs a text with the domain's key. The text begins with a context of its own, so that it
// cannot be taken for another statement. The error is ErrNoKey where this site does not hold it.
func (r *Registry) Sign(text []byte) ([]byte, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if !r.holds() {
		return nil, fmt.Errorf("sign for the domain: %w", ErrNoKey)
	}
	return ed25519.Sign(r.key.private, text), nil
}

// Roster is the roster now.
func (r *Registry) Roster() Roster {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.roster
}

// Standing says what is known of a site.
func (r *Registry) Standing(site grid.SiteID) Standing {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.standing(site)
}

// standing is Standing; the caller holds mu.
func (r *Registry) standing(site grid.SiteID) Standing {
	if d, decided := r.local[site]; decided {
		if d.Banned {
			return BannedHere
		}
		return AdmittedHere
	}
	record, known := r.roster.Get(site)
	switch {
	case !known:
		return Unknown
	case record.Kind == protocol.MemberBan:
		return Banned
	default:
		return Admitted
	}
}

// Merge takes over the newer ones of the records and returns them. The error is that of
// Roster.Merge, or that nothing could be written; then nothing is taken over.
func (r *Registry) Merge(records []protocol.MemberRecord) ([]protocol.MemberRecord, error) {
	r.disk.Lock()
	defer r.disk.Unlock()
	return r.merge(records)
}

// merge is Merge; the caller holds disk.
func (r *Registry) merge(records []protocol.MemberRecord) ([]protocol.MemberRecord, error) {
	merged, fresh, problem := r.Roster().Merge(records)
	if len(fresh) == 0 {
		return nil, problem
	}
	if err := save(r.cfg.Dir, rosterFile, rosterTextOf(merged)); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.roster = merged
	return fresh, problem
}

// issue signs a record and takes it over; the caller holds disk.
func (r *Registry) issue(
	site grid.SiteID, kind protocol.MemberKind, name, note string,
) (protocol.MemberRecord, error) {
	roster := r.Roster()
	old, known := roster.Get(site)
	if !known && roster.Len() >= maxRecords {
		return protocol.MemberRecord{}, fmt.Errorf(
			"%w: the roster holds %d sites", ErrTooMany, maxRecords,
		)
	}
	if name == "" {
		name = old.Name
	}
	record := protocol.MemberRecord{
		Domain: r.cfg.Domain, Site: site, Kind: kind, Name: cut(name, 64),
		Note:     cut(note, protocol.MaxNoteBytes),
		SerialMS: max(r.cfg.Now().UnixMilli(), old.SerialMS+1), Successions: old.Successions,
	}
	if !known {
		record.Successions = uint32(len(roster.chain))
	}
	record = r.key.sign(record)
	_, err := r.merge([]protocol.MemberRecord{record})
	return record, err
}

// ensureKey makes the domain's key if there is none; the caller holds disk. The
// first record admits this site, so that members of the roster need no list.
func (r *Registry) ensureKey() error {
	if !r.Holds() {
		if err := r.makeKey(); err != nil {
			return err
		}
	}
	if _, known := r.Roster().Get(r.cfg.Self); known {
		return nil
	}
	_, err := r.issue(r.cfg.Self, protocol.MemberAdmit, r.cfg.Name, "")
	return err
}

func (r *Registry) makeKey() error {
	if r.Key() != "" {
		return fmt.Errorf(
			"%w; invite from the site that does, or remove domain-key to start a domain of your own",
			ErrNoKey,
		)
	}
	key, err := createKey(r.cfg.Dir, KeyFile)
	if err != nil {
		return err
	}
	roster, err := newRoster(r.cfg.Domain, key.Public())
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.key, r.roster = key, roster
	return nil
}

// Admit makes a site a member, and lifts a ban. Where this site holds the domain's
// key, that holds in the whole domain, and the record is returned; else only here.
func (r *Registry) Admit(site grid.SiteID, name, note string) (*protocol.MemberRecord, error) {
	return r.decide(site, protocol.MemberAdmit, name, note)
}

// Ban keeps a site out, here and, where this site holds the domain's key, in the
// whole domain; then the record is returned.
func (r *Registry) Ban(site grid.SiteID, name, note string) (*protocol.MemberRecord, error) {
	return r.decide(site, protocol.MemberBan, name, note)
}

func (r *Registry) decide(
	site grid.SiteID, kind protocol.MemberKind, name, note string,
) (*protocol.MemberRecord, error) {
	if err := site.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", kind, err)
	}
	if site == r.cfg.Self {
		return nil, fmt.Errorf("%s %s: %w: %w", kind, site, grid.ErrInvalid, errSelf)
	}
	r.disk.Lock()
	defer r.disk.Unlock()
	holds := r.Holds()
	if err := r.decideHere(site, kind, name, note, holds); err != nil {
		return nil, fmt.Errorf("%s %s: %w", kind, site, err)
	}
	if err := r.answered(site, kind == protocol.MemberAdmit); err != nil {
		return nil, fmt.Errorf("%s %s: %w", kind, site, err)
	}
	if !holds {
		return nil, nil //nolint:nilnil // no record is not an error
	}
	record, err := r.issue(site, kind, name, note)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", kind, site, err)
	}
	return &record, nil
}

// decideHere writes the owner's own decision down. An admission by the domain's
// key needs none.
func (r *Registry) decideHere(
	site grid.SiteID, kind protocol.MemberKind, name, note string, holds bool,
) error {
	local := maps.Clone(r.local)
	delete(local, site)
	if kind == protocol.MemberBan || !holds {
		if len(local) >= maxRecords {
			return fmt.Errorf("%w: %d decisions of the owner", ErrTooMany, maxRecords)
		}
		local[site] = decision{
			Site: site, Banned: kind == protocol.MemberBan, Name: cut(name, 64),
			Note:    cut(note, protocol.MaxNoteBytes),
			SinceMS: r.cfg.Now().UnixMilli(),
		}
	}
	if err := save(r.cfg.Dir, localFile, localTextOf(local)); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.local = local
	return nil
}
