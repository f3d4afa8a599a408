//go:build !unsafe_nofencing

package agent

// noFencing is true in a build that exists to show that the audit finds what fencing
// prevents.
const noFencing = false
