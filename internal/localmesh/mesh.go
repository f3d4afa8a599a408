package localmesh

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
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Gift holds the ceilings of what an owner gives to the mesh.
type Gift struct {
	Name   string
	Cores  int64
	GFLOPS int64
	Memory int64 // MiB
}

// Agent is one site's process.
type Agent struct {
	Gift
	Config config.Agent // as it is started
	ID     grid.SiteID
	API    *client.Client

	Process *os.Process
	Exited  chan struct{} // closed when the process is gone
	Ended   time.Time     // when; read after Exited is closed
	Deaths  []time.Time   // when its earlier processes ended, ascending

	file string // the configuration's
	log  string
}

// Mesh is some agents on this machine. The first is the one to submit to.
type Mesh struct {
	Agents []*Agent
	// Command makes the command that runs an agent's program, as in a network namespace of
	// its own; nil: it runs as it is.
	Command func(ctx context.Context, a *Agent, program string, args ...string) *exec.Cmd

	// Founded: the first agent makes the domain's key, which the others believe, as sites do that
	// joined by an invitation. Else there is none.
	Founded bool

	place  *Place
	binary string
}

const (
	readyLimit = 30 * time.Second // for an agent to answer
	meetLimit  = 30 * time.Second // for all to see each other
	stopGrace  = 5 * time.Second  // for an agent to end by itself
	poll       = 50 * time.Millisecond
)

// New makes the configurations of agents of a domain; binary is the siteagent
// program. The gifts may well be more than this machine has: the sites do not know
// that they share it. tune may change each configuration; nil leaves them.
func New(p *Place, binary, domain string, gifts []Gift, tune func(*config.Agent)) *Mesh {
	m := &Mesh{place: p, binary: binary}
	for _, g := range gifts {
		a := &Agent{
			Gift: g, Config: configure(p, domain, g), file: p.File(g.Name + ".yaml"),
			log: p.File(g.Name + ".log"),
		}
		if tune != nil {
			tune(&a.Config)
		}
		m.Agents = append(m.Agents, a)
	}
	return m
}

// configure is an agent's configuration: it listens on a free port of the
// loopback interface and answers on a socket in our directory.
func configure(p *Place, domain string, g Gift) config.Agent {
	c := config.Default(config.PresetTest, func(string) (string, bool) { return "", false })
	c.StateDir, c.Name, c.Domain = p.File(g.Name), g.Name, grid.DomainID(domain)
	c.Ceilings = config.Ceilings{
		MilliCPUs: g.Cores * 1000, MemoryBytes: g.Memory << 20, DiskBytes: 1 << 30,
		MFLOPS: g.GFLOPS * 1000,
	}
	// Long for a test, because the machine is busy.
	c.Lease.Length, c.Lease.Margin = 2*time.Second, 500*time.Millisecond
	c.API = config.API{Socket: p.File(g.Name + ".sock")}
	return c
}

// Submitter is the agent to submit to.
func (m *Mesh) Submitter() *Agent { return m.Agents[0] }

// Start brings the mesh up and returns when every agent sees every other.
func (m *Mesh) Start(ctx context.Context, out *Screen) error {
	if err := supported(); err != nil {
		return err
	}
	if err := m.introduce(ctx); err != nil {
		return err
	}
	for i, a := range m.Agents {
		if i > 0 { // one address is enough: the others are learned from each other
			status, err := m.Submitter().API.Status(ctx)
			if err != nil {
				return fmt.Errorf("ask %s for its addresses: %w", m.Submitter().Name, err)
			}
			a.Config.Bootstrap = status.Addresses
		}
		if err := m.Launch(ctx, a); err != nil {
			return err
		}
		if i == 0 {
			if err := a.AwaitReady(ctx); err != nil {
				return err
			}
			if err := m.found(ctx); err != nil {
				return err
			}
		}
	}
	return Await(ctx, meetLimit, "the agents to see each other",
		func(ctx context.Context) (bool, error) {
			return m.whole(ctx, out)
		})
}

// found has the first agent make the domain's key, as it does with the first invitation.
func (m *Mesh) found(ctx context.Context) error {
	if !m.Founded {
		return nil
	}
	api := m.Submitter().API
	if _, err := api.Invite(ctx, view.InviteTerms{Span: time.Minute, Uses: 1}); err != nil {
		return fmt.Errorf("make the domain's key: %w", err)
	}
	links, err := api.Links(ctx)
	if err != nil {
		return fmt.Errorf("ask for the domain's key: %w", err)
	}
	for _, a := range m.Agents {
		a.Config.DomainKey = links.DomainKey
	}
	return nil
}

// introduce makes the agents' identities and puts them on each other's lists.
func (m *Mesh) introduce(ctx context.Context) error {
	var ids []grid.SiteID
	for _, a := range m.Agents {
		if err := a.writeConfig(); err != nil {
			return err
		}
		cmd := exec.CommandContext( //nolint:gosec // G204: our own program
			ctx, m.binary, "init", "--config", a.file,
		)
		cmd.Env = m.place.environment()
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		said, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("siteagent init: %w\n%s", err, stderr.String())
		}
		a.ID = grid.SiteID(strings.TrimSpace(string(said)))
		if err := a.ID.Validate(); err != nil {
			return fmt.Errorf("siteagent init: %w", err)
		}
		ids = append(ids, a.ID)
	}
	for _, a := range m.Agents {
		a.Config.Peers = ids
	}
	return nil
}

