package owner

import (
	"context"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/mrsmesh/mrsmesh/pkg/yield"
)

const inputEvery = 2 * time.Second // from an answer to the next question

// logind, as https://www.freedesktop.org/software/systemd/man/org.freedesktop.login1.html has it.
// Its hint is that of all sessions together, and is not given while one of them holds off idleness,
// as a film does.
const (
	login1Service = "org.freedesktop.login1"
	login1Object  = dbus.ObjectPath("/org/freedesktop/login1")
	login1Manager = "org.freedesktop.login1.Manager"
	login1Hint    = "IdleHint"
)

// newInput asks whether somebody uses keyboard or mouse.
func newInput() *asker {
	return &asker{
		every: inputEvery,
		ask: onBus(func(ctx context.Context, conn *dbus.Conn, err error) yield.Said {
			var idle bool
			if err == nil {
				err = getOf(ctx, conn, login1Service, login1Object,
					login1Manager, login1Hint, &idle)
			}
			if err != nil {
				return yield.InputAnswer{Fault: err.Error()}.Judge()
			}
			return yield.InputAnswer{Idle: idle}.Judge()
		}),
	}
}

// asksInput says about what such an asker is to ask: nothing, or the hint.
func asksInput(on bool) []string {
	if !on {
		return nil
	}
	return []string{login1Hint}
}
