// Package sim drives the site and submitter machines through simulated time: a
// discrete-event driver with a network that delays, loses, duplicates and
// reorders, with sites that crash, restart and are cut off, with links that
// take time to move data, and with sandboxes that honour leases. The machines
// run unchanged; nothing of their behaviour is modelled a second time.
//
// Everything follows from the configuration and its seed: the same seed gives
// the same events in the same order, which Hash lets a test compare.
package sim
