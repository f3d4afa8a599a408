package owner

import (
	"context"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/mrsmesh/mrsmesh/pkg/yield"
)

const (
	inputEvery = 2 * time.Second // from an answer to the next question
	inputLimit = 2 * time.Second // for an answer
)

// logind, as https://www.freedesktop.org/software/systemd/man/org.freedesktop.login1.html has it.
// Its hint is that of all sessions together, and is not given while one of them holds off idleness,
// as a film does.
const (
	login1Service = "org.freedesktop.login1"
	login1Object  = dbus.ObjectPath("/org/freedesktop/login1")
	login1Manager = "org.freedesktop.login1.Manager"
	login1Hint    = "IdleHint"
	getProperty   = "org.freedesktop.DBus.Properties.Get"
)

// newInput asks whether somebody uses keyboard or mouse.
func newInput() *asker {
	var conn *dbus.Conn // kept from question to question; ends with their context
	return &asker{
		every: inputEvery,
		ask: func(ctx context.Context, _ []string) yield.Said {
			var err error
			if conn == nil || !conn.Connected() {
				if conn, err = dbus.ConnectSystemBus(dbus.WithContext(ctx)); err != nil {
					conn = nil
					return yield.InputAnswer{Fault: err.Error()}.Judge()
				}
			}
			return askLogind(ctx, conn).Judge()
		},
	}
}

// asksInput says about what such an asker is to ask: nothing, or the hint.
func asksInput(on bool) []string {
	if !on {
		return nil
	}
	return []string{login1Hint}
}

func askLogind(ctx context.Context, conn *dbus.Conn) yield.InputAnswer {
	ctx, cancel := context.WithTimeout(ctx, inputLimit)
	defer cancel()
	var idle bool
	err := conn.Object(login1Service, login1Object).
		CallWithContext(ctx, getProperty, 0, login1Manager, login1Hint).Store(&idle)
	if err != nil {
		return yield.InputAnswer{Fault: err.Error()}
	}
	return yield.InputAnswer{Idle: idle}
}
