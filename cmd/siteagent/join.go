package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/config"
	"github.com/mrsmesh/mrsmesh/internal/install"
	"github.com/mrsmesh/mrsmesh/internal/member"
	"github.com/mrsmesh/mrsmesh/internal/p2p"
	"github.com/mrsmesh/mrsmesh/internal/store"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// redeemWait is the time an inviter that was reached may take.
const redeemWait = 20 * time.Second

func joinCommand(o *options) *cobra.Command {
	verbose, file := false, ""
	var w wishes
	var f *form
	cmd := &cobra.Command{
		Use: "join TOKEN|-", Short: "Join a domain with the token of an invitation",
		Long: `Join a domain with the token that siteagent invite printed there. This asks the
inviter and, once it has admitted this site, makes the site's identity and
configuration where they are missing, writes domain, domain-key, bootstrap and peers
into the configuration, and starts the site for a moment to see whether its offers
arrive. If it is not admitted, nothing is written. The agent must not be running.

Where the inviter wants to see who comes, this waits until it has decided. Stopped with ^C,
join with the same token goes on waiting: the site has its identity then, and nothing else.

On a terminal, and without a configuration, it first asks how much jobs may use, when,
and whether also on battery; with systemd also whether to start the site as a service of
yours. What a flag or a variable says is not asked. Where it listens, and whether preset
wan is needed, it takes from the networks of this machine, and says so. Without a
terminal nothing is asked: the defaults count, and the flags.

  siteagent join --give 50% --owner-hours "mon-fri 18:00-08:00" --owner-battery --service TOKEN
  siteagent join --preset wan TOKEN      behind a router, whatever it finds

siteagent leave takes all of it back.

On a machine that others use, too, keep the token out of the list of processes:

  siteagent join - <token.txt            reads it from standard input
  siteagent join --token-file token.txt  reads it from a file of yours that nobody else can read`,
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := tokenText(cmd, args, file)
			if err != nil {
				return err
			}
			token, err := member.ParseToken(text)
			if err != nil {
				return usageError{err}
			}
			if token.Link {
				return usageError{
					errors.New(
						"join: the token links two domains; use it with siteagent domain join",
					),
				}
			}
			j := &joining{
				o: o, token: token, wishes: w, notes: cmd.ErrOrStderr(), verbose: verbose,
				began: time.Now(), form: f,
			}
			if file == "" && args[0] != "-" {
				j.person = talk(cmd.InOrStdin(), cmd.ErrOrStderr())
			}
			return j.run(cmd.Context(), cmd.OutOrStdout())
		},
	}
	tokenFrom(cmd, &file)
	f = formFlag(cmd)
	w.flags(cmd)
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "show what was tried to reach the inviter")
	return cmd
}

// joining is one run of the command.
type joining struct {
	o       *options
	token   member.Token
	wishes  wishes
	person  *dialogue // nil: nobody is there to be asked
	notes   io.Writer
	verbose bool
	began   time.Time
	form    *form

	config   config.Agent
	file     string // configuration
	fresh    bool   // there is no such file yet
	identity p2p.Identity
	saved    bool // the identity is on disk
	reach    listening
	place    install.Site
	made     install.Record
}

func (j *joining) run(ctx context.Context, out io.Writer) error {
	if err := j.prepare(); err != nil {
		return err
	}
	if err := j.plan(ctx); err != nil {
		return err
	}
	j.began = time.Now() // what people need to answer is not counted
	var admitted admission
	if !j.token.Open() {
		var err error
		if admitted, err = j.redeem(ctx); err != nil {
			return err
		}
		j.tell(fmt.Sprintf("admitted to domain %s as %s (%s)",
			j.token.Domain, j.config.Name, j.identity.Site()))
	}
	if err := j.keep(admitted); err != nil {
		return err
	}
	j.explain(admitted.told.Records)
	err := j.tryOut(ctx, out)
	if j.wishes.service && (err == nil || errors.Is(err, errDiffers)) { // it is a member
		err = errors.Join(j.startService(ctx), err)
	}
	return err
}

// plan decides everything that is the owner's to decide, and says what is about to happen.
// Nothing is written yet.
func (j *joining) plan(ctx context.Context) error {
	if err := j.wishes.decide(ctx, j); err != nil {
		return err
	}
	if err := j.wishes.decideService(ctx, j); err != nil {
		return err
	}
	_, origins, err := config.Explain(j.sources())
	if err != nil {
		return usageError{err}
	}
	if j.fresh && !isChosen(origins, "listen", "preset") {
		j.reach = listenFor(networksHere(), j.token.Addrs)
		j.tell(j.reach.why)
	}
	if j.person != nil && j.fresh {
		j.tell(j.summary())
	}
	return j.tryConfig()
}

