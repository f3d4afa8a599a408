// Package suspend tells when the machine is about to sleep, and has it wait until what is to be
// done before that is done. It asks logind, which keeps a machine awake for those that hold a lock
// of the kind "delay", for five seconds at most as it usually is set up.
package suspend

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/godbus/dbus/v5"
)

// logind, as https://www.freedesktop.org/software/systemd/man/org.freedesktop.login1.html has it.
const (
	service = "org.freedesktop.login1"
	object  = dbus.ObjectPath("/org/freedesktop/login1")
	manager = "org.freedesktop.login1.Manager"
	signal  = "PrepareForSleep"
)

// errGone says that the system's message bus has ended the connection.
var errGone = errors.New("the system's message bus is gone")

// Watch calls before whenever the machine is about to sleep, which waits until it returns. It ends
// with nil when ctx does. An error says why sleep is not told of, or no longer: most often there is
// no logind.
func Watch(ctx context.Context, before func()) error {
	conn, err := dbus.ConnectSystemBus(dbus.WithContext(ctx))
	if err != nil {
		return fmt.Errorf("watch for sleep: %w", err)
	}
	defer conn.Close()
	signals := make(chan *dbus.Signal, 8)
	conn.Signal(signals)
	err = conn.AddMatchSignalContext(ctx, dbus.WithMatchSender(service),
		dbus.WithMatchObjectPath(object), dbus.WithMatchInterface(manager),
		dbus.WithMatchMember(signal))
	if err != nil {
		return fmt.Errorf("watch for sleep: %w", err)
	}
	for ctx.Err() == nil {
		if err = once(ctx, conn, signals, before); err != nil {
			break
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("watch for sleep: %w", err)
}

// once holds the lock until the machine is about to sleep, and waits until it is awake again.
func once(
	ctx context.Context, conn *dbus.Conn, signals <-chan *dbus.Signal, before func(),
) error {
	var fd dbus.UnixFD
	err := conn.Object(service, object).CallWithContext(ctx, manager+".Inhibit", 0,
		"sleep", "siteagent", "others are to go on with this owner's jobs", "delay").Store(&fd)
	if err != nil {
		return err
	}
	lock := os.NewFile(uintptr(fd), "inhibitor")
	defer lock.Close()
	if err := await(ctx, signals, true); err != nil {
		return err
	}
	before()
	if err := lock.Close(); err != nil {
		return err
	}
	return await(ctx, signals, false)
}

// await waits until the machine is about to sleep, or is awake again.
func await(ctx context.Context, signals <-chan *dbus.Signal, asleep bool) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case s, open := <-signals:
			if !open {
				return errGone
			}
			if len(s.Body) == 1 && s.Body[0] == asleep {
				return nil
			}
		}
	}
}
