package netlab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const patience = 20 * time.Second

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newHost(t *testing.T, l *Lab, name string, link Link) *Host {
	t.Helper()
	h, err := l.Host(t.Context(), name, link)
	must(t, err)
	return h
}

// listen listens in a host, on a port that is the same in all tests.
func listen(t *testing.T, h *Host) net.Listener {
	t.Helper()
	var listener net.Listener
	must(t, h.Do(func() (err error) {
		listener, err = net.Listen("tcp", netip.AddrPortFrom(h.Addr(), 4000).String())
		return err
	}))
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}

// packetConn is a UDP socket in a host.
func packetConn(t *testing.T, h *Host) *net.UDPConn {
	t.Helper()
	var conn *net.UDPConn
	must(t, h.Do(func() (err error) {
		conn, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(h.Addr(), 4000)))
		return err
	}))
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// dial connects from a host.
func dial(h *Host, to netip.Addr, limit time.Duration) (net.Conn, error) {
	var conn net.Conn
	err := h.Do(func() (err error) {
		conn, err = net.DialTimeout("tcp", netip.AddrPortFrom(to, 4000).String(), limit)
		return err
	})
	return conn, err
}

// download sends bytes from one host to another and gives the rate, bit/s.
func download(t *testing.T, from net.Listener, to *Host, source netip.Addr, bytes int64) float64 {
	t.Helper()
	sent := make(chan error, 1)
	go func() {
		conn, err := from.Accept()
		if err == nil {
			_, err = conn.Write(make([]byte, bytes))
			err = errors.Join(err, conn.Close())
		}
		sent <- err
	}()
	conn, err := dial(to, source, patience)
	must(t, err)
	defer conn.Close()
	must(t, conn.SetDeadline(time.Now().Add(patience)))
	began := time.Now()
	n, err := io.Copy(io.Discard, conn)
	took := time.Since(began)
	must(t, errors.Join(err, <-sent))
	if n != bytes {
		t.Fatalf("%d of %d bytes arrived", n, bytes)
	}
	return float64(bytes) * 8 / took.Seconds()
}

func TestRates(t *testing.T) {
	t.Parallel()
	l := Start(t)
	a, b := newHost(t, l, "a", Link{UpBps: 20e6}), newHost(t, l, "b", Link{DownBps: 8e6})
	server := listen(t, a)
	near := func(got, want float64) {
		t.Helper()
		if got < want*.6 || got > want*1.1 { // a busy machine is slower, never faster
			t.Errorf("%.1f Mbit/s, want about %.0f", got/1e6, want/1e6)
		}
	}
	near(download(t, server, b, a.Addr(), 1<<20), 8e6)
	must(t, b.shape(t.Context(), Link{}))
	near(download(t, server, b, a.Addr(), 2<<20), 20e6)
	must(t, a.shape(t.Context(), Link{}))
	if got := download(t, server, b, a.Addr(), 16<<20); got < 30e6 {
		t.Errorf("%.1f Mbit/s without limits", got/1e6)
	}
}

// hears reports whether datagrams from one socket reach another: if they should,
// on a machine however busy, and if not, within a moment.
func hears(t *testing.T, from, to *net.UDPConn, addr netip.Addr, should bool) bool {
	t.Helper()
	limit := 80 * time.Millisecond
	if should {
		limit = patience
	}
	text := fmt.Sprint(time.Now().UnixNano())
	buffer := make([]byte, 100)
	for end := time.Now().Add(limit); time.Now().Before(end); {
		if _, err := from.WriteToUDPAddrPort([]byte(text), netip.AddrPortFrom(addr, 4000)); err != nil {
			t.Fatalf("a sender must not see that its packets are lost: %v", err)
		}
		must(t, to.SetReadDeadline(time.Now().Add(25*time.Millisecond)))
		for {
			n, _, err := to.ReadFromUDPAddrPort(buffer)
			if err != nil {
				break
			}
			if string(buffer[:n]) == text {
				return true
			}
		}
	}
	return false
}

