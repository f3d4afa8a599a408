package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/api/client"
	"github.com/mrsmesh/mrsmesh/internal/config"
	"github.com/mrsmesh/mrsmesh/internal/lrm/supervise"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// gift is what an owner gives to the mesh.
type gift struct {
	name   string
	cores  int64
	gflops int64
	memory int64 // MiB
}

// gifts are five owners' ceilings. They may well be more than this machine has:
// the sites do not know that they share it.
func gifts() []gift {
	return []gift{
		{"anna", 1, 4, 1024}, {"ben", 2, 12, 2048}, {"cleo", 1, 6, 1024}, {"dora", 2, 8, 1536}, {"emil", 1, 5, 768},
	}
}

// agent is one site's process.
type agent struct {
	gift
	config config.Agent
	file   string // the configuration's
	log    string
	id     grid.SiteID
	api    *client.Client

	process *os.Process
	exited  chan struct{} // closed when the process is gone
	ended   time.Time     // when; read after exited is closed
}

// mesh is all five of them. The first is the one that we submit to.
type mesh struct {
	place  *place
	binary string
	agents []*agent
}

const (
	domain     = "quickstart"
	readyLimit = 30 * time.Second // for an agent to answer
	meetLimit  = 30 * time.Second // for all to see each other
	stopGrace  = 5 * time.Second  // for an agent to end by itself
	poll       = 50 * time.Millisecond
)

func newMesh(p *place, binary string) *mesh {
	m := &mesh{place: p, binary: binary}
	for _, g := range gifts() {
		m.agents = append(m.agents, &agent{
			gift: g, config: configure(p, g), file: p.file(g.name + ".yaml"), log: p.file(g.name + ".log"),
		})
	}
	return m
}

// configure is an agent's configuration: it listens on a free port of the
// loopback interface and answers on a socket in our directory.
func configure(p *place, g gift) config.Agent {
	c := config.Default(config.PresetTest, func(string) (string, bool) { return "", false })
	c.StateDir, c.Name, c.Domain = p.file(g.name), g.name, domain
	c.Ceilings = config.Ceilings{
		MilliCPUs: g.cores * 1000, MemoryBytes: g.memory << 20, DiskBytes: 1 << 30, MFLOPS: g.gflops * 1000,
	}
	c.Lease = config.Lease{Length: 2 * time.Second, Margin: 500 * time.Millisecond} // the machine is busy
	c.API = config.API{Socket: p.file(g.name + ".sock")}
	return c
}

func (m *mesh) submitter() *agent { return m.agents[0] }

// start brings the mesh up and returns when every agent sees every other.
func (m *mesh) start(ctx context.Context, out *screen) error {
	if err := supported(); err != nil {
		return err
	}
	if err := m.introduce(ctx); err != nil {
		return err
	}
	for i, a := range m.agents {
		if i > 0 { // one address is enough: the others are learned from each other
			status, err := m.submitter().api.Status(ctx)
			if err != nil {
				return fmt.Errorf("ask %s for its addresses: %w", m.submitter().name, err)
			}
			a.config.Bootstrap = status.Addresses
		}
		if err := m.launch(ctx, a); err != nil {
			return err
		}
		if i == 0 {
			if err := await(ctx, readyLimit, a.name+" to answer", a.ready); err != nil {
				return err
			}
		}
	}
	return await(ctx, meetLimit, "the agents to see each other", func(ctx context.Context) (bool, error) {
		return m.whole(ctx, out)
	})
}

// introduce makes the agents' identities and puts them on each other's lists.
func (m *mesh) introduce(ctx context.Context) error {
	var ids []grid.SiteID
	for _, a := range m.agents {
		if err := a.writeConfig(); err != nil {
			return err
		}
		cmd := exec.CommandContext(ctx, m.binary, "init", "--config", a.file) //nolint:gosec // G204: what we built ourselves
		cmd.Env = m.place.environment()
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		said, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("siteagent init: %w\n%s", err, stderr.String())
		}
		a.id = grid.SiteID(strings.TrimSpace(string(said)))
		if err := a.id.Validate(); err != nil {
			return fmt.Errorf("siteagent init: %w", err)
		}
		ids = append(ids, a.id)
	}
	for _, a := range m.agents {
		a.config.Peers = ids
	}
	return nil
}

func (a *agent) writeConfig() error {
	if err := a.config.Validate(); err != nil {
		return fmt.Errorf("configuration of %s: %w", a.name, err)
	}
	if err := os.WriteFile(a.file, a.config.File(), 0o600); err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	return nil
}

