// Package member knows who takes part in a domain: the roster, which is a set of
// records that the domain's key has signed, what the owner of this site decided
// besides, and the invitations that are open. It knows the domains that this one is
// linked with, too, and on which terms. It keeps all that in the state directory, makes and
// reads the tokens of invitations, and opens no connection.
//
// # Roster
//
// A record says of one site that it is admitted or banned. Of the records of a
// site the one with the highest serial, its time of issue, holds; of two with
// the same serial, the ban. So rosters can be merged in any order and as often
// as one likes, and all that have seen the same records are equal.
//
// # Successions
//
// The domain's key can be replaced. A succession, signed by the former key and by its successor,
// says so; the last successor's word holds, and it has signed again what the former one had. What
// a former key has signed is never taken any more; what is here of it holds until the successor's
// own records are.
//
// # Links
//
// A link is a record that the keys of two domains have signed: their names, their keys, and
// their gateways at that time. It is made by an invitation that is good once. What each side
// decides about the other one, its policy, is its own and not in the record.
//
// # Files
//
// roster.json holds the records, local.json what the owner decided for this
// site alone, invites.json the hashes of the secrets of invitations. A file that
// cannot be used is renamed and reported; the site continues without it. links.json holds the
// links, their policies and the invitations to further ones; a damaged one is an error.
// deputy.json holds what a site was handed that may stand in for the one with the domain's key.
// domain.key holds the domain's private key, if this site is the one that
// invites, domain.key.next its successor while it is rotated. successions.json holds the
// successions of the domain's key; a damaged one is an error.
//
// # Map of the files
//
//	registry.go  Registry: opened, asked, changed; what the owner decides
//	standing.go  Standing: what is known of a site
//	roster.go    Roster: signed records, merged
//	succession.go  a roster follows the successors of its key
//	chain.go     successions: followed, contested, on disk
//	rotate.go    the domain's key: rotated, in steps that can be gone on with
//	key.go       the domain's key: made, read, signing
//	invites.go   what an invitation is, when it is open, its form on disk
//	inviting.go  invitations: made, listed, redeemed
//	asking.go    sites that wait to be admitted by hand
//	revoke.go    invitations: revoked
//	token.go     the text that an invitation is given as
//	links.go        Links: opened, asked, changed, ended
//	linkinvites.go  invitations to links: made, used, withdrawn
//	linksfile.go    the form of links on disk
//	deputy.go       what a site is handed that stands in for the one with the key
//	link.go         records of links, sides, refusals
//	policy.go       what is decided about a linked domain
//	statement.go    what a domain says under its key
//	stored.go    the forms on disk
//	file.go      files read and written
package member