func TestTroubles(t *testing.T) {
	t.Parallel()
	l := Start(t)
	hosts := []*Host{
		newHost(t, l, "a", Link{}), newHost(t, l, "b", Link{}), newHost(t, l, "c", Link{}),
	}
	var conns []*net.UDPConn
	for _, h := range hosts {
		conns = append(conns, packetConn(t, h))
	}
	check := func(when, lost string) {
		t.Helper()
		for i := range hosts {
			for j := range hosts {
				pair := hosts[i].Name + hosts[j].Name
				if i == j {
					continue
				}
				should := !strings.Contains(lost, pair)
				if hears(t, conns[i], conns[j], hosts[j].Addr(), should) != should {
					t.Errorf("%s: from %s to %s: want lost only %s", when, hosts[i].Name, hosts[j].Name, lost)
				}
			}
		}
	}
	ctx := t.Context()
	a, b := hosts[0], hosts[1]
	check("at first", "")
	must(t, l.partition(ctx, a, b))
	check("partition", "ab ba")
	must(t, a.Mute(ctx))
	check("partition and mute", "ab ba ac")
	must(t, l.heal(ctx, a, b))
	must(t, l.heal(ctx, a, b))
	check("mute", "ab ac")
	must(t, a.Isolate(ctx))
	must(t, a.Unmute(ctx))
	check("isolated", "ab ac ba ca")
	must(t, a.Rejoin(ctx))
	must(t, a.Rejoin(ctx))
	check("at last", "")
	must(t, l.Impair(ctx, 1, Impairment{}))
	check("through the proxy", "")
	must(t, b.Isolate(ctx))
	check("isolated behind the proxy", "ab ba bc cb")
	must(t, b.Rejoin(ctx))
	must(t, b.Mute(ctx))
	check("mute behind the proxy", "ba bc")
}

// quickest connects until that takes no longer than a limit, which a busy machine may not do at
// the first try, and returns what the quickest connection took.
func quickest(
	t *testing.T, server net.Listener, from *Host, to netip.Addr, limit time.Duration,
) time.Duration {
	t.Helper()
	least, end := patience, time.Now().Add(patience)
	for least > limit && time.Now().Before(end) {
		began := time.Now()
		conn, err := dial(from, to, patience)
		must(t, err)
		least = min(least, time.Since(began))
		must(t, conn.Close())
		if c, errAccept := server.Accept(); errAccept == nil {
			_ = c.Close()
		}
	}
	return least
}

func TestImpairment(t *testing.T) {
	t.Parallel()
	l := Start(t)
	a, b := newHost(t, l, "a", Link{}), newHost(t, l, "b", Link{})
	server := listen(t, a)
	const latency = 40 * time.Millisecond
	must(t, l.Impair(t.Context(), 7, Impairment{Latency: latency}))
	took := quickest(t, server, b, a.Addr(), 3*latency)
	if took < 2*latency || took > 3*latency {
		t.Errorf("a connection with %s each way took %s, want a little over twice that", latency, took)
	}

	const sent = 2000
	must(
		t, l.Impair(t.Context(), 7, Impairment{Latency: 5 * time.Millisecond, Loss: .2, Duplicate: .1}),
	)
	from, to := packetConn(t, a), packetConn(t, b)
	before := l.passed()
	arrived := make(chan int, 1)
	go func() {
		n, buffer := 0, make([]byte, 100)
		for {
			_ = to.SetReadDeadline(time.Now().Add(time.Second))
			if _, _, errRead := to.ReadFromUDPAddrPort(buffer); errRead != nil {
				arrived <- n
				return
			}
			n++
		}
	}()
	pace := time.NewTicker(200 * time.Microsecond)
	defer pace.Stop()
	for range sent {
		<-pace.C
		_, err := from.WriteToUDPAddrPort([]byte("x"), netip.AddrPortFrom(b.Addr(), 4000))
		must(t, err)
	}
	got, after := <-arrived, l.passed()
	lost, doubled := after.Lost-before.Lost, after.Duplicated-before.Duplicated
	t.Logf("%d sent, %d arrived, %d lost, %d doubled", sent, got, lost, doubled)
	// the connection before says goodbye meanwhile
	if off := int64(got) - (sent - lost + doubled); off < -5 || off > 5 {
		t.Errorf("%d arrived, want about %d - %d + %d", got, sent, lost, doubled)
	}
	if lost < sent*15/100 || lost > sent*25/100 || doubled < sent*5/100 || doubled > sent*11/100 {
		t.Errorf("%d lost and %d doubled of %d, want 20 %% and 8 %%", lost, doubled, sent)
	}

	must(t, l.Impair(t.Context(), 7, Impairment{Latency: time.Millisecond}))
	if rate := download(t, server, b, a.Addr(), 8<<20); rate < 10e6 {
		t.Errorf("%.1f Mbit/s through the proxy", rate/1e6)
	}
}

