package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/mrsmesh/mrsmesh/internal/agent"
	"github.com/mrsmesh/mrsmesh/internal/agent/backend"
	"github.com/mrsmesh/mrsmesh/internal/config"
	"github.com/mrsmesh/mrsmesh/internal/durable"
	"github.com/mrsmesh/mrsmesh/internal/member"
	"github.com/mrsmesh/mrsmesh/internal/obs"
	"github.com/mrsmesh/mrsmesh/internal/p2p"
	"github.com/mrsmesh/mrsmesh/internal/store"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// Patience of a join.
const (
	redeemWait = 20 * time.Second // with the inviter
	checkWait  = 10 * time.Second // with the first offer
	checkPause = 200 * time.Millisecond
)

func joinCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "join TOKEN", Short: "Join a domain with the token of an invitation",
		Long: `Join a domain with the token that siteagent invite printed there. This makes the
site's identity and configuration where they are missing, asks the inviter, writes
domain, domain-key, bootstrap and peers into the configuration, and starts the
site for a moment to see whether its offers arrive. The agent must not be running.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError{fmt.Errorf("join: want one token, as siteagent invite prints it")}
			}
			token, err := member.ParseToken(args[0])
			if err != nil {
				return usageError{err}
			}
			j := &joining{o: o, token: token, notes: cmd.ErrOrStderr(), began: time.Now()}
			return j.run(cmd.Context(), cmd.OutOrStdout())
		},
	}
}

// joining is one run of the command.
type joining struct {
	o     *options
	token member.Token
	notes io.Writer
	began time.Time

	config   config.Agent
	file     string
	identity p2p.Identity
}

func (j *joining) run(ctx context.Context, out io.Writer) error {
	if err := j.prepare(); err != nil {
		return err
	}
	var answer protocol.JoinAnswer
	if !j.token.Open() {
		var err error
		if answer, err = j.redeem(ctx); err != nil {
			return err
		}
		fmt.Fprintf(j.notes, "admitted to domain %s as %s\n", j.token.Domain, j.identity.Site())
	}
	if err := j.configure(answer); err != nil {
		return err
	}
	if j.token.Open() && j.config.Accept != "anyone" {
		fmt.Fprintln(j.notes, "the domain takes anyone, but this site works with the inviter and its own list alone; "+
			"accept: anyone in the configuration changes that")
	}
	result, err := j.check(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(j.notes, "checked %.1f s after the start of join; start the site with: siteagent run\n", time.Since(j.began).Seconds())
	return printCheck(out, result)
}

// prepare makes the identity and the configuration where they are missing, and
// refuses what would break a site that works.
func (j *joining) prepare() error {
	var err error
	if j.config, err = j.o.loadFile(false); err != nil {
		return err
	}
	if j.file = j.o.file; j.file == "" {
		j.file = config.AgentFile(os.LookupEnv)
	}
	if err = os.MkdirAll(j.config.StateDir, 0o700); err != nil {
		return fmt.Errorf("make the state directory: %w", err)
	}
	if err = j.refuseRunning(); err != nil {
		return err
	}
	if j.identity, err = p2p.LoadIdentity(filepath.Join(j.config.StateDir, "identity.key")); err != nil {
		return err
	}
	if j.identity.Site() == j.token.Inviter {
		return errors.New("this is the site that invites; join on the other one")
	}
	if err := j.refuseOtherDomain(); err != nil {
		return err
	}
	if _, err := os.Stat(j.file); os.IsNotExist(err) {
		chosen, err := j.o.chosen()
		if err == nil {
			err = config.WriteFile(j.file, config.NewFile(chosen))
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(j.notes, "wrote %s\n", j.file)
	}
	return nil
}

// refuseRunning finds out whether an agent holds the state directory.
func (j *joining) refuseRunning() error {
	held, err := store.Open(j.config.StateDir, nil)
	if errors.Is(err, store.ErrLocked) {
		return fmt.Errorf("the agent of %s is running: siteagent stop, then join again", j.config.StateDir)
	}
	if err != nil {
		return err
	}
	return held.Close()
}

func (j *joining) refuseOtherDomain() error {
	known := j.config.DomainKey
	if key, err := member.LoadKey(j.config.StateDir); err == nil && known == "" {
		known = key.Public()
	}
	if known == "" || known == j.token.Key {
		return nil
	}
	return fmt.Errorf("this site belongs to domain %s already (domain-key %s); to leave it, remove domain-key from %s and %s from %s",
		j.config.Domain, known, j.file, member.KeyFile, j.config.StateDir)
}

// redeem asks the inviter, verifies what it says and keeps the roster.
func (j *joining) redeem(ctx context.Context) (protocol.JoinAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, redeemWait)
	defer cancel()
	fmt.Fprintf(j.notes, "asking %s\n", j.token.Inviter)
	answer, records, err := p2p.Redeem(ctx, p2p.Invitation{
		Identity: j.identity, Addrs: j.token.Dial(),
		Request: protocol.JoinRequest{Secret: j.token.Secret, Name: shortName(j.config.Name)},
	})
	switch {
	case errors.Is(err, p2p.ErrTurnedAway):
		return answer, fmt.Errorf("%w; ask for a new invitation, or try again in a minute", err)
	case err != nil:
		return answer, fmt.Errorf("%w; see that the inviter runs and that this machine reaches %s",
			err, strings.Join(j.token.Addrs, " or "))
	case answer.Refusal != protocol.JoinAdmitted:
		return answer, fmt.Errorf("not admitted: %s; %s", answer.Refusal, answer.Text)
	}
	registry, err := member.Open(member.Config{
		Dir: j.config.StateDir, Domain: j.token.Domain, Self: j.identity.Site(), Name: j.config.Name, Key: j.token.Key,
	})
	if err == nil {
		_, err = registry.Merge(append([]protocol.MemberRecord{*answer.Admit}, records...))
	}
	if err == nil && registry.Standing(j.identity.Site()) != member.Admitted {
		err = errors.New("the record is not about this site, or it is banned")
	}
	if err != nil {
		return answer, fmt.Errorf("the inviter's answer cannot be used: %w", err)
	}
	return answer, nil
}

func shortName(name string) string { return strings.ToValidUTF8(name[:min(len(name), 63)], "") }

// configure writes into the configuration file where the domain is and whom to
// believe, and reads it again as a start would.
func (j *joining) configure(answer protocol.JoinAnswer) error {
	var bootstrap []string
	var peers []grid.SiteID
	if j.config.Domain == j.token.Domain { // what was listed for another domain is of no use here
		bootstrap, peers = j.config.Bootstrap, j.config.Peers
	}
	values := []config.Value{
		{Name: "domain", Text: string(j.token.Domain)},
		{Name: "bootstrap", Text: joined(slices.Concat(bootstrap, j.token.Dial(), j.dialable(answer.Addrs)))},
	}
	if !j.token.Open() {
		peers = append(slices.Clip(peers), answer.Listed...)
		values = append(values, config.Value{Name: "domain-key", Text: string(j.token.Key)})
	}
	values = append(values, config.Value{Name: "peers", Text: joined(peers)})
	text, err := os.ReadFile(j.file)
	if err == nil {
		text, err = config.Edit(text, values)
	}
	if err == nil {
		err = replaceFile(j.file, text)
	}
	if err != nil {
		return fmt.Errorf("write the domain into %s: %w", j.file, err)
	}
	if j.config, err = j.o.load(); err != nil {
		return err
	}
	if j.config.Domain != j.token.Domain || j.config.DomainKey != j.token.Key && !j.token.Open() {
		return usageError{fmt.Errorf("a flag or variable says domain %s, the invitation %s; leave it out and join again",
			j.config.Domain, j.token.Domain)}
	}
	return nil
}

// dialable leaves out of the inviter's addresses what is not its own.
func (j *joining) dialable(addrs []string) []string {
	return slices.DeleteFunc(slices.Clone(addrs), func(a string) bool {
		return !strings.HasPrefix(a, "/") || !strings.HasSuffix(a, "/p2p/"+string(j.token.Inviter)) || strings.Contains(a, ",")
	})
}

// joined is a list as a setting, each entry once.
func joined[T ~string](list []T) string {
	var once []string
	for _, entry := range list {
		if !slices.Contains(once, string(entry)) {
			once = append(once, string(entry))
		}
	}
	return strings.Join(once, ",")
}

// replaceFile changes a file, or what a link leads to, in one step.
func replaceFile(file string, text []byte) error {
	file, err := filepath.EvalSymlinks(file)
	if err != nil {
		return err
	}
	return durable.Replace(file, text)
}

// check lets the site live for a moment and asks the inviter what arrives.
func (j *joining) check(ctx context.Context) (view.CheckResult, error) {
	log, err := obs.NewLogger(os.Stderr, j.config.Log.Format, "error")
	if err != nil {
		return view.CheckResult{}, usageError{err}
	}
	settings, err := assemble(ctx, j.config, obs.NewRegistry(), log)
	if err != nil {
		return view.CheckResult{}, err
	}
	a, err := agent.New(ctx, settings)
	if err != nil {
		return view.CheckResult{}, err
	}
	live, end := context.WithTimeout(ctx, checkWait)
	defer end()
	group := &errgroup.Group{}
	group.Go(func() error { return a.Run(live) })
	result := askUntil(live, backend.New(a))
	end()
	return result, errors.Join(group.Wait(), a.Close())
}

// askUntil asks again until the offers arrive or the time is over.
func askUntil(ctx context.Context, b *backend.Backend) view.CheckResult {
	for {
		result, err := b.Check(ctx)
		if err == nil && result.Arrive {
			return result
		}
		select {
		case <-ctx.Done():
			return result
		case <-time.After(checkPause):
		}
	}
}
