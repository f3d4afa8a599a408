package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/audit"
	"github.com/mrsmesh/mrsmesh/internal/localmesh"
	"github.com/mrsmesh/mrsmesh/internal/view"
)

// lost is the state of a site whose disk was lost. It stays, for the audit to read which attempts
// ran there.
type lost struct {
	dir  string
	ends []time.Time // of the agent's processes until then
}

func (l lost) source(s *site) audit.Source {
	return audit.Source{
		Site: s.Name, StateDir: l.dir, Ends: l.ends,
		RunRecord: filepath.Join(l.dir, filepath.Base(s.RunRecord())),
	}
}

const (
	joinLimit = time.Minute // for standbys to be found
	endLimit  = time.Minute // for what a dead agent ran to end, on a machine that is overloaded
	keyName   = "identity.key"
)

// grouped reports whether each submitter has its standbys.
func (m *mesh) grouped(ctx context.Context) (bool, error) {
	for _, s := range m.sites[:submitters] {
		status, err := s.API.Status(ctx)
		if err != nil {
			return false, nil //nolint:nilerr // it is asked again
		}
		g := groupOf(status, s)
		if !g.Here || g.Changing || len(g.Members) != standbys+1 {
			return false, nil
		}
	}
	return true, nil
}

// groupOf is an owner's group as an agent sees it; zero: it has no part in it.
func groupOf(status view.AgentStatus, owner *site) view.Group {
	for _, g := range status.Standbys {
		if g.Owner == owner.ID {
			return g
		}
	}
	return view.Group{}
}

// standbysOf are the living standbys of a submitter, as far as one that lives tells.
func (m *mesh) standbysOf(ctx context.Context, owner *site) []*site {
	var found []*site
	for _, s := range m.sites {
		if !s.Running() {
			continue
		}
		soon, cancel := context.WithTimeout(ctx, askLimit)
		status, err := s.API.Status(soon)
		cancel()
		if err == nil && s != owner && groupOf(status, owner).Owner == owner.ID {
			found = append(found, s)
		}
	}
	return found
}

// killGroup kills a submitter's agent and all its standbys'.
func killGroup(ctx context.Context, s *scene) error {
	s.side = append(s.story.mesh.standbysOf(ctx, s.victim), s.victim)
	var errs []error
	for _, c := range s.side {
		errs = append(errs, s.story.kill(c))
	}
	return errors.Join(errs...)
}

func restartSide(ctx context.Context, s *scene) error {
	var errs []error
	for _, c := range s.side {
		errs = append(errs, s.story.restart(ctx, c))
	}
	return errors.Join(errs...)
}

// loseDisk kills an agent that stands by and takes its disk away, but for its key.
func loseDisk(ctx context.Context, s *scene) error {
	for _, c := range s.story.mesh.standbysOf(ctx, s.victim) {
		if c.disk == "" && !slices.Contains(s.story.mesh.sites[:submitters], c) {
			s.side = []*site{c}
			return s.story.loseDisk(ctx, c)
		}
	}
	return nil // none that could lose it can be found at the moment
}

func (s *story) loseDisk(ctx context.Context, c *site) error {
	var started []string // one that is told its work as its agent dies may yet write to the disk
	if c.Running() {
		started = childrenOf(c.Process.Pid)
	}
	if err := s.kill(c); err != nil {
		return err
	}
	err := localmesh.Await(ctx, endLimit, "what "+c.Name+" ran to end",
		func(context.Context) (bool, error) {
			ended := !slices.ContainsFunc(started, isLiving)
			return ended && len(processesBelow(c.Config.StateDir)) == 0, nil
		})
	if err != nil {
		return fmt.Errorf("%w: %v", err, processesBelow(c.Config.StateDir))
	}
	aside := s.mesh.place.File(fmt.Sprintf("%s.lost%d", c.Name, len(c.lost)))
	key, err := os.ReadFile(filepath.Join(c.Config.StateDir, keyName))
	if err == nil {
		err = os.Rename(c.Config.StateDir, aside)
	}
	if err == nil {
		c.lost = append(c.lost, lost{aside, append(slices.Clone(c.Deaths), c.Ended)})
		err = os.Mkdir(c.Config.StateDir, 0o700)
	}
	if err == nil {
		err = os.WriteFile( //nolint:gosec // G703: the directory is below one that was made here
			filepath.Join(c.Config.StateDir, keyName), key, 0o600,
		)
	}
	if err != nil {
		return fmt.Errorf("take the disk of %s: %w", c.Name, err)
	}
	return nil
}

// standAlone starts a submitter's agent anew as one that wants no standbys, and standTogether as
// one that wants them again: its group changes while its jobs run.
func standAlone(ctx context.Context, s *scene) error { return s.want(ctx, 0) }

func standTogether(ctx context.Context, s *scene) error { return s.want(ctx, standbys) }

func (s *scene) want(ctx context.Context, count int) error {
	s.victim.Config.Standby.Count = count
	if !s.victim.Running() {
		return nil // the end of another trouble starts it
	}
	if err := s.story.kill(s.victim); err != nil {
		return err
	}
	return s.story.restart(ctx, s.victim)
}

// acted counts, in the logs of all agents, how often one began to act for a submitter that has
// standbys.
func (m *mesh) acted() (n int) {
	for _, s := range m.sites {
		text, _ := os.ReadFile(m.place.File(s.Name + ".log")) // one that never ran has none
		for line := range bytes.Lines(text) {
			if strings.Contains(string(line), `msg="this agent acts for the jobs of an owner"`) {
				n++
			}
		}
	}
	return n
}
