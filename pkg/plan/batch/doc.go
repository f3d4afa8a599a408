// Package batch schedules a log of rigid jobs on one machine of equal processors, the
// way batch systems do: first come first served, EASY backfilling and conservative
// backfilling. It answers for each job when it would have started.
//
// It is the yardstick for the planner in pkg/plan, and apart from it because here a
// place is a number of processors and an instant a whole second, which makes a log of
// a year a matter of milliseconds. EASY and conservative backfilling are those of D.
// Lifka, "The ANL/IBM SP Scheduling System", JSSPP 1995, and of A. Mu'alem and D.
// Feitelson, "Utilization, Predictability, Workloads, and User Runtime Estimates in
// Scheduling the IBM SP2 with Backfilling", IEEE TPDS 12(6), 2001.
//
//	rerun.go         Rerun: a log played through a scheduler
//	policy.go        the policies and their words
//	fcfs.go          first come first served
//	easy.go          EASY backfilling
//	conservative.go  conservative backfilling
//	profile.go       free processors over time
//	endings.go       the next job that ends
//	figures.go       waits, slowdown, utilisation
package batch
