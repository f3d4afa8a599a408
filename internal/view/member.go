package view

import "github.com/mrsmesh/mrsmesh/pkg/grid"

// Invitation is given to an invited site.
type Invitation struct {
	Token   string        `json:"token"` // for siteagent join
	Domain  grid.DomainID `json:"domain"`
	Open    bool          `json:"open"` // the domain takes anyone; the token says where it is
	Expires Time          `json:"expires,omitzero"`
	Uses    int           `json:"uses"`
	Notices []Notice      `json:"notices"` // what may keep the invited site from joining
}

// OpenInvitation is an invitation that can still be redeemed, without its secret.
type OpenInvitation struct {
	ID      string `json:"id"` // for people
	Created Time   `json:"created"`
	Expires Time   `json:"expires"`
	Left    int    `json:"left"` // uses
}

// MemberRow is one site that takes part, or is kept out.
type MemberRow struct {
	Site grid.SiteID `json:"site"`
	Name string      `json:"name,omitempty"`
	// self, listed, roster, admitted, anyone, banned (by the domain) or banned-here
	Standing  string `json:"standing"`
	Member    bool   `json:"member"`    // it may take part
	Connected bool   `json:"connected"` // a stream is open now
	Since     Time   `json:"since,omitzero"`
	Note      string `json:"note,omitempty"`
}

// Members lists the sites of the domain as this site knows them.
type Members struct {
	Domain grid.DomainID `json:"domain"`
	// whose records are believed; left out: none
	DomainKey grid.DomainKey   `json:"domain_key,omitempty"`
	Holder    bool             `json:"holder"` // this site holds the domain's private key
	Anyone    bool             `json:"anyone"` // every site that is not banned may take part
	Sites     []MemberRow      `json:"sites"`
	Invites   []OpenInvitation `json:"invites"`
}

// CheckResult says whether this site's offers arrive at another one.
type CheckResult struct {
	Arrive   bool        `json:"arrive"`
	Site     grid.SiteID `json:"site,omitempty"` // who was asked
	Name     string      `json:"name,omitempty"`
	Distance float64     `json:"distance"` // of the offer
	Seconds  float64     `json:"seconds"`  // from the announcement to the offer
	Reason   string      `json:"reason,omitempty"`
	Remedy   string      `json:"remedy,omitempty"`
}
