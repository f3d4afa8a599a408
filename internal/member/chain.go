package member

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// chainFile holds the successions of the domain's key.
const chainFile = "successions.json"

// maxContests limits the successors that are remembered and not followed.
const maxContests = 4

// Contest is a successor of a key of the domain that is not followed, because another one is known,
// or because this site has the key and has made no such succession.
type Contest struct {
	Succession protocol.Succession
	Followed   grid.DomainKey // the successor that is; empty: this site has the key itself
	Seen       time.Time      // the first time in this run
}

// chainText is the form on disk.
type chainText struct {
	Version     int              `json:"version"`
	Successions []successionText `json:"successions"`
}

type successionText struct {
	Domain      grid.DomainID  `json:"domain"`
	Number      uint32         `json:"number"`
	Former      grid.DomainKey `json:"former"`
	Successor   grid.DomainKey `json:"successor"`
	MadeMS      int64          `json:"made_ms"`
	Records     uint32         `json:"records"`
	HighestMS   int64          `json:"highest_ms"`
	ByFormer    []byte         `json:"by_former"`
	BySuccessor []byte         `json:"by_successor"`
}

// decodeChain reads the successions of the domain's key and verifies them.
func decodeChain(text []byte) ([]protocol.Succession, error) {
	var stored chainText
	if err := json.Unmarshal(text, &stored); err != nil {
		return nil, err
	}
	if stored.Version != fileVersion || len(stored.Successions) > protocol.MaxSuccessions {
		return nil, fmt.Errorf("version %d with %d successions, want version %d and at most %d",
			stored.Version, len(stored.Successions), fileVersion, protocol.MaxSuccessions)
	}
	var chain []protocol.Succession
	for _, s := range stored.Successions {
		chain = append(chain, protocol.Succession(s))
	}
	if err := protocol.ValidSuccessions(chain); err != nil {
		return nil, err
	}
	for _, s := range chain {
		if !s.IsSigned() {
			return nil, fmt.Errorf("succession %d: %w", s.Number, errForged)
		}
	}
	return chain, nil
}

// keepChain writes the successions down; the caller holds disk.
func (r *Registry) keepChain(chain []protocol.Succession) error {
	text := chainText{Version: fileVersion}
	for _, s := range chain {
		text.Successions = append(text.Successions, successionText(s))
	}
	return save(r.cfg.Dir, chainFile, text)
}

// openRoster makes the roster, empty, with the key that is trusted after all successions that an
// earlier run knew of.
func (r *Registry) openRoster() error {
	var chain []protocol.Succession
	const remedy = "restore the file from a backup, or name the domain's key of now, which " +
		"siteagent members shows at another member, under domain-key and move the file away"
	err := need(r.cfg.Dir, chainFile, errFollow, remedy, func(text []byte) (err error) {
		chain, err = decodeChain(text)
		return err
	})
	if err != nil {
		return err
	}
	anchor := r.cfg.Key
	if anchor == "" {
		anchor = r.key.Public()
	}
	if anchor == "" {
		return nil
	}
	if r.roster, err = newRoster(r.cfg.Domain, anchor); err != nil {
		return fmt.Errorf("open roster: domain-key: %w", err)
	}
	followed, _, err := r.roster.follow(chain)
	if err != nil {
		if err = r.setAside(anchor); err != nil {
			return err
		}
	}
	r.roster = followed
	r.judgeKey()
	return nil
}

// errFollow refuses to go on without a file that says which key holds.
var errFollow = errors.New("it says by which key the domain's first one was replaced, and " +
	"without it a former key would be believed")

// setAside moves successions away that are not of the key which the owner names: that has decided
// which key is the domain's.
func (r *Registry) setAside(anchor grid.DomainKey) error {
	file := filepath.Join(r.cfg.Dir, chainFile)
	if err := os.Rename(file, file+".unusable"); err != nil {
		return fmt.Errorf("set %s aside: %w", file, err)
	}
	r.problems = append(r.problems, fmt.Sprintf("%s was not of the key that domain-key names (%s)"+
		": moved to %s.unusable, and the site continues with that key", file, anchor, file))
	return nil
}

// judgeKey says why this site's domain.key is not used, if it is not, and forgets one of another
// domain.
func (r *Registry) judgeKey() {
	own, now := r.key.Public(), r.roster.Key()
	if own == "" || own == now || r.spare.Public() == now {
		return
	}
	for _, s := range r.roster.chain {
		if s.Former == own {
			r.problems = append(r.problems, fmt.Sprintf("%s is not used: it is a former key of "+
				"the domain, which %s has succeeded; the present one is at the site that rotated "+
				"it, and in its backups", KeyFile, s.Successor))
			return
		}
	}
	r.problems = append(r.problems, fmt.Sprintf("%s is not used: it is the key of another domain "+
		"(%s) than domain-key names", KeyFile, own))
}

// Follow takes over the successions of the domain's key that are new, all from the first one, and
// returns these; from then on the last successor's word holds and nothing new of a key before it.
// They are on disk when Follow returns. The error is ErrContested, that they are forged or
// cannot be read, or that nothing could be written; then nothing is taken over.
func (r *Registry) Follow(all []protocol.Succession) ([]protocol.Succession, error) {
	if len(all) == 0 {
		return nil, nil
	}
	r.disk.Lock()
	defer r.disk.Unlock()
	roster := r.Roster()
	next, fresh, err := roster.follow(all)
	switch {
	case errors.Is(err, ErrContested):
		at, _ := roster.shared(all)
		r.note(all[at], roster.chain[at].Successor)
		return nil, err
	case err != nil || len(fresh) == 0:
		return nil, err
	case r.Holds() && next.Key() != roster.Key():
		// This site has the key and has not made this: another one has the key, too.
		at := slices.IndexFunc(all, func(s protocol.Succession) bool {
			return s.Former == roster.Key()
		})
		r.note(all[at], "")
		return nil, fmt.Errorf("succession %d to %s: %w: this site holds the key and has not made "+
			"it", all[at].Number, all[at].Successor, ErrContested)
	}
	if err := r.keepChain(next.chain); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.roster = next
	return fresh, nil
}

// note remembers a successor that is not followed.
func (r *Registry) note(s protocol.Succession, followed grid.DomainKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := slices.ContainsFunc(r.contests, func(o Contest) bool {
		return o.Succession.Successor == s.Successor
	})
	if !known && len(r.contests) < maxContests {
		r.contests = append(r.contests, Contest{
			Succession: s, Followed: followed, Seen: r.cfg.Now(),
		})
	}
}

// Contests lists the successors of the domain's keys that this run has seen and does not follow,
// the first one first, at most four.
func (r *Registry) Contests() []Contest {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Clone(r.contests)
}

// IsKey reports whether the directory of a site that trusts the one key says that the other is a
// key of the same domain, before it or after it.
func IsKey(dir string, trusted, other grid.DomainKey) bool {
	if trusted == other {
		return true
	}
	var chain []protocol.Succession
	err := read(filepath.Join(dir, chainFile), func(text []byte) (err error) {
		chain, err = decodeChain(text)
		return err
	})
	has := func(key grid.DomainKey) bool {
		return slices.ContainsFunc(chain, func(s protocol.Succession) bool {
			return s.Former == key || s.Successor == key
		})
	}
	return err == nil && has(trusted) && has(other)
}
