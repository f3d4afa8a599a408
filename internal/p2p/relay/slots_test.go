package relay

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	pb "github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/pb"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/proto"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/util"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// counted compares how often members were asked to relay, and with which result.
func (s *site) counted(t *testing.T, want map[string]uint64) {
	t.Helper()
	if diff := cmp.Diff(want, s.counts.Labels(wire.CountRelays)); diff != "" {
		t.Errorf("asking members to relay (-want +got):\n%s", diff)
	}
}

// Each relay of the next test can be dialled at alsoAt besides.
const alsoAt = "/ip4/10.0.0.2"

// A hidden site holds slots at two members, one more than it needs, and tells the others its
// addresses through them; when one goes, another one takes its place.
func TestAHiddenSiteHoldsSlots(t *testing.T) {
	s := newSite(t, Use, func(c *Config) { c.Named = 2 })
	s.others.also = []ma.Multiaddr{address(t, alsoAt+"/tcp/2"), address(t, "/ip4/10.0.0.3/tcp/3")}
	all := servers(t, 3, s)
	s.review(t.Context())
	held := s.Reach().Relays
	if len(held) != 2 || held[0] >= held[1] || !slices.Equal(held, s.expectTold(t, 0)) {
		t.Errorf("slots at %v, want two, by ID", held)
	}
	s.counted(t, map[string]uint64{"held": 2})
	s.review(t.Context()) // nothing changed
	s.counted(t, map[string]uint64{"held": 2})
	if got := len(s.others.heard()); got != 1 {
		t.Errorf("the same was told %d times", got)
	}
	i := slices.IndexFunc(all, func(o *site) bool { return wire.SiteOf(o.host.ID()) == held[0] })
	first := all[i].host
	closed(t, first)
	eventually(t, "the connection ends", func() bool { return Direct(s.host, first.ID()) == nil })
	s.review(t.Context())
	now := s.Reach().Relays
	if len(now) != 2 || slices.Contains(now, held[0]) || !slices.Contains(now, held[1]) ||
		!slices.Equal(now, s.expectTold(t, 1)) {
		t.Errorf("slots were at %v and are at %v", held, now)
	}
	s.counted(t, map[string]uint64{"held": 3, "lost": 1})
}

// expectTold looks at what the others were told the nth time: first one address of each relay,
// then a second one. It returns the relays.
func (s *site) expectTold(t *testing.T, nth int) (through []grid.SiteID) {
	t.Helper()
	told := s.others.heard()
	if len(told) != nth+1 {
		t.Fatalf("the others were told %d times, want %d", len(told), nth+1)
	}
	if !slices.EqualFunc(told[nth], s.Addrs(), ma.Multiaddr.Equal) {
		t.Errorf("told %v, and now it is %v", told[nth], s.Addrs())
	}
	for i, a := range told[nth] {
		if from, _ := ma.SplitFirst(a); IsCircuit(a) && Through(a) != "" &&
			(from.String() == alsoAt) == (i >= len(told[nth])/2) {
			through = append(through, Through(a))
		} else {
			t.Errorf("address %d of those told is %s", i, a)
		}
	}
	if half := len(through) / 2; !slices.Equal(through[:half], through[half:]) {
		t.Errorf("told addresses through %v", through)
	}
	return through[:len(through)/2]
}

// Through which members linked domains come is not left to chance: there are slots at all of them,
// beside those at others that are held already. The host, which says what it knows to each peer,
// hears of no other way to this site.
func TestSlotsAtDoors(t *testing.T) {
	var doors []peer.ID
	s := newSite(t, Use, func(c *Config) { c.Doors = func() []peer.ID { return doors } })
	all := servers(t, 5, s)
	doors = []peer.ID{all[0].host.ID()}
	addresses, err := s.host.EventBus().Subscribe(new(event.EvtAutoRelayAddrsUpdated))
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, addresses)
	s.review(t.Context())
	s.expectHosted(t, addresses, doors)
	at := func(o *site) bool {
		return slices.Contains(s.Reach().Relays, wire.SiteOf(o.host.ID()))
	}
	if held := s.Reach().Relays; len(held) != Wanted || !at(all[0]) {
		t.Fatalf("slots at %v, want %d and one at the door %s", held, Wanted, doors[0])
	}
	i := slices.IndexFunc(all, func(o *site) bool { return !at(o) })
	doors = append(doors, all[i].host.ID())
	s.review(t.Context())
	s.expectHosted(t, addresses, doors)
	if held := s.Reach().Relays; len(held) != Wanted+1 || !at(all[i]) {
		t.Errorf("slots at %v, want %d and one at the door %s", held, Wanted+1, doors[1])
	}
	s.review(t.Context())
	s.counted(t, map[string]uint64{"held": Wanted + 1})
}