func (a *Agent) writeConfig() error {
	if err := a.Config.Validate(); err != nil {
		return fmt.Errorf("configuration of %s: %w", a.Name, err)
	}
	if err := os.WriteFile(a.file, a.Config.File(), 0o600); err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	return nil
}

// Launch starts an agent's process, for the first time or again, and watches for its end.
func (m *Mesh) Launch(ctx context.Context, a *Agent) error {
	err := a.writeConfig()
	if err != nil {
		return err
	}
	if a.API == nil {
		if a.API, err = client.New("unix:"+a.Config.API.Socket, ""); err != nil {
			return err
		}
	}
	if a.Process != nil {
		<-a.Exited
		a.Deaths = append(a.Deaths, a.Ended)
	}
	log, err := os.OpenFile(a.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	defer func() { _ = log.Close() }() // the agent has its own descriptor
	// Stop ends the agent, not the context: it is given time to end well.
	cmd := m.command(context.WithoutCancel(ctx), a, "run", "--config", a.file)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = m.place.environment(), m.place.Dir, log, log
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", a.Name, err)
	}
	a.Process, a.Exited = cmd.Process, make(chan struct{})
	go func() {
		_ = cmd.Wait() // how it ended is told by its log
		a.Ended = time.Now()
		close(a.Exited)
	}()
	return nil
}

func (m *Mesh) command(ctx context.Context, a *Agent, args ...string) *exec.Cmd {
	if m.Command != nil {
		return m.Command(ctx, a, m.binary, args...)
	}
	cmd := exec.CommandContext(ctx, m.binary, args...) //nolint:gosec // G204: our own program
	separate(cmd)
	return cmd
}

// AwaitReady waits until the agent answers.
func (a *Agent) AwaitReady(ctx context.Context) error {
	return Await(ctx, readyLimit, a.Name+" to answer", a.ready)
}

// Running reports whether the process is there.
func (a *Agent) Running() bool {
	if a.Process == nil {
		return false
	}
	select {
	case <-a.Exited:
		return false
	default:
		return true
	}
}

// ready reports whether the agent answers.
func (a *Agent) ready(ctx context.Context) (bool, error) {
	if !a.Running() {
		return false, fmt.Errorf("agent %s ended by itself", a.Name)
	}
	_, err := a.API.Status(ctx) // if it fails it is asked again
	return err == nil, nil
}

// whole reports whether every agent sees every other.
func (m *Mesh) whole(ctx context.Context, out *Screen) (bool, error) {
	pairs := 0
	for _, a := range m.Agents {
		ready, err := a.ready(ctx)
		if err != nil {
			return false, err
		}
		if !ready {
			continue
		}
		rows, err := a.API.Sites(ctx)
		if err != nil {
			continue
		}
		for _, row := range rows {
			if row.Connected && !row.Self {
				pairs++
			}
		}
	}
	all := len(m.Agents) * (len(m.Agents) - 1)
	out.Progress("starting %d agents: %d of %d connections seen", len(m.Agents), pairs, all)
	return pairs == all, nil
}

// Lost reports an agent that ended though nobody killed it.
func (m *Mesh) Lost(victim *Agent) error {
	for _, a := range m.Agents {
		if a != victim && !a.Running() {
			return fmt.Errorf("agent %s ended by itself", a.Name)
		}
	}
	return nil
}

// Stop ends every process that was started and waits until all are gone, the
// agents' own children included. It may be called again.
func (m *Mesh) Stop(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx) // after ^C as well
	for _, a := range m.Agents {
		if a.Running() {
			_ = a.Process.Signal(os.Interrupt) // one that is gone needs none
		}
	}
	grace := time.After(stopGrace)
	for _, a := range m.Agents {
		if a.Process == nil {
			continue
		}
		select {
		case <-a.Exited:
		case <-grace:
			grace = time.After(0) // the others have had their time, too
			_ = a.Process.Kill()
			<-a.Exited
		}
		a.API.Close()
	}
	var errs []error
	for _, a := range m.Agents {
		if err := a.awaitChildren(ctx); err != nil {
			errs = append(errs, fmt.Errorf("%w: end what %s ran: %w", errLeftover, a.Name, err))
		}
	}
	return errors.Join(errs...)
}

// ConfigFile is the file that the agent reads its settings from.
func (a *Agent) ConfigFile() string { return a.file }

// RunRecord returns the file in which the agent's supervisors record what they run.
func (a *Agent) RunRecord() string { return filepath.Join(a.Config.StateDir, "runs.jsonl") }

// awaitChildren waits for the supervisors of an agent that was killed: they see
// its end and end themselves and what they run.
func (a *Agent) awaitChildren(ctx context.Context) error {
	if _, err := os.Stat(a.RunRecord()); errors.Is(err, fs.ErrNotExist) {
		return nil // it never ran anything
	}
	return supervise.Recover(ctx, a.RunRecord())
}

// Explain adds what the agents complained about last to an error.
func (m *Mesh) Explain(err error) error {
	for _, a := range m.Agents {
		if text := lastLines(a.log, 5); text != "" {
			err = fmt.Errorf("%w\n--- the end of %s's log:\n%s", err, a.Name, text)
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

// Await asks until the condition holds.
func Await(
	ctx context.Context, limit time.Duration, what string, holds func(context.Context) (bool, error),
) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("waited %s for %s", limit, what))
	defer cancel()
	for {
		ok, err := holds(ctx)
		if ok || err != nil {
			return err
		}
		if err := Pause(ctx); err != nil {
			return err
		}
	}
}

// Pause waits a little, or until the context ends.
func Pause(ctx context.Context) error {
	timer := time.NewTimer(poll)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
