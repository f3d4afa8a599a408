package p2p

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// rosters are the records in the rosters among messages, and how many rosters there are.
func rosters(all []protocol.Message) (records, messages int) {
	for _, m := range all {
		if r, is := m.(protocol.Roster); is {
			records, messages = records+len(r.Records), messages+1
		}
	}
	return records, messages
}

// admitted makes so many records of the domain.
func (q *quiet) admitted(n int) (all []protocol.MemberRecord) {
	for i := range n {
		all = append(all, q.decide(q.cfg.Members.Admit, wire.SiteOf(newID(1000+i))))
	}
	return all
}

// Two sites with different rosters send each other all of it; one that keeps none is sent nothing.
func TestWhenARosterIsSent(t *testing.T) {
	alone, domain := newQuiet(t, nil), newQuiet(t, keeper(t))
	for name, c := range map[string]struct {
		q      *quiet
		theirs protocol.Digest
		want   int
	}{
		"another":        {domain, protocol.Digest{1}, 1},
		"the same":       {domain, domain.cfg.Members.Roster().Digest(), 0},
		"they have none": {domain, protocol.Digest{}, 0},
		"we have none":   {alone, protocol.Digest{1}, 0},
	} {
		c.q.cfg.AcceptAnyone = true
		r := c.q.knows(c.q.stranger())
		r.compareRoster(c.theirs)
		if _, got := rosters(r.waiting(t)); got != c.want {
			t.Errorf("%s: %d rosters are sent, want %d", name, got, c.want)
		}
	}
}

// The whole roster is sent once in Timing.RosterGap; who asks in between is told later to compare
// again, once.
func TestHowOftenARosterIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQuiet(t, func(c *Config) { keeper(t)(c); c.Timing.RosterGap = time.Minute })
		q.cfg.AcceptAnyone = true
		r := q.knows(q.stranger())
		sent := func() int {
			t.Helper()
			r.sendRoster(false)
			_, n := rosters(r.waiting(t))
			return n
		}
		if sent() != 1 || len(q.later) != 0 {
			t.Fatal("the first roster is not sent")
		}
		time.Sleep(20 * time.Second)
		if sent()+sent() != 0 || len(q.later) != 1 || q.later[0].after != 40*time.Second {
			t.Errorf("to be done %+v; want one comparison, a minute after the roster", q.later)
		}
		if q.soon(); !marked(r.news) || r.compare {
			t.Error("no Hello is said for comparing again")
		}
		time.Sleep(40*time.Second - 1)
		if sent() != 0 || len(q.later) != 1 || q.later[0].after != 1 {
			t.Errorf("to be done %+v, want the comparison planned anew", q.later)
		}
		time.Sleep(time.Nanosecond)
		if sent() != 1 || sent() != 0 {
			t.Error("want the roster once more after a minute")
		}
	})
}

// A roster goes in messages of 256 records; the last one has the digest, also of an empty roster.
func TestThePartsOfARoster(t *testing.T) {
	q := newQuiet(t, keeper(t))
	q.admitted(protocol.MaxRosterRecords) // and this site's own record
	own := q.cfg.Members.Roster()
	for _, answer := range []bool{true, false} {
		parts := rosterParts(own, answer)
		if len(parts) != 2 || len(parts[0].Records) != protocol.MaxRosterRecords ||
			len(parts[1].Records) != 1 || parts[0].Digest != (protocol.Digest{}) ||
			parts[1].Digest != own.Digest() || parts[0].Answer != answer || parts[1].Answer != answer {
			t.Errorf("%d parts, want two, the digest with the last, and an answer: %t", len(parts), answer)
		}
	}
	if none := rosterParts(newQuiet(t, nil).cfg.Members.Roster(), true); len(none) != 1 ||
		!none[0].Answer {
		t.Errorf("an empty roster has %d parts, want one", len(none))
	}
}