// expectHosted looks at what the host is told: this site's addresses through doors.
func (s *site) expectHosted(t *testing.T, news event.Subscription, doors []peer.ID) {
	t.Helper()
	want := slices.DeleteFunc(s.Addrs(), func(a ma.Multiaddr) bool {
		return !slices.ContainsFunc(doors, func(d peer.ID) bool {
			return Through(a) == wire.SiteOf(d)
		})
	})
	got, is := (<-news.Out()).(event.EvtAutoRelayAddrsUpdated)
	if !is || len(want) != len(doors) ||
		!slices.EqualFunc(got.RelayAddrs, want, ma.Multiaddr.Equal) {
		t.Errorf("the host is told %v, want %v", got, want)
	}
}

// A slot is lost when it has run out, when its relay is gone, and when it is no member any more.
// After half of its life it is renewed, which is no new one.
func TestHowSlotsEnd(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		change func(s, server *site, held *slot)
		want   map[string]uint64
		fresh  bool
	}{
		"young": {func(_, _ *site, _ *slot) {}, map[string]uint64{"held": 1}, false},
		"below half": {func(_, _ *site, held *slot) {
			held.taken = now.Add(-4 * time.Minute)
			held.until = now.Add(6 * time.Minute)
		}, map[string]uint64{"held": 1}, false},
		"above half": {func(_, _ *site, held *slot) {
			held.taken = now.Add(-6 * time.Minute)
			held.until = now.Add(4 * time.Minute)
		}, map[string]uint64{"held": 1}, true},
		"run out": {func(_, _ *site, held *slot) {
			held.until = now.Add(-time.Second)
		}, map[string]uint64{"held": 2, "lost": 1}, true},
		"banned": {func(s, _ *site, _ *slot) {
			s.others.listed, s.others.present = map[peer.ID]bool{}, nil
		}, map[string]uint64{"held": 1, "lost": 1}, false},
		"refused when renewed": {func(_, server *site, held *slot) {
			held.taken = now.Add(-6 * time.Minute)
			held.until = now.Add(4 * time.Minute)
			clear(server.others.admitted)
		}, map[string]uint64{"held": 1, "refused": 1}, false},
	} {
		s := newSite(t, Use)
		server := servers(t, 1, s)[0]
		s.review(t.Context())
		id := server.host.ID()
		held, has := s.slots[id]
		if life := held.until.Sub(held.taken); !has || life > slotTime || life < slotTime-5*time.Second {
			t.Fatalf("the slot is for %s, want %s", life, slotTime)
		}
		c.change(s, server, &held)
		s.slots[id] = held
		s.review(t.Context())
		s.counted(t, c.want)
		if fresh := s.slots[id].taken.After(now) && s.slots[id].taken != held.taken; fresh != c.fresh {
			t.Errorf("%s: the slot is a fresh one: %t", name, fresh)
		}
		_, has = s.slots[id]
		if gone := c.want["lost"] == c.want["held"]; gone == has {
			t.Errorf("%s: the slot is there: %t", name, has)
		}
	}
}

// Members are asked that relay, are connected directly, and have not just refused; in an order
// that differs, so that sites spread over the relays.
func TestWhoIsAskedForASlot(t *testing.T) {
	s := newSite(t, Use)
	all := servers(t, 5, s)
	now := time.Now()
	s.slots[all[0].host.ID()] = slot{taken: now, until: now.Add(time.Hour)}
	s.refused[all[1].host.ID()] = refusal{until: now.Add(time.Second)}
	s.refused[all[2].host.ID()] = refusal{until: now.Add(-time.Second)}
	other := newSite(t, Use) // it is connected, and does not relay
	meet(t, s.host, other.host)
	s.others.enter(other.host.ID(), newSite(t, Serve).host.ID()) // and it relays, but is elsewhere
	want := []peer.ID{all[2].host.ID(), all[3].host.ID(), all[4].host.ID()}
	slices.Sort(want)
	first := make(map[peer.ID]bool)
	for range 200 {
		got := s.candidates(now)
		first[got[0]] = true
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	}
	if len(first) != len(want) {
		t.Errorf("of %d members only %d are ever asked first", len(want), len(first))
	}
	if got := s.candidates(now.Add(time.Second)); !slices.Contains(got, all[1].host.ID()) {
		t.Errorf("one whose pause is over is not asked: %v", got)
	}
}

