package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"

	"github.com/mrsmesh/mrsmesh/internal/localmesh"
	"github.com/mrsmesh/mrsmesh/internal/netlab"
)

const (
	agentPort  = 4801     // each agent has an address of its own
	diskBytes  = 96 << 20 // of a small disk
	smallDisks = 2        // how many agents have one
	submitters = 3        // how many agents take jobs; they run some, too
	standbys   = 2        // how many agents keep the jobs of each of them, too
)

// site is an agent and its machine.
type site struct {
	*localmesh.Agent
	host *netlab.Host
	disk string // where its state lies, if that is a disk of its own; else empty
	lost []lost // its earlier disks
}

// mesh is all sites, in one lab and below one directory.
type mesh struct {
	*localmesh.Mesh
	place *localmesh.Place
	keep  bool // the place stays, for a look at what went wrong
	lab   *netlab.Lab
	sites []*site
}

// newMesh builds the agent's program and makes the sites; none is started.
func newMesh(ctx context.Context, agents int, tags string) (m *mesh, err error) {
	m = &mesh{}
	if m.place, err = localmesh.MakePlace("mrs-chaos-"); err != nil {
		return nil, err
	}
	if m.lab, err = netlab.New(ctx); err != nil {
		return nil, errors.Join(err, m.place.Remove())
	}
	program, err := m.place.Build(ctx, "siteagent", "cmd/siteagent", nil, "-tags="+tags)
	if err != nil {
		return nil, errors.Join(err, m.close(ctx))
	}
	var gifts []localmesh.Gift
	for i := range agents {
		gifts = append(gifts, localmesh.Gift{
			Name: fmt.Sprintf("s%02d", i), Cores: 4, GFLOPS: 8, Memory: 4096,
		})
	}
	m.Mesh = localmesh.New(m.place, program, "chaos", gifts, nil)
	for i, a := range m.Agents {
		s := &site{Agent: a}
		m.sites = append(m.sites, s)
		if i < submitters {
			s.Config.Standby.Count = standbys
		}
		if err = m.house(ctx, s, i >= agents-smallDisks); err != nil {
			return nil, errors.Join(err, m.close(ctx))
		}
	}
	m.Command = m.inNamespace
	return m, nil
}

// house gives a site its machine: a host in the lab, a disk.
func (m *mesh) house(ctx context.Context, s *site, small bool) (err error) {
	if s.host, err = m.lab.Host(ctx, s.Name, netlab.Link{}); err != nil {
		return err
	}
	at := s.host.Addr()
	s.Config.Listen = []string{
		fmt.Sprintf("/ip4/%s/tcp/%d", at, agentPort),
		fmt.Sprintf("/ip4/%s/udp/%d/quic-v1", at, agentPort),
	}
	if !small {
		return nil
	}
	disk := m.place.File(s.Name + ".disk")
	if err = mountDisk(disk, diskBytes); err != nil {
		return fmt.Errorf("give %s a disk of its own: %w", s.Name, err)
	}
	s.disk = disk
	s.Config.StateDir = filepath.Join(disk, "state")
	s.Config.Ceilings.DiskBytes = diskBytes / 2
	return nil
}

func (m *mesh) inNamespace(
	ctx context.Context, a *localmesh.Agent, program string, args ...string,
) *exec.Cmd {
	for _, s := range m.sites {
		if s.Agent == a {
			return s.host.Command(ctx, program, args...)
		}
	}
	panic("an agent without a host") // newMesh gives each one
}

// start brings all agents up, tells each the addresses of all for later starts, and waits until
// those that submit have their standbys.
func (m *mesh) start(ctx context.Context, out *localmesh.Screen) error {
	if err := m.Start(ctx, out); err != nil {
		return err
	}
	for _, s := range m.sites {
		s.Config.Bootstrap = nil
		for _, other := range m.sites {
			if other != s {
				s.Config.Bootstrap = append(s.Config.Bootstrap, other.address())
			}
		}
	}
	return localmesh.Await(ctx, joinLimit, "the submitters to have standbys", m.grouped)
}

func (s *site) address() string {
	return fmt.Sprintf("/ip4/%s/tcp/%d/p2p/%s", s.host.Addr(), agentPort, s.ID)
}

// kill ends an agent as kill -9 does.
func (s *site) kill() error {
	if !s.Running() {
		return nil
	}
	if err := s.Process.Kill(); err != nil {
		return fmt.Errorf("kill %s: %w", s.Name, err)
	}
	<-s.Exited
	return nil
}

// stopAll ends all agents and waits for what they ran.
func (m *mesh) stopAll(ctx context.Context) error {
	if m.Mesh == nil {
		return nil
	}
	for _, s := range m.sites {
		if s.Process != nil {
			_ = localmesh.Resume(s.Process) // one that is suspended would not hear of its end
		}
	}
	return m.Stop(ctx)
}

// close removes everything. The disks go first: nothing is removed through a mount.
func (m *mesh) close(ctx context.Context) error {
	//nolint:contextcheck // the clean-up has a context of its own
	errs := []error{m.stopAll(ctx), m.lab.Close()}
	for _, s := range m.sites {
		if s.disk != "" {
			errs = append(errs, unmountDisk(s.disk))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("%w; %s stays", err, m.place.Dir)
	}
	if m.keep {
		return nil
	}
	return m.place.Remove()
}
