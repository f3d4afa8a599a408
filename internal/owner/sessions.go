package owner

import (
	"context"

	"github.com/godbus/dbus/v5"

	"github.com/mrsmesh/mrsmesh/pkg/yield"
)

const login1Session = "org.freedesktop.login1.Session"

// maxSessions bounds how many are looked at; among more somebody is at work.
const maxSessions = 64

// sessionsOf are those that logind knows; none if they are too many.
func sessionsOf(ctx context.Context, conn *dbus.Conn) ([]yield.Session, error) {
	var listed []struct {
		ID         string
		UID        uint32
		User, Seat string
		Path       dbus.ObjectPath
	}
	err := conn.Object(login1Service, login1Object).
		CallWithContext(ctx, login1Manager+".ListSessions", dbus.FlagNoAutoStart).Store(&listed)
	if err != nil || len(listed) > maxSessions {
		return nil, err
	}
	sessions := make([]yield.Session, 0, len(listed))
	for _, one := range listed {
		var all map[string]dbus.Variant
		err = conn.Object(login1Service, one.Path).
			CallWithContext(ctx, getAll, dbus.FlagNoAutoStart, login1Session).Store(&all)
		switch {
		case isError(err, "org.freedesktop.DBus.Error.UnknownObject"): // it has just ended
		case err != nil:
			return nil, err
		default:
			sessions = append(sessions, sessionOf(all))
		}
	}
	return sessions, nil
}

// sessionOf reads a session's properties. One without a hint is in use.
func sessionOf(all map[string]dbus.Variant) (s yield.Session) {
	var display string
	var since uint64 // microseconds; 0: the hint never changed
	for name, into := range map[string]any{
		"Class": &s.Class, "Type": &s.Type, "Display": &display, login1Hint: &s.Idle,
		"IdleSinceHint": &since,
	} {
		if value, ok := all[name]; ok {
			_ = value.Store(into) // of another type: as if it were not there
		}
	}
	if at, ok := parseDisplay(display); ok {
		s.Display = at.name
	}
	s.Tells = since != 0
	return s
}
