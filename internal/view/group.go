package view

import "github.com/mrsmesh/mrsmesh/pkg/grid"

// Group has an owner's agent and its standbys, as an agent sees them.
type Group struct {
	Owner     grid.SiteID   `json:"owner"`
	OwnerName string        `json:"owner_name,omitempty"`
	Acting    grid.SiteID   `json:"acting,omitempty"` // left out: nobody that is known
	Here      bool          `json:"here"`             // this agent acts
	Term      uint64        `json:"term"`             // grows each time that another one acts
	Members   []GroupMember `json:"members"`          // the owner's agent and its standbys
	Changing  bool          `json:"changing"`         // members are being replaced
	Jobs      int           `json:"jobs"`
	Open      int           `json:"open"`        // of these, not ended
	Facts     int64         `json:"facts_bytes"` // what each member keeps

	// Of the own group: how many standbys it is to have, and the sites that have lately said why
	// they are none.
	Wanted   int            `json:"wanted,omitempty"`
	Refusals []GroupRefusal `json:"refusals,omitempty"`
}

// GroupRefusal says why a site does not stand by, or does so no longer.
type GroupRefusal struct {
	Site   grid.SiteID `json:"site"`
	Name   string      `json:"name,omitempty"`
	Reason string      `json:"reason"`
}

// GroupMember is one agent of a group.
type GroupMember struct {
	Site grid.SiteID `json:"site"`
	Name string      `json:"name,omitempty"`
	Away bool        `json:"away"` // it is not connected
}

// Controller says who the controller of the domain is, as an agent sees it: the acting member of a
// group of three.
type Controller struct {
	Acting     grid.SiteID   `json:"acting,omitempty"` // left out: there is none that is known
	ActingName string        `json:"acting_name,omitempty"`
	Here       bool          `json:"here"`             // it is this agent
	Term       uint64        `json:"term"`             // grows each time that another one acts
	Members    []GroupMember `json:"members"`          // of the domain's group, as far as is known
	Why        string        `json:"why,omitempty"`    // there is none, for people
	Notice     string        `json:"notice,omitempty"` // what is to be known though there is one

	// Where this agent is a member of the group.
	Founder     grid.SiteID `json:"founder,omitempty"` // the site with the domain's key
	FounderName string      `json:"founder_name,omitempty"`
	Changing    bool        `json:"changing,omitempty"`    // members are being replaced
	Facts       int64       `json:"facts_bytes,omitempty"` // what each member keeps
	// At the controller itself: the promised places that it knows of and that are not over, at so
	// many sites, and the sites that have failed, or in part.
	Bookings int             `json:"bookings,omitempty"`
	Sites    int             `json:"sites,omitempty"`
	Failed   []ControlFailed `json:"failed,omitempty"`
	// At the founder: the sites that have lately said why they are no members.
	Refusals []GroupRefusal `json:"refusals,omitempty"`
}

// ControlFailed is a site that has failed, or a part of it, as the controller sees it.
type ControlFailed struct {
	Site     grid.SiteID `json:"site"`
	Name     string      `json:"name,omitempty"`
	Since    Time        `json:"since"`
	Partly   bool        `json:"partly,omitempty"` // it is there, and has less than it has promised
	Bookings int         `json:"bookings"`         // promised there and not over
	Leaving  int         `json:"leaving"`          // of these, are to move
	Stuck    int         `json:"stuck"`            // of these, have no other place
}