// Records that are new here are counted, told to the owner of this mesh and passed on to all others
// that are present; each is told to compare.
func TestRecordsArePassedOn(t *testing.T) {
	key := newQuiet(t, keeper(t))
	records := key.admitted(3)
	told := 0
	q := newQuiet(t, func(c *Config) { c.Members = taught(t, wire.SiteOf(c.Host.ID()), key) })
	q.Mesh.handlers.OnMembers = func() { told++ }
	from, other, absent := q.present(q.stranger()), q.present(q.stranger()), q.knows(q.stranger())
	q.tells(from, protocol.Roster{Records: records})
	if got := q.cfg.Members.Roster().Len(); got != len(records) || told != 1 {
		t.Fatalf("%d records taken over, told %d times; want %d, once", got, told, len(records))
	}
	if got := q.Count(wire.CountRoster, "fresh"); got != uint64(len(records)) {
		t.Errorf("%d records are counted", got)
	}
	for r, want := range map[*remote][2]int{from: {0, 0}, other: {len(records), 1}, absent: {0, 0}} {
		n, messages := rosters(r.waiting(t))
		if got := [2]int{n, messages}; got != want || marked(r.news) != (r != absent) {
			t.Errorf("told %v records and messages, want %v, and to compare", got, want)
		}
	}
	q.tells(from, protocol.Roster{Records: records})
	if told != 1 || len(other.queue) > 0 {
		t.Error("what was known is passed on")
	}
	q.Mesh.handlers.OnMembers = nil
	q.tells(from, protocol.Roster{Records: key.admitted(1)})
	records[0].Name = "forged"
	records[0].SerialMS += 1_000_000
	q.tells(from, protocol.Roster{Records: records[:1]})
	if q.Count(wire.CountRoster, "forged") != 1 ||
		!q.lines.has("WARN", "records of members are not usable", "peer="+string(from.site)) {
		t.Error("a forgery is not counted, or not logged")
	}
}

// tells lets a peer say what is for the mesh itself, and not for its handlers.
func (q *quiet) tells(from *remote, m protocol.Message) {
	q.t.Helper()
	before := q.count()
	from.received(m)
	if q.count() != before {
		q.t.Errorf("%T is handed on", m)
	}
}

// The last part of a roster is answered with this site's where that is another one, but no answer
// is.
func TestARosterIsAnswered(t *testing.T) {
	domain, alone := newQuiet(t, keeper(t)), newQuiet(t, nil)
	for name, c := range map[string]struct {
		q    *quiet
		m    protocol.Roster
		want bool
	}{
		"another":    {domain, protocol.Roster{Digest: protocol.Digest{1}}, true},
		"an answer":  {domain, protocol.Roster{Digest: protocol.Digest{1}, Answer: true}, false},
		"the same":   {domain, protocol.Roster{Digest: domain.cfg.Members.Roster().Digest()}, false},
		"not yet":    {domain, protocol.Roster{}, false},
		"none of us": {alone, protocol.Roster{Digest: protocol.Digest{1}}, false},
	} {
		c.q.cfg.AcceptAnyone = true
		r := c.q.present(c.q.stranger())
		c.q.tells(r, c.m)
		all := r.waiting(t)
		if len(all) > 0 != c.want {
			t.Errorf("%s: answered with %d messages", name, len(all))
		}
		for _, m := range all {
			if answer, is := m.(protocol.Roster); !is || !answer.Answer {
				t.Errorf("%s: answered with %+v", name, m)
			}
		}
	}
}

// Messages of the join stream count as unusable on a stream of a member.
func TestJoiningIsNothingForMembers(t *testing.T) {
	q := newQuiet(t, nil)
	r := q.present(q.stranger())
	q.tells(r, protocol.JoinRequest{})
	q.tells(r, protocol.JoinAnswer{})
	if got := q.Count(wire.CountInvalid, wire.CauseFormat); got != 2 {
		t.Errorf("%d messages are counted as unusable, want 2", got)
	}
	if q.aboutMembers(r, protocol.Cancel{}) {
		t.Error("a message about a job is one about members")
	}
}

// A message about members that cannot be queued is counted, and logged.
func TestAMessageAboutMembersThatIsLost(t *testing.T) {
	q := newQuiet(t, func(c *Config) { c.Limits.QueueMessages = 1 })
	r := q.knows(q.stranger())
	for range 2 {
		r.sendSoon(protocol.Roster{})
	}
	if len(r.queue) != 1 || q.Count(wire.CountDropped, queueFull) != 1 ||
		!q.lines.has("DEBUG", "message about members is not sent", "peer="+string(r.site)) {
		t.Error("want one queued, and the other counted and logged")
	}
	r.waiting(t)
	if r.sendSoon(protocol.Hello{}); len(r.queue) > 0 {
		t.Error("a Hello that is none is queued")
	}
}

