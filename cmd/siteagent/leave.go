package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/api/client"
	"github.com/mrsmesh/mrsmesh/internal/config"
	"github.com/mrsmesh/mrsmesh/internal/install"
	"github.com/mrsmesh/mrsmesh/internal/member"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

const (
	leaveLook = 300 * time.Millisecond // between two looks at an agent that ends
	endWithin = time.Minute            // an agent without jobs; it waits ten seconds for results
)

func leaveCommand(o *options) *cobra.Command {
	l, f := leaving{o: o}, (*form)(nil)
	cmd := &cobra.Command{
		Use: "leave", Short: "Leave the domain, and remove what join has made", Args: noArgs,
		Long: `Take back what siteagent join did: take no new jobs, wait until those that are here
have moved or ended, stop the agent and its service, and leave the domain. Jobs that save
their state move to other sites as soon as it is saved, the others go on until they end;
with --now all are stopped, and their submitters continue them on other sites.

What you give stays in the configuration, and the identity stays too: the site can join
again, with a new token. With --purge the identity, the state, and the configuration and
the unit that init and join made are removed as well, and nothing else: what was there
before, and files that the agent does not know, stay and are named.

A site that holds the key of its domain does not leave: without that key nobody can be
admitted or banned any more.`,
		Example: "  siteagent leave\n  siteagent leave --now\n  siteagent leave --purge",
		RunE: func(cmd *cobra.Command, _ []string) error {
			l.notes, l.person = cmd.ErrOrStderr(), talk(cmd.InOrStdin(), cmd.ErrOrStderr())
			if err := l.run(cmd.Context()); err != nil {
				return err
			}
			return f.print(cmd.OutOrStdout(), struct {
				Domain grid.DomainID `json:"left"`
				Purged bool          `json:"purged"` // identity and state are removed
			}{l.config.Domain, l.purge}, nil)
		},
	}
	f = formFlag(cmd)
	cmd.Flags().BoolVar(&l.now, "now", false,
		"do not wait: stop the jobs that are here, and give up those that were submitted here")
	cmd.Flags().BoolVar(&l.purge, "purge", false,
		"remove the identity, the state, and the configuration and unit that join made")
	return cmd
}

// leaving is one run of the command.
type leaving struct {
	o          *options
	now, purge bool
	notes      io.Writer
	person     *dialogue // nil: nobody is there to be asked

	config config.Agent
	place  install.Site
	made   install.Record
}

func (l *leaving) run(ctx context.Context) error {
	removal, err := l.prepare()
	if err != nil {
		return err
	}
	if err = l.confirm(ctx, removal); err != nil {
		return err
	}
	if err = l.end(ctx); err != nil {
		return err
	}
	if err = l.place.Disable(ctx, &l.made); err != nil {
		return fmt.Errorf("%w; run systemctl --user disable --now siteagent, then leave again", err)
	}
	if err = l.leaveDomain(); err != nil {
		return err
	}
	if l.place.Way() == install.Machine {
		fmt.Fprintln(l.notes, "so that it does not start again: sudo systemctl disable siteagent")
	}
	if l.purge {
		return l.remove()
	}
	tell(l.person, l.notes, "the identity and what you give stay: siteagent join TOKEN joins "+
		"again, siteagent leave --purge removes them")
	return nil
}

// prepare finds out what there is to leave and to remove, and refuses what would do harm. It
// changes nothing.
func (l *leaving) prepare() (removal install.Removal, err error) {
	if l.config, err = l.o.load(); err != nil {
		return removal, err
	}
	file, err := filepath.Abs(l.o.path())
	if err != nil {
		return removal, fmt.Errorf("configuration: %w", err)
	}
	l.place = siteHere(file)
	if l.made, err = install.Load(l.config.StateDir); err != nil {
		return removal, err
	}
	key := filepath.Join(l.config.StateDir, member.KeyFile)
	if _, err = os.Lstat(key); err == nil {
		return removal, fmt.Errorf("this site holds the key of domain %s, and without it nobody "+
			"can be admitted or banned any more: move %s to another member, or out of the way if "+
			"the domain is to end, and leave again", l.config.Domain, key)
	}
	if !l.purge {
		if l.config.DomainKey == "" && len(l.made.Before) == 0 {
			return removal, errors.New("this site has joined no domain; siteagent leave --purge " +
				"removes what the agent has made here")
		}
		return removal, nil
	}
	usual := config.Default(config.PresetLAN, os.LookupEnv).StateDir
	return l.place.Plan(l.config.StateDir, usual, l.made)
}

// confirm says what is about to be removed, and asks a person whether it is to be.
func (l *leaving) confirm(ctx context.Context, r install.Removal) error {
	if !l.purge || l.person == nil {
		return nil
	}
	what := r.Files
	if r.State != "" {
		what = append(what, "all that the agent keeps in "+r.State+", its identity included")
	}
	if len(what) == 0 {
		what = []string{"nothing: there is nothing of the agent here"}
	}
	l.person.say("This removes: " + strings.Join(what, "; ") + ".")
	sure := false
	err := l.person.ask(ctx, "Remove it for good? yes or no", "no", parseYes(&sure))
	if err != nil {
		return err
	}
	if !sure {
		return errors.New("nothing was changed")
	}
	return nil
}

