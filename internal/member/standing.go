package member

// Standing says what is known of a site here, besides the list in the
// configuration.
type Standing uint8

// The standings.
const (
	Unknown      Standing = iota // nothing
	Admitted                     // by the domain's key
	AdmittedHere                 // by this site's owner
	Banned                       // by the domain's key
	BannedHere                   // by this site's owner, which beats everything
)
