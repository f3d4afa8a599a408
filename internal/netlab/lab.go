package netlab

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// ErrUnsupported says that this machine cannot hold a lab; the text says why.
var ErrUnsupported = errors.New("no network laboratory here")

// Lab is a network of namespaces. Its methods may be called from any goroutine.
type Lab struct {
	prefix string  // of the names of its namespaces
	hub    *router // the switch

	mu     sync.Mutex
	nats   int       // guarded by mu; NATs so far
	spaces []string  // guarded by mu; the namespaces, in the order in which they were made
	proxy  *proxy    // guarded by mu; nil until the first Impair
	closed bool      // guarded by mu
	cuts   cutCounts // guarded by mu
}

// outside holds the addresses of hosts and NATs of the switch.
const outside = "10.77.0.0/16"

// public is the same in a lab whose switch stands for the Internet: not a private
// range, so that programs take the addresses for public ones. Nothing in a lab
// reaches their real holders.
const public = "11.77.0.0/16"

// New makes an empty lab: a switch without hosts. It first removes what labs of
// processes that are dead have left. The error is ErrUnsupported where the
// machine cannot hold a lab.
func New(ctx context.Context) (*Lab, error) { return newLab(ctx, outside) }

func newLab(ctx context.Context, network string) (*Lab, error) {
	if reason := Supported(ctx); reason != "" {
		return nil, fmt.Errorf("%w: %s", ErrUnsupported, reason)
	}
	if err := sweep(ctx); err != nil {
		return nil, err
	}
	l := &Lab{prefix: newPrefix(), cuts: make(cutCounts)}
	space, err := l.space(ctx, "switch")
	if err != nil {
		//nolint:contextcheck // the clean-up has a context of its own
		return nil, errors.Join(err, l.Close())
	}
	l.hub = &router{space: space, net: netip.MustParsePrefix(network)}
	if err := l.hub.prepare(ctx); err != nil {
		return nil, errors.Join(err, l.Close()) //nolint:contextcheck // as above
	}
	return l, nil
}

// newPrefix begins the names of one lab: the process's ID, so that others know
// whether it lives, and a number by chance.
func newPrefix() string {
	//nolint:gosec // no secret
	return fmt.Sprintf("%s%d-%05x-", namePrefix, os.Getpid(), rand.Uint32()>>12)
}

// Start is New for a test: it skips the test by the reason if there can be no
// lab, and takes the lab down when the test ends.
func Start(t testing.TB) *Lab {
	t.Helper()
	return start(t, outside)
}

// StartPublic is Start with addresses at the switch, 11.77.x.y, that programs take for
// public ones.
func StartPublic(t testing.TB) *Lab {
	t.Helper()
	return start(t, public)
}

func start(t testing.TB, network string) *Lab {
	t.Helper()
	l, err := newLab(t.Context(), network)
	if errors.Is(err, ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatalf("make a network laboratory: %v", err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Errorf("take the network laboratory down: %v", err)
		}
	})
	return l
}

// space makes a namespace of the lab and gives its name.
func (l *Lab) space(ctx context.Context, name string) (string, error) {
	if name == "" || len(name) > 24 ||
		strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		return "", fmt.Errorf("name %q: want 1 to 24 letters a-z, digits and dashes", name)
	}
	full := l.prefix + name
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return "", errors.New("the lab is closed")
	}
	if err := run(ctx, "ip", "netns", "add", full); err != nil {
		return "", err
	}
	l.spaces = append(l.spaces, full)
	return full, inside(ctx, full, "ip link set lo up")
}

// Link is the rates of a host's link, bit/s; 0 leaves a direction as fast as the
// machine is.
type Link struct {
	UpBps   int64 // away from the host
	DownBps int64 // towards the host
}

// Host is a namespace with one link.
type Host struct {
	Name string
	lab  *Lab
	at   *router    // whose link it has
	full string     // name of the namespace
	addr netip.Addr // of eth0
	port string     // the link's other end, in the router's namespace
}

// Host makes a host at the switch.
func (l *Lab) Host(ctx context.Context, name string, link Link) (*Host, error) {
	return l.plug(ctx, l.hub, name, link)
}