// tell prints a sentence for people.
func (j *joining) tell(text string) {
	tell(j.person, j.notes, text)
}

// explain says what may surprise later.
func (j *joining) explain(records []protocol.MemberRecord) {
	if j.token.Open() && j.config.Accept != "anyone" {
		j.tell("the domain takes anyone, but this site works with the inviter and its own list " +
			"alone; accept: anyone in the configuration changes that")
	}
	for _, r := range records {
		if r.Kind == protocol.MemberAdmit && r.Site != j.identity.Site() && r.Name == j.config.Name {
			j.tell(fmt.Sprintf("note: %s is called %s, too; to be told apart choose another name: "+
				"siteagent config set name NAME, before you start the site", r.Site, r.Name))
			return
		}
	}
}

// prepare reads what is there, changes nothing, and refuses what would break a site
// that works.
func (j *joining) prepare() error {
	var err error
	if j.config, err = j.o.loadFile(false); err != nil {
		return err
	}
	if j.file, err = filepath.Abs(j.o.path()); err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	if _, err = os.Stat(j.file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the configuration: %w", err)
	}
	if j.fresh = err != nil; !j.fresh {
		if err = j.keepName(); err != nil {
			return err
		}
	}
	if err = j.refuseRunning(); err != nil {
		return err
	}
	if err = j.findIdentity(); err != nil {
		return err
	}
	if j.identity.Site() == j.token.Inviter {
		return errors.New("this is the site that invites; join on the other one")
	}
	j.place = siteHere(j.file)
	if j.made, err = install.Load(j.config.StateDir); err != nil {
		return err
	}
	return errors.Join(j.refuseOtherDomain(), j.refuseStronger())
}

// sources are where the configuration comes from; the file need not be there.
func (j *joining) sources() config.Sources {
	src := j.o.sources()
	src.Required = false
	return src
}

// keepName goes by the name in the file that is there, and says so: the site will be
// started without this command's flags.
func (j *joining) keepName() error {
	src := j.sources()
	if src.Flags["name"] == "" {
		return nil
	}
	delete(src.Flags, "name")
	c, err := config.LoadAgent(src)
	if err == nil && c.Name != j.config.Name {
		j.tell(fmt.Sprintf("kept the name %s of %s; --name %s ignored",
			c.Name, j.file, j.config.Name))
		j.config.Name = c.Name
	}
	return err
}

// refuseRunning finds out whether an agent holds the state directory.
func (j *joining) refuseRunning() error {
	err := refuseHeld(j.config.StateDir)
	if errors.Is(err, store.ErrLocked) {
		return fmt.Errorf(
			"the agent of %s is running: siteagent stop, then join again", j.config.StateDir,
		)
	}
	return err
}

// findIdentity takes the identity that is there, or makes one that is kept once it is
// of use.
func (j *joining) findIdentity() error {
	_, err := os.Stat(j.keyFile())
	if errors.Is(err, fs.ErrNotExist) {
		j.identity, err = p2p.NewIdentity()
		return err
	}
	j.saved = true
	j.identity, err = p2p.LoadIdentity(j.keyFile())
	return err
}

func (j *joining) keyFile() string { return filepath.Join(j.config.StateDir, "identity.key") }

// saveIdentity puts the identity on disk.
func (j *joining) saveIdentity() error {
	if j.saved {
		return nil
	}
	made, err := makeState(j.config, j.place)
	if err != nil {
		return err
	}
	j.made, j.saved = made, true
	return j.identity.Save(j.keyFile())
}

func (j *joining) refuseOtherDomain() error {
	known := j.config.DomainKey
	if key, err := member.LoadKey(j.config.StateDir); err == nil && known == "" {
		known = key.Public()
	}
	if known == "" || member.IsKey(j.config.StateDir, known, j.token.Key) {
		return nil
	}
	return fmt.Errorf("this site belongs to domain %s already (domain-key %s); to leave it: "+
		"siteagent leave", j.config.Domain, known)
}

// refuseStronger refuses flags and variables that would overrule what join writes.
func (j *joining) refuseStronger() error {
	_, origins, err := config.Explain(j.sources())
	if err != nil {
		return usageError{err}
	}
	want := map[string]string{"domain": string(j.token.Domain)}
	if !j.token.Open() {
		want["domain-key"] = string(j.token.Key)
	}
	for _, o := range origins {
		text, ours := want[o.Name]
		if ours && o.Value != text &&
			(o.Layer == config.LayerFlag || o.Layer == config.LayerEnvironment) {
			return usageError{fmt.Errorf("%s says %s %s, the invitation %s; leave it out and join again",
				o.Place, o.Name, o.Value, text)}
		}
	}
	return nil
}

