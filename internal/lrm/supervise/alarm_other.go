//go:build !linux

package supervise

import "github.com/mrsmesh/mrsmesh/internal/lrm"

// alarm does nothing here: the looks notice a lease that ended during a suspend.
type alarm struct{}

func newAlarm() *alarm { return nil }

func (*alarm) set(lrm.BootTime) {}

func (*alarm) ring() <-chan struct{} { return nil }

func (*alarm) close() {}
