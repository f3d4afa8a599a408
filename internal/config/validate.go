package config

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/signed"
)

const (
	acceptListed = "listed"
	acceptAnyone = "anyone"
	minLease     = 100 * time.Millisecond
	maxLease     = 30 * 24 * time.Hour
	maxSocket    = 100 // a unix socket's path is at most 103 bytes on some systems
)

// Validate joins everything that is wrong, each with the setting, what is
// expected and what it is.
func (c Agent) Validate() error {
	errs := []error{
		oneOf("preset", c.Preset, PresetLAN, PresetWAN, PresetTest),
		oneOf("accept", c.Accept, acceptListed, acceptAnyone),
		oneOf("sandbox", c.Sandbox, sandboxAuto, sandboxBubblewrap, sandboxGVisor),
		oneOf("commands", c.Commands, CommandsBounded, CommandsUnbounded),
		oneOf("nat.relay", c.NAT.Relay, relayOff, relayUse, relayServe, relayAuto),
		oneOf("nat.reachability", c.NAT.Reachability, reachAuto, reachPublic, reachPrivate),
		c.NAT.validate(),
		oneOf("placing.choice", c.Placing.Choice, choiceNearest, ChoiceSoftMin),
		oneOf("placing.failover", c.Placing.Failover, failoverRisk, FailoverFIBR),
		oneOf("placing.statements", c.Placing.Statements, statementsShare, StatementsOwn),
		within("placing.fault-half-life", c.Placing.FaultHalfLife, time.Hour, 3660*24*time.Hour),
		oneOf("standby.accept", c.Standby.Accept, StandbyDomain, standbyNone),
		c.Standby.validateCount(),
		atLeast("standby.data", c.Standby.DataBytes, 1<<20, "1MiB"),
		oneOf("controller.accept", c.Control.Accept, StandbyDomain, standbyNone),
		c.Control.validateWeight(),
		within("controller.slot", c.Control.Slot, time.Second, time.Hour),
		c.Owner.validate(),
		oneOf("placing.policy", c.Placing.Policy, grid.AvailPolicies()...),
		oneOf("log.level", c.Log.Level, "debug", "info", "warn", "error"),
		oneOf("log.format", c.Log.Format, "text", "json"),
		absolute("state", c.StateDir),
		named("domain", c.Domain.Validate()),
		within("lease.length", c.Lease.Length, minLease, maxLease),
		c.Lease.validateMargin(),
		within("lease.reserved", c.Lease.Reserved, minLease, maxLease),
		within("jobs.max-runtime", c.Jobs.MaxRuntime, time.Second, grid.MaxRuntime),
		within("data.keep", c.Data.Keep, time.Minute, 3660*24*time.Hour),
		within("history.keep", c.History.Keep, time.Minute, 3660*24*time.Hour),
		atLeast("history.size", c.History.SizeBytes, 1<<20, "1MiB"),
		atLeast("data.quota", c.Data.QuotaBytes, 1<<20, "1MiB"),
		atLeast("placing.replies", int64(c.Placing.Replies), 0, "0"),
		atLeast("rates.down", c.Rates.DownBps, 1, "1bit/s"),
		atLeast("rates.up", c.Rates.UpBps, 1, "1bit/s"),
		atLeast("rates.disk", c.Rates.DiskBps, 0, "0bit/s"),
		named("ceilings", c.Ceilings.Resources().Validate()),
		c.validateSigners(), c.validatePeers(), c.API.validate(), c.Planning.validate(),
	}
	for i, dir := range c.TES.Files {
		errs = append(errs, absolute(fmt.Sprintf("tes.files[%d]", i), dir))
	}
	for i, dir := range c.TES.Mounts {
		errs = append(errs, c.TES.validateMount(fmt.Sprintf("tes.mounts[%d]", i), dir))
	}
	for i, prefix := range c.TES.URLs {
		errs = append(errs, website(fmt.Sprintf("tes.urls[%d]", i), prefix))
	}
	control := func(r rune) bool { return r < ' ' || r == 0x7f }
	if c.Name == "" || len(c.Name) > 63 || strings.ContainsFunc(c.Name, control) {
		errs = append(errs, fmt.Errorf("name: want 1 to 63 printable characters, have %q", c.Name))
	}
	if c.DomainKey != "" {
		errs = append(errs, named("domain-key", c.DomainKey.Validate()))
	}
	if c.Accept == acceptAnyone && slices.Contains(c.Kinds, grid.KindCommand) {
		errs = append(errs,
			errors.New("kinds: accept: anyone runs WASM only; remove command or list the peers"))
	}
	policy, err := grid.ParseAvailPolicy(c.Placing.Policy)
	if err == nil && policy.Orders() && c.Placing.Choice == ChoiceSoftMin {
		errs = append(errs, errors.New("placing.policy: naa and nsa choose the site themselves; "+
			"set placing.choice to nearest"))
	}
	return errors.Join(errs...)
}