// admission is the inviter's answer.
type admission struct {
	answer protocol.JoinAnswer
	told   p2p.Welcome // the whole roster, this site's record included
}

// redeem asks the inviter, until a person there has decided where one must, and verifies what it
// says.
func (j *joining) redeem(ctx context.Context) (admission, error) {
	fmt.Fprintf(j.notes, "asking %s\n", j.token.Inviter)
	admitted, err := j.redeemOnce(ctx, false)
	if errors.Is(err, errPending) {
		admitted, err = j.await(ctx)
	}
	switch {
	case errors.Is(err, p2p.ErrNotReached):
		return admission{}, j.notReached(err)
	case errors.Is(err, p2p.ErrTurnedAway):
		return admission{}, fmt.Errorf("%w; ask for a new invitation, or try again in a minute", err)
	default:
		return admitted, err
	}
}

// redeemOnce is redeem, with errPending while the inviter has not decided. With again the caller
// asks again itself where this site is turned away.
func (j *joining) redeemOnce(ctx context.Context, again bool) (admission, error) {
	ctx, cancel := context.WithTimeout(ctx, redeemWait)
	defer cancel()
	answer, told, err := p2p.Redeem(ctx, p2p.Invitation{
		Identity: j.identity, Addrs: j.token.Dial(), Again: again,
		Request: protocol.JoinRequest{Secret: j.token.Secret, Name: shortName(j.config.Name)},
	})
	switch {
	case errors.Is(err, p2p.ErrNotReached), errors.Is(err, p2p.ErrTurnedAway):
		return admission{}, err
	case err != nil:
		// It was asked, and may have admitted this site before the answer was lost: then
		// the token is good for this identity alone.
		err = fmt.Errorf("%w; join again with the same token", err)
		return admission{}, errors.Join(err, j.saveIdentity())
	case answer.Refusal == protocol.JoinPending:
		return admission{}, errPending
	case answer.Refusal != protocol.JoinAdmitted:
		return admission{}, fmt.Errorf("not admitted: %s; %s", answer.Refusal, answer.Text)
	}
	told.Records = append([]protocol.MemberRecord{*answer.Admit}, told.Records...)
	if err := j.believe("", told); err != nil { // in memory
		return admission{}, fmt.Errorf("the inviter's answer cannot be used: %w", err)
	}
	return admission{answer, told}, nil
}

// notReached says in a sentence who was tried and what to do.
func (j *joining) notReached(err error) error {
	if j.verbose {
		fmt.Fprintln(j.notes, err)
	}
	var places []string
	local := true
	for _, addr := range j.token.Addrs {
		place, here := placeOf(addr)
		if local = local && here; !slices.Contains(places, place) {
			places = append(places, place)
		}
	}
	todo := "see that siteagent runs there and that no firewall is between, then join again with " +
		"the same token"
	switch {
	case !j.token.Expires.After(time.Now()):
		todo = "the invitation ended " + dayText(j.token.Expires, time.Now()) + ", ask for a new one"
	case local:
		todo = "the invitation is good on the inviter's own machine only; for others, there: " +
			"siteagent invite --listen lan"
	}
	if !j.verbose {
		todo += " (-v shows each attempt)"
	}
	return fmt.Errorf(
		"the site that invited you does not answer at %s: %s", strings.Join(places, " or "), todo,
	)
}

// placeOf is an address as people write it, and whether it is on the same machine only.
func placeOf(addr string) (place string, local bool) {
	parts := strings.Split(addr, "/") // "", "ip4", host, "tcp", port, ...
	const least = 5
	if len(parts) < least {
		return addr, false
	}
	place = parts[2] + " port " + parts[4]
	if strings.Contains(addr, "/p2p-circuit") {
		place = "the relay at " + place
	}
	return place, strings.HasPrefix(parts[2], "127.") || parts[2] == "::1"
}

// believe takes the records over, on disk if there is a directory, and wants this site
// to be admitted by them.
func (j *joining) believe(dir string, told p2p.Welcome) error {
	registry, err := member.Open(member.Config{
		Dir: dir, Domain: j.token.Domain, Self: j.identity.Site(), Name: j.config.Name, Key: j.token.Key,
	})
	if err == nil {
		_, err = registry.Follow(told.Successions)
	}
	if err == nil {
		_, err = registry.Merge(told.Records)
	}
	if err == nil && registry.Standing(j.identity.Site()) != member.Admitted {
		err = errors.New("the record is not about this site, or it is banned")
	}
	return err
}

func shortName(name string) string { return strings.ToValidUTF8(name[:min(len(name), 63)], "") }
