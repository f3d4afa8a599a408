// All that this site has decided and heard about who takes part is one table under one lock: one
// subject, however long.

package member

import (
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
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
	Name   string           // of this site, for people
	Key    grid.DomainKey   // of the domain; empty = that of domain.key, if there is one
	Now    func() time.Time // the wall clock; nil = time.Now
}

// Registry holds the roster, the owner's own decisions and the invitations. It
// is safe for concurrent use. Every answer is on disk before it is given. One subject,
// however long: all that is decided under its two locks.
type Registry struct {
	cfg      Config
	problems []string // constant after Open

	disk sync.Mutex // held while something is decided and written

	mu      sync.RWMutex
	key     Key // zero: this site does not invite
	roster  Roster
	local   map[grid.SiteID]decision
	invites []invite
}

// Open reads the files in the directory. Invitations that cannot be used are moved away,
// see Problems; a damaged roster, damaged bans and an unusable key are errors.
func Open(cfg Config) (*Registry, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	r := &Registry{cfg: cfg, local: map[grid.SiteID]decision{}}
	if err := r.loadKey(); err != nil {
		return nil, err
	}
	if trusted := r.Key(); trusted != "" {
		var err error
		if r.roster, err = newRoster(cfg.Domain, trusted); err != nil {
			return nil, fmt.Errorf("open roster: domain-key: %w", err)
		}
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
		need(r.cfg.Dir, rosterFile, fromOthers, func(text []byte) error {
			_, err := decodeRoster(text)
			return err
		}),
		need(r.cfg.Dir, localFile, fromOwner, func(text []byte) (err error) {
			r.local, err = decodeLocal(text)
			return err
		}),
	)
}

func (r *Registry) loadKey() error {
	if r.cfg.Dir == "" {
		return nil
	}
	key, err := LoadKey(r.cfg.Dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case r.cfg.Key != "" && r.cfg.Key != key.Public():
		r.problems = append(r.problems, fmt.Sprintf(
			"%s is not used: it is the key of another domain (%s) than domain-key names",
			KeyFile, key.Public(),
		))
		return nil
	}
	r.key = key
	return nil
}

// Problems says what was wrong with the files, for the owner.
func (r *Registry) Problems() []string { return r.problems }

// Key is the domain's key that is trusted; empty if there is none.
func (r *Registry) Key() grid.DomainKey {
	if r.cfg.Key != "" {
		return r.cfg.Key
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.key.Public()
}

// Holds reports whether this site holds the domain's private key.
func (r *Registry) Holds() bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.key.Public() != ""
}

