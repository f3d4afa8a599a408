// Package workload makes what experiments are fed with: streams of jobs, machines that
// come and go, speeds of hosts and rates of links. Jobs are read from logs of real
// machines in the Standard Workload Format of the Parallel Workloads Archive (S. Chapin
// et al., "Benchmarks and Standards for the Evaluation of Parallel Job Schedulers", JSSPP
// 1999) and turned into the rigid jobs that a scheduler sees, or drawn from a model.
//
// It knows lines, not files: others open and unpack them, and others schedule the jobs.
// All chance comes from a seed: the same seed gives the same workload.
//
//	job.go        what a scheduler sees of a record
//	swf.go        logs: the reader
//	swfwrite.go   logs: the writer
//	directives.go logs: what the header says of the machine
//	stream.go     seeds: one stream of chance for each purpose
//	lublin.go     jobs drawn from the model of Lublin and Feitelson
//	arrivals.go   when they arrive: gaps within a daily cycle
//	estimates.go  what users say of run times: the model of Tsafrir and others
//	law.go        laws of durations, speeds and rates
//	spells.go     machines that are up and down in turns
//	fit.go        laws fitted to what was seen
//	events.go     events of the Failure Trace Archive, read and written
//	hosts.go      speeds of hosts, rates between sites
package workload

// Seconds is an instant, counted from the start of a log, or a duration. The
// Standard Workload Format knows nothing smaller.
type Seconds int64