// website wants the beginning of an address of the web.
func website(field, prefix string) error {
	u, err := url.Parse(prefix)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil ||
		u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("%s: want https://HOST/PATH, have %q", field, prefix)
	}
	return nil
}

func (n nat) validate() error {
	switch {
	case n.Relay == relayServe && n.Reachability == reachPrivate:
		return errors.New("nat.relay: serve, but nat.reachability is private; " +
			"who relays must be reachable: choose use")
	case n.Punch && n.Relay == relayOff:
		return errors.New("nat.punch: needs a relay to arrange it; set nat.relay to use, serve or auto")
	default:
		return nil
	}
}

// maxOverestimate leaves a tenth of a running time, however wrong estimates are.
const maxOverestimate = 0.9

func (p planning) validate() error {
	errs := []error{
		oneOf("planning.policy", p.Policy, grid.Policies()...),
		oneOf("planning.backfill", p.Backfill, grid.Backfills()...),
		within("planning.horizon", p.Horizon, time.Minute, grid.MaxRuntime),
		within("planning.ahead", p.Ahead, time.Minute, grid.MaxRuntime),
		within("planning.longest", p.Longest, time.Second, grid.MaxRuntime),
		percentOf("planning.promised", p.Promised, 1), percentOf("planning.strangers", p.Strangers, 0),
		percentOf("planning.submitter", p.Submitter, 0), percentOf("planning.project", p.Project, 0),
	}
	if !(p.Overestimate >= 0 && p.Overestimate <= maxOverestimate) {
		errs = append(errs,
			fmt.Errorf("planning.overestimate: want 0 to %v, have %v", maxOverestimate, p.Overestimate))
	}
	return errors.Join(errs...)
}

func percentOf(name string, have, low int64) error {
	if have >= low && have <= percent {
		return nil
	}
	return fmt.Errorf("%s: want %d to %d percent, have %d", name, low, percent, have)
}

// Resources are the ceilings as the mesh counts them.
func (c Ceilings) Resources() grid.Resources {
	return grid.Resources{
		MilliCPUs: c.MilliCPUs, MemoryBytes: c.MemoryBytes, DiskBytes: c.DiskBytes, MFLOPS: c.MFLOPS,
	}
}

func (c Agent) validatePeers() error {
	var errs []error
	for i, id := range c.Peers {
		errs = append(errs, named(fmt.Sprintf("peers[%d]", i), id.Validate()))
	}
	if len(c.Listen) == 0 {
		errs = append(errs,
			errors.New("listen: want at least one multiaddr, such as /ip4/127.0.0.1/tcp/4801"))
	}
	for i, addr := range c.Listen {
		if !strings.HasPrefix(addr, "/") {
			errs = append(errs,
				fmt.Errorf("listen[%d]: want a multiaddr, such as /ip4/127.0.0.1/tcp/4801, have %q", i, addr))
		}
	}
	for i, addr := range c.Bootstrap {
		if !strings.HasPrefix(addr, "/") || !strings.Contains(addr, "/p2p/") {
			errs = append(errs,
				fmt.Errorf("bootstrap[%d]: want a multiaddr that ends in /p2p/ID, have %q", i, addr))
		}
	}
	return errors.Join(errs...)
}

// validateMargin wants time for a job to be frozen after the end of its lease.
func (l Lease) validateMargin() error {
	if l.Margin >= grid.FreezeGrace && l.Margin <= maxLease {
		return nil
	}
	return fmt.Errorf("lease.margin: want %s, in which a job is frozen when its lease "+
		"(lease.length) is over, to %s, have %s", grid.FreezeGrace, maxLease, l.Margin)
}