// The owner's decisions take effect: banned peers are cut off and forgotten, others are tried
// again.
func TestAReviewOfMembers(t *testing.T) {
	q := newQuiet(t, func(c *Config) { keeper(t)(c); c.AcceptAnyone = true })
	q.ownHost = true
	banned, absent, present := q.present(q.stranger()), q.knows(q.stranger()), q.present(q.stranger())
	away := q.stranger() // banned, and only remembered
	for _, r := range []*remote{banned, absent, present} {
		q.book.put(r.id, addrAt(4601), time.Now())
	}
	q.book.put(away, addrAt(4601), time.Now())
	q.at(away, "/ip4/10.0.0.1/tcp/4601")
	guest := q.connected(away, "/ip4/10.0.0.1/tcp/4601", network.DirInbound)
	member := q.connected(present.id, "/ip4/10.0.0.2/tcp/4601", network.DirInbound)
	record := q.decide(q.cfg.Members.Ban, banned.site)
	q.decide(q.cfg.Members.Ban, wire.SiteOf(away))
	q.Review()
	if got := banned.waiting(t); len(got) != 2 ||
		fmt.Sprint(got[0].(protocol.Roster).Records) != fmt.Sprint([]protocol.MemberRecord{record}) ||
		got[1].(protocol.Hello).Refusal != grid.ReasonBanned {
		t.Errorf("the banned one is told %+v, want its record and why", got)
	}
	if _, is := banned.admitted(); is || !banned.isExpelled() || q.lookup(banned.site) != nil ||
		len(q.losses()) != 1 || q.losses()[0].refusing || q.Count(wire.CountRefused, "banned") != 1 {
		t.Errorf("want the banned one lost and refused, losses %+v", q.losses())
	}
	if q.book.has(banned.id) || q.book.has(away) || len(q.stub.store.Addrs(away)) > 0 ||
		!q.book.has(absent.id) || !q.book.has(present.id) {
		t.Error("want the addresses of banned sites forgotten, and of no other")
	}
	if !marked(absent.dialed) || marked(present.dialed) {
		t.Error("want one that is not present tried again, and no other")
	}
	q.connected(banned.id, "/ip4/10.0.0.3/tcp/4601", network.DirInbound)
	for _, after := range q.soon() {
		if after != farewell {
			t.Errorf("something is done after %s, want %s", after, farewell)
		}
	}
	if !q.stub.net.isClosed(banned.id) || !guest.closed || member.closed || len(q.ended) != 1 {
		t.Errorf("closed: %v, the other banned one %t, a member %t; owners ended: %v",
			q.stub.net.closed, guest.closed, member.closed, q.ended)
	}
	banned.received(protocol.Cancel{Job: jobID(1)})
	if q.count() > 0 {
		t.Error("a banned peer is heard")
	}
	before := len(q.losses())
	q.expel(banned, grid.ReasonBanned)
	if len(q.losses()) != before || q.Count(wire.CountRefused, "banned") != 1 || len(q.later) > 0 {
		t.Error("it is cut off twice")
	}
}

// One that is admitted again meanwhile keeps its connection, and so does a guest.
func TestWhoIsNotDismissed(t *testing.T) {
	q := newQuiet(t, func(c *Config) { keeper(t)(c); c.AcceptAnyone = true })
	r := q.present(q.stranger())
	q.decide(q.cfg.Members.Ban, r.site)
	q.Review()
	q.decide(q.cfg.Members.Admit, r.site)
	q.connected(r.id, "/ip4/10.0.0.3/tcp/4601", network.DirInbound)
	q.soon()
	if q.stub.net.isClosed(r.id) || len(q.ended) != 1 {
		t.Error("a site that was admitted again is disconnected, or its owner goes on")
	}

	q = newQuiet(t, keeper(t))
	q.ownHost = true
	guest, stranger := q.connected(q.stranger(), "/ip4/10.0.0.3/tcp/1", network.DirInbound),
		q.connected(q.stranger(), "/ip4/10.0.0.4/tcp/1", network.DirInbound)
	if !q.lobby.Enter(guest) {
		t.Fatal("the guest is not let in")
	}
	stays := len(q.later) // until the guest has to go
	q.dismiss(guest)
	q.dismiss(stranger)
	if len(q.later) != stays+1 {
		t.Fatalf("%d are to be dismissed, want the stranger", len(q.later)-stays)
	}
	q.later[stays].do()
	if guest.closed || !stranger.closed {
		t.Error("want the stranger dismissed, and no guest")
	}
	late := q.connected(q.stranger(), "/ip4/10.0.0.5/tcp/1", network.DirInbound)
	became := q.connected(q.stranger(), "/ip4/10.0.0.6/tcp/1", network.DirInbound)
	q.dismiss(late)
	q.dismiss(became)
	q.lobby.Enter(late)
	q.decide(q.cfg.Members.Admit, wire.SiteOf(became.peer))
	q.later[stays+1].do()
	q.later[stays+2].do()
	if late.closed || became.closed {
		t.Error("who became a guest or a member is dismissed")
	}
	q.ownHost = false
	n := len(q.later)
	q.dismiss(stranger)
	if len(q.later) != n {
		t.Error("a connection of somebody else's host is closed")
	}
}

