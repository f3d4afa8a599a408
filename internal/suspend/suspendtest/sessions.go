package suspendtest

import (
	"strconv"
	"strings"

	"github.com/godbus/dbus/v5"
)

// Session is one that logind tells of.
type Session struct {
	Class, Type, Display string
	Idle                 bool
	Since                uint64 // microseconds of the clock at which Idle changed; 0: it never did
}

// sessionPath begins the names of sessions' objects.
const sessionPath = object + "/session/"

// SetSessions says which sessions there are; at first there are none. Whether the machine is idle
// SetIdle says, whatever they are.
func (l *Login1) SetSessions(sessions ...Session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sessions = sessions
}

// SetFilm says whether something holds off idleness; at first nothing does.
func (l *Login1) SetFilm(on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.film = on
}

// heldOff lists all that may not happen now.
func (l *Login1) heldOff() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.film {
		return "handle-lid-switch:idle"
	}
	return "handle-lid-switch"
}

// list names the sessions.
func (l *Login1) list() any {
	type listed struct {
		ID         string
		UID        uint32
		User, Seat string
		Path       dbus.ObjectPath
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]listed, 0, len(l.sessions))
	for i := range l.sessions {
		id := strconv.Itoa(i)
		all = append(all, listed{id, 1000, "ann", "seat0", dbus.ObjectPath(sessionPath + id)})
	}
	return all
}

// session is all that there is to say of one; nil: there is no such one.
func (l *Login1) session(m *dbus.Message) any {
	path, _ := m.Headers[dbus.FieldPath].Value().(dbus.ObjectPath)
	l.mu.Lock()
	defer l.mu.Unlock()
	i, err := strconv.Atoi(strings.TrimPrefix(string(path), sessionPath))
	if err != nil || i < 0 || i >= len(l.sessions) {
		return nil
	}
	s := l.sessions[i]
	return map[string]dbus.Variant{
		"Class": dbus.MakeVariant(s.Class), "Type": dbus.MakeVariant(s.Type),
		"Display": dbus.MakeVariant(s.Display), "IdleHint": dbus.MakeVariant(s.Idle),
		"IdleSinceHint": dbus.MakeVariant(s.Since),
	}
}
