package view

import "github.com/mrsmesh/mrsmesh/pkg/grid"

// SiteRow is what this agent knows of a site.
type SiteRow struct {
	ID          grid.SiteID   `json:"id"`
	Name        string        `json:"name,omitempty"`
	Domain      grid.DomainID `json:"domain,omitempty"`
	Self        bool          `json:"self"`      // this agent's own site
	Connected   bool          `json:"connected"` // a stream is open now
	Total       *Resources    `json:"total,omitempty"`
	Kinds       []string      `json:"kinds,omitempty"` // what it runs
	OS          string        `json:"os,omitempty"`
	Arch        string        `json:"arch,omitempty"`
	LastSeen    Time          `json:"last_seen,omitzero"`
	SkewSeconds *float64      `json:"skew_seconds,omitempty"` // its clock minus ours
	RoundTripMS *float64      `json:"round_trip_ms,omitempty"`
	DownBps     int64         `json:"measured_down_bps,omitempty"` // from it to this site, within the last day; left out: not measured
	UpBps       int64         `json:"measured_up_bps,omitempty"`   // from this site to it
	FaultIndex  int           `json:"fault_index"`                 // 0 = never failed us, or made up for it
	Addresses   []string      `json:"addresses,omitempty"`
	Trouble     string        `json:"trouble,omitempty"` // why it is not connected
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
}

// AgentStatus is the state of this agent and its site.
type AgentStatus struct {
	Site           grid.SiteID      `json:"site"`
	Name           string           `json:"name,omitempty"`
	Domain         grid.DomainID    `json:"domain"`
	Version        string           `json:"version"`
	Started        Time             `json:"started"`
	Addresses      []string         `json:"addresses"`
	Kinds          []string         `json:"kinds"`    // what it runs
	Ceilings       Resources        `json:"ceilings"` // what the owner gives
	InUse          Resources        `json:"in_use"`   // of that, taken
	CoreMFLOPS     int64            `json:"core_mflops,omitempty"`
	Running        []RunningTask    `json:"running"`
	Paused         bool             `json:"paused"`
	PausedUntil    Time             `json:"paused_until,omitzero"` // left out: until resumed
	Stopping       bool             `json:"stopping"`
	Peers          int              `json:"peers"`        // connected sites
	Members        int              `json:"members"`      // sites that may take part, connected or not, this one included
	Banned         int              `json:"banned"`       // sites that are kept out
	OpenInvites    int              `json:"open_invites"` // invitations that can be redeemed
	Reach          Reach            `json:"reach"`        // how they reach each other
	DataUsedBytes  int64            `json:"data_used_bytes"`
	DataQuotaBytes int64            `json:"data_quota_bytes"`
	Faults         []FaultRow       `json:"faults"`   // sites with an index above 0
	Counters       map[string]int64 `json:"counters"` // what was counted since the start
	Notices        []Notice         `json:"notices"`  // what the owner should know
}

// Reach is how this site and the others reach each other.
type Reach struct {
	Reachability string        `json:"reachability"` // public, private or unknown
	Serving      bool          `json:"serving"`      // relays for members
	Relays       []grid.SiteID `json:"relays"`       // members through which it is reached
	Direct       int           `json:"direct"`       // sites connected directly
	Relayed      int           `json:"relayed"`      // sites connected through a relay
}

// FaultRow is one entry of the fault-index ledger.
type FaultRow struct {
	Site  grid.SiteID `json:"site"`
	Name  string      `json:"name,omitempty"`
	Index int         `json:"index"`
}

// Notice is something the owner should know, with what to do.
type Notice struct {
	Text   string `json:"text"`
	Cause  string `json:"cause,omitempty"`
	Action string `json:"action,omitempty"`
}
