// Package clock reads the machine's clock in many ways.
package clock

import (
	"time"
	. "time"
	clock "time"
)

type moment struct{ at time.Time }

func reads(before time.Time) {
	_ = time.Now()         // want "time.Now: time is an argument"
	_ = clock.Now()        // want "time.Now"
	_ = Now()              // want "time.Now"
	_ = time.Since(before) // want "time.Since"
	_ = time.Until(before) // want "time.Until"
	_ = time.After(1)      // want "time.After"
	_ = time.NewTimer(1)   // want "time.NewTimer"
	_ = time.NewTicker(1)  // want "time.NewTicker"
	_ = time.Tick(1)       // want "time.Tick"
	_ = before.Local()     // want "time zone"
	_ = time.Local         // want "time zone"
	nap := time.Sleep      // want "time.Sleep"
	read := time.Now       // want "time.Now"
	defer func() { read() }()
	nap(1)
	_, _ = time.LoadLocation("Europe/Berlin") // want "time zone"
	time.AfterFunc(1, func() {})              // want "time.AfterFunc"
}

func fine(m moment, now time.Time) (time.Duration, time.Time, Time) {
	return now.Sub(m.at), time.Unix(0, 0).UTC(), now.Add(time.Second)
}