// Sign signs a text with the domain's key. The text begins with a context of its own, so that it
// cannot be taken for another statement. The error is ErrNoKey where this site does not hold it.
func (r *Registry) Sign(text []byte) ([]byte, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.key.Public() == "" {
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
	record := r.key.sign(protocol.MemberRecord{
		Domain: r.cfg.Domain, Site: site, Kind: kind, Name: cut(name, 64),
		Note:     cut(note, protocol.MaxNoteBytes),
		SerialMS: max(r.cfg.Now().UnixMilli(), old.SerialMS+1),
	})
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
	if r.cfg.Key != "" {
		return fmt.Errorf(
			"%w; invite from the site that does, or remove domain-key to start a domain of your own",
			ErrNoKey,
		)
	}
	key, err := createKey(r.cfg.Dir)
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

// Invite makes an invitation that is good for so long and so many sites, and
// returns its secret, which is not stored. The first one makes the domain's key.
func (r *Registry) Invite(span time.Duration, uses int) (secret []byte, made Invite, err error) {
	if span < time.Second || span > MaxInvite {
		return nil, made, fmt.Errorf("%w: an invitation is good for 1s to %d days, not %s",
			grid.ErrInvalid, MaxInvite/(24*time.Hour), span)
	}
	if uses < 1 || uses > MaxUses {
		return nil, made, fmt.Errorf(
			"%w: an invitation has 1 to %d uses, not %d", grid.ErrInvalid, MaxUses, uses,
		)
	}
	r.disk.Lock()
	defer r.disk.Unlock()
	if err := r.ensureKey(); err != nil {
		return nil, made, fmt.Errorf("invite: %w", err)
	}
	now := r.cfg.Now()
	invites := pruned(r.invites, now)
	if countOpen(invites, now) >= maxInvites {
		return nil, made, fmt.Errorf(
			"invite: %w: %d invitations are open; wait until one expires", ErrTooMany, maxInvites,
		)
	}
	secret = make([]byte, protocol.SecretBytes)
	_, _ = rand.Read(secret) // it never fails
	fresh := invite{
		Hash: hashOf(secret), CreatedMS: now.UnixMilli(), ExpiresMS: now.Add(span).UnixMilli(),
		Left: uses,
	}
	if err := r.keepInvites(append(invites, fresh)); err != nil {
		return nil, made, fmt.Errorf("invite: %w", err)
	}
	return secret, fresh.public(), nil
}

func (i invite) public() Invite {
	return Invite{
		ID: i.Hash[:idChars], Created: time.UnixMilli(i.CreatedMS), Expires: time.UnixMilli(i.ExpiresMS),
		Left: i.Left,
	}
}

// keepInvites writes the invitations down and takes them over; the caller holds
// disk.
func (r *Registry) keepInvites(invites []invite) error {
	if err := save(r.cfg.Dir, invitesFile, invitesText{
		Version: fileVersion, Invites: invites,
	}); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.invites = invites
	return nil
}

// Invites lists the open invitations, the oldest first.
func (r *Registry) Invites() []Invite {
	r.mu.RLock()
	defer r.mu.RUnlock()
	now := r.cfg.Now()
	var list []Invite
	for _, i := range r.invites {
		if i.open(now) {
			list = append(list, i.public())
		}
	}
	return list
}

// Inviting reports whether strangers may connect to redeem an invitation: one is
// open, or was closed so recently that they should hear why it is refused.
func (r *Registry) Inviting() bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	now := r.cfg.Now()
	return slices.ContainsFunc(r.invites, func(i invite) bool { return i.open(now) || i.told(now) })
}

// Redeem admits a site that knows the secret of an open invitation. The
// admission is on disk when Redeem returns. The same site may ask again with the
// same secret, because an answer can be lost.
func (r *Registry) Redeem(site grid.SiteID, request protocol.JoinRequest) protocol.JoinAnswer {
	r.disk.Lock()
	defer r.disk.Unlock()
	now := r.cfg.Now()
	standing := r.Standing(site)
	hash := hashOf(request.Secret)
	at := slices.IndexFunc(r.invites, func(i invite) bool { return i.Hash == hash })
	switch {
	case at < 0:
		return refuse(protocol.JoinUnknown, "ask for a new invitation")
	case standing == Banned || standing == BannedHere:
		return refuse(protocol.JoinBanned, "siteagent admit on the inviter's machine lifts the ban")
	}
	if record, known := r.Roster().Get(site); known && standing == Admitted &&
		slices.Contains(r.invites[at].By, site) {
		return protocol.JoinAnswer{Admit: &record}
	}
	if refusal := r.invites[at].refusal(now); refusal != protocol.JoinAdmitted {
		return refuse(refusal, "ask for a new invitation")
	}
	// The use is written down first: a crash between the two costs a use, never
	// admits twice.
	invites := slices.Clone(r.invites)
	if invites[at].Left--; invites[at].Left == 0 {
		invites[at].UsedMS = now.UnixMilli()
	}
	invites[at].By = append(slices.Clip(invites[at].By), site)
	if err := r.keepInvites(invites); err != nil {
		return refuse(protocol.JoinBroken, err.Error())
	}
	record, err := r.issue(site, protocol.MemberAdmit, request.Name, "invitation "+hash[:idChars])
	switch {
	case errors.Is(err, ErrTooMany):
		return refuse(protocol.JoinFull, err.Error())
	case err != nil:
		return refuse(protocol.JoinBroken, err.Error())
	}
	return protocol.JoinAnswer{Admit: &record}
}

func refuse(why protocol.JoinRefusal, text string) protocol.JoinAnswer {
	return protocol.JoinAnswer{Refusal: why, Text: cut(text, 200)}
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
