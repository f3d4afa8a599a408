package owner

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/mrsmesh/mrsmesh/pkg/yield"
)

// busLimit bounds the wait for an answer on the system's bus.
const busLimit = 2 * time.Second

const (
	getProperty = "org.freedesktop.DBus.Properties.Get"
	getAll      = "org.freedesktop.DBus.Properties.GetAll"
)

// onBus keeps a connection to the system's bus from question to question; it ends with their
// context. Without a connection there is the error.
func onBus(
	ask func(context.Context, *dbus.Conn, error) yield.Said,
) func(context.Context, []string) yield.Said {
	var conn *dbus.Conn
	return func(ctx context.Context, _ []string) yield.Said {
		if conn == nil || !conn.Connected() {
			var err error
			if conn, err = dbus.ConnectSystemBus(dbus.WithContext(ctx)); err != nil {
				conn = nil
				return ask(ctx, nil, err)
			}
		}
		return ask(ctx, conn, nil)
	}
}

// property names a property of an object on the bus.
type property struct {
	service string
	object  dbus.ObjectPath
	of      string // the interface
	name    string
}

// getOf gets a property of a service that runs; none is started for it.
func getOf(ctx context.Context, conn *dbus.Conn, p property, into any) error {
	ctx, cancel := context.WithTimeout(ctx, busLimit)
	defer cancel()
	return conn.Object(p.service, p.object).
		CallWithContext(ctx, getProperty, dbus.FlagNoAutoStart, p.of, p.name).Store(into)
}

// isError says whether a service answered with one of these errors.
func isError(err error, names ...string) bool {
	var answer dbus.Error
	return errors.As(err, &answer) && slices.Contains(names, answer.Name)
}
