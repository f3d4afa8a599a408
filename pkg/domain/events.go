package domain

// The events of this machine's Reports. They are counted by name; the names are part of what the
// metrics promise and never change their meaning.
const (
	eventFailed      = "site_failed"          // warn; Value = its bookings
	eventShort       = "site_short"           // warn; it promised more than it has; Value as above
	eventReturned    = "site_returned"        // info; Value = its bookings
	eventBookings    = "bookings_taken"       // debug; Value = bookings of the site
	eventIncomplete  = "bookings_incomplete"  // debug; something before them was lost
	eventTooMany     = "bookings_refused"     // warn; Reason, Text = which limit
	eventRemapped    = "remap_sent"           // info; Value = tasks that are to move
	eventStuck       = "remap_without_target" // warn; Value = tasks for which there is no space
	eventElsewhere   = "booking_elsewhere"    // debug; its submitter says that it is not there
	eventInvalid     = "invalid_message"      // warn; Reason, Text = why
	eventUnexpected  = "not_for_controller"   // debug; Text = what came
	eventBootedTwice = "booted_twice"         // warn
)
