package view

import (
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// SiteRow shows what this agent knows of a site.
type SiteRow struct {
	ID        grid.SiteID   `json:"id"`
	Name      string        `json:"name,omitempty"`
	Domain    grid.DomainID `json:"domain,omitempty"`
	Self      bool          `json:"self"`            // this agent's own site
	Connected bool          `json:"connected"`       // a stream is open now
	Total     *Resources    `json:"total,omitempty"` // what its owner gives
	// what other programs leave of that now; known of this agent's own site
	Left        *Resources `json:"left,omitempty"`
	CoreMFLOPS  int64      `json:"core_mflops,omitempty"` // of one core; left out: unknown
	Kinds       []string   `json:"kinds,omitempty"`       // what it runs
	OS          string     `json:"os,omitempty"`
	Arch        string     `json:"arch,omitempty"`
	LastSeen    Time       `json:"last_seen,omitzero"`
	SkewSeconds *float64   `json:"skew_seconds,omitempty"` // its clock minus ours
	RoundTripMS *float64   `json:"round_trip_ms,omitempty"`
	// from it to this site, within the last day; left out: not measured
	DownBps    int64     `json:"measured_down_bps,omitempty"`
	UpBps      int64     `json:"measured_up_bps,omitempty"` // from this site to it
	FaultIndex int       `json:"fault_index"`               // 0 = no faults are left
	Fault      *FaultRow `json:"fault,omitempty"`           // left out: nothing is known against it
	Addresses  []string  `json:"addresses,omitempty"`
	Trouble    string    `json:"trouble,omitempty"` // why it is not connected
	// since when it is connected, or away, as far as this agent saw
	Since Time     `json:"since,omitzero"`
	Ends  uint64   `json:"ends,omitempty"`   // how often this agent saw it go
	ZHour *float64 `json:"z_hour,omitempty"` // 1 - P(it stays for an hour), from what this agent saw
}

// RunningTask is a stranger's or an own task that this site holds.
type RunningTask struct {
	Task          string      `json:"task"`
	Token         grid.Token  `json:"token"`
	Submitter     grid.SiteID `json:"submitter"`
	SubmitterName string      `json:"submitter_name,omitempty"`
	Name          string      `json:"name,omitempty"`
	Phase         Phase       `json:"phase"`
	Need          Resources   `json:"need"`
	Started       Time        `json:"started,omitzero"`
	// why it leaves for another site as soon as one is found
	Leaves string `json:"leaves,omitempty"`
}

// AgentStatus is the state of this agent and its site.
type AgentStatus struct {
	Site      grid.SiteID   `json:"site"`
	Name      string        `json:"name,omitempty"`
	Domain    grid.DomainID `json:"domain"`
	Version   string        `json:"version"`
	Started   Time          `json:"started"`
	Addresses []string      `json:"addresses"`
	Kinds     []string      `json:"kinds"`             // what it runs
	Signers   int           `json:"signers,omitempty"` // whose work it runs; left out: anyone
	Ceilings  Resources     `json:"ceilings"`          // what the owner gives
	InUse     Resources     `json:"in_use"`            // of that, taken
	// of the ceilings, what other programs leave now, jobs included
	Left *Resources `json:"left,omitempty"`
	// of one core, nominal; left out: unknown
	CoreMFLOPS  int64         `json:"core_mflops,omitempty"`
	Running     []RunningTask `json:"running"`
	Paused      bool          `json:"paused"`
	PausedUntil Time          `json:"paused_until,omitzero"` // left out: until resumed
	// the site that paused it from afar, by its name if that is known; left out: the owner did
	PausedBy string `json:"paused_by,omitempty"`
	// while paused, jobs that can go on elsewhere leave
	Leaving bool `json:"leaving,omitempty"`
	// when those that cannot are stopped; left out: they are not
	StopAt   Time `json:"stop_at,omitzero"`
	Stopping bool `json:"stopping"`
	Peers    int  `json:"peers"` // connected sites
	// sites that may take part, connected or not, this one included
	Members        int              `json:"members"`
	Banned         int              `json:"banned"`       // sites that are kept out
	OpenInvites    int              `json:"open_invites"` // invitations that can be redeemed
	Reach          Reach            `json:"reach"`        // how they reach each other
	DataUsedBytes  int64            `json:"data_used_bytes"`
	DataQuotaBytes int64            `json:"data_quota_bytes"`
	Faults         []FaultRow       `json:"faults"`          // sites with faults
	Counters       map[string]int64 `json:"counters"`        // what was counted since the start
	Notices        []Notice         `json:"notices"`         // what the owner should know
	Owner          *OwnerView       `json:"owner,omitempty"` // how it yields to its owner
	Walls          []Wall           `json:"walls,omitempty"` // how each ceiling is enforced
	// what was found out about the machine
	Machine *MachineView `json:"machine,omitempty"`
	// how it would answer one typical job, the same for all sites
	Reference    *Standing     `json:"reference,omitempty"`
	Availability *Availability `json:"availability,omitempty"`
	Forecast     *Forecast     `json:"forecast,omitempty"`
	Plan         *PlanView     `json:"plan,omitempty"` // what its planner has before it
	// the group of the own jobs, and those in which it stands by for others
	Standbys []Group `json:"standbys,omitempty"`
	// of the domain; left out: the domain has no key
	Controller *Controller `json:"controller,omitempty"`
	// left out: the domain is linked with no other one, as far as is known here
	Gateway *Gateway `json:"gateway,omitempty"`
	// what it gave since Monday, by its owner's clock
	Week *Given `json:"week,omitempty"`
	// where its settings come from, without the settings
	Configuration *Configuration `json:"configuration,omitempty"`
}

// PauseOrder says how a site is paused.
type PauseOrder struct {
	Span time.Duration // how long it takes no new work; 0 = until resumed
	// jobs that can go on elsewhere move there when their state is saved
	Leave bool
	// with Leave, the others are stopped after so long; 0 = they go on
	StopAfter time.Duration
}

// FleetRow is a member of the domain as an administrator looks at it.
type FleetRow struct {
	Site      grid.SiteID `json:"site"`
	Name      string      `json:"name,omitempty"`
	Self      bool        `json:"self"`              // this agent's own site
	Connected bool        `json:"connected"`         // a stream is open now
	Trouble   string      `json:"trouble,omitempty"` // why there is no status
	// what it says of itself, without its jobs, counters and walls; left out: see Trouble
	Status  *AgentStatus `json:"status,omitempty"`
	Running int          `json:"running"` // jobs that are there
}

// OwnerView says how a site yields to its owner.
type OwnerView struct {
	How   string `json:"how"`             // what is watched, or why nothing is
	Hours string `json:"hours,omitempty"` // when it is shared; left out: always
	// part of the cores that is given now, in percent; left out: all, or none
	Share int `json:"share_percent,omitempty"`
	// part of the memory that is given now, in percent; left out: all
	Memory int `json:"memory_percent,omitempty"`
	// less is given than by the hours: keyboard or mouse are in use
	InUse bool   `json:"in_use,omitempty"`
	Busy  bool   `json:"busy"`            // the owner needs the machine now
	Why   string `json:"why,omitempty"`   // while busy
	Hook  string `json:"hook,omitempty"`  // program that is asked whether it is shared
	Input bool   `json:"input,omitempty"` // it is not while keyboard or mouse are in use
	// that others than this agent use; left out: unknown
	OtherCores *float64 `json:"other_cores,omitempty"`
	// that this agent and its jobs use; left out: unknown
	JobCores    *float64 `json:"job_cores,omitempty"`
	CostPercent float64  `json:"cost_percent,omitempty"` // of one processor, for watching
}

// Wall tells how a ceiling is enforced on this machine.
type Wall struct {
	Ceiling string `json:"ceiling"`         // cores, memory, disk, upload or download
	Kind    string `json:"kind,omitempty"`  // of work; left out: all
	How     string `json:"how"`             // what enforces it
	Tried   bool   `json:"tried"`           // a program that wanted more was run against it
	Seen    string `json:"seen,omitempty"`  // what the trial showed
	Fault   string `json:"fault,omitempty"` // why it does not hold, or was not tried
}

// Reach tells how this site and the others reach each other.
type Reach struct {
	Reachability string        `json:"reachability"` // public, private or unknown
	Serving      bool          `json:"serving"`      // relays for members
	Relays       []grid.SiteID `json:"relays"`       // members through which it is reached
	Direct       int           `json:"direct"`       // sites connected directly
	Relayed      int           `json:"relayed"`      // sites connected through a relay
}

// Notice is something the owner should know, with what to do.
type Notice struct {
	Text   string `json:"text"`
	Cause  string `json:"cause,omitempty"`
	Action string `json:"action,omitempty"`
}

// Availability tells what the site has learned from its own past.
type Availability struct {
	Outlook     []Outlook `json:"outlook"`
	Days        float64   `json:"days"`                   // of being available that were seen
	Crashes     int       `json:"crashes"`                // unexpected ends
	Departures  int       `json:"departures"`             // switched off, suspended, or wanted back
	Runs        int       `json:"runs"`                   // starts of the agent
	Suspends    int       `json:"suspends,omitempty"`     // while it ran
	ClockJumps  int       `json:"clock_jumps,omitempty"`  // the wall clock was set while it ran
	WrongClocks int       `json:"wrong_clocks,omitempty"` // runs whose wall clock cannot be right
	// lines and entries of the history that were left out
	Damaged   int  `json:"damaged,omitempty"`
	Unwritten int  `json:"unwritten,omitempty"`  // entries that the disk did not take
	OwnerBusy bool `json:"owner_busy,omitempty"` // the owner wants the machine now
}

// Outlook tells how likely the site stays available for a time from now on.
type Outlook struct {
	Hours float64 `json:"hours"`
	Z     float64 `json:"z"`    // 1 - P(stays available), 0 = best
	Low   float64 `json:"low"`  // z is above it in 19 cases of 20, if the model is right
	High  float64 `json:"high"` // z is below it in 19 cases of 20, if the model is right
	Sure  string  `json:"sure"` // for people: "a guess", "unsure", "fairly sure", "sure"
}

// Forecast tells how many sites are to be expected, by equation (11) of the thesis.
type Forecast struct {
	Hours float64 `json:"hours"` // from now
	Sites int     `json:"sites"` // that were seen within a week, this one included
	Mean  float64 `json:"mean"`  // of them up then
	Low   int     `json:"low"`   // at least so many with a probability of 95 %
	Paper float64 `json:"paper"` // the equation as printed
	// e_T, what earlier forecasts were wrong by on average
	ErrorTerm float64 `json:"error_term,omitempty"`
	Checked   int     `json:"checked,omitempty"` // how many earlier forecasts that is the mean of
}
