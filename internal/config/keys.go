package config

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/yield"
)

// Key describes one setting, for flags and for help.
type Key struct {
	Name    string // dotted: "ceilings.memory"
	Flag    string // without dashes in front: "ceilings-memory"
	Env     string // "MRS_CEILINGS_MEMORY"
	Help    string // meaning and unit
	Default string // as it would be written
}

// setting is a key of configuration C with its reader and writer.
type setting[C any] struct {
	name, help string
	set        func(*C, string) error
	get        func(*C) string
}

func (s setting[C]) flag() string { return strings.ReplaceAll(s.name, ".", "-") }

func (s setting[C]) env() string {
	return "MRS_" + strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(s.name))
}

// typed builds a setting from a parser, a printer and the place of its value.
func typed[C, V any](name, help string, at func(*C) *V, parse func(string) (V, error), show func(V) string) setting[C] {
	return setting[C]{
		name: name, help: help,
		set: func(c *C, text string) error {
			v, err := parse(text)
			if err == nil {
				*at(c) = v
			}
			return err
		},
		get: func(c *C) string { return show(*at(c)) },
	}
}

func textKey[C any, V ~string](name, help string, at func(*C) *V) setting[C] {
	return typed(name, help, at, func(s string) (V, error) { return V(s), nil }, func(v V) string { return fmt.Sprint(v) })
}

func listKey[C any, V ~string](name, help string, at func(*C) *[]V) setting[C] {
	parse := func(text string) ([]V, error) {
		var out []V
		for part := range strings.SplitSeq(text, ",") {
			if part = strings.TrimSpace(part); part != "" {
				out = append(out, V(part))
			}
		}
		return out, nil
	}
	return typed(name, help, at, parse, func(v []V) string {
		var parts []string
		for _, part := range v {
			parts = append(parts, string(part))
		}
		return strings.Join(parts, ",")
	})
}

func spanKey[C any](name, help string, at func(*C) *time.Duration) setting[C] {
	return typed(name, help, at, grid.ParseSpan, time.Duration.String)
}

func sizeKey[C any](name, help string, at func(*C) *int64) setting[C] {
	return typed(name, help, at, grid.ParseBytes, func(n int64) string { return strconv.FormatInt(n, 10) + "B" })
}

func rateKey[C any](name, help string, at func(*C) *int64) setting[C] {
	return typed(name, help, at, grid.ParseRate, func(n int64) string { return strconv.FormatInt(n, 10) + "bit/s" })
}

// milliKey is written as a decimal number and kept in thousandths.
func milliKey[C any](name, help string, at func(*C) *int64) setting[C] {
	parse := func(text string) (int64, error) {
		v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if err != nil || !(v >= 0) || v > 1e9 {
			return 0, fmt.Errorf("want a number of at least 0, such as 1.5, have %q", text)
		}
		return int64(math.Round(v * 1000)), nil
	}
	return typed(name, help, at, parse, func(n int64) string { return strconv.FormatFloat(float64(n)/1000, 'f', -1, 64) })
}

func boolKey[C any](name, help string, at func(*C) *bool) setting[C] {
	parse := func(text string) (bool, error) {
		v, err := strconv.ParseBool(text)
		if err != nil {
			return false, fmt.Errorf("want true or false, have %q", text)
		}
		return v, nil
	}
	return typed(name, help, at, parse, strconv.FormatBool)
}

// countKey is a whole number of at least 0.
func countKey[C any](name, help string, at func(*C) *int64) setting[C] {
	parse := func(text string) (int64, error) {
		v, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(text), "%"), 10, 31)
		if err != nil {
			return 0, fmt.Errorf("want a whole number of at least 0, have %q", text)
		}
		return int64(v), nil
	}
	return typed(name, help, at, parse, func(n int64) string { return strconv.FormatInt(n, 10) })
}

// partKey is a part of a whole, from 0 to 1.
func partKey[C any](name, help string, at func(*C) *float64) setting[C] {
	parse := func(text string) (float64, error) {
		v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if err != nil || !(v >= 0 && v <= 1) {
			return 0, fmt.Errorf("want a number from 0 to 1, have %q", text)
		}
		return v, nil
	}
	return typed(name, help, at, parse, func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) })
}

func parsePrice(text string) (Price, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return Price{}, nil
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v >= 0) || v > 1e9 {
		return Price{}, fmt.Errorf("want a number of at least 0, such as 0.02, have %q", text)
	}
	return Price{Named: true, CoreHour: v}, nil
}

// String is the price as it is written.
func (p Price) String() string {
	if !p.Named {
		return ""
	}
	return strconv.FormatFloat(p.CoreHour, 'g', -1, 64)
}

