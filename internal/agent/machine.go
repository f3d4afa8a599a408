package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/internal/store"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/site"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// shortLease is all that is taken of a lease where no clock goes on during a suspend unless
// somebody sets it.
const shortLease = 10 * time.Second

// makeMachines makes the site's machine with the facts of the earlier runs; the submitter's is
// made by its group, see group.go.
func (a *Agent) makeMachines() error {
	siteConfig := site.Default(a.mesh.Self(), a.cfg.Capability)
	siteConfig.Domain, siteConfig.Seed = a.cfg.P2P.Domain, a.cfg.Seed
	siteConfig.MaxRuntime, siteConfig.DataBytes = a.cfg.MaxRuntime, a.cfg.Data.QuotaBytes
	if !lrm.Continuous {
		siteConfig.LongestLease = shortLease
	}
	siteConfig.Signers = a.cfg.Signers
	siteConfig.Priced, siteConfig.Price = a.cfg.Priced, a.cfg.Price
	setIf(&siteConfig.OwnerPatience, a.cfg.Owner.Patience)
	setIf(&siteConfig.MoveAfter, a.cfg.Owner.MoveAfter)
	siteConfig.WasmOnly, siteConfig.HoldAll = a.cfg.WasmOnly, a.cfg.HoldAll
	siteConfig.InMemory = a.cfg.InMemory
	brokerConfig := a.brokerConfig(a.mesh.Self(), a.brokerSettings())
	if err := errors.Join(
		a.cfg.Planning.apply(&siteConfig), siteConfig.Validate(), brokerConfig.Validate(),
		a.controlSettings().config(a.mesh.Self()).Validate(),
	); err != nil {
		return fmt.Errorf("configuration of the machines: %w", err)
	}
	a.siteMachine, a.brokerMachine = site.New(siteConfig), broker.New(brokerConfig)
	var err error
	if a.site, err = a.makeLoop(siteName, a.siteMachine, siteConfig); err != nil {
		return err
	}
	return a.openHeeding()
}

func setIf(field *time.Duration, value time.Duration) {
	if value > 0 {
		*field = value
	}
}

// Planning holds the owner's decisions about the site's plan. Zero spans and words are
// the machine's defaults.
type Planning struct {
	Policy, Backfill string        // as grid.ParsePolicy and grid.ParseBackfill read them
	Horizon          time.Duration // what is planned beyond it is not displaced by an outage
	Promised         int           // percent of the capacity that promises hold together at most
	Strangers        int           // the same of strangers, where anyone may submit; 0 = no limit
	Submitter        int           // percent that one other submitter holds; 0 = no limit
	Project          int           // percent that one project holds; 0 = no limit
	Ahead, Longest   time.Duration // how far ahead others may reserve, and the longest reservation
	Fairshare        bool          // promises begin behind all that waits (Migol 4)
	Overestimate     float64       // known over-estimation of running times, 0 to 0.9
}

// apply gives the machine what the owner decided. The words are validated by who
// read them; one that is unknown is an error.
func (p Planning) apply(c *site.Config) error {
	if p == (Planning{}) {
		return nil // a test, or an owner who leaves it to the machine
	}
	order := p.now()
	var errPolicy, errBackfill error
	c.Planning = site.Planning{
		Horizon: p.Horizon, Promised: p.Promised, Strangers: p.Strangers,
		Submitter: p.Submitter, Project: p.Project, Ahead: p.Ahead, Longest: p.Longest,
		Fairshare: p.Fairshare, Overestimate: p.Overestimate,
	}
	c.Planning.Policy, errPolicy = grid.ParsePolicy(order.Policy)
	c.Planning.Backfill, errBackfill = grid.ParseBackfill(order.Backfill)
	return errors.Join(errPolicy, errBackfill)
}

// now is the order in which those that wait move up.
func (p Planning) now() view.Planning {
	v := view.Planning{Policy: p.Policy, Backfill: p.Backfill}
	if v.Policy == "" {
		v.Policy = grid.PolicyFCFS.String()
	}
	if v.Backfill == "" {
		v.Backfill = grid.BackfillConservative.String()
	}
	return v
}

// NewMachine makes a machine as the header of its journal says, for a replay.
func NewMachine(h store.Header) (step.Machine, error) {
	switch {
	case h.Machine == siteName:
		c := site.Default("", grid.Capability{}) // of what an earlier version had no setting
		if err := json.Unmarshal(h.Config, &c); err != nil {
			return nil, fmt.Errorf("configuration of the site machine: %w", err)
		}
		if err := c.Validate(); err != nil {
			return nil, fmt.Errorf("configuration of the site machine: %w", err)
		}
		return site.New(c), nil
	case h.Machine == brokerName, strings.HasPrefix(h.Machine, groupPrefix):
		var c broker.Config
		if err := json.Unmarshal(h.Config, &c); err != nil {
			return nil, fmt.Errorf("configuration of the submitter machine: %w", err)
		}
		if err := c.Validate(); err != nil {
			return nil, fmt.Errorf("configuration of the submitter machine: %w", err)
		}
		return broker.New(c), nil
	case strings.HasPrefix(h.Machine, controlPrefix):
		return newController(h.Config)
	case h.Machine == borderName:
		return newBorder(h.Config)
	default:
		return nil, fmt.Errorf("there is no machine %q", h.Machine)
	}
}