func (a API) validate() error {
	var errs []error
	switch {
	case a.Socket == "off" && a.Listen == "":
		errs = append(errs, errors.New("api: no socket and no address; give api.socket or api.listen"))
	case a.Socket == "off":
	case len(a.Socket) > maxSocket:
		errs = append(errs, fmt.Errorf("api.socket: the path is longer than %d bytes; "+
			"choose a shorter one, have %q", maxSocket, a.Socket))
	default:
		errs = append(errs, absolute("api.socket", a.Socket))
	}
	if a.Listen != "" && !isLoopback(a.Listen) {
		errs = append(errs, fmt.Errorf("api.listen: want a loopback address such as 127.0.0.1:4800, "+
			"have %q; "+
			"to reach the agent from elsewhere use ssh -L", a.Listen))
	}
	return errors.Join(errs...)
}

func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Validate joins everything that is wrong.
func (c Submit) validate() error {
	errs := []error{
		oneOf("output", c.Output, "table", "wide", "json", "yaml", "name"),
		within("runtime", c.Runtime, time.Millisecond, grid.MaxRuntime),
	}
	if c.Domain != "" {
		errs = append(errs, named("domain", grid.DomainID(c.Domain).Validate()))
	}
	if c.Addr == "" {
		errs = append(errs, errors.New("addr: empty; give the agent's socket or http://HOST:PORT"))
	}
	return errors.Join(errs...)
}

func oneOf(name, have string, want ...string) error {
	if slices.Contains(want, have) {
		return nil
	}
	return fmt.Errorf("%s: want one of %s, have %q", name, strings.Join(want, ", "), have)
}

// absolute takes / everywhere: the default of owner.root, also where a path begins
// with a letter of a drive.
// validateMount wants a directory in one of those of tes.files.
func (t tasks) validateMount(name, dir string) error {
	for _, shelf := range t.Files {
		inside, err := filepath.Rel(shelf, dir)
		if err == nil && filepath.IsLocal(inside) {
			return nil
		}
	}
	return fmt.Errorf("%s: want a directory in one of those of tes.files, have %q", name, dir)
}

func absolute(name, path string) error {
	if path == "/" || filepath.IsAbs(path) {
		return nil
	}
	return fmt.Errorf("%s: want an absolute path, have %q", name, path)
}

func within(name string, have, low, high time.Duration) error {
	if have >= low && have <= high {
		return nil
	}
	return fmt.Errorf("%s: want %s to %s, have %s", name, low, high, have)
}

// zeroOr is within, or 0, which switches something off.
func zeroOr(name string, have, low, high time.Duration) error {
	if have == 0 {
		return nil
	}
	return within(name, have, low, high)
}

func atLeast(name string, have, low int64, text string) error {
	if have >= low {
		return nil
	}
	return fmt.Errorf("%s: want at least %s, have %d", name, text, have)
}

func named(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", name, err)
}

func (c Control) validateWeight() error {
	const low, high = 1000, 1_000_000
	if c.WeightMilli < low || c.WeightMilli > high {
		return fmt.Errorf("controller.weight: want 1 to 1000, have %s",
			asMilli().show(c.WeightMilli))
	}
	return nil
}

// validateCount wants nobody, or two: two agents in all are worse than one, since both must be
// there.
func (s standby) validateCount() error {
	if s.Count != 0 && s.Count != 2 {
		return fmt.Errorf("standby.count: want 0 or 2, have %d; of three agents one may be lost, "+
			"of two none", s.Count)
	}
	return nil
}

// validateSigners wants keys that are there once, and kinds of work that this site runs: a signer
// whose work it cannot run is a mistake that nobody would notice.
func (c Agent) validateSigners() error {
	if _, err := signed.NewKeys(c.Signers); err != nil {
		return named("signers", err)
	}
	for _, s := range c.Signers {
		for _, kind := range s.Kinds {
			if !slices.Contains(c.Kinds, kind) {
				return fmt.Errorf("signers: %s of %s, but kinds is %s; add it there or "+
					"leave it out here", kind, cmp.Or(s.Name, s.Key), asKinds().show(c.Kinds))
			}
		}
	}
	return nil
}
