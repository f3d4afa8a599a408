package agent

import (
	"slices"
	"sync"

	"github.com/mrsmesh/mrsmesh/internal/member"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// openMembers reads who takes part. The roster is this domain's.
func (a *Agent) openMembers() error {
	self, err := a.cfg.P2P.Site()
	if err != nil {
		return err
	}
	a.members, err = member.Open(member.Config{
		Dir: a.cfg.StateDir, Domain: a.cfg.P2P.Domain, Self: self, Name: a.cfg.Name, Key: a.cfg.DomainKey,
	})
	if err != nil {
		return err
	}
	for _, problem := range a.members.Problems() {
		a.log.Warn("a file about members is not usable", "problem", problem)
	}
	return nil
}

// bans are what the machines were told last. It is safe for concurrent use.
type bans struct {
	mu   sync.Mutex
	told []grid.SiteID // guarded by mu
}

// tellBans tells the machines who is banned, if that changed.
func (a *Agent) tellBans() {
	if !a.awake() {
		return
	}
	a.bans.mu.Lock()
	defer a.bans.mu.Unlock()
	var banned []grid.SiteID
	for _, e := range a.members.Entries() {
		if a.mesh.Judge(e.Site) == grid.ReasonBanned {
			banned = append(banned, e.Site)
		}
	}
	if slices.Equal(banned, a.bans.told) {
		return
	}
	a.bans.told = banned
	a.site.tell(step.BansChanged{Banned: banned})
	a.tellBrokers(step.BansChanged{Banned: banned})
}