// Records that this site issued are told to all that are present. A closed mesh tells nothing.
func TestIssuedRecordsAreTold(t *testing.T) {
	q := newQuiet(t, func(c *Config) { keeper(t)(c); c.AcceptAnyone = true })
	r := q.present(q.stranger())
	record := q.decide(q.cfg.Members.Ban, "somebody")
	q.Share([]protocol.MemberRecord{record})
	if n, _ := rosters(r.waiting(t)); n != 1 || !marked(r.news) {
		t.Errorf("%d records are told, want one", n)
	}
	banned := q.present(q.stranger())
	q.Share([]protocol.MemberRecord{q.decide(q.cfg.Members.Ban, banned.site)})
	if q.lookup(banned.site) != nil {
		t.Error("what was issued has no effect here")
	}
	r.waiting(t)
	q.wg.Wait() // nothing keeps the mesh open
	q.closed = true
	q.Share([]protocol.MemberRecord{record})
	q.decide(q.cfg.Members.Ban, r.site)
	q.Review()
	if len(r.queue) > 0 || q.lookup(r.site) == nil {
		t.Error("a closed mesh goes on")
	}
}

// A newcomer is told to the members and to the owner, and let in; it is told whom this site lists
// and where it is.
func TestANewcomer(t *testing.T) {
	key := newQuiet(t, keeper(t))
	told := 0
	q := newQuiet(t, func(c *Config) { c.Members = taught(t, wire.SiteOf(c.Host.ID()), key) })
	r, waits := q.present(q.stranger()), q.knows(q.stranger())
	record := key.decide(key.cfg.Members.Admit, "newcomer")
	q.newcomer(record) // nobody wants to know
	q.Mesh.handlers.OnMembers = func() { told++ }
	q.newcomer(record)
	if n, _ := rosters(r.waiting(t)); n != 2 || told != 1 || !marked(waits.dialed) {
		t.Errorf("%d records told, the owner %d times, tried again %t; want each once",
			n, told, marked(waits.dialed))
	}

	listed := newQuiet(t, func(c *Config) {
		c.AcceptAnyone = false
		c.Allow = []grid.SiteID{"c", "a", "newcomer", "banned", "b"}
	})
	if _, err := listed.cfg.Members.Ban("banned", "", ""); err != nil {
		t.Fatal(err)
	}
	long := "/dns4/" + strings.Repeat("x", maxAddrText) + "/tcp/1"
	texts := []string{long}
	for i := range protocol.MaxJoinAddrs + 1 {
		texts = append(texts, fmt.Sprintf("/ip4/10.0.0.%d/tcp/4601", i))
	}
	listed.stub.addrs = parseAddrs(texts)
	var answer protocol.JoinAnswer
	listed.introduce("newcomer", &answer)
	if got := fmt.Sprint(answer.Listed); got != "[a b c]" {
		t.Errorf("listed are %s, want those that are members, in order", got)
	}
	if len(answer.Addrs) != protocol.MaxJoinAddrs ||
		answer.Addrs[0] != texts[1]+"/p2p/"+string(listed.self) {
		t.Errorf("addresses %q, want the first %d but the long one", answer.Addrs, protocol.MaxJoinAddrs)
	}
	for i := range protocol.MaxListed {
		listed.members[grid.SiteID(fmt.Sprintf("site-%04d", i))] = true
	}
	answer = protocol.JoinAnswer{}
	listed.introduce("newcomer", &answer)
	if len(answer.Listed) != protocol.MaxListed {
		t.Errorf("%d sites are listed, want %d", len(answer.Listed), protocol.MaxListed)
	}
}
