package view

import (
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Invitation is given to an invited site.
type Invitation struct {
	ID      string        `json:"id,omitempty"`   // to revoke it; left out where the domain is open
	Token   string        `json:"token"`          // for siteagent join
	Name    string        `json:"name,omitempty"` // what it is for
	Domain  grid.DomainID `json:"domain"`
	Open    bool          `json:"open"` // the domain takes anyone; the token says where it is
	Expires Time          `json:"expires,omitzero"`
	Uses    int           `json:"uses"`
	Notices []Notice      `json:"notices"` // what may keep the invited site from joining
}

// InviteTerms are what an invitation is asked for with.
type InviteTerms struct {
	Name string        // what it is for, for people; may be empty
	Span time.Duration // it is good for so long, at least 1 s
	Uses int           // and for so many sites, at least 1
	Ask  bool          // each of them waits until it is admitted by hand
}

// OpenInvitation is an invitation that can still be redeemed, without its secret.
type OpenInvitation struct {
	ID      string `json:"id"`             // for people, and to revoke it
	Name    string `json:"name,omitempty"` // what it is for
	Created Time   `json:"created"`
	Expires Time   `json:"expires"`
	Left    int    `json:"left"` // uses
}

// InviteRow is an invitation, open or closed, without its secret.
type InviteRow struct {
	ID      string        `json:"id"`             // for people, and to revoke it
	Name    string        `json:"name,omitempty"` // what it is for
	State   string        `json:"state"`          // open, used (up), expired or revoked
	Created Time          `json:"created"`
	Expires Time          `json:"expires"`
	Left    int           `json:"left"` // uses; 0 when it was revoked
	Uses    int           `json:"uses"` // that it had when it was made
	By      []InvitedSite `json:"by"`   // who has used it, the first one first
	Ask     bool          `json:"ask"`  // each site with it waits to be admitted by hand
}

// InvitedSite is a site that has used an invitation.
type InvitedSite struct {
	Site grid.SiteID `json:"site"`
	Name string      `json:"name,omitempty"`
}

// MemberRow is one site that takes part, or is kept out.
type MemberRow struct {
	Site grid.SiteID `json:"site"`
	Name string      `json:"name,omitempty"`
	// self, listed, roster, admitted, anyone, pending (waits to be admitted), banned (by the
	// domain) or banned-here
	Standing  string `json:"standing"`
	Member    bool   `json:"member"`    // it may take part
	Connected bool   `json:"connected"` // a stream is open now
	Since     Time   `json:"since,omitzero"`
	Note      string `json:"note,omitempty"`
	// invitations by which the site came and that were revoked with the ban that this answers
	Revoked []InviteRow `json:"revoked,omitempty"`
}

// Members lists the sites of the domain as this site knows them.
type Members struct {
	Domain grid.DomainID `json:"domain"`
	// whose records are believed; left out: none
	DomainKey grid.DomainKey `json:"domain_key,omitempty"`
	// of the key so far, and the last time
	Rotations int  `json:"rotations,omitempty"`
	Rotated   Time `json:"rotated,omitzero"`

	Holder  bool             `json:"holder"` // this site holds the domain's private key
	Anyone  bool             `json:"anyone"` // every site that is not banned may take part
	Sites   []MemberRow      `json:"sites"`
	Invites []OpenInvitation `json:"invites"`
}

// Rotation says what came of giving the domain a new key.
type Rotation struct {
	Domain    grid.DomainID  `json:"domain"`
	Former    grid.DomainKey `json:"former"` // the key that was replaced
	Key       grid.DomainKey `json:"key"`    // the domain's key from now on
	Number    int            `json:"number"` // of the rotation, from 1 for the domain's first
	Made      Time           `json:"made"`
	Sites     int            `json:"sites"`     // whose records the new key has signed again
	Revoked   []InviteRow    `json:"revoked"`   // invitations that were open
	Withdrawn []LinkInvite   `json:"withdrawn"` // the same of those to links
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