func parseKinds(text string) ([]grid.WorkKind, error) {
	var kinds []grid.WorkKind
	for part := range strings.SplitSeq(text, ",") {
		switch strings.TrimSpace(part) {
		case "":
		case grid.KindWasm.String():
			kinds = append(kinds, grid.KindWasm)
		case grid.KindCommand.String():
			kinds = append(kinds, grid.KindCommand)
		default:
			return nil, fmt.Errorf("kind of work %q: want wasm, command or both with a comma", part)
		}
	}
	if len(kinds) == 0 {
		return nil, errors.New("no kind of work: want wasm, command or both; to lend nothing, pause the site")
	}
	slices.Sort(kinds)
	return slices.Compact(kinds), nil
}

func showKinds(kinds []grid.WorkKind) string {
	var words []string
	for _, k := range kinds {
		words = append(words, k.String())
	}
	return strings.Join(words, ",")
}

func agentSettings() []setting[Agent] {
	type c = Agent
	return []setting[c]{
		textKey("preset", "where the defaults come from: lan, wan or test", func(a *c) *string { return &a.Preset }),
		textKey("state", "directory of identity, facts and data", func(a *c) *string { return &a.StateDir }),
		textKey("name", "the site's name for people", func(a *c) *string { return &a.Name }),
		textKey("domain", "domain to be a member of", func(a *c) *grid.DomainID { return &a.Domain }),
		textKey("domain-key", "public key whose roster of members is believed; written by siteagent join", func(a *c) *grid.DomainKey { return &a.DomainKey }),
		listKey("listen", "multiaddrs to listen on", func(a *c) *[]string { return &a.Listen }),
		listKey("bootstrap", "multiaddrs, with /p2p/ID, of sites to dial first", func(a *c) *[]string { return &a.Bootstrap }),
		listKey("peers", "IDs of sites that may take part", func(a *c) *[]grid.SiteID { return &a.Peers }),
		textKey("nat.relay", "behind a router: off, use (members relay), serve (relay for members) or auto", func(a *c) *string { return &a.NAT.Relay }),
		boolKey("nat.punch", "make relayed connections direct", func(a *c) *bool { return &a.NAT.Punch }),
		boolKey("nat.map-port", "ask the router by UPnP or NAT-PMP to let connections in", func(a *c) *bool { return &a.NAT.MapPort }),
		textKey("nat.reachability", "whether others can dial this site: auto, public or private", func(a *c) *string { return &a.NAT.Reachability }),
		boolKey("mdns", "find members on the local network by multicast", func(a *c) *bool { return &a.MDNS }),
		boolKey("dht", "ask members for the addresses of members that are not reached", func(a *c) *bool { return &a.DHT }),
		textKey("accept", "who may take part: listed or anyone", func(a *c) *string { return &a.Accept }),
		typed("kinds", "work this site runs: wasm, command", func(a *c) *[]grid.WorkKind { return &a.Kinds }, parseKinds, showKinds),
		textKey("sandbox", "what encloses commands: auto, bubblewrap or gvisor", func(a *c) *string { return &a.Sandbox }),
		milliKey("ceilings.cpus", "cores given to the mesh; 0 = three quarters", func(a *c) *int64 { return &a.Ceilings.MilliCPUs }),
		sizeKey("ceilings.memory", "memory given; 0B = half", func(a *c) *int64 { return &a.Ceilings.MemoryBytes }),
		sizeKey("ceilings.disk", "scratch space given; 0B = a quarter of what is free", func(a *c) *int64 { return &a.Ceilings.DiskBytes }),
		milliKey("ceilings.gflops", "computation given, GFLOPS; 0 = measure", func(a *c) *int64 { return &a.Ceilings.MFLOPS }),
		typed("price", "asked for an hour of a core, in your domain's unit; empty = none named", func(a *c) *Price { return &a.Price }, parsePrice, Price.String),
		rateKey("rates.down", "download rate", func(a *c) *int64 { return &a.Rates.DownBps }),
		rateKey("rates.up", "upload rate", func(a *c) *int64 { return &a.Rates.UpBps }),
		rateKey("rates.disk", "rate of the local disk; 0bit/s = measure", func(a *c) *int64 { return &a.Rates.DiskBps }),
		boolKey("rates.probe", "measure links of which no transfer has told anything: 1.25 MiB a minute at most", func(a *c) *bool { return &a.Rates.Probe }),
		spanKey("lease.length", "how long a site runs on unheard", func(a *c) *time.Duration { return &a.Lease.Length }),
		spanKey("lease.margin", "what the submitter adds to a lease", func(a *c) *time.Duration { return &a.Lease.Margin }),
		sizeKey("data.quota", "most data kept on disk", func(a *c) *int64 { return &a.Data.QuotaBytes }),
		spanKey("data.keep", "how long results are kept", func(a *c) *time.Duration { return &a.Data.Keep }),
		boolKey("owner.yield", "freeze jobs while the owner uses the machine (default: unless run by root or in a test)", func(a *c) *bool { return &a.Owner.Yield }),
		milliKey("owner.reserve", "cores that stay free beside what the owner uses", func(a *c) *int64 { return &a.Owner.ReserveMilli }),
		spanKey("owner.patience", "jobs that stand still for so long move elsewhere", func(a *c) *time.Duration { return &a.Owner.Patience }),
		typed("owner.hours", "when the machine is shared, such as mon-fri 18:00-08:00; empty: always", func(a *c) *yield.Hours { return &a.Owner.Hours }, yield.ParseHours, yield.Hours.String),
		textKey("owner.priority", "of jobs: idle (only what nobody else wants) or low (a small share)", func(a *c) *string { return &a.Owner.Priority }),
		spanKey("owner.look", "pause between two looks at what other programs leave; 0s = the ceilings are believed", func(a *c) *time.Duration { return &a.Owner.Look }),
		textKey("owner.root", "where the machine's proc and sys are, for an agent in a container", func(a *c) *string { return &a.Owner.Root }),
		spanKey("jobs.max-runtime", "longest estimate accepted", func(a *c) *time.Duration { return &a.Jobs.MaxRuntime }),
		textKey("placing.choice", "which offer is taken: nearest, or softmin (by chance among the nearest)", func(a *c) *string { return &a.Placing.Choice }),
		typed("placing.replies", "answers asked for in a large mesh; 0 = all", func(a *c) *int { return &a.Placing.Replies }, strconv.Atoi, strconv.Itoa),
		boolKey("placing.hold-all", "every offer of this site holds its capacity", func(a *c) *bool { return &a.Placing.HoldAll }),
		textKey("placing.policy", "what availability does to own jobs: none, saa, naa or nsa", func(a *c) *string { return &a.Placing.Policy }),
		textKey("planning.policy", "order in which those that wait move up: fcfs, sjf, ljf, edf or lst", func(a *c) *string { return &a.Planning.Policy }),
		textKey("planning.backfill", "how gaps are filled: conservative (nobody is delayed), easy (the first is not) or none", func(a *c) *string { return &a.Planning.Backfill }),
		spanKey("planning.horizon", "what is planned beyond it is not displaced by an outage", func(a *c) *time.Duration { return &a.Planning.Horizon }),
		countKey("planning.promised", "percent of what is given that promises hold together at most", func(a *c) *int64 { return &a.Planning.Promised }),
		countKey("planning.strangers", "percent that promises to others hold where accept is anyone; 0 = no limit of theirs", func(a *c) *int64 { return &a.Planning.Strangers }),
		countKey("planning.submitter", "percent that one other submitter holds at one time; 0 = no limit", func(a *c) *int64 { return &a.Planning.Submitter }),
		countKey("planning.project", "percent that one project holds at one time; 0 = no limit", func(a *c) *int64 { return &a.Planning.Project }),
		spanKey("planning.ahead", "how far ahead others are promised anything", func(a *c) *time.Duration { return &a.Planning.Ahead }),
		spanKey("planning.longest", "longest reservation of others", func(a *c) *time.Duration { return &a.Planning.Longest }),
		boolKey("planning.fairshare", "promises begin behind everything that waits already", func(a *c) *bool { return &a.Planning.Fairshare }),
		partKey("planning.overestimate", "part by which running times are known to be estimated too long, 0 to 0.9", func(a *c) *float64 { return &a.Planning.Overestimate }),
		textKey("api.socket", `unix socket of the agent's interface; "off" for none`, func(a *c) *string { return &a.API.Socket }),
		textKey("api.listen", "loopback TCP address of the agent's interface; empty for none", func(a *c) *string { return &a.API.Listen }),
		textKey("api.token-file", "file of the bearer token for TCP", func(a *c) *string { return &a.API.TokenFile }),
		boolKey("api.debug", "serve /debug/pprof", func(a *c) *bool { return &a.API.Debug }),
		textKey("log.level", "debug, info, warn or error", func(a *c) *string { return &a.Log.Level }),
		textKey("log.format", "text or json", func(a *c) *string { return &a.Log.Format }),
	}
}

func submitSettings() []setting[Submit] {
	type c = Submit
	return []setting[c]{
		textKey("addr", "agent to talk to: a socket's path or http://HOST:PORT", func(s *c) *string { return &s.Addr }),
		textKey("token", "bearer token for a TCP address", func(s *c) *Secret { return &s.Token }),
		textKey("domain", "domain the agent must belong to", func(s *c) *string { return &s.Domain }),
		textKey("output", "table, wide, json, yaml or name", func(s *c) *string { return &s.Output }),
		spanKey("runtime", "estimate for jobs that give none", func(s *c) *time.Duration { return &s.Runtime }),
	}
}
