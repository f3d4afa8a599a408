package main

import (
	"slices"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/yield"
)

func TestPlaceOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		addr, want string
		local      bool
	}{
		{"/ip4/192.168.1.7/tcp/4801", "192.168.1.7 port 4801", false},
		{"/ip4/127.0.0.1/udp/4801/quic-v1", "127.0.0.1 port 4801", true},
		{"/ip6/::1/tcp/4801", "::1 port 4801", true},
		{"/dns4/example.org/tcp/4801", "example.org port 4801", false},
		{"/ip4/10.0.0.1/tcp/4801/p2p/12D3KooW/p2p-circuit", "the relay at 10.0.0.1 port 4801", false},
		{"/unix", "/unix", false},
	} {
		if got, local := placeOf(c.addr); got != c.want || local != c.local {
			t.Errorf("%s: %q, %t, want %q, %t", c.addr, got, local, c.want, c.local)
		}
	}
}

func TestWhoOffersNothingForGoodReasonsIsIn(t *testing.T) {
	t.Parallel()
	started := view.At(thursday())
	for _, c := range []struct {
		name   string
		status view.AgentStatus
		want   string
	}{
		{"nothing known", view.AgentStatus{}, ""},
		{"as it should be", sharingSite(), ""},
		{
			"busy",
			view.AgentStatus{Owner: &view.OwnerView{Busy: true, Why: "others use 2.0 of 2 cores"}},
			"Your machine is busy now, so it offers nothing;",
		},
		{
			"on battery",
			view.AgentStatus{Owner: &view.OwnerView{Busy: true, Why: yield.WhyBattery}},
			"Your machine runs on battery now, so it offers nothing;",
		},
		{
			"with somebody at it",
			view.AgentStatus{Owner: &view.OwnerView{Busy: true, Why: yield.WhyInput + "x"}},
			"You are at your machine now (owner.input), so it offers nothing;",
		},
		{
			"by its owner's program",
			view.AgentStatus{Owner: &view.OwnerView{Busy: true, Why: yield.WhyHook + "a film"}},
			"Your program owner.hook pauses it now (a film), so it offers nothing;",
		},
		{
			"other hours",
			view.AgentStatus{Owner: &view.OwnerView{Busy: true, Hours: "fri 09:00-10:00"}},
			"You share this machine fri 09:00-10:00; again from Fri 09:00, so it offers nothing now;",
		},
		{
			"not measured",
			view.AgentStatus{
				Kinds: []string{"wasm"}, Machine: &view.MachineView{Pending: waitingForQuiet + "x"},
			},
			"Your machine is busy now, so it offers nothing;",
		},
		{
			"no work",
			view.AgentStatus{Started: started},
			"This machine runs no jobs and offers nothing, but it can submit them;",
		},
	} {
		if got := quietly(c.status, thursday()); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestNetworkListen(t *testing.T) {
	t.Parallel()
	listen := []string{
		"/ip4/127.0.0.1/tcp/4801", "/ip4/127.0.0.1/udp/4801/quic-v1", "/ip6/::1/tcp/4801",
		"/ip4/10.0.0.1/tcp/1",
	}
	want := []string{
		"/ip4/0.0.0.0/tcp/4801", "/ip4/0.0.0.0/udp/4801/quic-v1", "/ip6/::/tcp/4801",
		"/ip4/10.0.0.1/tcp/1",
	}
	got, changed := networkListen(listen)
	if !changed || !slices.Equal(got, want) {
		t.Errorf("%q, %t, want %q", got, changed, want)
	}
	if again, changed := networkListen(got); changed || !slices.Equal(again, want) {
		t.Errorf("a second time %q, %t", again, changed)
	}
}

func TestTimesAreOnTheOwnersClock(t *testing.T) {
	t.Parallel()
	for days, want := range map[int]string{0: "18:00", 1: "Fri 18:00", 9: "2026-03-21 18:00"} {
		at := thursday().Add(3*time.Hour + time.Duration(days)*24*time.Hour)
		if got := dayText(at, thursday()); got != want {
			t.Errorf("in %d days: %q, want %q", days, got, want)
		}
	}
}
