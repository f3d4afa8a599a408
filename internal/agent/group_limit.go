package agent

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/standby"
)

// An owner's facts may grow after a site has agreed to stand by. A member that finds more than it
// keeps says so to the owner and stays what it is meanwhile: who just left would take a vote out of
// three away, and both standbys find the same at the same moment. The owner's agent asks others in
// its place and, if nobody else accepts, changes the group to itself alone, which is a change like
// any other. So no honest owner loses anything but its standbys.
//
// An owner that does not heed that is stopped: its entries are not taken any more when they would
// be some times as much. The two standbys differ in that, so that one is left for the change.

// Bounds on what a site holds for an owner that does not heed its limit.
const (
	sayLimit = 5 * time.Second  // until the owner is told again
	heedIn   = 10 * time.Second // the owner looks so long for others before it goes on alone
	// A log may hold logSlack beside the table: kept entries, and those under way.
	logSlack = 32 << 20
	// guardAbove bytes of a message are enough to look at the limit before the next one.
	guardAbove = 64 << 10
)

// limit follows an owner's facts beside what this site keeps.
type limit struct {
	told   time.Time // when the owner was told that they are too many
	closed bool      // they are so many that no more are taken
}

// guard looks whether another owner's facts are more than this site keeps.
func (g *group) guard() {
	if g.duty.holds() {
		return
	}
	most, facts := g.a.cfg.Standbys.withDefaults().Bytes, g.member.TableBytes()
	closed := !g.acts() && facts+g.member.LogBytes() > g.mostHeld(most)
	if closed && !g.limit.closed {
		g.log.Warn("no more facts of an owner are taken: they are far more than this site keeps",
			"owner", string(g.owner), "bytes", facts)
		g.a.reports.count("standby_closed")
	}
	g.limit.closed = closed
	now := g.clock.now()
	if facts <= most && !closed || now.Sub(g.limit.told) < sayLimit {
		return
	}
	g.limit.told = now
	g.a.reports.count("standby_too_much")
	g.duty.refuse(g.duty.seat(), short(fmt.Sprintf(
		"%s are known of your jobs, and this site keeps %s for one owner: it asks to be replaced; "+
			"with fewer or smaller jobs it would stay",
		grid.FormatBytes(facts), grid.FormatBytes(most))))
}

// mostHeld bounds what is held: twice the limit, or three times where this is the second
// of the standbys.
func (g *group) mostHeld(most int64) int64 {
	standbys := slices.DeleteFunc(g.assembly.certificate.Sites(), func(s grid.SiteID) bool {
		return s == g.duty.seat()
	})
	rank := max(slices.Index(standbys, g.a.mesh.Self()), 0)
	return int64(2+rank)*most + cmp.Or(g.a.cfg.Taps.LogBytes, logSlack)
}

// unwilling reports whether a voter that takes part asks to be replaced, and nobody was found in
// its place for some time.
func (g *group) unwilling(conf standby.Conf) bool {
	now := g.clock.now()
	return slices.ContainsFunc(conf.Voters, func(id standby.MemberID) bool {
		since, gone := g.forming.gone[id]
		return gone && now.Sub(since) > heedIn && now.Sub(g.member.Heard(id)) < heedIn
	})
}
