// Command mutants measures whether the tests can fail: it changes one small thing in a
// package's code at a time, runs the package's own tests on it, and counts how many changes
// they notice.
//
//	go run ./internal/mutants ./pkg/plan ./pkg/site        25 mutants of each package
//	go run ./internal/mutants -n 100 -seed 7 ./pkg/plan    more of them, others
//	go run ./internal/mutants -wide ./pkg/sim ./pkg/site   survivors meet these tests, too;
//	                                                       all do where there are no others
//	go run ./internal/mutants -reached ./internal/agent    each meets only the tests that
//	                                                       come through its line, also wider
//
// The mutants of a package are drawn by the seed. The changes are given to the go command as an
// overlay, so that no file is touched and runs may go on beside each other: one program holds all
// mutants of functions, and copies of it are told which to be. For what stands outside of
// functions each mutant has a program. With -reached each test runs once alone, to see which
// lines it comes through; lines that none does in its own process meet all tests, and a test that
// fails while its lines are counted meets all mutants. A mutant that
// does not compile is replaced by another one; the room that is made ahead in a map or slice is
// left alone, as nobody can observe it. One whose tests take three times as much of the processor
// as the unchanged ones, or ten times as long (three times beyond half a minute), counts as
// killed.
//
// A survivor is a gap in the tests, or equivalent: a change that nobody can observe.
// Those that were found to be equivalent stand in testdata/equivalent.txt with the reason,
// one to a line, and do not count:
//
//	pkg/plan/fit.go fits: `if n < m` -> `if n <= m`: both branches give the same for n = m
//
// Of lines of a function that read alike, the second is fits(2), and so on.
//
//	main.go     the command line, the packages, the table
//	mutate.go   what is changed: the kinds of mutation, as edits of the text
//	types.go    which mutants compile
//	together.go many mutants in one program
//	reach.go    which tests come through which lines
//	trial.go    one mutant: its program, the tests, the outcome
//	known.go    the list of equivalent mutants
package main
