package supervise

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
)

// The alarm rings at its moment of the clock on which suspend counts, and at no earlier one
// that it was set to.
func TestTheAlarmRingsByTheClockOfLeases(t *testing.T) {
	t.Parallel()
	a := newAlarm()
	if a == nil {
		t.Skip("no timer of that clock here")
	}
	defer a.close()
	info, err := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", a.file.Fd()))
	if want := fmt.Sprintf("clockid: %d\n", unix.CLOCK_BOOTTIME); err != nil ||
		!strings.Contains(string(info), want) {
		t.Errorf("the timer is\n%s, %v; want %s", info, err, want)
	}
	at := lrm.BootNow().Add(50 * time.Millisecond)
	a.set(at.Add(-40 * time.Millisecond))
	a.set(at)
	<-a.ring()
	if early := at.Sub(lrm.BootNow()); early > 0 {
		t.Errorf("rang %s early", early)
	}
	a.set(lrm.BootNow().Add(time.Hour))
	a.set(0) // it is over
	<-a.ring()
	var none *alarm
	none.set(1)
	none.close()
	if none.ring() != nil {
		t.Error("an alarm that is none rings")
	}
}
