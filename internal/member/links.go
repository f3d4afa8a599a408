package member

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// Limits on links.
const (
	maxLinks   = 32
	maxEnded   = 64                  // ended links that are remembered
	endedKept  = 90 * 24 * time.Hour // so long they are
	linksFile  = "links.json"
	aliasChars = 4 // of the key, behind the name of a domain whose name is taken
)

// ErrNoLink says that no linked domain has that name.
var ErrNoLink = errors.New("no linked domain has that name")

// Links holds the domains that this one is linked with, the policies of these links and the
// invitations to further ones. It is safe for concurrent use. Every answer is on disk before
// it is given.
type Links struct {
	members *Registry
	dir     string
	domain  grid.DomainID
	now     func() time.Time

	disk sync.Mutex // held while something is decided and written

	mu     sync.RWMutex
	state  linksState
	office deputyOffice
}

// linksState holds all that is on disk. It is a value that is never changed.
type linksState struct {
	invites []linkInvite
	links   []Link
	ended   []EndedLink

	// awaitsMS is told to deputies alone: until when strangers may come for an invitation, in ms
	// since 1970 UTC; 0: nobody is invited.
	awaitsMS int64
}

// OpenLinks reads the links of the registry's domain. A damaged file is an error: it says who is
// let in and on which terms.
func OpenLinks(members *Registry) (*Links, error) {
	l := &Links{
		members: members, dir: members.cfg.Dir, domain: members.cfg.Domain, now: members.cfg.Now,
	}
	if l.dir == "" {
		return l, nil
	}
	file := l.dir + "/" + linksFile
	err := read(file, func(text []byte) (err error) {
		l.state, err = decodeLinks(text)
		return err
	})
	if err == nil {
		l.openOffice()
	}
	if err != nil {
		return nil, fmt.Errorf("%s is damaged (%w): it says which domains are linked and on which "+
			"terms; restore the file from a backup, or move it away and link them again, after "+
			"siteagent domain unlink at the others", file, err)
	}
	return l, nil
}

// Holds reports whether this site can link its domain: it has the domain's key.
func (l *Links) Holds() bool { return l.members.Holds() }

// Key is the domain's key; empty if there is none yet.
func (l *Links) Key() grid.DomainKey { return l.members.Key() }

// NeedKey makes the domain's key if it has none. Where another site holds it, the error is
// ErrNoKey and names that site.
func (l *Links) NeedKey() error {
	r := l.members
	r.disk.Lock()
	defer r.disk.Unlock()
	if err := l.needHolder(); err != nil {
		return err
	}
	return r.ensureKey()
}

// Founder names the site that made the domain's key: its own record is the oldest.
func (r *Registry) Founder() string {
	records := r.Roster().all()
	if len(records) == 0 {
		return "the site whose state directory has " + KeyFile
	}
	oldest := slices.MinFunc(records, func(a, b protocol.MemberRecord) int {
		return cmp.Compare(a.SerialMS, b.SerialMS)
	})
	if oldest.Name == "" {
		return string(oldest.Site) + ", which made the key"
	}
	return fmt.Sprintf("%s (%s), which made the key", oldest.Name, oldest.Site)
}

// Side is this domain as a side of a link, with the gateways that it has now.
func (l *Links) Side(gateways []Gateway) LinkSide {
	return LinkSide{Name: l.domain, Key: l.Key(), Gateways: gateways}
}

// get is the state now.
func (l *Links) get() linksState {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.state
}

// keep writes a state down and takes it over; the caller holds disk.
func (l *Links) keep(s linksState) error {
	now := l.now()
	if l.StandsIn() { // what the site with the key writes down holds
		l.mu.Lock()
		defer l.mu.Unlock()
		l.state = s
		return nil
	}
	s.ended = slices.DeleteFunc(slices.Clone(s.ended), func(e EndedLink) bool {
		return now.Sub(e.At) > endedKept
	})
	s.ended = s.ended[max(len(s.ended)-maxEnded, 0):]
	if err := save(l.dir, linksFile, linksTextOf(s)); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state = s
	return nil
}

