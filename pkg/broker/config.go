package broker

import (
	"errors"
	"fmt"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/fault"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/index"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// Choice says how the site for a task is chosen among the offers.
type Choice uint8

// The choices.
const (
	ChoiceNearest Choice = iota // the smallest distance; the default
	ChoiceSoftMin               // by chance among the nearest eight, see index.SoftMin
)

// Config holds what a broker is told when it is made. Start from Default.
type Config struct {
	// Owner is the site whose jobs these are: it names and announces them, and sites answer
	// to it. Here is the site that this broker runs at, whose own machine may run tasks too and
	// whose data is the first source; empty: the owner's. Today they are the same everywhere.
	Owner grid.SiteID `json:"Self"` // required; the journals' name for it
	Here  grid.SiteID `json:",omitempty"`
	// Domain is in which the jobs are announced: data is named there by its digests.
	Domain grid.DomainID `json:",omitempty"`

	Name       string          // of this site, as others know it; empty: its ID
	HeldBy     string          `json:",omitempty"` // who owns this machine; empty: not said
	Seed       uint64          // of ties, back-off and the jobs' names; a secret of this run
	Addrs      []string        // where this site can be dialled; travels with announcements
	Capability grid.Capability // own rates, named as the data's source

	// Lease is granted at a time; at least 100 ms. Shorter notices deaths sooner, longer
	// forgives slow links. LeaseMargin is waited beyond its end before a task moves, see margin.
	Lease       time.Duration
	LeaseMargin time.Duration
	LongLease   time.Duration // granted to jobs with unattended: finish
	// StartLease before a promised start a lease is granted that reaches beyond it.
	StartLease       time.Duration
	ReservationLease time.Duration // granted to reservations: a site that is back within it keeps them
	// RemapGuard before its promised start a task leaves a silent site at the latest, whatever the
	// domain's controller says.
	RemapGuard    time.Duration `json:",omitempty"`
	AwardWindow   time.Duration // a site that has not answered an award by then has missed it
	BackoffMin    time.Duration // first pause before a job that fits nowhere is announced again
	BackoffMax    time.Duration // longest such pause
	CollectRetry  time.Duration // pause between attempts to fetch outputs
	CollectGiveUp time.Duration // outputs that cannot be had for so long are computed anew
	CollectDead   time.Duration // the same for a site that has died: its agent may soon be back
	Reunion       time.Duration // after being cut off: how long frozen attempts are waited for
	BootGrace     time.Duration // after a start: how long before a job is called unplaceable

	Choice Choice // how to choose among offers
	// Policy says what availability does to a job's placing.
	Policy grid.AvailPolicy
	// FIBR lets a task that has failed somewhere go on at the site with the lowest fault index,
	// in place of the lowest risk.
	FIBR bool

	// FaultHalfLife is the time in which a fault index falls to a half by itself; 0: it does not.
	FaultHalfLife time.Duration `json:",omitempty"`
	// OwnFaultsOnly neither tells other submitters of faults nor heeds what they tell.
	OwnFaultsOnly bool `json:",omitempty"`

	HoldTop     int  // promised jobs: how many of the nearest are asked to hold offers, at least 1
	ReplyTarget int  // > 0: ask for about so many answers by sampling; 0: all sites answer
	Requote     bool // let sites decline an award that has become worse than the runner-up
	MaxJobs     int  // open at the same time
	MaxEnded    int  // ended jobs that stay here; older ones are in the history
	// MaxTries counts the failed attempts of a task after which it is given up. Awards that were
	// declined, and attempts that their sites have lost, do not count.
	MaxTries    int
	ExplainUpTo int  // meshes of up to so many members explain every refusal right away
	UnicastUpTo int  // up to so many members that answer are told by unicast, else gossip; 0: always
	NoBinding   bool // UNSAFE, for tests only: leases of earlier runs are not presumed as granted
	NoFencing   bool // UNSAFE, for tests of the audit only: stale attempts get leases, too
	NoBounds    bool // UNSAFE, for tests of the oracles only: attempts go on as long as they renew
	// NoSeeking, NoLastSave: UNSAFE, for tests of the oracles only: tasks move although no other
	// site offers; and without a last checkpoint.
	NoSeeking, NoLastSave bool
	// NoHolding: UNSAFE, for tests of the oracles only: checkpoints count that are not here.
	NoHolding bool `json:",omitempty"`
	// NoRemapping: UNSAFE, to see what it is good for: nothing stays at a silent site.
	NoRemapping bool `json:",omitempty"`
	// NoLeaseWait: UNSAFE, for tests of the oracles only: what is to leave a silent site is awarded
	// elsewhere while its lease lasts.
	NoLeaseWait bool `json:",omitempty"`
	// UNSAFE, for tests of the oracles only: one result is believed, whatever is asked for; copies
	// of a task may share a site; a site that was outvoted keeps its work.
	NoComparing, NoApart, NoDisown bool `json:",omitempty"`
	// NoCeiling: UNSAFE, for tests of the oracles only: leases of ordered jobs outlast the orders'.
	NoCeiling bool `json:",omitempty"`

	Reports step.Level `json:",omitempty"` // what is below that level is not reported
}

// Default is a configuration for one LAN, of a broker that runs at its owner's site.
func Default(self grid.SiteID) Config {
	return Config{
		Owner: self, Here: self,
		Lease: 3 * time.Second, LeaseMargin: 500 * time.Millisecond,
		LongLease: 8 * time.Hour, ReservationLease: time.Minute, StartLease: 10 * time.Second,
		RemapGuard:  30 * time.Second,
		AwardWindow: 2 * time.Second, BackoffMin: time.Second, BackoffMax: time.Minute,
		CollectRetry: time.Second, CollectGiveUp: time.Minute, CollectDead: 3 * time.Second,
		BootGrace: 3 * time.Second, Reunion: 10 * time.Second,
		HoldTop: index.DefaultReservations, Requote: true, MaxJobs: 4096, MaxEnded: 64, MaxTries: 16,
		ExplainUpTo: 64, UnicastUpTo: 64, FaultHalfLife: fault.DefaultHalfLife,
	}
}

// marginParts is the part of a lease that its margin is at least: a thousandth.
const marginParts = 1000

// margin is waited beyond the end of a lease before a task moves. The site counts the lease
// by its own clock and from earlier on, so the margin has to cover two things only: the time
// that a supervisor takes to freeze a job at the end of its lease (grid.FreezeGrace), which
// LeaseMargin covers; and the drift of the two clocks against each
// other, which grows with the lease. A lease of d is safe while the site's clock loses less
// than margin(d) against this one in that time: LeaseMargin/d, which for 500 ms and 3 s is
// one second in six, and never less than 1 in 1000, ten times what a bad quartz does. A clock
// that is slower than that, as one that does not count suspend, is not covered: the
// driver's clocks count suspend.
func (c Config) margin(lease time.Duration) time.Duration {
	return max(c.LeaseMargin, lease/marginParts)
}

// Validate reports all fields that are out of range.
func (c Config) Validate() error {
	errs := []error{c.Owner.Validate()}
	if c.Here != "" {
		errs = append(errs, c.Here.Validate())
	}
	want := func(holds bool, text string) {
		if !holds {
			errs = append(errs, errors.New(text))
		}
	}
	want(c.Lease >= 100*time.Millisecond, "lease: want at least 100ms")
	want(c.LongLease >= c.Lease, "long lease: want at least the lease")
	want(c.ReservationLease >= c.Lease, "reservation lease: want at least the lease")
	want(c.StartLease >= 0, "start lease: want at least 0")
	want(c.HoldTop >= 1 && c.HoldTop <= maxHolds, "hold top: want 1 to 64")
	want(c.LeaseMargin >= grid.FreezeGrace,
		fmt.Sprintf("lease margin: want at least %s, in which a job is frozen at its lease's end",
			grid.FreezeGrace))
	want(c.AwardWindow > 0, "award window: want more than 0")
	want(c.BackoffMin > 0 && c.BackoffMax >= c.BackoffMin, "back-off: want a rising range above 0")
	want(c.CollectRetry > 0 && c.CollectGiveUp >= c.CollectRetry,
		"collect retry: want more than 0 and at most the give-up")
	want(c.CollectDead > 0 && c.CollectDead <= c.CollectGiveUp,
		"collect dead: want more than 0 and at most the give-up")
	want(min(c.BootGrace, c.Reunion) >= 0, "boot grace, reunion: want at least 0")
	want(c.MaxJobs >= 1 && c.MaxTries >= 1, "max jobs, max tries: want at least 1")
	want(c.FaultHalfLife >= 0, "fault half-life: want at least 0")
	want(c.MaxEnded >= 0, "max ended: want at least 0")
	want(c.Policy <= grid.AvailNSA, "policy: want one that exists")
	want(!c.Policy.Orders() || c.Choice == ChoiceNearest,
		"policy: NAA and NSA choose the site themselves; want no other choice")
	want(c.ReplyTarget >= 0, "reply target: want at least 0")
	return errors.Join(errs...)
}
