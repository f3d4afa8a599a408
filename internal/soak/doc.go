// Command soak hands many small jobs to one of five real agents, one after the other as a
// busy user would for months, and looks at what has grown: memory, files, answers, the start.
//
//	go run ./internal/soak                  100,000 jobs, an hour or more on two cores
//	SOAK_JOBS=3000 go run ./internal/soak   fewer
//	SOAK_KEEP=1 go run ./internal/soak      keeps the state and the logs, and says where
//
// Each thousand jobs it waits for their ends and takes a look. At the end it prints a table of
// what was demanded and what was found, and ends with 1 where something was missed. Goals of
// time are for a machine that is otherwise idle. While it runs, every agent serves /debug/pprof
// on its socket.
//
//	main.go   the run: start, jobs, looks, a start at the end
//	jobs.go   jobs submitted, and their ends counted
//	look.go   memory, files and answers, as they are now
//	table.go  what was demanded and what was found
package main