// List lists the links, ascending by name.
func (l *Links) List() []Link {
	list := slices.Clone(l.get().links)
	slices.SortFunc(list, func(a, b Link) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// Ended lists the links that one side has ended, the oldest first.
func (l *Links) Ended() []EndedLink { return slices.Clone(l.get().ended) }

// Get is the link with the domain of that key.
func (l *Links) Get(key grid.DomainKey) (Link, bool) {
	s := l.get()
	if at := s.find(key); at >= 0 {
		return s.links[at], true
	}
	return Link{}, false
}

// HasEnded reports whether the link with the domain of that key has been ended.
func (l *Links) HasEnded(key grid.DomainKey) bool {
	s := l.get()
	return s.find(key) < 0 &&
		slices.ContainsFunc(s.ended, func(e EndedLink) bool { return e.Key == key })
}

// Gateway is the link one of whose gateways the site is; ended says that it was one before
// the link was ended.
func (l *Links) Gateway(site grid.SiteID) (key grid.DomainKey, ended, found bool) {
	s := l.get()
	for _, link := range s.links {
		if link.Side.has(site) {
			return link.Side.Key, false, true
		}
	}
	for _, e := range slices.Backward(s.ended) {
		if slices.Contains(e.Sites, site) {
			return e.Key, true, true
		}
	}
	return "", false, false
}

func (s linksState) find(key grid.DomainKey) int {
	return slices.IndexFunc(s.links, func(l Link) bool { return l.Side.Key == key })
}

// named is the place of the link with the domain that is called so here, or an error that names
// those that there are.
func (s linksState) named(name grid.DomainID) (int, error) {
	var names []string
	for i, l := range s.links {
		if l.Name == name {
			return i, nil
		}
		names = append(names, string(l.Name))
	}
	if len(names) == 0 {
		return 0, fmt.Errorf("%w: %s; there is no link yet", ErrNoLink, name)
	}
	slices.Sort(names)
	return 0, fmt.Errorf("%w: %s; there are %s", ErrNoLink, name, strings.Join(names, ", "))
}

// alias is the name by which a domain will be known here: its own, with a piece of its key where
// this domain or another linked one has that name.
func (l *Links) alias(s linksState, side LinkSide) grid.DomainID {
	taken := func(name grid.DomainID) bool {
		return name == l.domain ||
			slices.ContainsFunc(s.links, func(o Link) bool { return o.Name == name })
	}
	name := side.Name
	digits := hashOf([]byte(side.Key))
	const longest = 63 - 1 - aliasChars
	for n := 0; taken(name) && n+aliasChars <= len(digits); n += aliasChars {
		base := strings.TrimRight(string(side.Name[:min(len(side.Name), longest)]), "-")
		name = grid.DomainID(base + "-" + digits[n:n+aliasChars])
	}
	return name
}

// Change changes the policy of the link with the domain that is called so here. An invalid
// one changes nothing.
func (l *Links) Change(name grid.DomainID, change PolicyChange) (Link, error) {
	l.disk.Lock()
	defer l.disk.Unlock()
	if err := l.needHolder(); err != nil {
		return Link{}, err
	}
	s := l.get()
	at, err := s.named(name)
	if err != nil {
		return Link{}, err
	}
	link := s.links[at]
	policy := change.apply(link.Policy)
	if err := policy.Validate(); err != nil {
		return Link{}, err
	}
	if reflect.DeepEqual(policy, link.Policy) {
		return link, nil
	}
	link.Policy = policy
	return link, l.keep(s.with(link))
}

// with replaces the link with that domain, or adds it.
func (s linksState) with(link Link) linksState {
	s.links = slices.Clone(s.links)
	if at := s.find(link.Side.Key); at >= 0 {
		s.links[at] = link
	} else {
		s.links = append(s.links, link)
	}
	s.ended = slices.DeleteFunc(slices.Clone(s.ended), func(e EndedLink) bool {
		return e.Key == link.Side.Key
	})
	return s
}

// Unlink ends the link with the domain that is called so here. The other one is refused with that
// reason from now on.
func (l *Links) Unlink(name grid.DomainID) (Link, error) {
	l.disk.Lock()
	defer l.disk.Unlock()
	if err := l.needHolder(); err != nil {
		return Link{}, err
	}
	s := l.get()
	at, err := s.named(name)
	if err != nil {
		return Link{}, err
	}
	link := s.links[at]
	return link, l.keep(s.without(at, l.now(), false))
}

// EndedByThem forgets the link with the domain of that key, which has ended it.
func (l *Links) EndedByThem(key grid.DomainKey) error {
	l.disk.Lock()
	defer l.disk.Unlock()
	s := l.get()
	at := s.find(key)
	if at < 0 {
		return nil
	}
	return l.keep(s.without(at, l.now(), true))
}

// without is the state after a link has ended.
func (s linksState) without(at int, now time.Time, byThem bool) linksState {
	link := s.links[at]
	ended := EndedLink{Name: link.Name, Key: link.Side.Key, At: now, ByThem: byThem}
	for _, g := range link.Side.Gateways {
		ended.Sites = append(ended.Sites, g.Site)
	}
	s.links = slices.Delete(slices.Clone(s.links), at, at+1)
	s.ended = append(slices.Clip(s.ended), ended)
	return s
}

// Met notes that a gateway of the domain of that key was heard of, and which gateways it
// names.
func (l *Links) Met(key grid.DomainKey, gateways []Gateway) error {
	if err := ValidGateways(gateways); err != nil {
		return err
	}
	l.disk.Lock()
	defer l.disk.Unlock()
	s := l.get()
	at := s.find(key)
	if at < 0 {
		return LinkUnlinked
	}
	link := s.links[at]
	link.Side.Gateways, link.Last = gateways, l.now()
	return l.keep(s.with(link))
}
