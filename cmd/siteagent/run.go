package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/mrsmesh/mrsmesh/internal/agent"
	"github.com/mrsmesh/mrsmesh/internal/agent/backend"
	"github.com/mrsmesh/mrsmesh/internal/api"
	"github.com/mrsmesh/mrsmesh/internal/config"
	"github.com/mrsmesh/mrsmesh/internal/data"
	"github.com/mrsmesh/mrsmesh/internal/data/intake"
	"github.com/mrsmesh/mrsmesh/internal/hostinfo"
	"github.com/mrsmesh/mrsmesh/internal/lrm/supervise"
	"github.com/mrsmesh/mrsmesh/internal/obs"
	"github.com/mrsmesh/mrsmesh/internal/owner"
	"github.com/mrsmesh/mrsmesh/internal/p2p"
	"github.com/mrsmesh/mrsmesh/internal/suspend"
	"github.com/mrsmesh/mrsmesh/internal/systemd"
	"github.com/mrsmesh/mrsmesh/internal/tes"
	"github.com/mrsmesh/mrsmesh/pkg/avail"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/yield"
)

func runCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "run", Short: "Run this site until it is stopped", Args: noArgs,
		Long: `Run this site until it is stopped: by ^C, by SIGTERM, or by siteagent stop.

The first start makes the site's identity. Jobs that run here when the agent
ends are ended, too; their submitters continue them on other sites. SIGHUP, and
siteagent config reload, read the configuration again.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := readSettings(o.readable())
			if err != nil {
				return err
			}
			return run(cmd.Context(), s)
		},
	}
}

// run makes the agent from its configuration and lets it live.
func run(ctx context.Context, s *settings) error {
	signal.Reset(syscall.SIGPIPE) // jobs would inherit that it is ignored
	c, level := s.now, new(slog.LevelVar)
	log, err := newLogger(c, level)
	if err != nil {
		return usageError{err}
	}
	s.log = log
	if err = os.MkdirAll(c.StateDir, 0o700); err != nil {
		return fmt.Errorf("make the state directory: %w", err)
	}
	unheld := holdCommands(ctx, c)
	hang := catchHangUps()
	metrics := obs.NewRegistry()
	metrics.GaugeVec("build_info", "1; its labels name the program.", "version", "go").
		Set(1, version(), runtime.Version())
	parts, err := assemble(ctx, c, unheld, metrics, log)
	if err != nil {
		return err
	}
	owner.BePolite()
	saveMemory()
	a, err := agent.New(ctx, parts)
	if err != nil {
		return err
	}
	s.change, s.machine = live(a, parts, level), parts.Host.Machine
	face := backend.New(a)
	face.Observe(metrics)
	tasks := tes.New(face, tes.Config{
		Dir: filepath.Join(c.StateDir, "tasks"), Files: c.TES.Files, URLs: c.TES.URLs,
		Mounts: c.TES.Mounts, Images: c.TES.Images,
		Keep: c.History.Keep, Bytes: c.History.SizeBytes,
		Name: c.Name, Domain: c.Domain, Build: version(), Log: log,
	})
	server, err := serve(ctx, c, served{face, s}, tasks, metrics, log)
	if err != nil {
		return errors.Join(err, a.Close())
	}
	for _, n := range configNotices(s.shown, s.origins) {
		log.Warn("the owner should know", "notice", noticeText(n))
	}
	log.Info(
		"the site is up", "site", string(a.Self()), "name", c.Name, "domain", string(c.Domain),
		"addresses", a.Addrs(),
	)
	life, end := context.WithCancel(ctx)
	defer end()
	group := &errgroup.Group{}
	group.Go(func() error { defer end(); return server.Serve(life) })
	group.Go(func() error { defer end(); return a.Run(life) })
	group.Go(func() error { hang.obey(life, s, end); return nil })
	group.Go(func() error { tasks.Run(life); return nil })
	group.Go(func() error { handOverBeforeSleep(life, a, log); return nil })
	group.Go(func() error { systemd.Live(life, a.Alive, log); return nil })
	err = errors.Join(group.Wait(), a.Close())
	log.Info("the site is down")
	return err
}

// handOverBeforeSleep lets others go on with the owner's jobs when the machine is about to sleep,
// as when a lid is closed.
func handOverBeforeSleep(ctx context.Context, a *agent.Agent, log *slog.Logger) {
	if err := suspend.Watch(ctx, a.HandOver); err != nil {
		log.Debug("nobody tells when this machine is about to sleep", "error", err)
	}
}

// gcPercent lets the agent's memory grow by half of what is in use before it is looked through,
// not by all of it: the machine is somebody else's, and it costs under 1 % of a processor.
const gcPercent = 50

// saveMemory holds the agent's memory small, unless GOGC says how large it may grow.
func saveMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}

// newLogger logs at a level that may change.
func newLogger(c config.Agent, level *slog.LevelVar) (*slog.Logger, error) {
	lv, err := obs.ParseLevel(c.Log.Level)
	if err != nil {
		return nil, err
	}
	level.Set(lv)
	return obs.NewLoggerAt(os.Stderr, c.Log.Format, level)
}

func serve(
	ctx context.Context, c config.Agent, a api.Backend, tasks *tes.Tasks, metrics *obs.Registry,
	log *slog.Logger,
) (*api.Server, error) {
	options := api.Options{
		Listen: c.API.Listen, Metrics: metrics.Handler(), Debug: c.API.Debug, Logger: log,
		Tasks: tasks,
	}
	if c.API.Socket != "off" {
		options.Socket = c.API.Socket
	}
	if c.API.Listen != "" {
		token, err := api.LoadToken(c.TokenPath())
		if err != nil {
			return nil, err
		}
		options.Token = token
	}
	server, err := api.New(a, options)
	if err != nil {
		return nil, err
	}
	if err = server.Listen(ctx); errors.Is(err, syscall.EADDRINUSE) && c.API.Listen != "" {
		_, port, _ := net.SplitHostPort(c.API.Listen)
		err = fmt.Errorf(
			"port %s is taken by another program: stop it, or set api.listen to another port", port,
		)
	}
	return server, err
}

// probeEvery is the pause between two small measurements of links of which no
// transfer has told anything: 1.25 MiB at most, from a peer once a day.
const probeEvery = time.Minute

// ballast is the room that is kept for the agent's records on a disk that gets full.
const ballast = 4 << 20

// secret is a number that nobody can guess.
func secret() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails: it would end the program
	return binary.LittleEndian.Uint64(b[:])
}

// assemble turns the configuration into the agent's parts. unheld is why nothing can hold what
// commands write.
func assemble(
	ctx context.Context, c config.Agent, unheld error, metrics *obs.Registry, log *slog.Logger,
) (agent.Config, error) {
	offered, err := makeAdapters(ctx, c, unheld, log)
	if err != nil {
		return agent.Config{}, err
	}
	host := probeHost(ctx, c, slices.Sorted(maps.Keys(offered.adapters)), log)
	host = savingWhole(ctx, host, offered.adapters)
	capability := host.Capability(host.Measured)
	if err = capability.Validate(); err != nil {
		return agent.Config{}, err
	}
	network := p2p.Config{
		Owner:       c.Owner.Name,
		KeyFile:     filepath.Join(c.StateDir, "identity.key"),
		AddressFile: filepath.Join(c.StateDir, "peers.json"),
		Listen:      c.Listen, Domain: c.Domain, AcceptAnyone: c.Accept == "anyone",
		Bootstrap: c.Bootstrap, Preset: p2p.Preset(c.Preset), Registry: metrics, MDNS: c.MDNS, DHT: c.DHT,
		NAT: p2p.NAT{
			Relay: p2p.RelayRole(c.NAT.Relay), Punch: c.NAT.Punch, MapPort: c.NAT.MapPort,
			Reachability: p2p.Reachability(c.NAT.Reachability),
		},
	}
	if !network.AcceptAnyone {
		network.Allow = c.Members()
	}
	room := data.Config{
		QuotaBytes: c.Data.QuotaBytes, UploadBps: c.Rates.UpBps, DownloadBps: c.Rates.DownBps,
		Metrics: metrics, Log: log,
	}
	if c.Rates.Probe {
		room.ProbeEvery = probeEvery
	}
	policy, err := grid.ParseAvailPolicy(c.Placing.Policy)
	if err != nil {
		return agent.Config{}, err
	}
	self, err := os.Executable()
	if err != nil {
		return agent.Config{}, fmt.Errorf("find own executable: %w", err)
	}
	return agent.Config{
		Herald: []string{self, p2p.ArgTellDeaths}, Intake: intake.Command(self),
		StateDir: c.StateDir, Machine: hostinfo.MachineName(), Hardware: hostinfo.Parts(),
		Version: version(), Name: c.Name,
		P2P: network, DomainKey: c.DomainKey,
		Data:       room,
		Capability: capability, Adapters: offered.adapters, Notices: offered.notices,
		Walls: append(offered.walls, rateWalls(c.Rates)...), Owner: ownerOf(c.Owner), Host: host,
		OutputBytes: 16 << 20, MaxRuntime: c.Jobs.MaxRuntime, Signers: c.Signers, Seed: secret(),
		Priced: c.Price.Named, Price: c.Price.CoreHour,
		Metrics: metrics, Log: log, Ballast: ballast,
		Lease: c.Lease.Length, LeaseMargin: c.Lease.Margin, Reserved: c.Lease.Reserved,
		Past: agent.Past{
			Outputs: c.Data.Keep, Jobs: c.History.Keep, Bytes: c.History.SizeBytes,
		},
		Summary: backend.Summary,
		Tidy: func() error {
			_, err := supervise.Rotate(filepath.Join(c.StateDir, agent.RecordFile), supervise.RotateAbove)
			return err
		},
		WasmOnly: c.Accept == "anyone", InMemory: offered.inMemory,
		SoftMin: c.Placing.Choice == config.ChoiceSoftMin, Replies: c.Placing.Replies,
		FIBR: c.Placing.Failover == config.FailoverFIBR, HoldAll: c.Placing.HoldAll,
		OwnFaults: c.Placing.Statements == config.StatementsOwn,
		FaultHalf: c.Placing.FaultHalfLife,
		Standbys:  standbysOf(c), Controller: controllingOf(c),
		Policy: policy, Planning: planningOf(c), Closed: closedTimes(c.Owner.Hours),
	}, nil
}

// ownerOf gives the rules by which the site yields to its owner.
func ownerOf(o config.Owner) agent.Owner {
	rules := yield.DefaultRules()
	const milli = 1000
	rules.Reserve = float64(o.ReserveMilli) / milli
	return agent.Owner{
		Yield: o.Yield, Rules: rules, Hours: o.Hours, Patience: o.Patience,
		MoveAfter: o.MoveAfter, FreeDisk: o.FreeDisk, Root: o.Root, Mains: !o.Battery,
		Hook: o.Hook, Input: o.Input, Remote: o.Remote, Heat: int(o.Heat), Unmetered: !o.Metered,
		InUse: agent.InUse{
			InUse:     yield.InUse{Cores: int(o.InUse.CPUs), Memory: int(o.InUse.Memory)},
			UploadBps: o.InUse.UpBps, DownloadBps: o.InUse.DownBps,
		},
	}
}

// standbysOf gives the owner's settings of standbys. Where anyone may take part nobody is kept
// anything for without being asked.
func standbysOf(c config.Agent) agent.Standbys {
	s := agent.Standbys{
		Count: c.Standby.Count, Data: c.Standby.DataBytes,
		Accept: c.Standby.Accept == config.StandbyDomain && c.Accept != "anyone",
	}
	if c.Preset == config.PresetWAN {
		s.ElectionTimeout = 5 * time.Second
	}
	return s
}

// controllingOf gives the settings of the domain's controller. Where anyone may take part nobody is
// trusted with it.
func controllingOf(c config.Agent) agent.Controlling {
	const milli = 1000
	known := c.Accept != "anyone"
	return agent.Controlling{
		Found: c.Control.Found && known, Accept: c.Control.Accept == config.StandbyDomain && known,
		Weight: float64(c.Control.WeightMilli) / milli, Share: c.Control.Share,
		Slot: c.Control.Slot, AllNodes: c.Control.AllNodes, Fines: c.Control.Fines,
		Prices: c.Control.Prices,
	}
}

// planningOf gives the owner's settings of the site's plan. Only where anyone may
// submit are others strangers.
func planningOf(c config.Agent) agent.Planning {
	p := c.Planning
	planning := agent.Planning{
		Policy: p.Policy, Backfill: p.Backfill, Horizon: p.Horizon, Promised: int(p.Promised),
		Submitter: int(p.Submitter),
		Project:   int(p.Project), Ahead: p.Ahead, Longest: p.Longest, Fairshare: p.Fairshare,
		Overestimate: p.Overestimate,
	}
	if c.Accept == "anyone" {
		planning.Strangers = int(p.Strangers)
	}
	return planning
}

// closedTimes are the times of the week outside of the owner's hours.
func closedTimes(h yield.Hours) []avail.Window {
	var windows []avail.Window
	for _, c := range h.Closed() {
		windows = append(windows, avail.Window{From: c.From.Seconds(), To: c.To.Seconds()})
	}
	return windows
}

// version names the build: the same name means the same program.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	parts := []string{info.Main.Version}
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			parts = append(parts, s.Value)
		case s.Key == "vcs.modified" && s.Value == "true":
			parts = append(parts, "modified")
		}
	}
	return strings.Join(parts, "+")
}
