// Command mutants measures whether the tests can fail: it changes one small thing in a
// package's code at a time, runs the package's own tests on it, and counts how many changes
// they notice.
//
//	go run ./internal/mutants ./pkg/plan ./pkg/site        25 mutants of each package
//	go run ./internal/mutants -n 100 -seed 7 ./pkg/plan    more of them, others
//	go run ./internal/mutants -wide ./pkg/sim ./pkg/site   survivors meet these tests, too
//
// The mutants of a package are drawn by the seed. The change is given to the go command as
// an overlay, so that no file is touched and runs may go on beside each other. A mutant
// that does not compile is replaced by another one. One that runs longer than ten times the
// unchanged tests counts as killed.
//
// A survivor is a gap in the tests, or equivalent: a change that nobody can observe.
// Those that were found to be equivalent stand in testdata/equivalent.txt with the reason,
// one to a line, and do not count:
//
//	pkg/plan/fit.go: `if n < m` -> `if n <= m`: both branches give the same for n = m
//
//	main.go     the command line, the packages, the table
//	mutate.go   what is changed: the kinds of mutation, as edits of the text
//	trial.go    one mutant: overlay, go test, the outcome
//	known.go    the list of equivalent mutants
package main
