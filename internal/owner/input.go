package owner

import (
	"context"
	"slices"
	"strings"
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
	login1Held    = "BlockInhibited"
)

// newInput asks whether somebody uses keyboard or mouse.
func newInput() *asker {
	server := newX11()
	return &asker{
		every: inputEvery,
		ask: onBus(func(ctx context.Context, conn *dbus.Conn, err error) yield.Said {
			desk, err := deskOf(ctx, conn, err, server)
			if err != nil {
				return yield.InputAnswer{Fault: err.Error()}.Judge()
			}
			if !desk.AsksX() {
				return desk.Answer(0, "").Judge()
			}
			input, err := server.sinceInput(ctx)
			if err != nil {
				return desk.Answer(0, err.Error()).Judge()
			}
			return desk.Answer(input, "").Judge()
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

func ofLogin1(name string) property {
	return property{login1Service, login1Object, login1Manager, name}
}

// deskOf asks logind, or is told why that cannot be. Sessions are looked at where it is up to them.
func deskOf(
	ctx context.Context, conn *dbus.Conn, err error, server *x11,
) (desk yield.Desk, _ error) {
	ctx, cancel := context.WithTimeout(ctx, busLimit)
	defer cancel()
	desk.Display = server.name
	absent := err != nil
	if err == nil {
		err = getOf(ctx, conn, ofLogin1(login1Hint), &desk.Idle)
		absent = isError(err, "org.freedesktop.DBus.Error.NameHasNoOwner",
			"org.freedesktop.DBus.Error.ServiceUnknown")
	}
	if absent && server.alone {
		desk.Alone = true
		return desk, nil
	}
	if err != nil || desk.Idle || desk.Display == "" {
		return desk, err
	}
	var held string
	err = getOf(ctx, conn, ofLogin1(login1Held), &held)
	if err != nil {
		return desk, err
	}
	if desk.Held = slices.Contains(strings.Split(held, ":"), "idle"); desk.Held {
		return desk, nil
	}
	desk.Sessions, err = sessionsOf(ctx, conn)
	return desk, err
}
