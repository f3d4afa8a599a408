package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/api/client"
	"github.com/mrsmesh/mrsmesh/internal/config"
	"github.com/mrsmesh/mrsmesh/internal/p2p"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// farm is a mesh of agents in processes of their own. It can grow.
type farm struct {
	dir      string
	program  string // siteagent, stripped
	members  []grid.SiteID
	sites    []*process
	standbys int  // that the first site wants
	low      bool // jobs get a small share of the processor in any case, also on a busy machine
}

// process is one agent.
type process struct {
	config config.Agent
	cmd    *exec.Cmd
	ended  chan struct{} // closed when the process is gone
	api    *client.Client
	board  *board
	deaf   context.CancelFunc // ends the reading of events
	read   chan struct{}      // closed when nobody reads events any more
}

// newFarm makes the identities of the sites that it may grow to.
func newFarm(dir, program string, most int) (*farm, error) {
	f := &farm{dir: filepath.Join(dir, "farm"), program: program}
	if err := os.Chmod(dir, 0o711); err != nil { //nolint:gosec // G302: the owner's user passes it
		return nil, err
	}
	for i := range most {
		state := f.state(i)
		if err := os.MkdirAll(state, 0o700); err != nil {
			return nil, err
		}
		identity, err := p2p.LoadIdentity(filepath.Join(state, "identity.key"))
		if err != nil {
			return nil, err
		}
		f.members = append(f.members, identity.Site())
	}
	return f, giveToOwner(f.dir)
}

func (f *farm) state(i int) string { return filepath.Join(f.dir, fmt.Sprintf("s%d", i)) }

// configure is a site's configuration: that of a local network, with capacity for
// more jobs than there are submitters, because the sites do not know that they
// share one machine.
func (f *farm) configure(ctx context.Context, i int) (config.Agent, error) {
	c := config.Default(config.PresetLAN, func(string) (string, bool) { return "", false })
	c.StateDir, c.Name, c.Domain, c.Peers = f.state(i), fmt.Sprintf("s%d", i), "bench", f.members
	c.Listen = []string{"/ip4/127.0.0.1/tcp/0"}
	c.Kinds = []grid.WorkKind{grid.KindWasm, grid.KindCommand}
	c.Commands = config.CommandsUnbounded // an ordinary user without a service may make no groups
	c.TES.Images = []string{"any"}
	c.Ceilings = config.Ceilings{
		MilliCPUs: 32_000, MemoryBytes: 16 << 30, DiskBytes: 16 << 30, MFLOPS: 128_000,
	}
	c.API = config.API{Socket: filepath.Join(f.dir, fmt.Sprintf("s%d.sock", i)), Debug: true}
	c.Log.Level = "warn"
	if f.low {
		c.Owner.Priority = "low"
	}
	if i == 0 {
		c.Standby.Count = f.standbys
	}
	if i > 0 {
		status, err := f.sites[0].api.Status(ctx)
		if err != nil {
			return c, err
		}
		c.Bootstrap = status.Addresses
	}
	return c, c.Validate()
}

// grow starts sites until there are n, and waits until all see each other.
func (f *farm) grow(ctx context.Context, n int) error {
	for i := len(f.sites); i < n; i++ {
		c, err := f.configure(ctx, i)
		if err != nil {
			return fmt.Errorf("site %d: %w", i, err)
		}
		p, err := f.launch(ctx, c)
		if err != nil {
			return fmt.Errorf("site %d: %w", i, err)
		}
		f.sites = append(f.sites, p)
		if i == 0 {
			if err := await(ctx, time.Minute, "the first agent to answer", func() bool {
				return p.peers(ctx) == 0
			}); err != nil {
				return p.explain(err)
			}
		}
	}
	for _, p := range f.sites {
		whole := func() bool { return p.peers(ctx) == n-1 }
		if err := await(
			ctx, 2*time.Minute, fmt.Sprintf("%s to see %d sites", p.config.Name, n-1), whole,
		); err != nil {
			return p.explain(err)
		}
	}
	return nil
}

