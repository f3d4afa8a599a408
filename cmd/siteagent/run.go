package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
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
	"github.com/mrsmesh/mrsmesh/internal/obs"
	"github.com/mrsmesh/mrsmesh/internal/owner"
	"github.com/mrsmesh/mrsmesh/internal/p2p"
	"github.com/mrsmesh/mrsmesh/pkg/avail"
	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/yield"
)

func runCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "run", Short: "Run this site until it is stopped", Args: noArgs,
		Long: `Run this site until it is stopped: by ^C, by SIGTERM, or by siteagent stop.

The first start makes the site's identity. Jobs that run here when the agent
ends are ended, too; their submitters continue them on other sites.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := o.load()
			if err != nil {
				return err
			}
			return run(cmd.Context(), c)
		},
	}
}

// run makes the agent from its configuration and lets it live.
func run(ctx context.Context, c config.Agent) error {
	signal.Reset(syscall.SIGPIPE) // jobs would inherit that it is ignored
	log, err := obs.NewLogger(os.Stderr, c.Log.Format, c.Log.Level)
	if err != nil {
		return usageError{err}
	}
	if err = os.MkdirAll(c.StateDir, 0o700); err != nil {
		return fmt.Errorf("make the state directory: %w", err)
	}
	metrics := obs.NewRegistry()
	settings, err := assemble(ctx, c, metrics, log)
	if err != nil {
		return err
	}
	owner.BePolite()
	a, err := agent.New(ctx, settings)
	if err != nil {
		return err
	}
	server, err := serve(ctx, c, a, metrics, log)
	if err != nil {
		return errors.Join(err, a.Close())
	}
	log.Info("the site is up", "site", string(a.Self()), "name", c.Name, "domain", string(c.Domain), "addresses", a.Addrs())
	live, end := context.WithCancel(ctx)
	defer end()
	group := &errgroup.Group{}
	group.Go(func() error { defer end(); return server.Serve(live) })
	group.Go(func() error { defer end(); return a.Run(live) })
	err = errors.Join(group.Wait(), a.Close())
	log.Info("the site is down")
	return err
}

func serve(ctx context.Context, c config.Agent, a *agent.Agent, metrics *obs.Registry, log *slog.Logger) (*api.Server, error) {
	options := api.Options{Listen: c.API.Listen, Metrics: metrics.Handler(), Debug: c.API.Debug, Logger: log}
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
	server, err := api.New(backend.New(a), options)
	if err != nil {
		return nil, err
	}
	return server, server.Listen(ctx)
}

// probeEvery is the pause between two small measurements of links of which no
// transfer has told anything: 1.25 MiB at most, from a peer once a day.
const probeEvery = time.Minute

// secret is a number that nobody can guess.
func secret() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails: it would end the program
	return binary.LittleEndian.Uint64(b[:])
}

// assemble turns the configuration into the agent's parts.
func assemble(ctx context.Context, c config.Agent, metrics *obs.Registry, log *slog.Logger) (agent.Config, error) {
	offered, err := makeAdapters(ctx, c, log)
	if err != nil {
		return agent.Config{}, err
	}
	host := probeHost(ctx, c, slices.Sorted(maps.Keys(offered.adapters)), log)
	capability := host.Capability(host.Measured)
	if err := capability.Validate(); err != nil {
		return agent.Config{}, err
	}
	network := p2p.Config{
		KeyFile: filepath.Join(c.StateDir, "identity.key"), AddressFile: filepath.Join(c.StateDir, "peers.json"),
		Listen: c.Listen, Domain: c.Domain, AcceptAnyone: c.Accept == "anyone",
		Bootstrap: c.Bootstrap, Preset: p2p.Preset(c.Preset), Registry: metrics, MDNS: c.MDNS, DHT: c.DHT,
		NAT: p2p.NAT{
			Relay: p2p.RelayRole(c.NAT.Relay), Punch: c.NAT.Punch, MapPort: c.NAT.MapPort,
			Reachability: p2p.Reachability(c.NAT.Reachability),
		},
	}
	if !network.AcceptAnyone {
		network.Allow = c.Members()
	}
	room := data.Config{QuotaBytes: c.Data.QuotaBytes, UploadBps: c.Rates.UpBps, DownloadBps: c.Rates.DownBps, Metrics: metrics, Log: log}
	if c.Rates.Probe {
		room.ProbeEvery = probeEvery
	}
	return agent.Config{
		StateDir: c.StateDir, Version: version(), Name: c.Name, P2P: network, DomainKey: c.DomainKey,
		Data:       room,
		Capability: capability, Adapters: offered.adapters, Notices: offered.notices, Walls: append(offered.walls, rateWalls(c.Rates)...), Owner: ownerOf(c.Owner), Host: host,
		OutputBytes: 16 << 20, MaxRuntime: c.Jobs.MaxRuntime, Seed: secret(),
		Priced: c.Price.Named, Price: c.Price.CoreHour,
		Metrics: metrics, Log: log,
		Lease: c.Lease.Length, LeaseMargin: c.Lease.Margin, KeepEnded: c.Data.Keep, WasmOnly: c.Accept == "anyone",
		SoftMin: c.Placing.Choice == config.ChoiceSoftMin, Replies: c.Placing.Replies, HoldAll: c.Placing.HoldAll,
		Policy: policyOf(c.Placing.Policy), Planning: planningOf(c), Closed: closedTimes(c.Owner.Hours),
	}, nil
}

// ownerOf is when the site makes way for its owner.
func ownerOf(o config.Owner) agent.Owner {
	rules := yield.DefaultRules()
	const milli = 1000
	rules.Reserve = float64(o.ReserveMilli) / milli
	return agent.Owner{Yield: o.Yield, Rules: rules, Hours: o.Hours, Patience: o.Patience, Root: o.Root}
}

// planningOf is what the owner decides about the site's plan. Only where anyone may
// submit are others strangers.
func planningOf(c config.Agent) agent.Planning {
	p := c.Planning
	planning := agent.Planning{
		Policy: p.Policy, Backfill: p.Backfill, Horizon: p.Horizon, Promised: int(p.Promised), Submitter: int(p.Submitter),
		Project: int(p.Project), Ahead: p.Ahead, Longest: p.Longest, Fairshare: p.Fairshare, Overestimate: p.Overestimate,
	}
	if c.Accept == "anyone" {
		planning.Strangers = int(p.Strangers)
	}
	return planning
}

// policyOf is a policy by its name, which was validated.
func policyOf(name string) broker.Policy {
	switch name {
	case config.PolicySAA:
		return broker.PolicySAA
	case config.PolicyNAA:
		return broker.PolicyNAA
	case config.PolicyNSA:
		return broker.PolicyNSA
	default:
		return broker.PolicyNone
	}
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
