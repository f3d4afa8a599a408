package member

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/durable"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// nextKeyFile has the successor of the domain's key until it takes its place.
const nextKeyFile = "domain.key.next"

// Why the domain's key is not rotated.
var (
	ErrLinked  = errors.New("linked domains know this one by its key")
	ErrNotKey  = errors.New("this is not the domain's key now")
	ErrKeyless = errors.New("this domain has no key yet; siteagent invite makes one")
)

// Rotation tells what a rotation of the domain's key has done.
type Rotation struct {
	Succession protocol.Succession
	Revoked    []Invite     // invitations that were open; not those of an earlier attempt
	Withdrawn  []LinkInvite // the same of those to links
}

// Rotate gives the domain a new key, signs all records of members anew, and makes all open
// invitations useless. Where from is the key that the last rotation has replaced, or an earlier
// rotation was cut short, that one is finished and no other made; an empty from is the key of now.
// The error is ErrNoKey, ErrLinked, ErrNotKey, ErrTooMany, or that something could not be written.
func (l *Links) Rotate(from grid.DomainKey) (Rotation, error) {
	l.disk.Lock()
	defer l.disk.Unlock()
	if err := l.needHolder(); err != nil && !l.members.unfinished() {
		return Rotation{}, err
	}
	if err := l.unlinked(); err != nil {
		return Rotation{}, err
	}
	var withdrawn []LinkInvite
	done, err := l.members.rotate(from, func() (err error) {
		withdrawn, err = l.withdrawAll()
		return err
	})
	done.Withdrawn = withdrawn
	return done, err
}

// unlinked refuses a rotation while there are links: both keys have signed them.
func (l *Links) unlinked() error {
	links := l.List()
	if len(links) == 0 {
		return nil
	}
	var names []string
	for _, link := range links[:min(len(links), maxNamed)] {
		names = append(names, string(link.Name))
	}
	return fmt.Errorf("%w: %s; end the links with siteagent domain unlink, rotate, and link the "+
		"domains anew with siteagent domain invite", ErrLinked, strings.Join(names, ", "))
}

// withdrawAll makes the open invitations to links useless; the caller holds disk.
func (l *Links) withdrawAll() ([]LinkInvite, error) {
	s, now := l.get(), l.now()
	var list []LinkInvite
	s.invites = append([]linkInvite(nil), s.invites...)
	for n, i := range s.invites {
		if i.refusal(LinkSide{Name: i.Name}, now) == "" {
			s.invites[n].Withdrawn, s.invites[n].ClosedMS = true, now.UnixMilli()
			list = append(list, i.public())
		}
	}
	if len(list) == 0 {
		return nil, nil
	}
	return list, l.keep(s)
}

// rotate is Rotate for what the roster and the key are about. What is on disk comes first, in an
// order in which every beginning of it can be gone on with: the invitations, those to links by
// withdraw; the successor, which nobody knows yet; the succession, from which on it holds; the
// successor in the place of the key; the records.
func (r *Registry) rotate(
	from grid.DomainKey, withdraw func() error,
) (done Rotation, err error) {
	r.disk.Lock()
	defer r.disk.Unlock()
	cut := r.unfinished()
	if err = r.finish(); err != nil {
		return done, err
	}
	chain := r.Roster().Successions()
	last, err := r.mayRotate(chain, from, cut)
	if err != nil || last.Number > 0 {
		done.Succession = last
		return done, err
	}
	if err = errors.Join(r.step("invites"), withdraw()); err != nil {
		return done, err
	}
	if done.Revoked, err = r.revokeOpen(func(invite) bool { return true }); err != nil {
		return done, err
	}
	next, err := r.nextKey()
	if err != nil {
		return done, err
	}
	done.Succession = r.succeed(next)
	chain = append(chain, done.Succession)
	if err = r.step("succession"); err != nil {
		return done, err
	}
	if err = r.keepChain(chain); err != nil {
		return done, err
	}
	followed, _, err := r.Roster().follow(chain)
	if err != nil {
		return done, err
	}
	r.mu.Lock()
	r.roster, r.spare = followed, next
	r.mu.Unlock()
	return done, r.finish()
}