// launch starts an agent.
func (f *farm) launch(ctx context.Context, c config.Agent) (*process, error) {
	file := filepath.Join(f.dir, c.Name+".yaml")
	if err := os.WriteFile(file, chosen(c), 0o644); err != nil { //nolint:gosec // G306: no secret
		return nil, err
	}
	log, err := os.Create(filepath.Join(f.dir, c.Name+".log"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }() // the agent has its own descriptor
	p := &process{config: c, ended: make(chan struct{}), board: newBoard()}
	if p.api, err = client.New(c.API.Socket, ""); err != nil {
		return nil, err
	}
	// close ends the agent, not the context: it is given time to end well.
	p.cmd = exec.CommandContext( //nolint:gosec // G204: our own program
		context.WithoutCancel(ctx), f.program, "run", "--config", file,
	)
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.Dir = log, log, f.dir
	p.cmd.Env = append(os.Environ(), "HOME="+f.dir, "TMPDIR=")
	asOwner(p.cmd)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = p.cmd.Wait() // its log says how it ended
		close(p.ended)
	}()
	p.listen(ctx)
	return p, nil
}

// listen reads the agent's events from now on, which costs both about as much as their jobs where
// these are small.
func (p *process) listen(ctx context.Context) {
	ctx, p.deaf = context.WithCancel(ctx)
	p.read = make(chan struct{})
	go func() {
		defer close(p.read)
		_ = p.api.Events(ctx, 0, time.Minute, p.board.note)
	}()
}

// unwatched does something while nobody reads the events of the farm's agents.
func (f *farm) unwatched(ctx context.Context, do func() error) error {
	for _, p := range f.sites {
		p.deaf()
		<-p.read
	}
	err := do()
	for _, p := range f.sites {
		p.listen(ctx)
	}
	return err
}

// peers returns how many sites the agent sees, -1 if it does not answer.
func (p *process) peers(ctx context.Context) int {
	status, err := p.api.Status(ctx)
	if err != nil {
		return -1
	}
	return status.Peers
}

// explain adds the end of the agent's log.
func (p *process) explain(err error) error {
	text, _ := os.ReadFile(strings.TrimSuffix(p.config.API.Socket, ".sock") + ".log")
	return fmt.Errorf("%w; the log of %s ends: %s", err, p.config.Name, text[max(0, len(text)-1000):])
}

// offers reports whether the site runs a kind of work, and what it says if not.
func (p *process) offers(ctx context.Context, kind grid.WorkKind) error {
	status, err := p.api.Status(ctx)
	if err != nil {
		return err
	}
	if strings.Contains(strings.Join(status.Kinds, " "), kind.String()) {
		return nil
	}
	var why []string
	for _, n := range status.Notices {
		why = append(why, n.Text)
	}
	return errors.New("commands do not run here: " + strings.Join(why, "; "))
}

// close ends all agents and gives how many had to be killed: many agents that
// share few cores may need longer than they get here, which spoils no figure.
func (f *farm) close() (killed int) {
	for _, p := range f.sites {
		p.deaf()
		_ = p.cmd.Process.Signal(syscall.SIGTERM) // one that is gone needs none
	}
	late := time.After(30 * time.Second)
	for _, p := range f.sites {
		select {
		case <-p.ended:
		case <-late:
			late = time.After(0) // the others have had their time, too
			killed++
			_ = p.cmd.Process.Kill() // it may have ended just now
			<-p.ended
		}
		<-p.read
		p.api.Close()
	}
	return killed
}

// board notes when a submitter sees what happens to its jobs.
type board struct {
	mu   sync.Mutex
	jobs map[grid.JobID]*news
}

// news holds what the submitter knows of a job. Its fields are read after ended was
// closed.
type news struct {
	placed, finished time.Time
	good             bool
	ended            chan struct{}
}

func newBoard() *board { return &board{jobs: make(map[grid.JobID]*news)} }

// job is the news of a job, before or after the first came.
func (b *board) job(id grid.JobID) *news {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.find(id)
}

func (b *board) find(id grid.JobID) *news {
	n, known := b.jobs[id]
	if !known {
		n = &news{ended: make(chan struct{})}
		b.jobs[id] = n
	}
	return n
}

// note takes an event.
func (b *board) note(e view.Event) error {
	if e.Job == "" {
		return nil
	}
	now := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.find(e.Job)
	switch e.Kind {
	case "awarded":
		if n.placed.IsZero() {
			n.placed = now
		}
	case "task_done":
		n.good = true
	case "job_ended":
		if n.finished.IsZero() {
			n.finished = now
			close(n.ended)
		}
	}
	return nil
}
