package border

// The events of this machine's Reports.
const (
	eventBootedTwice = "border_booted_twice" // warn; the input is ignored
	eventInvalid     = "border_invalid"      // warn; a message, fact or link that cannot be
	eventUnexpected  = "border_unexpected"   // debug; an input or message that is not for it
)
