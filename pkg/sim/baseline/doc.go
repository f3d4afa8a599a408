// Package baseline schedules the jobs of a whole grid the way MRS is compared with: BACKFILL
// and REP of B. Khoo Boon Tat, "Multi-Dimensional Resource Allocation Strategy for
// Large-Scale Computational Grid Systems", NUS 2006, section 4.2. They are no part of the
// mesh: each has one queue for the whole grid, sees all of its sites, without
// delay, and knows how long every transfer will take, which nobody has who is not the
// centre of everything.
//
// Sites are planned by pkg/plan. What a job takes it holds from the first byte of its input
// to the last one of its output; estimates are believed.
//
//	grid.go      sites, ways between them, jobs
//	policy.go    BACKFILL, REP and controls: who is tried where
//	schedule.go  Schedule: the jobs in their order, what ends and what begins
//	easy.go      one look at the queue: EASY backfilling over all sites
//	failures.go  sites that fail and are back, and what that does to copies
//	links.go     transfers, one after the other on each way
package baseline
