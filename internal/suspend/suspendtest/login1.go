// Package suspendtest puts a machine to sleep for tests, and says whether somebody uses it, and
// whether its connection is metered: it takes the places of logind and NetworkManager, on a message
// bus that is a real one and the test's own.
package suspendtest

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
)

// Login1 is logind for those whose DBUS_SYSTEM_BUS_ADDRESS names its bus.
type Login1 struct {
	Address string

	conn  *dbus.Conn
	given chan struct{} // a value for each lock
	idle  atomic.Bool   // nobody uses the machine

	mu       sync.Mutex
	locks    []*os.File // guarded by mu; ends of pipes whose other ends were given away
	sessions []Session  // guarded by mu
	film     bool       // guarded by mu; something holds off idleness

	network sync.Once     // NetworkManager is there, too
	metered atomic.Uint32 // what it says
}

// patience bounds every wait.
const patience = 30 * time.Second

// name and object are logind's.
const (
	name    = "org.freedesktop.login1"
	object  = "/org/freedesktop/login1"
	network = "org.freedesktop.NetworkManager"
)

// busConfig forbids nothing.
const busConfig = `<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <listen>unix:dir=DIR</listen>
  <policy context="default">
    <allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/>
  </policy>
</busconfig>`

// Start begins a bus with logind on it, for as long as the test lasts. It skips the test where no
// bus is installed.
func Start(t testing.TB) *Login1 {
	t.Helper()
	program, err := exec.LookPath("dbus-daemon")
	if err != nil {
		t.Skip("dbus-daemon is not installed")
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "bus.conf")
	text := strings.ReplaceAll(busConfig, "DIR", dir)
	if err = os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	//nolint:gosec,noctx // it lives as long as the test, whose cleanup ends it
	daemon := exec.Command(program, "--config-file="+config, "--nofork", "--print-address")
	out, err := daemon.StdoutPipe()
	if err == nil {
		err = daemon.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = daemon.Process.Kill()
		_ = daemon.Wait() // killed
	})
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal("the bus does not say where it is: ", err)
	}
	l := &Login1{Address: strings.TrimSpace(address), given: make(chan struct{}, 64)}
	l.conn = l.takePlace(t, name)
	return l
}

