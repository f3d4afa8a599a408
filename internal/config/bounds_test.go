package config

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// sound is a configuration without a mistake.
func sound() Agent { return Default(PresetLAN, environ("HOME", "/home/u")) }

// Each setting is taken up to its bounds and not a step beyond; the error names it and what
// it is to be.
func TestBoundsOfSettings(t *testing.T) {
	t.Parallel()
	const site = "12D3KooWEyoppNCUx8Yx66oV9fJnriXwCcXwDDUA2kj6vnc6iDEp"
	long := strings.Repeat("n", 63)
	for _, c := range []struct {
		set   func(*Agent)
		wrong string // what the error begins with; empty: there is none
	}{
		{func(a *Agent) { a.Name = long }, ""},
		{func(a *Agent) { a.Name = long + "n" }, "name: want 1 to 63"},
		{func(a *Agent) { a.Name = "" }, "name: want 1 to 63"},
		{func(a *Agent) { a.Name = "a b" }, ""},
		{func(a *Agent) { a.Name = "a\x1fb" }, "name: want"},
		{func(a *Agent) { a.Name = "a\x7f" }, "name: want"},
		{func(a *Agent) { a.Owner.Patience = time.Second }, ""},
		{func(a *Agent) { a.Owner.MoveAfter = time.Second - 1 }, "owner.move-after: want 1s to"},
		{func(a *Agent) { a.Owner.Patience = time.Second - 1 }, "owner.patience: want 1s to"},
		{func(a *Agent) { a.Owner.Patience = grid.MaxRuntime + 1 }, "owner.patience: want"},
		{func(a *Agent) { a.Owner.Look = 0 }, ""},
		{func(a *Agent) { a.Owner.Look = time.Second }, ""},
		{func(a *Agent) { a.Owner.Look = 1 }, "owner.look: want 1s to 1h"},
		{func(a *Agent) { a.Owner.Look = time.Hour + 1 }, "owner.look: want 1s to 1h"},
		{func(a *Agent) { a.Owner.Heat = 39 }, "owner.heat: want 40 to 110 degrees Celsius"},
		{func(a *Agent) { a.Owner.Heat = 111 }, "owner.heat: want 40 to 110 degrees Celsius"},
		{func(a *Agent) { a.Owner.InUse.CPUs = 0 }, "in-use.cpus: want 1 to 100 percent, have 0"},
		{func(a *Agent) { a.Owner.InUse.Memory = 101 }, "in-use.memory: want 1 to 100 percent"},
		{
			func(a *Agent) { a.Owner.Input, a.Owner.InUse.UpBps = true, 1 },
			"in-use: owner.input gives nothing while keyboard or mouse are in use",
		},
		{func(a *Agent) { a.Owner.Root = "proc" }, "owner.root: want an absolute path"},
		{func(a *Agent) { a.Owner.Hook = []string{"/ask", "a b"} }, ""},
		{func(a *Agent) { a.Owner.Hook = []string{"ask"} }, "owner.hook: want the absolute path"},
		{func(a *Agent) { a.Owner.Hook = []string{"/ask", "\x00"} }, "owner.hook: want no arg"},
		{func(a *Agent) { a.Owner.Hook = slices.Repeat([]string{"/ask"}, 64) }, ""},
		{
			func(a *Agent) { a.Owner.Hook = slices.Repeat([]string{"/ask"}, 65) },
			"owner.hook: want at most 63 arguments, have 64",
		},
		{func(a *Agent) { a.Control.Accept = "x" }, "controller.accept: want"},
		{func(a *Agent) { a.Control.WeightMilli = 1000 }, ""},
		{func(a *Agent) { a.Control.WeightMilli = 999 }, "controller.weight: want 1 to 1000"},
		{func(a *Agent) { a.Control.WeightMilli = 1_000_000 }, ""},
		{func(a *Agent) { a.Control.WeightMilli = 1_000_001 }, "controller.weight: want"},
		{func(a *Agent) { a.Control.Slot = time.Second }, ""},
		{func(a *Agent) { a.Control.Slot = time.Second - 1 }, "controller.slot: want 1s to 1h"},
		{func(a *Agent) { a.Control.Slot = time.Hour + 1 }, "controller.slot: want"},
		{func(a *Agent) { a.StateDir = "state" }, "state: want an absolute path"},
		{func(a *Agent) { a.Lease.Length = minLease }, ""},
		{func(a *Agent) { a.Lease.Length = minLease - 1 }, "lease.length: want 100ms to"},
		{func(a *Agent) { a.Lease.Length = maxLease }, ""},
		{func(a *Agent) { a.Lease.Length = maxLease + 1 }, "lease.length: want"},
		{func(a *Agent) { a.Lease.Margin = grid.FreezeGrace }, ""},
		{func(a *Agent) { a.Lease.Margin = grid.FreezeGrace - 1 }, "lease.margin: want"},
		{func(a *Agent) { a.Lease.Margin = maxLease }, ""},
		{func(a *Agent) { a.Lease.Margin = maxLease + 1 }, "lease.margin: want"},
		{func(a *Agent) { a.Jobs.MaxRuntime = time.Second }, ""},
		{func(a *Agent) { a.Jobs.MaxRuntime = time.Second - 1 }, "jobs.max-runtime: want"},
		{func(a *Agent) { a.Data.Keep = time.Minute }, ""},
		{func(a *Agent) { a.Data.Keep = time.Minute - 1 }, "data.keep: want 1m"},
		{func(a *Agent) { a.Data.Keep = 3660 * 24 * time.Hour }, ""},
		{func(a *Agent) { a.Data.Keep = 3660*24*time.Hour + 1 }, "data.keep: want"},
		{func(a *Agent) { a.History.Keep = time.Minute }, ""},
		{func(a *Agent) { a.History.Keep = time.Minute - 1 }, "history.keep: want 1m"},
		{func(a *Agent) { a.History.Keep = 3660*24*time.Hour + 1 }, "history.keep: want"},
		{func(a *Agent) { a.History.SizeBytes = 1 << 20 }, ""},
		{func(a *Agent) { a.History.SizeBytes = 1<<20 - 1 }, "history.size: want at least 1MiB"},
		{func(a *Agent) { a.Data.QuotaBytes = 1 << 20 }, ""},
		{func(a *Agent) { a.Data.QuotaBytes = 1<<20 - 1 }, "data.quota: want at least 1MiB"},
		{func(a *Agent) { a.Placing.Replies = 0 }, ""},
		{func(a *Agent) { a.Placing.Replies = -1 }, "placing.replies: want at least 0"},
		{func(a *Agent) { a.Rates = Rates{DownBps: 1, UpBps: 1} }, ""},
		{func(a *Agent) { a.Rates.DownBps = 0 }, "rates.down: want at least 1bit/s"},
		{func(a *Agent) { a.Rates.UpBps = 0 }, "rates.up: want at least 1bit/s"},
		{func(a *Agent) { a.Rates.DiskBps = -1 }, "rates.disk: want at least 0bit/s"},
		{func(a *Agent) { a.Ceilings.MFLOPS = -1 }, "ceilings:"},
		{func(a *Agent) { a.Ceilings.DiskBytes = -1 }, "ceilings:"},
		{func(a *Agent) { a.Ceilings.MemoryBytes = -1 }, "ceilings:"},
		{func(a *Agent) { a.Ceilings.MilliCPUs = -1 }, "ceilings:"},
		{func(a *Agent) { a.DomainKey = "key" }, "domain-key:"},
		{func(a *Agent) { a.Domain = "" }, "domain:"},
		{
			func(a *Agent) { a.TES.URLs = []string{"https://a/b", "ftp://a"} },
			"tes.urls[1]: want https",
		},
		{func(a *Agent) { a.TES.Files = []string{"/data"} }, ""},
		{
			func(a *Agent) { a.TES.URLs = []string{"https://a/b", "ftp://a"} },
			"tes.urls[1]: want https",
		},
		{func(a *Agent) { a.TES.Files = []string{"/a", "b"} }, "tes.files[1]: want an absolute"},
		{
			func(a *Agent) { a.TES.Files, a.TES.Mounts = []string{"/a"}, []string{"/a", "/a/b/"} },
			"",
		},
		{
			func(a *Agent) { a.TES.Files, a.TES.Mounts = []string{"/a"}, []string{"/a/b", "/ab"} },
			"tes.mounts[1]: want a directory in one of those of tes.files",
		},
		{func(a *Agent) { a.Peers = []grid.SiteID{site, ""} }, "peers[1]:"},
		{func(a *Agent) { a.Listen = nil }, "listen: want at least one"},
		{func(a *Agent) { a.Listen = append(a.Listen, "ip4/1") }, "listen[2]: want a multiaddr"},
		{func(a *Agent) { a.Bootstrap = []string{"/ip4/1.2.3.4/tcp/1/p2p/" + site} }, ""},
		{func(a *Agent) { a.Bootstrap = []string{"/ip4/1.2.3.4/tcp/1"} }, "bootstrap[0]: want"},
		{func(a *Agent) { a.Bootstrap = []string{"ip4/1/tcp/1/p2p/" + site} }, "bootstrap[0]: want"},
		{func(a *Agent) { a.Accept = acceptAnyone }, ""},
		{
			func(a *Agent) { a.Accept, a.Kinds = acceptAnyone, []grid.WorkKind{grid.KindCommand} },
			"kinds: accept: anyone",
		},
		{func(a *Agent) { a.Kinds = []grid.WorkKind{grid.KindCommand} }, ""},
		{func(a *Agent) { a.Placing.Choice = ChoiceSoftMin }, ""},
		{
			func(a *Agent) { a.Placing.Choice, a.Placing.Policy = ChoiceSoftMin, "naa" },
			"placing.policy: naa and nsa choose the site themselves",
		},
		{func(a *Agent) { a.Placing.Policy = "naa" }, ""},
		{
			func(a *Agent) { a.NAT = nat{Relay: relayServe, Reachability: reachPrivate} },
			"nat.relay: serve, but nat.reachability is private",
		},
		{func(a *Agent) { a.NAT = nat{Relay: relayServe, Reachability: reachAuto} }, ""},
		{func(a *Agent) { a.NAT = nat{Relay: relayUse, Reachability: reachPrivate, Punch: true} }, ""},
		{
			func(a *Agent) { a.NAT = nat{Relay: relayOff, Reachability: reachAuto, Punch: true} },
			"nat.punch: needs a relay",
		},
		{func(a *Agent) { a.API.Socket = "/" + strings.Repeat("s", maxSocket-1) }, ""},
		{
			func(a *Agent) { a.API.Socket = "/" + strings.Repeat("s", maxSocket) },
			"api.socket: the path is longer than",
		},
		{func(a *Agent) { a.API.Socket = "mrs.sock" }, "api.socket: want an absolute path"},
		{func(a *Agent) { a.API = API{Socket: "off"} }, "api: no socket and no address"},
		{func(a *Agent) { a.API = API{Socket: "off", Listen: "127.0.0.1:1"} }, ""},
		{func(a *Agent) { a.API.Listen = "localhost:1" }, ""},
		{func(a *Agent) { a.API.Listen = "[::1]:1" }, ""},
		{func(a *Agent) { a.API.Listen = "1.2.3.4:1" }, "api.listen: want a loopback address"},
		{func(a *Agent) { a.API.Listen = "example.org:1" }, "api.listen: want a loopback address"},
		{func(a *Agent) { a.API.Listen = "127.0.0.1" }, "api.listen: want a loopback address"},
		{func(a *Agent) { a.Planning.Horizon = time.Minute }, ""},
		{func(a *Agent) { a.Planning.Horizon = time.Minute - 1 }, "planning.horizon: want 1m"},
		{func(a *Agent) { a.Planning.Ahead = time.Minute - 1 }, "planning.ahead: want 1m"},
		{func(a *Agent) { a.Planning.Ahead = grid.MaxRuntime + 1 }, "planning.ahead: want 1m"},
		{func(a *Agent) { a.Planning.Longest = time.Second - 1 }, "planning.longest: want 1s"},
		{func(a *Agent) { a.Planning.Promised = 1 }, ""},
		{func(a *Agent) { a.Planning.Promised = 0 }, "planning.promised: want 1 to 100 percent"},
		{func(a *Agent) { a.Planning.Promised = 101 }, "planning.promised: want 1 to 100 percent"},
		{func(a *Agent) { a.Planning.Strangers = 0 }, ""},
		{func(a *Agent) { a.Planning.Strangers = -1 }, "planning.strangers: want 0 to 100"},
		{func(a *Agent) { a.Planning.Submitter = 100 }, ""},
		{func(a *Agent) { a.Planning.Submitter = 101 }, "planning.submitter: want 0 to 100"},
		{func(a *Agent) { a.Planning.Project = -1 }, "planning.project: want 0 to 100"},
		{func(a *Agent) { a.Planning.Overestimate = 0 }, ""},
		{func(a *Agent) { a.Planning.Overestimate = maxOverestimate }, ""},
		{func(a *Agent) { a.Planning.Overestimate = -.01 }, "planning.overestimate: want 0 to 0.9"},
		{func(a *Agent) { a.Planning.Overestimate = .91 }, "planning.overestimate: want"},
		{func(a *Agent) { a.Planning.Overestimate = math.NaN() }, "planning.overestimate: want"},
	} {
		a := sound()
		c.set(&a)
		err := a.Validate()
		switch {
		case c.wrong == "" && err != nil:
			t.Errorf("refused: %v", err)
		case c.wrong != "" && (err == nil || !strings.HasPrefix(err.Error(), c.wrong)):
			t.Errorf("%v, want %q", err, c.wrong)
		}
	}
	// A setting of a few words is one of them.
	for name, set := range map[string]func(*Agent, string){
		"preset":             func(a *Agent, s string) { a.Preset = s },
		"accept":             func(a *Agent, s string) { a.Accept = s },
		"sandbox":            func(a *Agent, s string) { a.Sandbox = s },
		"commands":           func(a *Agent, s string) { a.Commands = s },
		"nat.relay":          func(a *Agent, s string) { a.NAT.Relay = s },
		"nat.reachability":   func(a *Agent, s string) { a.NAT.Reachability = s },
		"placing.choice":     func(a *Agent, s string) { a.Placing.Choice = s },
		"placing.failover":   func(a *Agent, s string) { a.Placing.Failover = s },
		"placing.statements": func(a *Agent, s string) { a.Placing.Statements = s },
		"placing.policy":     func(a *Agent, s string) { a.Placing.Policy = s },
		"owner.priority":     func(a *Agent, s string) { a.Owner.Priority = s },
		"planning.policy":    func(a *Agent, s string) { a.Planning.Policy = s },
		"log.level":          func(a *Agent, s string) { a.Log.Level = s },
		"log.format":         func(a *Agent, s string) { a.Log.Format = s },
	} {
		a := sound()
		set(&a, "other")
		if err := a.Validate(); err == nil || !strings.Contains(err.Error(), name+": want one of ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What a submitter's command is told has bounds, too.
func TestBoundsOfSubmitting(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		set   func(*Submit)
		wrong string
	}{
		{func(*Submit) {}, ""},
		{func(s *Submit) { s.Runtime = time.Millisecond }, ""},
		{func(s *Submit) { s.Runtime = time.Millisecond - 1 }, "runtime: want 1ms to"},
		{func(s *Submit) { s.Runtime = grid.MaxRuntime }, ""},
		{func(s *Submit) { s.Runtime = grid.MaxRuntime + 1 }, "runtime: want 1ms to"},
		{func(s *Submit) { s.Output = "xml" }, "output: want one of table"},
		{func(s *Submit) { s.Domain = "a b" }, "domain:"},
		{func(s *Submit) { s.Addr = "" }, "addr: empty"},
	} {
		s := Submit{Output: "table", Runtime: time.Minute, Domain: "lab", Addr: "/run/mrs.sock"}
		c.set(&s)
		err := s.validate()
		if (err == nil) != (c.wrong == "") || err != nil && !strings.HasPrefix(err.Error(), c.wrong) {
			t.Errorf("%v, want %q", err, c.wrong)
		}
	}
}

// Who may take part are the peers and those whom the bootstrap addresses name.
func TestWhoIsListed(t *testing.T) {
	t.Parallel()
	a := Agent{
		Peers:     []grid.SiteID{"one"},
		Bootstrap: []string{"/ip4/1.2.3.4/tcp/1/p2p/two", "/ip4/1.2.3.4/tcp/1", "/dns4/x/p2p/three"},
	}
	if diff := cmp.Diff([]grid.SiteID{"one", "two", "three"}, a.Members()); diff != "" {
		t.Errorf("members (-want +got):\n%s", diff)
	}
	if len(a.Peers) != 1 || len(Agent{}.Members()) != 0 {
		t.Errorf("peers %v", a.Peers)
	}
}

// The text of a number is read to its last bound, and what is none is refused with what is
// wanted.
func TestNumbersOfSettings(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{"0": 0, " 1.5 ": 1500, ".0005": 1, "1e9": 1e12} {
		if got, err := asMilli().parse(text); err != nil || got != want {
			t.Errorf("%q is %d thousandths, %v, want %d", text, got, err, want)
		}
	}
	for text, want := range map[string]float64{"0": 0, " 0.1 ": .1, "1": 1} {
		if got, err := asPart().parse(text); err != nil || got != want {
			t.Errorf("%q is %v, %v, want %v", text, got, err, want)
		}
	}
	for text, want := range map[string]price{
		"": {}, " ": {}, "0": {Named: true}, " 0.02": {Named: true, CoreHour: .02},
		"1e9": {Named: true, CoreHour: 1e9},
	} {
		if got, err := asPrice().parse(text); err != nil || got != want {
			t.Errorf("%q costs %+v, %v, want %+v", text, got, err, want)
		}
	}
	for text, want := range map[string]int{"0": 0, " 7 ": 7, "30%": 30, "2147483647": 1<<31 - 1} {
		if got, err := asCount[int]("").parse(text); err != nil || got != want {
			t.Errorf("%q is %d, %v, want %d", text, got, err, want)
		}
	}
	wrong := func(kind string, err error, wants string) {
		if err == nil || !strings.Contains(err.Error(), wants) {
			t.Errorf("%s: %v, want one that says %q", kind, err, wants)
		}
	}
	for _, text := range []string{"", "x", "-0.1", "1.0000001e9", "NaN", "Inf"} {
		_, err := asMilli().parse(text)
		wrong("thousandths of "+text, err, "want a number of at least 0")
		if text != "" {
			_, err = asPrice().parse(text)
			wrong("a price of "+text, err, "want a number of at least 0")
		}
	}
	for _, text := range []string{"", "x", "-0.1", "1.1", "NaN"} {
		_, err := asPart().parse(text)
		wrong("a part of "+text, err, "want a number from 0 to 1")
	}
	for _, text := range []string{"", "-1", "1.5", "2147483648", "%"} {
		_, err := asCount[int64]("").parse(text)
		wrong("a count of "+text, err, "want a whole number")
	}
	_, err := asBool().parse("maybe")
	wrong("a bool", err, "want true or false")
	_, err = asWord("a", "b").parse("c")
	wrong("a word", err, "want one of a, b, have \"c\"")
}

// A value is put behind a name that has none, wherever the file ends, and taken out of
// braces with one comma.
func TestEditingAtTheEdges(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ before, name, text, want string }{
		{"name:", "name", "a", "name: a"},
		{"name:\n", "name", "a", "name: a\n"},
		{"name: # who\n", "name", "a", "name: a # who\n"},
		{"", "name", "a", "name: a\n"},
		{"domain: d", "name", "a", "domain: d\nname: a\n"},
		{"{name: a}", "name", "-", "{}"},
		{"{name: a, domain: d}", "name", "-", "{domain: d}"},
		{"{domain: d, name: a}", "name", "-", "{domain: d}"},
		{"{domain: d , name: a }\n", "name", "-", "{domain: d }\n"},
		{"name: a", "name", "-", ""},
		{"advanced:", "dht", "true", "advanced:\n  dht: true\n"},
		{"advanced:\n  mdns: false", "dht", "true", "advanced:\n  dht: true\n  mdns: false"},
		{"domain: d\nname: a\n", "name", "-", "domain: d\n"},
		{"name: ä\ndomain: d\n", "name", "b", "name: b\ndomain: d\n"},
		{"{\"name\": \"ä\", domain: d}\n", "domain", "e", "{\"name\": \"ä\", domain: e}\n"},
	} {
		got, err := edited(t, c.before, Value{c.name, c.text})
		if err != nil || got != c.want {
			t.Errorf("%s of %q: %q, %v, want %q", c.name, c.before, got, err, c.want)
		}
	}
}

// A file with each setting chosen gives the same configuration.
func TestAWholeFile(t *testing.T) {
	t.Parallel()
	env := environ("HOME", "/h")
	for _, preset := range []string{PresetLAN, PresetWAN, PresetTest} {
		want := Default(preset, env)
		want.Name, want.Listen = "some: name", []string{"/ip4/127.0.0.1/tcp/7"}
		want.Planning.Overestimate, want.Rates.DiskBps = .5, 7000
		text := want.File()
		got, err := LoadAgent(Sources{File: write(t, string(text)), Env: env})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", preset, diff)
		}
		for _, s := range agentSettings() {
			if s.Documented && !strings.Contains("\n"+string(text), "\n"+s.Name+": ") {
				t.Errorf("%s is not in its place", s.Name)
			}
		}
	}
}
