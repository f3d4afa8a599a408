package owner

import (
	"context"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/mrsmesh/mrsmesh/pkg/yield"
)

// meteredEvery is the pause between two questions: connections change by the minute.
const meteredEvery = 5 * time.Second

// NetworkManager, as its reference of the D-Bus interface has it, at
// https://networkmanager.dev/docs/api/latest/. It is not started if it does not run.
const (
	networkService = "org.freedesktop.NetworkManager"
	networkObject  = dbus.ObjectPath("/org/freedesktop/NetworkManager")
	networkMetered = "Metered"
)

// newMetered asks whether data costs money. Where nobody knows it does not.
func newMetered() *asker {
	return &asker{
		every: meteredEvery,
		ask: onBus(func(ctx context.Context, conn *dbus.Conn, _ error) yield.Said {
			var metered yield.Metered
			if conn != nil {
				_ = getOf(ctx, conn, property{
					networkService, networkObject, networkService, networkMetered,
				}, &metered) // unknown stays 0
			}
			return metered.Judge()
		}),
	}
}

// asksMetered says about what such an asker is to ask: nothing, or the connection.
func asksMetered(on bool) []string {
	if !on {
		return nil
	}
	return []string{networkMetered}
}