// plug makes a host at a router.
func (l *Lab) plug(ctx context.Context, at *router, name string, link Link) (*Host, error) {
	full, err := l.space(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("make host %s: %w", name, err)
	}
	h := &Host{Name: name, lab: l, at: at, full: full}
	if h.addr, h.port, err = at.place(); err != nil {
		return nil, fmt.Errorf("make host %s: %w", name, err)
	}
	if err = at.connect(ctx, h); err == nil {
		err = h.shape(ctx, link)
	}
	if err != nil {
		return nil, fmt.Errorf("make host %s: %w", name, err)
	}
	return h, nil
}

// Addr is the address of the host's link: 10.77.x.y or 11.77.x.y at the switch,
// 192.168.x.y behind a NAT.
func (h *Host) Addr() netip.Addr { return h.addr }

// Namespace is the name of the host's namespace, as ip netns knows it.
func (h *Host) Namespace() string { return h.full }

// outsideAddr is the address by which hosts at the switch know the host.
func (h *Host) outsideAddr() netip.Addr {
	if h.at.wan != nil {
		return h.at.wan.addr
	}
	return h.addr
}

// Close ends all processes in the lab's namespaces and removes everything. It
// may be called twice.
func (l *Lab) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	var errs []error
	if l.proxy != nil {
		errs = append(errs, l.proxy.close())
	}
	ctx := context.Background() // what ended the test must not end the clean-up
	for _, space := range l.spaces {
		errs = append(errs, remove(ctx, space))
	}
	return errors.Join(errs...)
}

// router is a namespace in the middle of a star: the switch, or a NAT. Each host
// has a link of its own to it and an address of 32 bits.
type router struct {
	space string
	net   netip.Prefix
	wan   *Host // a NAT: its own link to the switch

	mu sync.Mutex
	n  int // guarded by mu; hosts so far
}

// gateway is the router's own address, the last but one of its network.
func (r *router) gateway() netip.Addr {
	last := r.net.Addr().As4()
	for i := r.net.Bits(); i < 32; i++ {
		last[i/8] |= 1 << (7 - i%8)
	}
	return netip.AddrFrom4(last).Prev()
}

// place gives the next free address and the name of its port.
func (r *router) place() (netip.Addr, string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n++
	addr := r.net.Addr().As4()
	addr[2] += byte(r.n >> 8)
	addr[3] = byte(r.n)
	at := netip.AddrFrom4(addr)
	if !r.net.Contains(at) || !at.Less(r.gateway()) {
		return netip.Addr{}, "", fmt.Errorf("the network %s is full", r.net)
	}
	return at, "p" + strconv.Itoa(r.n), nil
}

// prepare makes the namespace forward packets, whatever way they come back.
func (r *router) prepare(ctx context.Context) error {
	for _, name := range []string{"ip_forward=1", "conf/all/rp_filter=0", "conf/default/rp_filter=0"} {
		key, value, _ := strings.Cut(name, "=")
		if err := inNamespace(r.space, func() error {
			return os.WriteFile("/proc/sys/net/ipv4/"+key, []byte(value), 0)
		}); err != nil {
			return fmt.Errorf("let %s forward: %w", r.space, err)
		}
	}
	return ctx.Err()
}

// connect makes the link between a host and its router.
func (r *router) connect(ctx context.Context, h *Host) error {
	err := run(
		ctx, "ip", "link", "add", "eth0", "netns", h.full, "type", "veth", "peer", "name", h.port,
		"netns", r.space,
	)
	if err != nil {
		return err
	}
	gateway := r.gateway().String()
	return errors.Join(
		inside(ctx, r.space, "ip addr add "+gateway+"/32 dev "+h.port, "ip link set "+h.port+" up",
			"ip route add "+h.addr.String()+"/32 dev "+h.port),
		inside(ctx, h.full, "ip addr add "+h.addr.String()+"/32 dev eth0", "ip link set eth0 up",
			"ip route add "+gateway+" dev eth0 scope link", "ip route add default via "+gateway+" dev eth0"))
}
