package p2p

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/member"
	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// rotate gives the domain of the node another key.
func (n node) rotate(t *testing.T) member.Rotation {
	t.Helper()
	done, err := n.cfg.Links.Rotate("")
	if err != nil {
		t.Fatal(err)
	}
	n.ShareRoster()
	return done
}

// follow waits until all go by the key of the first one, and know the same members.
func follow(t *testing.T, nodes []node) {
	t.Helper()
	first := nodes[0].cfg.Members
	for _, n := range nodes {
		eventually(t, n.cfg.Name+" goes by the new key", func() bool {
			own := n.cfg.Members
			return own.Key() == first.Key() && own.Roster().Digest() == first.Roster().Digest()
		})
	}
}

// A rotated key is followed by who is there, by who was away and meets another member first, and
// after a restart. It admits newcomers, and nobody joins twice.
func TestARotatedKeyIsFollowed(t *testing.T) {
	seats, nodes := domain(t, 3)
	old := nodes[0].cfg.Members.Key()
	leaked := nodes[0].invite(t, time.Hour, 9)
	away, holder := 3, nodes[0]
	if err := nodes[away].Close(); err != nil {
		t.Fatal(err)
	}
	done := holder.rotate(t)
	if done.Succession.Former != old || holder.cfg.Members.Key() == old {
		t.Fatalf("%+v", done)
	}
	follow(t, nodes[:away])
	whole(t, nodes[:away])
	if err := holder.Close(); err != nil {
		t.Fatal(err)
	}
	nodes[away] = seats[away].start(t, old)
	follow(t, []node{nodes[1], nodes[away]})
	whole(t, nodes[1:])

	nodes[0] = seats[0].start(t, "")
	if err := nodes[1].Close(); err != nil {
		t.Fatal(err)
	}
	nodes[1] = seats[1].start(t, old)
	whole(t, nodes)
	late := newSeat(t, "late")
	if answer, err := late.redeem(t, nodes[0], leaked); err != nil ||
		answer.Refusal != protocol.JoinRevoked {
		t.Errorf("an invitation of before: %v, %v", answer.Refusal, err)
	}
	secret := nodes[0].invite(t, time.Hour, 1)
	if answer, err := late.redeem(t, nodes[0], secret); err != nil ||
		answer.Refusal != protocol.JoinAdmitted {
		t.Fatalf("a new one: %v, %v", answer.Refusal, err)
	}
	nodes = append(nodes, late.start(t, nodes[0].cfg.Members.Key()))
	follow(t, nodes)
	whole(t, nodes)
}

// stolen is a registry of somebody who has copied the domain's key of a seat.
func stolen(
	t *testing.T, from *seat, self grid.SiteID,
) (*member.Registry, *member.Links) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{member.KeyFile, "roster.json"} {
		text, err := os.ReadFile(filepath.Join(from.dir, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	reg, err := member.Open(member.Config{Dir: dir, Domain: from.cfg.Domain, Self: self})
	if err != nil {
		t.Fatal(err)
	}
	links, err := member.OpenLinks(reg)
	if err != nil {
		t.Fatal(err)
	}
	return reg, links
}

// Who has the former key admits nobody and bans nobody with it after the rotation, and gives the
// domain no other successor.
func TestAFormerKeyDecidesNothing(t *testing.T) {
	seats, nodes := domain(t, 2)
	holder, other, traitor := nodes[0], nodes[1], nodes[2]
	thief, links := stolen(t, seats[0], traitor.Self())
	if !thief.Holds() {
		t.Fatal("the thief has nothing")
	}
	holder.rotate(t)
	follow(t, nodes)
	key, roster := holder.cfg.Members.Key(), holder.cfg.Members.Roster()

	stranger := wire.SiteOf(newID(7))
	var said []protocol.Roster
	for site, decide := range map[grid.SiteID]func(
		site grid.SiteID, name, note string,
	) (*protocol.MemberRecord, error){stranger: thief.Admit, other.Self(): thief.Ban} {
		record, err := decide(site, "", "")
		if err != nil {
			t.Fatal(err)
		}
		said = append(said, protocol.Roster{Records: []protocol.MemberRecord{*record}})
	}
	rival, err := links.Rotate("")
	if err != nil {
		t.Fatal(err)
	}
	said = append(said, protocol.Roster{Successions: []protocol.Succession{rival.Succession}})
	for _, message := range said {
		for _, at := range []node{holder, other} {
			if err := traitor.Send(at.Self(), message); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, at := range []node{holder, other} {
		eventually(t, "all that is counted at "+at.cfg.Name, func() bool {
			return at.Count(wire.CountRoster, "former") == 2 &&
				at.Count(wire.CountRoster, "contested") == 1
		})
		if at.Judge(stranger) == grid.ReasonNone || at.Judge(other.Self()) != grid.ReasonNone ||
			at.cfg.Members.Key() != key || at.cfg.Members.Roster().Digest() != roster.Digest() {
			t.Errorf("at %s: the stranger %s, the banned one %s, key %s", at.cfg.Name,
				at.Judge(stranger), at.Judge(other.Self()), at.cfg.Members.Key())
		}
		contests := at.cfg.Members.Contests()
		if len(contests) != 1 || contests[0].Followed != key {
			t.Errorf("at %s: %+v", at.cfg.Name, contests)
		}
	}
	whole(t, nodes)
}
