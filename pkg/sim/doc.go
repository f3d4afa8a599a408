// Package sim drives the site and submitter machines through simulated time: a
// discrete-event driver with a network that delays, loses, duplicates and
// reorders, with sites that crash, restart and are cut off, with links that
// take time to move data, and with sandboxes that honour leases. The machines
// run unchanged; nothing of their behaviour is modelled a second time.
//
// Everything follows from the configuration and its seed: the same seed gives
// the same events in the same order, which Hash lets a test compare.
//
//	world.go    World: configuration, events in their order, jobs handed over
//	queue.go    what is to happen, the next first
//	host.go     one machine with its agent: inputs in, effects carried out
//	inbox.go    loops that take inputs in batches
//	work.go     sandboxes, data that is moved
//	network.go  messages on their way, and who sees whom
//	lags.go     what takes how long in a mesh that was measured
//	ways.go     data on their way, and how they share it
//	trace.go    what was observed, to be asked afterwards
//	watch.go    what happens, told while it happens
//	oracle.go   Oracle: what went wrong, judged in true time
//	oracle_copies.go  whether results that were to agree are right
//	outcome.go  whether what is said of promises is true
//	sizes.go    what is left and has grown when all has ended
//
// What can go wrong is a method of World each. Who uses none of them, gets what there was
// before them.
//
//	cuts.go     deaf and mute sites, one-way cuts, parted groups
//	certificate.go  what supervisors say of a dead agent's jobs
//	kill.go     crashes, also amid a step, with jobs that live on; power cuts
//	asleep.go   hosts that are suspended
//	clock.go    clocks that drift and are set
//	disk.go     disks that are full, broken, slow, lost, or brought back from a backup
//	sandbox.go  sandboxes that hang
//	saving.go   programs that save their states, and whether work is lost
//	moving.go   users and owners that have tasks moved
//	liar.go     sites that lie to others
//	fraud.go    a gateway that lies to its neighbours
//	control.go  the controller of the domain, and who becomes it
//	realms.go   several domains in one world, linked by their gateways
//	border.go   the border's machine on a gateway
//	twin.go     the same identity on two machines
//	run.go      runs of a site, and that the newest one counts
package sim
