// Package eval runs experiments with the project's own machines and says what came of
// them. It reads what they need, gives them their time, and writes what they leave;
// how anything is scheduled or measured it leaves to pkg/.
//
//	compare.go      strategies of placing jobs, compared over seeds
//	blocks.go       ... and over a second block of seeds
//	cases.go        strategies in cases that have nothing to place
//	failing.go      ... rules for checkpoints, on resources that fail
//	remapping.go    ... rules for reservations, on machines that fail
//	profile.go      how wide and long the jobs of a log are, and when they come
//	odds.go         how likely a job succeeds by copies, predictions and tries
//	checkpoints.go  what each rule for checkpoints makes of one task
//	sweep.go        the same with some values varied
//	workers.go      their runs, shared by all processors
//	axes.go         what strategies and settings of a comparison differ in
//	record.go       one run as it happened
//	offers.go       ... and where sites were in the virtual maps of its jobs
//	places.go       ... and on which nodes of a site
//	batsim.go       ... as files of results that other tools read
//	ownlog.go       an experiment's jobs from the log of a real machine
//	experiments.go  the experiments that come with the program
//	draw.go         grids and jobs drawn from an experiment's models
//	mesh.go         an experiment's jobs placed by the mesh, in the simulator
//	failures.go     how sites fail, and what queues do about it
//	meshfail.go     a mesh whose sites crash and come back
//	forecast.go     how many sites there will be, and how many there were
//	measure.go      what came of them
//	swf.go          the log of a real machine under a policy
//	calibrate.go    predictions of availability against what came of them
//	machines.go     the machines of a calibration, made up or real
//	diagram.go      the picture of a calibration
//	joblog.go       made-up logs
//	turns.go        made-up times up and down
//	fit.go          laws fitted to real ones
//	hosts.go        made-up speeds of sites, and rates between them
//	lines.go        files of lines, packed or not
package eval