func TestNAT(t *testing.T) {
	t.Parallel()
	l := Start(t)
	ctx := t.Context()
	outsiders := []*Host{newHost(t, l, "x", Link{}), newHost(t, l, "y", Link{})}
	servers := []*net.UDPConn{packetConn(t, outsiders[0]), packetConn(t, outsiders[1])}
	for kind, name := range map[NATKind]string{Cone: "cone", Symmetric: "symmetric"} {
		n, err := l.NAT(ctx, name, NATConfig{Kind: kind})
		must(t, err)
		first, err := n.Inside(ctx, name+"-first", Link{})
		must(t, err)
		second, err := n.Inside(ctx, name+"-second", Link{})
		must(t, err)
		conn, other := packetConn(t, first), packetConn(t, second)
		if !hears(t, conn, other, second.Addr(), true) {
			t.Errorf("%s: hosts of one NAT do not hear each other", name)
		}
		stranger := packetConn(t, n.Host) // what reaches the NAT itself would be seen here
		if hears(t, servers[0], conn, first.Addr(), false) ||
			hears(t, servers[0], conn, n.Addr(), false) ||
			hears(t, servers[0], stranger, n.Addr(), false) {
			t.Errorf("%s: a stranger came in", name)
		}
		_ = stranger.Close()

		var seen []netip.AddrPort
		buffer := make([]byte, 10)
		for i, server := range servers {
			_, err = conn.WriteToUDPAddrPort([]byte("hello"), netip.AddrPortFrom(outsiders[i].Addr(), 4000))
			must(t, err)
			must(t, server.SetReadDeadline(time.Now().Add(patience)))
			_, from, errRead := server.ReadFromUDPAddrPort(buffer)
			must(t, errRead)
			seen = append(seen, from)
			_, err = server.WriteToUDPAddrPort([]byte("answer"), from)
			must(t, err)
			must(t, conn.SetReadDeadline(time.Now().Add(patience)))
			if _, _, err = conn.ReadFromUDPAddrPort(buffer); err != nil {
				t.Errorf("%s: no answer came in: %v", name, err)
			}
		}
		if seen[0].Addr() != n.Addr() || seen[1].Addr() != n.Addr() {
			t.Errorf("%s: seen from %v, want the NAT's address %s", name, seen, n.Addr())
		}
		if same := seen[0].Port() == seen[1].Port(); same != (kind == Cone) {
			t.Errorf("%s: seen from %v", name, seen)
		}
		must(t, l.partition(ctx, first, outsiders[0]))
		if hears(t, conn, servers[0], outsiders[0].Addr(), false) {
			t.Errorf("%s: a partition does not reach behind a NAT", name)
		}
	}
	if _, err := dial(
		outsiders[0], netip.MustParseAddr("192.0.2.1"), 300*time.Millisecond,
	); err == nil {
		t.Error("there is a way out of the lab")
	}
}

func spaces(t *testing.T, prefix string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(runNetns, prefix+"*"))
	must(t, err)
	return found
}

func TestCleanUp(t *testing.T) {
	t.Parallel()
	l := Start(t)
	a := newHost(t, l, "a", Link{})
	cmd := a.Command(t.Context(), "sleep", "1000")
	must(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	out, err := a.Command(t.Context(), "ip", "-br", "addr").CombinedOutput()
	if err != nil || !strings.Contains(string(out), a.Addr().String()+"/32") {
		t.Errorf("in the host: %v: %s", err, out)
	}
	must(t, l.Impair(t.Context(), 1, Impairment{Latency: time.Second}))
	if n := len(spaces(t, l.prefix)); n != 2 {
		t.Errorf("%d namespaces, want 2", n)
	}
	must(t, l.Close())
	must(t, l.Close())
	select {
	case <-ended:
	case <-time.After(patience):
		t.Error("a process outlived its lab")
	}
	if left := spaces(t, l.prefix); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if _, err := l.Host(t.Context(), "late", Link{}); err == nil {
		t.Error("a closed lab made a host")
	}
}

// TestSweep leaves a namespace behind under the name of a process that is dead.
func TestSweep(t *testing.T) {
	t.Parallel()
	l := Start(t)
	child := exec.Command("true")
	must(t, child.Run())
	dead := fmt.Sprintf("%s%d-0-left", namePrefix, child.Process.Pid)
	others := []string{
		fmt.Sprintf("%s%d-0-kept", namePrefix, os.Getpid()), "mrslabx-1-a", namePrefix + "x-1",
	}
	ctx := context.Background()
	for _, name := range append(others, dead) {
		must(t, run(ctx, "ip", "netns", "add", name))
	}
	must(t, sweep(ctx))
	if left := spaces(t, dead); len(left) > 0 {
		t.Errorf("not removed: %v", left)
	}
	for _, name := range others {
		if len(spaces(t, name)) != 1 {
			t.Errorf("removed, or gone: %s", name)
		}
		must(t, remove(ctx, name))
	}
	if len(spaces(t, l.prefix)) != 1 {
		t.Error("the sweep took a living lab")
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	l := Start(t)
	for _, name := range []string{"", "../a", "A", "a b", "switch", strings.Repeat("a", 25)} {
		if _, err := l.Host(t.Context(), name, Link{}); err == nil {
			t.Errorf("the name %q was taken", name)
		}
	}
	if _, err := l.Host(t.Context(), "a", Link{UpBps: -1}); err == nil {
		t.Error("a negative rate was taken")
	}
}
