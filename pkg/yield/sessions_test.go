package yield

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const someDisplay = ":0"

// Each line is a desk at which the X server has had no input for long, so that the session of its
// own is idle if that is up to it.
func TestWhoIsThere(t *testing.T) {
	t.Parallel()
	mine := Session{Class: "user", Type: "x11", Display: someDisplay}
	tells, other, wayland, greeter := mine, mine, mine, mine
	tells.Tells, other.Display, wayland.Type, greeter.Class = true, ":1", "wayland", "greeter"
	desk := func(sessions ...Session) Desk { return Desk{Display: someDisplay, Sessions: sessions} }
	held := desk(mine)
	held.Held = true
	const idle, busy = true, false
	for name, tc := range map[string]struct {
		desk  Desk
		asked bool
		idle  bool
	}{
		"nobody, says logind":        {Desk{Idle: true, Display: someDisplay}, false, idle},
		"a window manager":           {desk(mine), true, idle},
		"a film":                     {held, false, busy},
		"a desktop that tells":       {desk(tells), false, busy},
		"another X server":           {desk(other), false, busy},
		"Wayland, with its X server": {desk(wayland), false, busy},
		"a greeter":                  {desk(greeter), false, busy},
		"no session":                 {desk(), false, busy},
		"another user":               {desk(mine, Session{Class: "user"}), false, busy},
		"somebody else, away":        {desk(mine, Session{Class: "user", Idle: true}), true, idle},
		"a manager of services":      {desk(mine, Session{Class: "manager"}), true, idle},
		"a lighter session":          {desk(mine, Session{Class: "user-light"}), false, busy},
		"no logind":                  {Desk{Display: someDisplay, Alone: true}, true, idle},
		"neither":                    {Desk{Alone: true}, false, busy},
		"logind alone":               {Desk{Sessions: []Session{mine}}, false, busy},
	} {
		if got := tc.desk.AsksX(); got != tc.asked {
			t.Errorf("%s: is the X server asked? %v", name, got)
		}
		if got := tc.desk.Answer(time.Hour, ""); got != (InputAnswer{Idle: tc.idle}) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// After three minutes nobody is there; a server that does not tell counts where it is asked.
func TestWhatTheXServerSays(t *testing.T) {
	t.Parallel()
	asks := Desk{Display: someDisplay, Alone: true}
	for input, want := range map[time.Duration]InputAnswer{
		0: {}, IdleByX - 1: {}, IdleByX: {Idle: true}, IdleByX + 1: {Idle: true},
	} {
		if got := asks.Answer(input, ""); got != want {
			t.Errorf("%s: %+v", input, got)
		}
	}
	if got := asks.Answer(time.Hour, "broken"); got != (InputAnswer{Fault: "broken"}) {
		t.Errorf("without an answer: %+v", got)
	}
	if got := (Desk{Idle: true}).Answer(0, "broken"); got != (InputAnswer{Idle: true}) {
		t.Errorf("where it is not asked: %+v", got)
	}
}

// Somebody who is at work is never overlooked: one session more that is in use, of a person and not
// the X server's own, is seen whatever else there is.
func TestNobodyIsOverlooked(t *testing.T) {
	t.Parallel()
	one := func(of ...string) *rapid.Generator[string] { return rapid.SampledFrom(of) }
	session := rapid.Custom(func(t *rapid.T) Session {
		return Session{
			Class:   one("user", "user-light", "greeter", "").Draw(t, "class"),
			Type:    one("x11", "wayland", "tty", "").Draw(t, "type"),
			Display: one("", ":0", ":1").Draw(t, "display"),
			Idle:    rapid.Bool().Draw(t, "idle"), Tells: rapid.Bool().Draw(t, "tells"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		desk := Desk{
			Display:  one("", ":0").Draw(t, "display"),
			Held:     rapid.Bool().Draw(t, "held"),
			Sessions: rapid.SliceOfN(session, 0, 5).Draw(t, "sessions"),
		}
		input := time.Duration(rapid.Int64Range(0, int64(2*IdleByX)).Draw(t, "input"))
		idle := desk.Answer(input, "").Idle
		known, others := false, false
		for _, s := range desk.Sessions {
			person := strings.HasPrefix(s.Class, "user")
			own := person && s.Type == "x11" && s.Display == ":0" && !s.Tells
			known, others = known || own, others || person && !own && !s.Idle
		}
		want := desk.Display == ":0" && !desk.Held && known && !others && input >= IdleByX
		if idle != want {
			t.Fatalf("%+v, input %s ago: idle %v, want %v", desk, input, idle, want)
		}
		other := session.Draw(t, "other")
		other.Class, other.Type, other.Idle = "user", "wayland", false
		at := rapid.IntRange(0, len(desk.Sessions)).Draw(t, "at")
		desk.Sessions = slices.Insert(slices.Clone(desk.Sessions), at, other)
		if desk.Answer(input, "").Idle {
			t.Fatalf("%+v is idle, with one more who is there", desk)
		}
	})
}
