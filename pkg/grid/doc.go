// Package grid holds the nouns of the mesh: sites, jobs, tasks, resources,
// requirements, offers and the reasons for a refusal. It only describes and
// validates; it decides nothing. Every other room speaks in these words (see
// docs/nomenclature.md), so the package imports nothing of the project.
//
// Units: memory, disk and data in bytes; computation in MFLOP/s (10^6
// floating-point operations per second); links in bit/s; processors in
// thousandths of a core. Quantities that are planned with are integers, so that
// reserving and releasing never drifts; the indices of pkg/index are float64.
//
// Where to look:
//
//	ids.go          sites, jobs, tasks, attempts, tokens, content
//	digest.go       what stands for content where all members listen
//	resources.go    amounts of a machine
//	dimension.go    the axes of the virtual map
//	requirement.go  what one task asks of a site
//	job.go          what a user submits
//	take.go         what it takes of another job's outputs
//	task.go         one task of it; phases, ends and outputs
//	encryption.go   jobs whose content only their sites can read
//	signature.go    who vouches for what a job runs, and whose word an owner takes
//	checkpoint.go   when a task's state is saved, and one that was
//	placing.go      how a job's tasks are placed: split, overrun, unattended
//	redundancy.go   how often a task runs, and what has to agree
//	scheduling.go   the words of a site's plan: policies, backfilling
//	promise.go      what became of the promise of a time
//	offer.go        a site's answer and its place in the map
//	reason.go       why a site refuses
//	text.go         sizes, rates and durations as people write them
package grid