// launch starts an agent's process and watches for its end.
func (m *mesh) launch(ctx context.Context, a *agent) error {
	err := a.writeConfig()
	if err != nil {
		return err
	}
	if a.api, err = client.New("unix:"+a.config.API.Socket, ""); err != nil {
		return err
	}
	log, err := os.OpenFile(a.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	defer func() { _ = log.Close() }() // the agent has its own descriptor
	// stop ends the agent, not the context: it is given time to end well.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), m.binary, "run", "--config", a.file) //nolint:gosec // G204: as above
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = m.place.environment(), m.place.dir, log, log
	separate(cmd)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", a.name, err)
	}
	a.process, a.exited = cmd.Process, make(chan struct{})
	go func() {
		_ = cmd.Wait() // how it ended is told by its log
		a.ended = time.Now()
		close(a.exited)
	}()
	return nil
}

func (a *agent) running() bool {
	if a.process == nil {
		return false
	}
	select {
	case <-a.exited:
		return false
	default:
		return true
	}
}

// ready reports whether the agent answers.
func (a *agent) ready(ctx context.Context) (bool, error) {
	if !a.running() {
		return false, fmt.Errorf("agent %s ended by itself", a.name)
	}
	_, err := a.api.Status(ctx) // if it fails it is asked again
	return err == nil, nil
}

// whole reports whether every agent sees every other.
func (m *mesh) whole(ctx context.Context, out *screen) (bool, error) {
	pairs := 0
	for _, a := range m.agents {
		ready, err := a.ready(ctx)
		if err != nil {
			return false, err
		}
		if !ready {
			continue
		}
		rows, err := a.api.Sites(ctx)
		if err != nil {
			continue
		}
		for _, row := range rows {
			if row.Connected && !row.Self {
				pairs++
			}
		}
	}
	all := len(m.agents) * (len(m.agents) - 1)
	out.progress("starting %d agents: %d of %d connections seen", len(m.agents), pairs, all)
	return pairs == all, nil
}

// lost reports an agent that ended though nobody killed it.
func (m *mesh) lost(victim *agent) error {
	for _, a := range m.agents {
		if a != victim && !a.running() {
			return fmt.Errorf("agent %s ended by itself", a.name)
		}
	}
	return nil
}

// stop ends every process that was started and waits until all are gone, the
// agents' own children included. It may be called again.
func (m *mesh) stop(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx) // after ^C as well
	for _, a := range m.agents {
		if a.running() {
			_ = a.process.Signal(os.Interrupt) // one that is gone needs none
		}
	}
	grace := time.After(stopGrace)
	for _, a := range m.agents {
		if a.process == nil {
			continue
		}
		select {
		case <-a.exited:
		case <-grace:
			grace = time.After(0) // the others have had their time, too
			_ = a.process.Kill()
			<-a.exited
		}
		a.api.Close()
	}
	var errs []error
	for _, a := range m.agents {
		if err := a.awaitChildren(ctx); err != nil {
			errs = append(errs, fmt.Errorf("%w: end what %s ran: %w", errLeftover, a.name, err))
		}
	}
	return errors.Join(errs...)
}

// runRecord is where the agent's supervisors write down what they run.
func (a *agent) runRecord() string { return filepath.Join(a.config.StateDir, "runs.jsonl") }

// awaitChildren waits for the supervisors of an agent that was killed: they see
// its end and end themselves and what they run.
func (a *agent) awaitChildren(ctx context.Context) error {
	if _, err := os.Stat(a.runRecord()); errors.Is(err, fs.ErrNotExist) {
		return nil // it never ran anything
	}
	return supervise.Recover(ctx, a.runRecord())
}

// explain adds what the agents complained about last to an error.
func (m *mesh) explain(err error) error {
	for _, a := range m.agents {
		if text := lastLines(a.log, 5); text != "" {
			err = fmt.Errorf("%w\n--- the end of %s's log:\n%s", err, a.name, text)
		}
	}
	return err
}

func lastLines(file string, n int) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return "" // it was never started
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// await asks until the condition holds.
func await(ctx context.Context, limit time.Duration, what string, holds func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("waited %s for %s", limit, what))
	defer cancel()
	for {
		ok, err := holds(ctx)
		if ok || err != nil {
			return err
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
}

// pause waits a little, or until the context ends.
func pause(ctx context.Context) error {
	timer := time.NewTimer(poll)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
