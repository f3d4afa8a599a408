// Command bench measures in one run what the mesh costs beside what the machine
// can do at best: raw TCP, a bare libp2p stream, a sync to disk, a process and a
// sandbox. It prints one table, and writes it as JSON to the file that BENCH_JSON
// names.
//
//	go run ./internal/bench                       everything, some five minutes on two cores
//	BENCH_QUICK=1 go run ./internal/bench         fewer rounds and smaller meshes, under a minute
//	BENCH_ONLY=raw,place go run ./internal/bench  some parts only; a wrong name lists them all
//	BENCH_ONLY=beside BENCH_BESIDE=../old go run ...   beside the agent of another checkout
//	BENCH_STANDBYS=2 BENCH_ONLY=beside ...             and this version's submitter has standbys
//	BENCH_STANDBYS=2 BENCH_ONLY=group go run ...  what a group costs idle agents, two minutes
//	BENCH_ONLY=linked go run ...                  what a linked domain costs, two minutes
//	BENCH_DIR=/mnt/disk go run ./internal/bench   where the state of the agents lies
//	BENCH_DOCS=docs/performance.md go run ...     writes BENCH_JSON's table there, measures nothing
//
// What is compared is measured in turns, so that noise meets both sides alike. A
// goal that is missed is reported and fails nothing.
//
// Announcements are timed among real agents in this process, with real networks,
// machines and stores; jobs among real agents in processes of their own. Files of
// the agents that only serve lie in memory where the system has a place for that,
// because each site has a disk of its own in real life and one is shared here.
//
//	main.go     what is measured, in which order
//	header.go   the machine and the build, above the table
//	raw.go      messages beside raw TCP, facts beside the disk
//	content.go  durable results beside the disk
//	place.go    announcements among agents in this process
//	facts.go    facts at the standbys beside as many bytes over TCP and onto disks
//	watch.go    when messages pass there
//	farm.go     agents in processes of their own
//	jobs.go     jobs among those
//	small.go    many small tasks, beside GNU parallel
//	beside.go   the same jobs by agents of another version
//	linked.go   jobs in a linked domain beside one without links, and searches next door
//	cost.go     sizes, idle CPU, memory
//	figure.go   one figure, its goal, and whether it is met
//	stats.go    medians and rates of samples
//	table.go    the table, and its place in docs
//	owner_*.go  what jobs may write handed to the user that runs them
package main
