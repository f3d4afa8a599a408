package member

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

const deputySite = grid.SiteID("12D3KooWdeputy")

// deputyKey is the deputy's own.
func deputyKey() ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{9}, ed25519.SeedSize))
}

func signAsDeputy(text []byte) ([]byte, error) { return ed25519.Sign(deputyKey(), text), nil }

// newDeputy is another site of a domain, which knows its key.
func newDeputy(tb testing.TB, holder *seat, dir string) *seat {
	tb.Helper()
	s := &seat{dir: dir, self: deputySite, name: holder.name, now: holder.now}
	reg, err := Open(Config{
		Dir: dir, Domain: s.name, Self: s.self, Name: "deputy", Key: holder.Key(),
		Now: func() time.Time { return s.now },
	})
	if err == nil {
		s.Links, err = OpenLinks(reg)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// handed makes a handover to the deputy, for an hour.
func (s *seat) handed(tb testing.TB) protocol.Handover {
	tb.Helper()
	m, err := s.HandOver(deputySite, deputyKey()[ed25519.SeedSize:], s.self,
		[]grid.SiteID{deputySite}, s.now.Add(time.Hour))
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// linkedSeats are the holder of a domain that is linked with another one, and a deputy of it.
func linkedSeats(t *testing.T) (holder, deputy *seat) {
	t.Helper()
	holder = newSeat(t, t.TempDir(), "north", "12D3KooWnorth")
	other := newSeat(t, t.TempDir(), "south", "12D3KooWsouth")
	if _, err := other.join(holder, holder.token(t, "", time.Hour)); err != nil {
		t.Fatal(err)
	}
	return holder, newDeputy(t, holder, t.TempDir())
}

// A deputy knows of no link before it stands in, and after. It speaks under its mandate, decides
// nothing, and still has what it was handed after a restart.
func TestADeputyStandsIn(t *testing.T) {
	holder, deputy := linkedSeats(t)
	if err := deputy.Take(holder.handed(t)); err != nil {
		t.Fatal(err)
	}
	deputy = newDeputy(t, holder, deputy.dir)
	if len(deputy.List()) != 0 || deputy.Speaks() {
		t.Fatalf("knows %v, speaks %t before it stands in", deputy.List(), deputy.Speaks())
	}
	deputy.StandIn(signAsDeputy)
	links := deputy.List()
	if len(links) != 1 || links[0].Name != "south" || !deputy.Speaks() || deputy.Holds() {
		t.Fatalf("knows %v, speaks %t", links, deputy.Speaks())
	}
	said, mandate, err := deputy.State("context", "text")
	var text string
	if err != nil || mandate == nil || !mandate.IsSignedBy(holder.Key(), holder.now) ||
		said.ReadUnder("context", *mandate, &text) != nil || text != "text" ||
		said.ReadUnder("another", *mandate, &text) == nil {
		t.Errorf("says %q under %+v: %v", text, mandate, err)
	}
	give := 50
	for what, err := range map[string]error{
		"policy": second(deputy.Change("south", PolicyChange{Give: &give})),
		"unlink": second(deputy.Unlink("south")),
		"invite": third(deputy.Invite("", time.Hour)),
	} {
		if !errors.Is(err, ErrNoKey) {
			t.Errorf("%s: %v, want that another site has the key", what, err)
		}
	}
	gateways := []Gateway{{Site: "12D3KooWmoved"}}
	if err := deputy.Met(links[0].Side.Key, gateways); err != nil {
		t.Fatal(err)
	}
	deputy.StandDown()
	if len(deputy.List()) != 0 || deputy.Speaks() {
		t.Errorf("knows %v after it has stood down", deputy.List())
	}
	if _, err := os.Stat(filepath.Join(deputy.dir, linksFile)); err == nil {
		t.Error("it has written down links of its own")
	}
}

func second[V any](_ V, err error) error { return err }

func third[V, W any](_ V, _ W, err error) error { return err }

// A mandate ends by the clock, also of who stands in.
func TestAMandateEnds(t *testing.T) {
	holder, deputy := linkedSeats(t)
	if err := deputy.Take(holder.handed(t)); err != nil {
		t.Fatal(err)
	}
	deputy.StandIn(signAsDeputy)
	deputy.now = holder.now.Add(time.Hour - time.Millisecond)
	if _, may := deputy.Deputy(); !may || !deputy.Speaks() {
		t.Error("it has ended early")
	}
	deputy.now = holder.now.Add(time.Hour)
	if _, may := deputy.Deputy(); may || deputy.Speaks() {
		t.Error("it goes on")
	}
	if _, _, err := deputy.Sign([]byte("x")); !errors.Is(err, ErrNoKey) {
		t.Errorf("signs: %v", err)
	}
}

// Only what the domain's key has signed, for this site, is taken, and nothing that is older.
func TestHandoversThatAreNotTaken(t *testing.T) {
	holder, deputy := linkedSeats(t)
	stranger := newSeat(t, t.TempDir(), "north", "12D3KooWnorth")
	older, good := holder.handed(t), holder.handed(t)
	for name, change := range map[string]func(*protocol.Handover){
		"of another domain": func(m *protocol.Handover) { *m = stranger.handed(t) },
		"for another site":  func(m *protocol.Handover) { m.Mandate.Site = "12D3KooWother" },
		"longer":            func(m *protocol.Handover) { m.Mandate.UntilMS++ },
		"other links":       func(m *protocol.Handover) { m.Links = []byte(`{"version":1}`) },
		"another gateway":   func(m *protocol.Handover) { m.Gateway = "12D3KooWother" },
		"later":             func(m *protocol.Handover) { m.MadeMS++ },
		"unsigned":          func(m *protocol.Handover) { m.Signature = nil },
		"its mandate is of another": func(m *protocol.Handover) {
			m.Mandate.Signature = stranger.handed(t).Mandate.Signature
		},
	} {
		m := good
		change(&m)
		if err := deputy.Take(m); err == nil {
			t.Errorf("%s: taken", name)
		}
		if _, has := deputy.Deputy(); has {
			t.Fatalf("%s: it has a mandate", name)
		}
	}
	if err := holder.Take(good); err == nil {
		t.Error("the site with the key takes it")
	}
	for _, m := range []protocol.Handover{good, older} {
		if err := deputy.Take(m); err != nil {
			t.Fatal(err)
		}
	}
	if m, _ := deputy.Deputy(); m.MadeMS != good.MadeMS {
		t.Error("an older one replaces it")
	}
	ended, err := holder.HandOver(deputySite, deputyKey()[ed25519.SeedSize:], holder.self, nil,
		holder.now)
	if err == nil {
		err = deputy.Take(ended)
	}
	if _, has := deputy.Deputy(); has || err != nil {
		t.Errorf("what was taken back is still there: %v", err)
	}
}

// What is handed over stays the same while nothing but the last contact changes. Of invitations it
// has nothing but until when one is open.
func TestWhatIsHandedOver(t *testing.T) {
	holder, _ := linkedSeats(t)
	before, err := holder.Handed()
	if err != nil {
		t.Fatal(err)
	}
	holder.now = holder.now.Add(time.Minute)
	link := holder.List()[0]
	if err = holder.Met(link.Side.Key, link.Side.Gateways); err != nil {
		t.Fatal(err)
	}
	after, err := holder.Handed()
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("%s, then %s, %v", before, after, err)
	}
	token := holder.token(t, "", time.Hour)
	after, err = holder.Handed()
	until := fmt.Sprintf(`"awaits_ms":%d`, holder.now.Add(time.Hour).UnixMilli())
	if err != nil || !bytes.Contains(after, []byte(until)) ||
		bytes.Contains(after, []byte(hashOf(token.Secret))) {
		t.Errorf("with an open invitation: %s, %v", after, err)
	}
	give := 50
	if _, err = holder.Change("south", PolicyChange{Give: &give}); err != nil {
		t.Fatal(err)
	}
	if after, _ = holder.Handed(); bytes.Equal(before, after) {
		t.Error("a new policy is not handed over")
	}
	if holder.List()[0].Last.IsZero() {
		t.Error("the last contact is forgotten")
	}
}

// Whatever is said to be handed over: it is taken or refused, and no other file is written.
func FuzzHandedLinks(f *testing.F) {
	holder := newSeat(f, f.TempDir(), "north", "12D3KooWnorth")
	text, _ := holder.Handed()
	f.Add(text)
	f.Add([]byte(`{"version":1,"links":[{}]}`))
	deputy := newDeputy(f, holder, "")
	f.Fuzz(func(t *testing.T, text []byte) {
		m := holder.handed(t)
		m.Links = text
		key := holder.members.key
		m.Signature = ed25519.Sign(key.private, m.SignedBytes())
		if deputy.Take(m) == nil {
			deputy.StandIn(signAsDeputy)
			_ = deputy.List()
			deputy.StandDown()
		}
	})
}

// A deputy lets pass whom the gateway awaits: gateways of linked domains, and anybody while an
// invitation is open. What it was handed for that is of no use when it stands in.
func TestWhomADeputyLetsPass(t *testing.T) {
	holder, deputy := linkedSeats(t)
	const neighbour = grid.SiteID("12D3KooWsouth")
	if deputy.LetsPass(neighbour) || deputy.Ushers() {
		t.Fatal("lets somebody pass before it was told of the links")
	}
	take := func() {
		t.Helper()
		if err := deputy.Take(holder.handed(t)); err != nil {
			t.Fatal(err)
		}
	}
	take()
	if !deputy.LetsPass(neighbour) || deputy.LetsPass("12D3KooWwest") || deputy.Ushers() {
		t.Errorf("passes: the neighbour %t, another %t, anybody %t", deputy.LetsPass(neighbour),
			deputy.LetsPass("12D3KooWwest"), deputy.Ushers())
	}
	if _, _, err := holder.Invite("", time.Minute); err != nil {
		t.Fatal(err)
	}
	take()
	if !deputy.Ushers() || deputy.Inviting() {
		t.Errorf("with an open invitation: lets pass %t, invites %t", deputy.Ushers(),
			deputy.Inviting())
	}
	deputy.StandIn(signAsDeputy)
	if deputy.Inviting() || len(deputy.Invites()) > 0 {
		t.Error("a deputy that stands in has the key's invitations")
	}
	deputy.now = deputy.now.Add(time.Minute)
	if deputy.Ushers() {
		t.Error("lets strangers pass after the invitation has expired")
	}
	deputy.now = deputy.now.Add(time.Hour)
	if deputy.LetsPass(neighbour) {
		t.Error("lets a neighbour pass after its mandate has ended")
	}
}
