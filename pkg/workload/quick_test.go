//go:build !e2e

package workload

// How many jobs of how many seeds are compared with the model.
const (
	statisticsJobs  = 60_000
	statisticsSeeds = 1
)