// A site that is refused asks others until it has its slots, and no more once it is to end.
func TestRefusingRelays(t *testing.T) {
	s := newSite(t, Use)
	all := servers(t, 4, s)
	for _, server := range all {
		clear(server.others.admitted)
	}
	s.review(t.Context())
	s.counted(t, map[string]uint64{"refused": 4})
	if got := s.Reach().Relays; got != nil {
		t.Errorf("slots at %v, want none", got)
	}
	s.review(t.Context()) // it pauses
	s.counted(t, map[string]uint64{"refused": 4})
	for _, server := range all {
		server.admit(s)
	}
	clear(s.refused)
	s.review(t.Context())
	s.counted(t, map[string]uint64{"refused": 4, "held": Wanted})

	ending := newSite(t, Use)
	servers(t, 3, ending)
	ended, end := context.WithCancel(t.Context())
	end()
	ending.review(ended)
	ending.counted(t, map[string]uint64{"refused": 1})
}

// hop makes a host answer who asks it for a slot.
func hop(h host.Host, lasts time.Duration, limit *pb.Limit) {
	h.SetStreamHandler(proto.ProtoIDv2Hop, func(s network.Stream) {
		defer func() { _ = s.Close() }()
		expire := uint64(time.Now().Add(lasts).Unix())
		_ = util.NewDelimitedWriter(s).WriteMsg(&pb.HopMessage{
			Type: pb.HopMessage_STATUS.Enum(), Status: pb.Status_OK.Enum(), Limit: limit,
			Reservation: &pb.Reservation{Expire: &expire},
		})
	})
}

// A relay that bounds what it carries is of no use. How long a slot lasts its relay says, within
// bounds, as its clock may be another one.
func TestWhatRelaysAnswer(t *testing.T) {
	some, much := uint32(1), uint64(1)
	for name, c := range map[string]struct {
		lasts time.Duration
		limit *pb.Limit
		want  time.Duration // 0: it is not held
	}{
		"short":         {10 * time.Second, nil, time.Minute},
		"usual":         {5 * time.Minute, nil, 5 * time.Minute},
		"long":          {time.Hour, nil, slotTime},
		"no limits":     {time.Hour, &pb.Limit{}, slotTime},
		"bounded time":  {time.Hour, &pb.Limit{Duration: &some}, 0},
		"bounded bytes": {time.Hour, &pb.Limit{Data: &much}, 0},
	} {
		s, server := newSite(t, Use), newHost(t, Off.options(t))
		hop(server, c.lasts, c.limit)
		meetRelay(t, s.host, server)
		s.others.enter(server.ID())
		s.review(t.Context())
		held, has := s.slots[server.ID()]
		got := held.until.Sub(held.taken)
		if has != (c.want > 0) || got > c.want || got < c.want-5*time.Second {
			t.Errorf("%s: held %t, for %s, want %s", name, has, got, c.want)
		}
		if _, paused := s.refused[server.ID()]; paused == has {
			t.Errorf("%s: held %t, and pauses %t", name, has, paused)
		}
	}
}

// Pauses after refusals double, up to a minute; a slot ends them. After a pause the site looks
// again.
func TestPausesAfterRefusals(t *testing.T) {
	s := newSite(t, Use, func(c *Config) { c.Every = 40 * time.Second })
	server := servers(t, 1, s)[0]
	id, now := server.host.ID(), time.Now()
	for range 5 {
		s.refuse(id, now)
	}
	want := []time.Duration{
		10 * time.Second, 20 * time.Second, 40 * time.Second, time.Minute, time.Minute,
	}
	if diff := cmp.Diff(want, s.later); diff != "" {
		t.Errorf("pauses (-want +got):\n%s", diff)
	}
	if got := s.refused[id].until; !got.Equal(now.Add(time.Minute)) {
		t.Errorf("it is asked again after %s", got.Sub(now))
	}
	for range 2 { // who wakes a site that is about to look does not wait
		s.then[0]()
	}
	if len(s.wake) != 1 {
		t.Errorf("the site looks %d times", len(s.wake))
	}
	if err := s.reserve(t.Context(), id); err != nil || len(s.refused) != 0 {
		t.Errorf("reserve = %v, and then it pauses for %v", err, s.refused)
	}
}

// What refused is remembered of no more members than there may be.
func TestManyRefusals(t *testing.T) {
	s := newSite(t, Use, func(c *Config) { c.Peers = 3 })
	var got []int
	for _, id := range []peer.ID{"a", "b", "c", "d", "e"} {
		s.refuse(id, time.Now())
		got = append(got, len(s.refused))
	}
	if diff := cmp.Diff([]int{1, 2, 3, 1, 2}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
