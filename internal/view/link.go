package view

import "github.com/mrsmesh/mrsmesh/pkg/grid"

// LinkPolicy holds the decisions of a domain's administrator about a linked domain.
type LinkPolicy struct {
	// percent of this domain's capacity that the other one may use at a time
	Give int `json:"give"`
	// what the other one does for this domain at a time, in percent of this one's capacity
	Take   int      `json:"take"`
	Kinds  []string `json:"kinds"`  // of work that is taken from the other one: wasm, command
	Tasks  int      `json:"tasks"`  // of the other one that may be here at a time
	Closed bool     `json:"closed"` // nothing new is given or taken
	Beside bool     `json:"beside"` // it is asked together with the members, not after them
	Onward int      `json:"onward"` // so many borders more what it is asked for may cross
}

// PolicyChange is an order of the administrator: what is left out stays as it is.
type PolicyChange struct {
	Give   *int     `json:"give,omitempty"`
	Take   *int     `json:"take,omitempty"`
	Kinds  []string `json:"kinds,omitempty"`
	Tasks  *int     `json:"tasks,omitempty"`
	Closed *bool    `json:"closed,omitempty"`
	Beside *bool    `json:"beside,omitempty"`
	Onward *int     `json:"onward,omitempty"`
}

// LinkRow is one linked domain.
type LinkRow struct {
	Name   grid.DomainID  `json:"name"`   // here
	Domain grid.SiteID    `json:"domain"` // its name where a site's is asked for
	Key    grid.DomainKey `json:"key"`

	Connected bool        `json:"connected"`         // a stream to its gateway is open now
	Why       string      `json:"why,omitempty"`     // it is not connected
	Gateway   grid.SiteID `json:"gateway,omitempty"` // its site at the other end
	Addr      string      `json:"address,omitempty"` // where the connection leads
	Policy    LinkPolicy  `json:"policy"`
	Given     float64     `json:"given_core_seconds"` // that this domain has worked for it
	Taken     float64     `json:"taken_core_seconds"` // that it has worked for this domain
	Since     Time        `json:"since"`
	Last      Time        `json:"last,omitzero"` // when it was heard of last
}

// Gateway says who holds the links of a domain, as an agent sees it.
type Gateway struct {
	Acting     grid.SiteID `json:"acting,omitempty"` // left out: nobody is heard of
	ActingName string      `json:"acting_name,omitempty"`
	Here       bool        `json:"here"`           // it is this agent
	Until      Time        `json:"until,omitzero"` // of a deputy that stands in: its mandate's end
	// that may stand in, in this order; known to the site with the domain's key and to themselves
	Deputies []Deputy `json:"deputies"`
}

// Deputy is a site that may stand in for the gateway of its domain.
type Deputy struct {
	Site  grid.SiteID `json:"site"`
	Name  string      `json:"name,omitempty"`
	Until Time        `json:"until,omitzero"` // its mandate's end; left out: not known here
	Away  bool        `json:"away"`
}

// NeighbourRow is a linked domain as any member sees it, with how its own newest jobs used it.
type NeighbourRow struct {
	Name      grid.DomainID `json:"name"`
	Domain    grid.SiteID   `json:"domain"`    // its name where a site's is asked for
	Reachable bool          `json:"reachable"` // by this domain's gateway, now
	// of the newest NeighbourJobs of this agent that have tasks there, or had when they ended
	Jobs  int `json:"jobs"`
	Tasks int `json:"tasks"` // of these jobs that are there, or ended there
	Done  int `json:"done"`  // of these tasks
}

// NeighbourJobs bounds the newest jobs that a NeighbourRow counts.
const NeighbourJobs = 100

// LinkInvite is an invitation to a link that can still be used, without its secret.
type LinkInvite struct {
	ID      string        `json:"id"`             // for people, and to withdraw it
	Name    grid.DomainID `json:"name,omitempty"` // of the domain that it is for; left out: any
	Created Time          `json:"created"`
	Expires Time          `json:"expires"`
}

// EndedLink is a link that one of the two domains has ended.
type EndedLink struct {
	Name   grid.DomainID  `json:"name"`
	Key    grid.DomainKey `json:"key"`
	At     Time           `json:"at"`
	ByThem bool           `json:"by_them"` // the other domain has ended it
}

// Links lists the domains that this one is linked with.
type Links struct {
	Domain grid.DomainID `json:"domain"`
	// of this domain; left out: it has none yet
	DomainKey grid.DomainKey `json:"domain_key,omitempty"`
	Holder    bool           `json:"holder"`          // this site has the key, and the links
	Where     string         `json:"where,omitempty"` // the site that does, where this one does not
	Gateway   *Gateway       `json:"gateway,omitempty"`
	Links     []LinkRow      `json:"links"`
	Invites   []LinkInvite   `json:"invites"`
	Ended     []EndedLink    `json:"ended"` // in the last 90 days
}

// LinkInvitation is given to the administrator of an invited domain.
type LinkInvitation struct {
	ID      string        `json:"id"`
	Token   string        `json:"token"`          // for siteagent domain join
	Domain  grid.DomainID `json:"domain"`         // that invites
	Name    grid.DomainID `json:"name,omitempty"` // of the domain that it is for; left out: any
	Expires Time          `json:"expires"`
	Notices []Notice      `json:"notices"` // what may keep the invited domain from joining
}
