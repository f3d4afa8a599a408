package border

// The events of this machine's Reports.
const (
	eventBootedTwice = "border_booted_twice" // warn; the input is ignored
	eventInvalid     = "border_invalid"      // warn; a message, fact or link that cannot be
	eventUnexpected  = "border_unexpected"   // debug; an input or message that is not for it

	eventNotAsked = "border_not_asked" // debug; a neighbour was not asked, for Reason
	eventOrdered  = "border_ordered"   // info; a task was ordered of a neighbour
	eventTaken    = "border_taken"     // info; ... and the neighbour has it
	eventDropped  = "border_dropped"   // info; what was ordered is not wanted any more; Text = why
	eventReturned = "border_returned"  // info; it ended there, and what it left is here
	eventTook     = "border_took"      // info; a receipt was given; Value = core-seconds

	eventRefused   = "border_refused"    // info; a neighbour's query or order, for Reason
	eventGuest     = "border_guest"      // info; an order of a neighbour was taken
	eventEvicted   = "border_evicted"    // info; ... and is stopped; Text = why
	eventGuestDone = "border_guest_done" // info; ... or has ended
	eventGave      = "border_gave"       // info; a receipt has come; Value = core-seconds
	eventForged    = "border_forged"     // warn; a receipt that does not verify; Text = why
	eventLost      = "border_lost"       // warn; an order that the broker does not know any more
)
