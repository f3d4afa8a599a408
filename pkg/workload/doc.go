// Package workload makes streams of jobs. Today it reads them: logs of real machines
// in the Standard Workload Format of the Parallel Workloads Archive (S. Chapin et al.,
// "Benchmarks and Standards for the Evaluation of Parallel Job Schedulers", JSSPP
// 1999), and turns what a log recorded into the rigid jobs that a scheduler sees.
//
// It knows lines, not files: others open and unpack them, and others schedule the jobs.
package workload

// Seconds is an instant, counted from the start of a log, or a duration. The
// Standard Workload Format knows nothing smaller.
type Seconds int64