// mayRotate says why the key is not to be rotated, or gives the last succession where that is the
// one that is asked for: cut short before, or repeated.
func (r *Registry) mayRotate(
	chain []protocol.Succession, from grid.DomainKey, cut bool,
) (done protocol.Succession, err error) {
	key := r.Key()
	switch n := len(chain); {
	case !r.Holds():
		return done, ErrKeyless
	case n > 0 && (cut && (from == "" || from == key) || from == chain[n-1].Former):
		return chain[n-1], nil
	case from != "" && from != key:
		return done, fmt.Errorf("%w: %s; it is %s", ErrNotKey, from, key)
	case n >= protocol.MaxSuccessions:
		return done, fmt.Errorf("%w: the key was rotated %d times; start a new domain, and have "+
			"its members join that", ErrTooMany, n)
	}
	return done, nil
}

// nextKey is the successor that an earlier attempt has made, or a fresh one.
func (r *Registry) nextKey() (Key, error) {
	if r.spare.Public() != "" {
		return r.spare, nil
	}
	err := r.step("successor")
	if err != nil {
		return Key{}, err
	}
	next, err := createKey(r.cfg.Dir, nextKeyFile)
	if err == nil {
		r.mu.Lock()
		r.spare = next
		r.mu.Unlock()
	}
	return next, err
}

// succeed signs that the key of now is succeeded by that one.
func (r *Registry) succeed(next Key) protocol.Succession {
	const lastMS = math.MaxInt64 / int64(time.Millisecond)
	roster := r.Roster()
	s := protocol.Succession{
		Domain: r.cfg.Domain, Number: uint32(len(roster.chain)) + 1,
		Former: r.key.Public(), Successor: next.Public(),
		MadeMS: min(max(r.cfg.Now().UnixMilli(), 1), lastMS), Records: uint32(roster.Len()),
	}
	for _, record := range roster.records {
		s.HighestMS = max(s.HighestMS, record.SerialMS)
	}
	text := s.SignedBytes()
	s.ByFormer, s.BySuccessor = ed25519.Sign(r.key.private, text), ed25519.Sign(next.private, text)
	return s
}

// unfinished reports whether a rotation was cut short after its succession was written down.
func (r *Registry) unfinished() bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.spare.Public() != "" && r.spare.Public() == r.roster.Key() ||
		r.holds() && len(r.roster.former) > 0
}

// finish does what is left of a rotation whose succession is written down: the successor takes the
// place of the key, and signs what is left of the records; the caller holds disk.
func (r *Registry) finish() error {
	if !r.unfinished() {
		return nil
	}
	if r.spare.Public() != "" && r.spare.Public() == r.Key() {
		if err := r.takeKey(); err != nil {
			return err
		}
	}
	signed := r.resigned()
	if err := r.step("records"); err != nil {
		return err
	}
	if err := save(r.cfg.Dir, rosterFile, rosterTextOf(signed)); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.roster = signed
	return nil
}

// takeKey puts the successor in the place of the key, which is of no use any more.
func (r *Registry) takeKey() error {
	if r.cfg.Dir != "" {
		err := r.step("key")
		if err == nil {
			next := filepath.Join(r.cfg.Dir, nextKeyFile)
			err = os.Rename(next, filepath.Join(r.cfg.Dir, KeyFile))
		}
		if err == nil {
			err = durable.SyncDir(r.cfg.Dir)
		}
		if err != nil {
			return fmt.Errorf("put the new key in its place: %w", err)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.key, r.spare = r.spare, Key{}
	return nil
}

// resigned is the roster with the records of former keys signed by the present one. A serial after
// the succession comes to its time: the former key's thief may have chosen it such that nothing
// could be said after it.
func (r *Registry) resigned() Roster {
	roster := r.Roster()
	last := roster.chain[len(roster.chain)-1]
	var records []protocol.MemberRecord
	for _, record := range roster.former {
		record.SerialMS = min(record.SerialMS, last.MadeMS)
		record.Successions = min(record.Successions, last.Number-1)
		records = append(records, r.key.sign(record))
	}
	signed, _, _ := roster.Merge(records) // this site has signed them
	return signed
}

// step is before each thing that a rotation writes; a test stops there.
func (r *Registry) step(name string) error {
	if r.halt == nil {
		return nil
	}
	return r.halt(name)
}

// loadKeys reads the domain's key and the successor that a rotation may have left.
func (r *Registry) loadKeys() error {
	if r.cfg.Dir == "" {
		return nil
	}
	for file, key := range map[string]*Key{KeyFile: &r.key, nextKeyFile: &r.spare} {
		found, err := readKey(r.cfg.Dir, file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		*key = found
	}
	return nil
}
