package netlab

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"strconv"
)

// cutCounts counts how often a rule was asked for, so that Heal of one cause
// does not end another.
type cutCounts map[string]int

// shape changes the rates of a host's link.
func (h *Host) shape(ctx context.Context, link Link) error {
	return errors.Join(
		shape(ctx, h.full, "eth0", link.UpBps), shape(ctx, h.at.space, h.port, link.DownBps),
	)
}

// shape limits what leaves by a device.
func shape(ctx context.Context, space, device string, bps int64) error {
	if bps < 0 {
		return fmt.Errorf("rate %d bit/s: want 0 or more", bps)
	}
	if bps == 0 {
		_ = inside(ctx, space, "tc qdisc del dev "+device+" root") // there may be none
		return nil
	}
	// A bucket that holds 5 ms, and a queue of 50 ms, as a good router has.
	burst := int64(math.Max(16<<10, float64(bps)/8*.005))
	return inside(ctx, space, "tc qdisc replace dev "+device+
		" root tbf rate "+strconv.FormatInt(bps, 10)+
		"bit burst "+strconv.FormatInt(burst, 10)+"b latency 50ms")
}

// rules adds or removes firewall rules of a router; a rule that was added twice
// must be removed twice.
func (l *Lab) rules(ctx context.Context, r *router, add bool, rules ...string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, rule := range rules {
		key := r.space + " " + rule
		change := 1
		if !add {
			change = -1
		}
		before := l.cuts[key]
		if before+change < 0 {
			continue // it was never there
		}
		l.cuts[key] = before + change
		if before+change > 1 || before > 1 {
			continue // another cause of it remains
		}
		verb := "-I"
		if !add {
			verb = "-D"
		}
		if err := inside(ctx, r.space, "iptables -w 10 "+verb+" FORWARD "+rule+" -j DROP"); err != nil {
			return err
		}
	}
	return nil
}

// Isolate cuts a host off from everything: nothing leaves it and nothing
// arrives. Each Isolate wants its Rejoin.
func (h *Host) Isolate(ctx context.Context) error {
	return h.lab.rules(ctx, h.at, true, "-i "+h.port, "-o "+h.port)
}

// Rejoin ends Isolate.
func (h *Host) Rejoin(ctx context.Context) error {
	return h.lab.rules(ctx, h.at, false, "-i "+h.port, "-o "+h.port)
}

// Mute loses everything that the host sends; it hears the others. Each Mute
// wants its Unmute.
func (h *Host) Mute(ctx context.Context) error { return h.lab.rules(ctx, h.at, true, "-i "+h.port) }

// Unmute ends Mute.
func (h *Host) Unmute(ctx context.Context) error {
	return h.lab.rules(ctx, h.at, false, "-i "+h.port)
}

// Deafen loses everything that is sent to the host; the others hear it. Each Deafen wants
// its Undeafen.
func (h *Host) Deafen(ctx context.Context) error {
	return h.lab.rules(ctx, h.at, true, "-o "+h.port)
}

// Undeafen ends Deafen.
func (h *Host) Undeafen(ctx context.Context) error {
	return h.lab.rules(ctx, h.at, false, "-o "+h.port)
}

// Cut loses everything that goes from one host to another, or between the NATs that they
// are behind; what comes back arrives. Each Cut wants its Mend.
func (l *Lab) Cut(ctx context.Context, from, to *Host) error { return l.cut(ctx, from, to, true) }

// Mend ends Cut.
func (l *Lab) Mend(ctx context.Context, from, to *Host) error { return l.cut(ctx, from, to, false) }

// partition loses everything between two hosts, in both directions. Each partition wants
// its heal.
func (l *Lab) partition(ctx context.Context, a, b *Host) error {
	return errors.Join(l.Cut(ctx, a, b), l.Cut(ctx, b, a))
}

// heal ends partition.
func (l *Lab) heal(ctx context.Context, a, b *Host) error {
	return errors.Join(l.Mend(ctx, a, b), l.Mend(ctx, b, a))
}

func (l *Lab) cut(ctx context.Context, from, to *Host, add bool) error {
	at, one, other := l.hub, from.outsideAddr(), to.outsideAddr()
	if from.at == to.at {
		at, one, other = from.at, from.addr, to.addr
	}
	return l.rules(ctx, at, add, fmt.Sprintf("-s %s -d %s", one, other))
}

// privateNet is the network behind the lab's nth NAT, from 1.
func privateNet(n int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 168, byte(n), 0}), 24)
}

// NATKind says how a NAT chooses the port that others see.
type NATKind uint8

const (
	// Cone gives an inside address and port one outside port, whomever it talks
	// to, as long as it is free: hole punching works.
	Cone NATKind = iota
	// Symmetric gives every connection an outside port by chance: what one peer
	// sees is of no use to another.
	Symmetric
)

// NATConfig describes a NAT.
type NATConfig struct {
	Kind   NATKind
	Link   Link // to the switch
	Reject bool // answer strangers with a refusal; by default their packets are lost
}

// NAT is a router at the switch that hides its hosts behind one address. Only
// answers come in.
type NAT struct {
	*Host // its link to the switch
	in    *router
}

// NAT makes a NAT at the switch.
func (l *Lab) NAT(ctx context.Context, name string, config NATConfig) (*NAT, error) {
	wan, err := l.Host(ctx, name, config.Link)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	l.nats++
	number := l.nats
	l.mu.Unlock()
	if number > 250 {
		return nil, errors.New("a lab holds at most 250 NATs")
	}
	n := &NAT{Host: wan, in: &router{space: wan.full, wan: wan, net: privateNet(number)}}
	random, verdict := "", "DROP"
	if config.Kind == Symmetric {
		random = " --random-fully"
	}
	if config.Reject {
		verdict = "REJECT"
	}
	err = n.in.prepare(ctx)
	if err == nil {
		err = inside(ctx, wan.full, "iptables -w 10 -t nat -A POSTROUTING -o eth0 -j MASQUERADE"+random,
			"iptables -w 10 -A FORWARD -i eth0 -m conntrack --ctstate NEW,INVALID -j "+verdict,
			"iptables -w 10 -A INPUT -i eth0 -m conntrack --ctstate NEW,INVALID -j "+verdict)
	}
	if err != nil {
		return nil, fmt.Errorf("make NAT %s: %w", name, err)
	}
	return n, nil
}

// Inside makes a host behind the NAT. Hosts of one NAT reach each other.
func (n *NAT) Inside(ctx context.Context, name string, link Link) (*Host, error) {
	return n.lab.plug(ctx, n.in, name, link)
}