// end lets the agent hand its jobs on, and end. One that does not run has nothing to hand on.
func (l *leaving) end(ctx context.Context) error {
	c, err := l.o.dial()
	if err != nil {
		return err
	}
	defer c.Close()
	status, err := c.Status(ctx)
	if errors.Is(err, client.ErrUnreachable) {
		return refuseHeld(l.config.StateDir)
	}
	if err != nil {
		return err
	}
	if err = l.refuseOwnJobs(ctx, c); err != nil {
		return err
	}
	if !l.now && len(status.Running) > 0 {
		if err = l.drain(ctx, c); err != nil {
			return err
		}
	}
	fmt.Fprintln(l.notes, "stopping the agent")
	// A pause outlives the agent; where the site joins next it is to begin without.
	for _, order := range []func(context.Context) error{
		c.Resume, func(ctx context.Context) error { return c.Stop(ctx, l.now) },
	} {
		if err = order(ctx); err != nil && !errors.Is(err, client.ErrUnreachable) {
			return err
		}
	}
	return l.awaitEnd(ctx)
}

// refuseOwnJobs refuses to leave while jobs that were submitted here have not ended: they would end
// with the site.
func (l *leaving) refuseOwnJobs(ctx context.Context, c *client.Client) error {
	const newest = 1000
	jobs, err := c.Jobs(ctx, view.JobQuery{Limit: newest})
	if err != nil || l.now {
		return err
	}
	open := 0
	for _, j := range jobs {
		if !j.Phase.Ended() {
			open++
		}
	}
	if open == 0 {
		return nil
	}
	return fmt.Errorf("%s that you submitted here would be given up: see submit list, wait for "+
		"them or cancel them; siteagent leave --now leaves all the same",
		plural(open, "job", "jobs"))
}

// drain waits until no job is left here, and tells whenever something has changed.
func (l *leaving) drain(ctx context.Context, c *client.Client) error {
	if err := c.Leave(ctx, 0, 0); err != nil {
		return err
	}
	told := ""
	for {
		status, err := c.Status(ctx)
		switch {
		case ctx.Err() != nil:
			return errors.New("stopped; this site takes no new jobs: siteagent resume takes that " +
				"back, siteagent leave goes on")
		case errors.Is(err, client.ErrUnreachable): // it has ended meanwhile
			return nil
		case err != nil:
			return err
		case len(status.Running) == 0:
			return nil
		}
		if now := pausedJobs(status, time.Now()); now != told {
			tell(l.person, l.notes, fmt.Sprintf("waiting: %s (--now does not wait)", now))
			told = now
		}
		select {
		case <-ctx.Done():
		case <-time.After(leaveLook):
		}
	}
}

// awaitEnd waits until no agent holds the state directory.
func (l *leaving) awaitEnd(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, endWithin)
	defer cancel()
	for {
		err := refuseHeld(l.config.StateDir)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("nothing was left or removed yet: %w", err)
		case <-time.After(leaveLook):
		}
	}
}

// leaveDomain takes the domain out of the configuration, or puts back what was there before, and
// forgets the roster.
func (l *leaving) leaveDomain() error {
	if err := l.restore(); err != nil {
		return err
	}
	if _, err := os.Stat(l.config.StateDir); err == nil {
		l.made.Before = nil
		err = errors.Join(member.Forget(l.config.StateDir), l.made.Save(l.config.StateDir))
		if err != nil {
			return err
		}
	}
	if l.config.DomainKey != "" {
		tell(l.person, l.notes, fmt.Sprintf("left domain %s; its members list this site until one "+
			"that holds the domain's key says: siteagent ban %s", l.config.Domain, l.config.Name))
	}
	return nil
}

// restore puts the settings that join changed back to what they were.
func (l *leaving) restore() error {
	before := l.made.Before
	if before == nil { // an earlier version joined, and kept no record
		before = map[string]*string{
			"domain": nil, "domain-key": nil, "bootstrap": nil, "peers": nil,
		}
	}
	text, err := os.ReadFile(l.place.Config)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for name, said := range before {
		switch {
		case err != nil:
		case said == nil:
			text, err = config.Remove(text, []string{name})
		default:
			text, err = config.Edit(text, []config.Value{{Name: name, Text: *said}})
		}
	}
	if err == nil {
		err = config.WriteFile(l.place.Config, text)
	}
	if err != nil {
		return fmt.Errorf("take the domain out of %s: %w", l.place.Config, err)
	}
	return nil
}

// remove removes what was made for the site, and says what stays.
func (l *leaving) remove() error {
	usual := config.Default(config.PresetLAN, os.LookupEnv).StateDir
	removal, err := l.place.Plan(l.config.StateDir, usual, l.made) // the agent has ended meanwhile
	if err != nil {
		return err
	}
	stay, err := removal.Remove()
	if err != nil {
		return err
	}
	for _, kept := range removal.Kept {
		fmt.Fprintf(l.notes, "kept %s\n", kept)
	}
	for _, dir := range stay {
		fmt.Fprintf(l.notes, "kept %s: something else is in it\n", dir)
	}
	if removal.State == "" && len(removal.Files) == 0 {
		fmt.Fprintln(l.notes, "there is nothing of the agent here")
		return nil
	}
	fmt.Fprintln(l.notes, "removed what was made for this site")
	if l.place.Way() != install.ByHand {
		fmt.Fprintln(l.notes,
			"the programs are the package's: sudo apt purge mrs, or sudo dnf remove mrs")
	}
	return nil
}
