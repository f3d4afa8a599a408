package yield

import (
	"slices"
	"strings"
	"time"
)

// IdleByX is the time without input to an X server after which nobody is there.
const IdleByX = 3 * time.Minute

// Session is one that logind knows.
type Session struct {
	Class   string // of a person's it begins with "user"
	Type    string // "x11", "wayland", "tty" and others
	Display string // the X server that it uses; "": none, or none of this machine
	Idle    bool   // logind says so
	Tells   bool   // its desktop has told logind that it is idle, or is so no more
}

// Desk gathers, without asking an X server, all that is known of those who use the machine.
type Desk struct {
	Idle     bool      // all sessions are, as logind says
	Held     bool      // something holds idleness off, as a film does
	Sessions []Session // empty where logind says that all are idle
	Display  string    // the X server that can be asked; "": none
	Alone    bool      // there is no logind, and the X server is that of all who are there
}

// AsksX says whether it is up to the X server. So it is when nothing else is in use than its own
// session, whose desktop tells logind nothing.
func (d Desk) AsksX() bool {
	switch {
	case d.Display == "":
		return false
	case d.Alone:
		return true
	case d.Idle || d.Held:
		return false
	}
	return slices.ContainsFunc(d.Sessions, d.ownX) &&
		!slices.ContainsFunc(d.Sessions, func(s Session) bool {
			return strings.HasPrefix(s.Class, "user") && !s.Idle && !d.ownX(s)
		})
}

// ownX says whether a session is one that only the X server knows about. Input in a Wayland session
// reaches its X server only where it is meant for a program of X.
func (d Desk) ownX(s Session) bool {
	return strings.HasPrefix(s.Class, "user") && s.Type == "x11" && s.Display == d.Display &&
		!s.Tells
}

// Answer says whether somebody is there. Input is the time since the last input to the X server,
// fault why that is not known; both count only where it is up to the X server.
func (d Desk) Answer(input time.Duration, fault string) InputAnswer {
	switch {
	case !d.AsksX():
		return InputAnswer{Idle: d.Idle}
	case fault != "":
		return InputAnswer{Fault: fault}
	default:
		return InputAnswer{Idle: input >= IdleByX}
	}
}
