package config

import (
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// The presets.
const (
	PresetLAN  = "lan"  // short leases, fast links; the default
	PresetWAN  = "wan"  // long leases, slow links, all interfaces, relays and hole punching
	PresetTest = "test" // quick leases and small quotas for many agents on one machine
)

// Default is the configuration of a preset. env looks variables up as os.LookupEnv
// does and gives the XDG folders; an unknown preset gives the lan values, and
// Validate names it.
func Default(preset string, env func(string) (string, bool)) Agent {
	state := filepath.Join(folder(env, "XDG_STATE_HOME", ".local/state"), "mrs")
	c := Agent{
		Preset: preset, StateDir: state, Name: "site", Domain: "home",
		Listen: []string{"/ip4/127.0.0.1/tcp/4801", "/ip4/127.0.0.1/udp/4801/quic-v1"},
		NAT:    nat{Relay: relayOff, Reachability: reachAuto},
		Accept: acceptListed, Kinds: []grid.WorkKind{grid.KindWasm}, Sandbox: sandboxAuto,
		Commands: CommandsBounded,
		Rates:    Rates{DownBps: 1e9, UpBps: 1e9, Probe: true},
		Lease: Lease{
			Length: 3 * time.Second, Margin: 500 * time.Millisecond, Reserved: time.Minute,
		},
		Data: dataRoom{QuotaBytes: 10 << 30, Keep: 7 * 24 * time.Hour},

		History: History{Keep: 90 * 24 * time.Hour, SizeBytes: 256 << 20},
		Owner: Owner{
			Yield: os.Getuid() != 0, ReserveMilli: 250, Patience: 10 * time.Minute,
			FreeDisk:  1 << 30,
			MoveAfter: 2 * time.Minute,
			Priority:  PriorityIdle, Look: 10 * time.Second, Root: "/",
			InUse: inUse{CPUs: percent, Memory: percent},
		},
		Jobs: jobs{MaxRuntime: 24 * time.Hour},
		Placing: placing{
			Choice: choiceNearest, Failover: failoverRisk, Policy: grid.AvailNone.String(),
			Statements: statementsShare, FaultHalfLife: 7 * 24 * time.Hour,
		},
		Standby: standby{Accept: StandbyDomain, DataBytes: 256 << 20},
		Control: Control{
			Found: true, Accept: StandbyDomain, WeightMilli: 2000, Share: .775, Slot: time.Minute,
		},
		Planning: planning{
			Policy: grid.PolicyFCFS.String(), Backfill: grid.BackfillConservative.String(),
			Horizon: 12 * time.Hour, Promised: percent, Strangers: 10,
			Ahead: 30 * 24 * time.Hour, Longest: 24 * time.Hour,
		},
		API: API{Socket: socketPath(env), Listen: "127.0.0.1:4800"},
		Log: logging{Level: "info", Format: "text"},
	}
	if host, err := os.Hostname(); err == nil && host != "" {
		c.Name = host
	}
	switch preset {
	case PresetWAN:
		c.Rates = Rates{DownBps: 50e6, UpBps: 10e6, Probe: true}
		c.Lease.Length, c.Lease.Margin = 15*time.Second, 2*time.Second
		c.Listen = []string{"/ip4/0.0.0.0/tcp/4801", "/ip4/0.0.0.0/udp/4801/quic-v1"}
		c.NAT = nat{Relay: relayAuto, Punch: true, Reachability: reachAuto}
	case PresetTest:
		c.Listen = []string{"/ip4/127.0.0.1/tcp/0"}
		c.Rates.Probe, c.Rates.DiskBps = false, 4e9
		c.Lease.Length, c.Lease.Margin = time.Second, 200*time.Millisecond
		c.Data.QuotaBytes = 1 << 30
		// The tests are what the machine is busy with.
		c.Owner.Yield, c.Owner.Look, c.Owner.Priority = false, 0, priorityLow
		c.Owner.Battery, c.Owner.Metered = true, true
		c.API.Listen = ""
	}
	return c
}

const percent = 100

// socketPath returns the socket of this user's agent: $XDG_RUNTIME_DIR/mrs.sock;
// on Windows %LOCALAPPDATA%\mrs\mrs.sock; else in a folder of the user's own under
// the temporary directory.
func socketPath(env func(string) (string, bool)) string {
	if dir, ok := env("XDG_RUNTIME_DIR"); ok && filepath.IsAbs(dir) {
		return filepath.Join(dir, "mrs.sock")
	}
	if dir, ok := env("LOCALAPPDATA"); ok && filepath.IsAbs(dir) {
		return filepath.Join(dir, "mrs", "mrs.sock")
	}
	tmp := "/tmp"
	if dir, ok := env("TMPDIR"); ok && filepath.IsAbs(dir) {
		tmp = dir
	}
	return filepath.Join(tmp, "mrs-"+strconv.Itoa(os.Getuid()), "mrs.sock")
}

// folder is an XDG base directory: the variable if it is absolute, else the
// standard place under the home directory.
func folder(env func(string) (string, bool), variable, standard string) string {
	if dir, ok := env(variable); ok && filepath.IsAbs(dir) {
		return dir
	}
	for _, home := range []string{"HOME", "USERPROFILE"} { // the second on Windows
		if dir, ok := env(home); ok && dir != "" {
			return filepath.Join(dir, standard)
		}
	}
	return filepath.Join("/", standard)
}

// AgentFile returns the default path of the agent's configuration:
// $XDG_CONFIG_HOME/mrs/siteagent.yaml.
func AgentFile(env func(string) (string, bool)) string {
	return filepath.Join(folder(env, "XDG_CONFIG_HOME", ".config"), "mrs", "siteagent.yaml")
}

// SubmitFile returns the default path of the command line's configuration:
// $XDG_CONFIG_HOME/mrs/submit.yaml.
func SubmitFile(env func(string) (string, bool)) string {
	return filepath.Join(folder(env, "XDG_CONFIG_HOME", ".config"), "mrs", "submit.yaml")
}

// TokenPath is the file of the API's bearer token: as configured, or api.token in
// the state directory.
func (c Agent) TokenPath() string {
	if c.API.TokenFile != "" {
		return c.API.TokenFile
	}
	return filepath.Join(c.StateDir, "api.token")
}
