package supervise

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
)

// alarm wakes the supervisor at a moment of the clock of leases, on which suspend counts:
// the timers of the runtime do not run then, so that a lease that ended meanwhile would be
// noticed with the next look only.
type alarm struct {
	file  *os.File
	rings chan struct{}
}

// newAlarm makes an alarm, nil where there is none.
func newAlarm() *alarm {
	fd, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil
	}
	a := &alarm{file: os.NewFile(uintptr(fd), "alarm"), rings: make(chan struct{}, 1)}
	go a.wait()
	return a
}

func (a *alarm) wait() {
	expirations := make([]byte, 8)
	for {
		if _, err := a.file.Read(expirations); err != nil {
			return // closed
		}
		select {
		case a.rings <- struct{}{}:
		default:
		}
	}
}

// set lets the alarm ring at that moment only, immediately if it is over.
func (a *alarm) set(at lrm.BootTime) {
	if a == nil {
		return
	}
	raw, err := a.file.SyscallConn()
	if err != nil {
		return
	}
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(max(int64(at), 1))} // 0 would disarm it
	_ = raw.Control(func(fd uintptr) {
		_ = unix.TimerfdSettime(int(fd), unix.TFD_TIMER_ABSTIME, &spec, nil)
	})
}

// ring tells that the moment has come.
func (a *alarm) ring() <-chan struct{} {
	if a == nil {
		return nil
	}
	return a.rings
}

func (a *alarm) close() {
	if a != nil {
		_ = a.file.Close()
	}
}
