package border

import (
	"fmt"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// Config holds what a gateway's machine is told when it is made. Start from Default.
type Config struct {
	Here   grid.SiteID // the site that it runs at, required
	Domain grid.SiteID // the site that this domain is taken for elsewhere, required
	Name   grid.DomainID

	MaxHops uint32 // how many borders a request that is made here may cross, 1 to protocol.MaxHops

	// Again is the time after which messages are repeated that were not answered.
	Again time.Duration
	// Renew is the time between two requests for an attempt's lease while it has none; with one it
	// is a third of the lease.
	Renew  time.Duration
	TTL    time.Duration // how long the broker awaits offers for an order
	Forget time.Duration // silence on an order after which it is dropped
	// Recall is for how long a refusal by the members answers other queries for as much; 0: it
	// does not. It must not be longer than the shortest pause between two announcements of a job
	// that waits: then the second one is answered by what was asked after the first.
	Recall time.Duration `json:",omitempty"`
	// Credit bounds what a neighbour may owe, in core-seconds given and not given back, before it
	// is served after those that owe less.
	Credit float64

	// Patience is for how long a neighbour that owes too much is refused after another one has
	// found no capacity.
	Patience time.Duration

	MaxQueries int // under way at a time, in each direction
	MaxOrders  int // under way at a time, in each direction

	Reports step.Level `json:",omitempty"` // what is below that level is not reported

	// NoRequestIDs, NoHops, NoGateways: UNSAFE, for tests of the oracles only: an order that comes
	// again is another one; work crosses borders without end; any gateway of a neighbour may run
	// what another one of it has taken.
	NoRequestIDs, NoHops, NoGateways bool `json:",omitempty"`
}

// Default lets work cross one border, and gives an hour of a core on credit.
func Default(here, domain grid.SiteID, name grid.DomainID) Config {
	return Config{
		Here: here, Domain: domain, Name: name, MaxHops: 1, Again: 2 * time.Second,
		Renew: 2 * time.Second, TTL: 2 * time.Second, Forget: 24 * time.Hour, Credit: 3600,
		Recall: 500 * time.Millisecond, Patience: 2 * time.Minute, MaxQueries: 64, MaxOrders: 1024,
	}
}

// Validate reports the first field that is out of its range.
func (c Config) Validate() error {
	switch {
	case c.MaxHops < 1 || c.MaxHops > protocol.MaxHops:
		return invalidf("hops: want 1 to %d, have %d", protocol.MaxHops, c.MaxHops)
	case c.Again <= 0 || c.Renew <= 0 || c.Forget <= 0 || min(c.Patience, c.Recall) < 0:
		return invalidf("again, renew, forget: want above 0; patience, recall: want at least 0; "+
			"have %s, %s, %s, %s, %s", c.Again, c.Renew, c.Forget, c.Patience, c.Recall)
	case c.TTL < grid.MinTTL || c.TTL > grid.MaxTTL:
		return invalidf("ttl: want %s to %s, have %s", grid.MinTTL, grid.MaxTTL, c.TTL)
	case !(c.Credit >= 0 && c.Credit <= maxCredit):
		return invalidf("credit: want 0 to %v core-seconds, have %v", maxCredit, c.Credit)
	case c.MaxQueries < 1 || c.MaxOrders < 1:
		return invalidf("queries, orders: want at least 1, have %d and %d",
			c.MaxQueries, c.MaxOrders)
	}
	if err := c.Here.Validate(); err != nil {
		return err
	}
	if err := c.Domain.Validate(); err != nil {
		return err
	}
	return c.Name.Validate()
}

const maxCredit = 1e12

func invalidf(format string, args ...any) error {
	return fmt.Errorf("%w: border: %s", grid.ErrInvalid, fmt.Sprintf(format, args...))
}