// takePlace answers calls in the place of a service, on a connection of its own.
func (l *Login1) takePlace(t testing.TB, service string) *dbus.Conn {
	t.Helper()
	conn, err := dbus.Connect(l.Address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err = conn.RequestName(service, dbus.NameFlagDoNotQueue); err != nil {
		t.Fatal(err)
	}
	calls := make(chan *dbus.Message, 16)
	conn.Eavesdrop(calls) // to know when a lock has left
	go l.serve(conn, calls)
	return conn
}

func (l *Login1) serve(conn *dbus.Conn, calls <-chan *dbus.Message) {
	for m := range calls {
		member, _ := m.Headers[dbus.FieldMember].Value().(string)
		switch {
		case m.Type != dbus.TypeMethodCall:
		case member == "Inhibit":
			l.inhibit(conn, m)
		case member == "Get":
			l.tell(conn, m, "v", l.property(m.Body))
		case member == "GetAll":
			l.tell(conn, m, "a{sv}", l.session(m))
		case member == "ListSessions":
			l.tell(conn, m, "a(susso)", l.list())
		}
	}
}

// tell answers with a value of a type, or, where it is nil, that there is none.
func (l *Login1) tell(conn *dbus.Conn, m *dbus.Message, signature string, value any) {
	reply := &dbus.Message{
		Type: dbus.TypeError,
		Headers: map[dbus.HeaderField]dbus.Variant{
			dbus.FieldDestination: m.Headers[dbus.FieldSender],
			dbus.FieldReplySerial: dbus.MakeVariant(m.Serial()),
			dbus.FieldErrorName:   dbus.MakeVariant("org.freedesktop.DBus.Error.UnknownObject"),
		},
	}
	if value != nil {
		reply.Type = dbus.TypeMethodReply
		reply.Headers[dbus.FieldSignature] = dbus.MakeVariant(dbus.ParseSignatureMust(signature))
		reply.Body = []any{value}
		delete(reply.Headers, dbus.FieldErrorName)
	}
	conn.Send(reply, nil)
}

// property is the value of one; nil: there is no such one.
func (l *Login1) property(asked []any) any {
	switch {
	case slices.Equal(asked, []any{name + ".Manager", "IdleHint"}):
		return dbus.MakeVariant(l.idle.Load())
	case slices.Equal(asked, []any{name + ".Manager", "BlockInhibited"}):
		return dbus.MakeVariant(l.heldOff())
	case slices.Equal(asked, []any{network, "Metered"}):
		return dbus.MakeVariant(l.metered.Load())
	}
	return nil
}

// SetMetered says by NetworkManager's numbers whether data costs money; before the first time there
// is no NetworkManager.
func (l *Login1) SetMetered(t testing.TB, number uint32) {
	t.Helper()
	l.metered.Store(number)
	l.network.Do(func() { l.takePlace(t, network) })
}

// SetIdle says whether nobody uses the machine; at first somebody does.
func (l *Login1) SetIdle(idle bool) { l.idle.Store(idle) }

// inhibit gives a lock away, which is held until its last copy is closed.
func (l *Login1) inhibit(conn *dbus.Conn, m *dbus.Message) {
	reads, given, err := os.Pipe()
	if err != nil {
		return // the caller waits
	}
	defer given.Close()
	conn.Send(&dbus.Message{
		Type: dbus.TypeMethodReply,
		Headers: map[dbus.HeaderField]dbus.Variant{
			dbus.FieldDestination: m.Headers[dbus.FieldSender],
			dbus.FieldReplySerial: dbus.MakeVariant(m.Serial()),
			dbus.FieldSignature:   dbus.MakeVariant(dbus.ParseSignatureMust("h")),
			dbus.FieldUnixFDs:     dbus.MakeVariant(uint32(1)),
		},
		Body: []any{dbus.UnixFD(given.Fd())},
	}, nil)
	l.mu.Lock()
	l.locks = append(l.locks, reads)
	l.mu.Unlock()
	l.given <- struct{}{}
}

// AwaitLocks waits until so many more locks are given away.
func (l *Login1) AwaitLocks(t testing.TB, n int) {
	t.Helper()
	late := time.After(patience)
	for k := range n {
		select {
		case <-l.given:
		case <-late:
			t.Fatalf("%d locks are asked for, want %d", k, n)
		}
	}
}

// Sleep says that the machine is about to sleep.
func (l *Login1) Sleep(t testing.TB) {
	t.Helper()
	l.say(t, true)
}

// Held counts the locks that keep the machine awake.
func (l *Login1) Held() (held int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, reads := range l.locks {
		_ = reads.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
		if _, err := reads.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			held++
		}
	}
	return held
}

// AwaitSleep waits until no lock keeps the machine awake any more.
func (l *Login1) AwaitSleep(t testing.TB) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, reads := range l.locks {
		_ = reads.SetReadDeadline(time.Now().Add(patience))
		if _, err := io.Copy(io.Discard, reads); err != nil {
			t.Error("a lock is held on: ", err)
		}
		_ = reads.Close()
	}
	l.locks = nil
}

// Wake says that it is awake again.
func (l *Login1) Wake(t testing.TB) {
	t.Helper()
	l.say(t, false)
}

// Leave gives logind's name on the bus up.
func (l *Login1) Leave(t testing.TB) {
	t.Helper()
	l.conn.Eavesdrop(nil)
	if _, err := l.conn.ReleaseName(name); err != nil {
		t.Fatal(err)
	}
}

func (l *Login1) say(t testing.TB, asleep bool) {
	t.Helper()
	if err := l.conn.Emit(object, name+".Manager.PrepareForSleep", asleep); err != nil {
		t.Fatal(err)
	}
}
