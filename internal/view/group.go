package view

import "github.com/mrsmesh/mrsmesh/pkg/grid"

// Group is how an agent sees an owner's agent and its standbys.
type Group struct {
	Owner    grid.SiteID   `json:"owner"`
	Acting   grid.SiteID   `json:"acting,omitempty"` // left out: nobody that is known
	Here     bool          `json:"here"`             // this agent acts
	Term     uint64        `json:"term"`             // grows each time that another one acts
	Members  []grid.SiteID `json:"members"`          // the owner's agent and its standbys
	Away     []grid.SiteID `json:"away,omitempty"`   // of these, not connected
	Changing bool          `json:"changing,omitempty"`
	Jobs     int           `json:"jobs"`
	Open     int           `json:"open"` // of these, not ended
	Facts    int64         `json:"facts_bytes"`
}
