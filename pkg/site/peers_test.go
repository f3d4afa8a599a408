package site

import (
	"testing"

	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// When another site begins to act as this site's submitter, that is told how the site's own
// attempts go. The site is no peer of itself.
func TestWhoActsForThisSiteHearsOfItsAttempts(t *testing.T) {
	r := newRig(t)
	id := r.running(job1, self, 1)[0]
	r.step(step.PeerSeen{Site: self})
	if got := one[protocol.Renew](r, self).Attempts; len(got) != 1 || got[0] != id {
		t.Errorf("asks for the leases of %v, want %s", got, id)
	}
	if got := one[protocol.Progress](r, self); got.Attempt != id {
		t.Errorf("tells %+v", got)
	}
	if len(r.m.links.peers) != 0 {
		t.Errorf("peers %v", r.m.links.peers)
	}
}
